"""Random kernels whose sums several loops of products add up, one after the other.

Depths are arguments, constants, loaded, or computed between the loops; loops stand alone, in a loop
around them or under a branch, count from zero or not, are masked at their end, or run over it where
memory goes on. What is done to the sum before it is stored varies, and who else looks at it. All
numbers are small integers, so every order of summing gives the same bits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import ml_dtypes
import numpy as np

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
SIDES = (16, 16, 32, 64, 64, 128)
STEPS = (16, 32, 32, 64)
DTYPES = ("float32", "float32", "float16", "bfloat16", "float64", "int8")
DEPTHS = (0, 1, 15, 16, 33, 64, 100, 129, 200)
OTHERS = (0, 1, 5, 32, 48)
ROOM = 64
"""Elements of each row behind the deepest product that are there and are zero."""


@dataclass(frozen=True)
class Launch:
    """The sizes of a launch: rows and columns that are stored, depth, another number."""

    rows: int
    columns: int
    depth: int
    other: int
    programs: int


class ChainedProducts:
    """One random kernel `(a, b, c, sums, numbers, m, n, k, other)`."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.name = f"chained_{seed}"
        self.m, self.n = rng.choice(SIDES), rng.choice(SIDES)
        self.dtype = rng.choice(DTYPES)
        self.sum = {"int8": "int32", "float64": "float64"}.get(self.dtype, "float32")
        self.out = rng.choice(
            (self.sum, self.sum, "float16" if self.sum == "float32" else self.sum)
        )
        self.count = rng.choice((1, 2, 2, 2, 3))
        self.is_repeated = rng.random() < 0.2

    def text(self) -> str:
        """The kernel."""
        lines = [
            f"i, j = tl.arange(0, {self.m}), tl.arange(0, {self.n})",
            "i += tl.program_id(0) * " + str(self.m),
            f"acc = tl.zeros(({self.m}, {self.n}), tl.{self.sum})",
        ]
        body = [line for number in range(self.count) for line in self._loop(number)]
        if self.is_repeated:
            body = ["for turn in range(other % 3):", *(f"    {line}" for line in body)]
        lines += [*body, *self._end()]
        head = f"@tilewright.jit\ndef {self.name}(a, b, c, sums, numbers, m, n, k, other):\n"
        return head + "".join(f"    {line}\n" for line in lines) + "\n\n"

    def _loop(self, number: int) -> list[str]:
        """A loop of products, and what its bounds are."""
        rng, step = self.rng, self.rng.choice(STEPS)
        start, end = f"s{number}", f"e{number}"
        ends = (
            "k", "k", "k", f"k // {rng.choice((2, 3))} + {rng.randint(0, 3)}",
            "tl.minimum(k, other)", "k - other", f"{rng.choice((0, 16, 48, 64))}",
            "tl.load(numbers)", "tl.sum(tl.load(numbers + tl.arange(0, 4))) // 4",
            "tl.where(other > 3, k, k // 2)",
        )  # fmt: skip
        lines = [f"{end} = tl.minimum({rng.choice(ends)}, k)"]
        starts = ("0", "0", "0", "0", f"{rng.choice((16, 5))}", f"other // {step} * {step}")
        lines.append(f"{start} = {rng.choice(starts)}")
        if rng.random() < 0.15:
            lines += [f"if other > {rng.randint(0, 40)}:", f"    {end} = {end} // 2"]
        x = f"a + i[:, None] * (k + {ROOM}) + kk[None, :]"
        y = "b + kk[:, None] * n + j[None, :]"
        if rng.random() < 0.25:
            y = f"b + j[None, :] * (k + {ROOM}) + kk[:, None]"
        keeps = ("(i < m)[:, None] & (kk < {0})[None, :]", "(kk < {0})[:, None] & (j < n)[None, :]")
        inside = [keep.format(end) for keep in keeps]
        lines += [
            f"for t in range({start}, {end}, {step}):",
            f"    kk = t + tl.arange(0, {step})",
            f"    x = tl.load({x}, mask={inside[0]}, other=0)",
            f"    y = tl.load({y}, mask={inside[1]}, other=0)",
        ]
        product = rng.choice(("acc = tl.dot(x, y, acc)",) * 4 + ("acc += tl.dot(x, y)",))
        if self.sum == "int32":
            product = product.replace("tl.dot(x, y)", "tl.dot(x, y, out_dtype=tl.int32)")
        lines.append(f"    {product}")
        if rng.random() < 0.1:
            lines.append(f"acc = acc * {rng.randint(2, 3)}")
        if rng.random() < 0.08:
            lines.append("other = other + 1")
        return lines

    def _end(self) -> list[str]:
        """What is done to the sum, and the store."""
        rng = self.rng
        lines = [f"acc = acc + {rng.randint(1, 5)}"] if rng.random() < 0.15 else []
        if rng.random() < 0.1:
            lines.append("tl.store(sums + i, tl.sum(acc, 1).to(tl.int32), mask=i < m)")
        place = "c + i[:, None] * n + j[None, :]"
        if rng.random() < 0.15:
            place = "c + j[None, :] * m + i[:, None]"
        mask = "(i < m)[:, None] & (j < n)[None, :]"
        return [*lines, f"tl.store({place}, acc.to(tl.{self.out}), mask={mask})"]

    def launches(self, count: int) -> list[Launch]:
        """Launches of up to two programs, with odd sizes."""
        rng = self.rng
        made: list[Launch] = []
        for _ in range(count):
            rows = rng.choice((self.m, 2 * self.m, self.m + 3, 1, self.m - 1))
            columns, other = rng.choice((self.n, self.n, self.n - 1, 1)), rng.choice(OTHERS)
            programs = -(-rows // self.m)
            made.append(Launch(rows, columns, rng.choice(DEPTHS), other, programs))
        return made

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int]:
        """Fresh arguments, the same every time."""
        rng = np.random.default_rng(seed)
        wide = launch.depth + ROOM
        a, b = rng.integers(-2, 3, (launch.rows, wide)), rng.integers(-2, 3, (wide, launch.columns))
        return {
            "a": a.astype(_numpy(self.dtype)), "b": b.astype(_numpy(self.dtype)),
            "c": np.full((launch.rows, launch.columns), 77, _numpy(self.out)),
            "sums": np.full(launch.rows, 77, np.int32),
            "numbers": np.full(4, launch.depth // 2, np.int32),
            "m": launch.rows, "n": launch.columns, "k": launch.depth, "other": launch.other,
        }  # fmt: skip


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def programs(seeds: range) -> tuple[str, list[ChainedProducts]]:
    """A module of programs, and what they are."""
    made = [ChainedProducts(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
