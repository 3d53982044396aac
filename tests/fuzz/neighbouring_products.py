"""Random grids of products whose programs read the same columns of B, in every order.

Rows or columns of the result come first, or groups of rows, or rows from the last one on; tiles end
in masks or wrap around. A program may take several tiles, multiply twice, have rows of B of its own
length, or write over the columns that it has read, and read them again. All launches of a kernel
find B where the last one did, with other numbers in it. All numbers are small integers, so every
order of summing gives the same bits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
SIDES = (16, 32, 32, 64)
STEPS = (16, 32, 32, 64)
DTYPES = ("float32", "float16", "bfloat16", "bfloat16", "int8")
DEPTHS = (1, 64, 100, 128, 128, 512, 512, 513, 1024, 1100)
ROOM = 1200 * 400
"""Elements of the memory of B."""

ORDERS = (  # of programs: which row of tiles r and column of tiles s is whose
    "r, s = p % rows, p // rows",
    "r, s = p % rows, p // rows",
    "r, s = p // columns, p % columns",
    "r, s = rows - 1 - p % rows, p // rows",
    "r, s = p % rows, columns - 1 - p // rows",
    "g = p // (2 * columns) * 2\n    h = tl.minimum(rows - g, 2)\n"
    "    r, s = g + p % (2 * columns) % h, p % (2 * columns) // h",
)


@dataclass(frozen=True)
class Launch:
    """The sizes of the product, elements between B's rows behind the last, and the programs."""

    m: int
    n: int
    k: int
    gap: int
    programs: int


@dataclass
class NeighbouringProducts:
    """One random kernel `(a, b, c, m, n, k, wide, rows, columns, tiles)`."""

    seed: int
    memory: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        rng = self.rng = random.Random(self.seed)
        self.name = f"neighbours_{self.seed}"
        self.bm, self.bn, self.bk = rng.choice(SIDES), rng.choice(SIDES), rng.choice(STEPS)
        self.dtype = rng.choice(DTYPES)
        self.sum = "int32" if self.dtype == "int8" else "float32"
        self.kind = rng.choice(("plain",) * 5 + ("several", "twice", "over", "again", "pitches"))
        self.is_turned = rng.random() < 0.35
        self.writes_b = self.kind in ("over", "again")
        self.wraps = rng.random() < 0.3 and not self.writes_b
        self.memory = np.zeros(ROOM, _numpy(self.dtype))

    def text(self) -> str:
        """The kernel."""
        order = self.rng.choice(ORDERS)
        if self.writes_b:
            order = "r, s = 0, p"
        body = [*order.split("\n    "), *self._tile()]
        lines = ["p = tl.program_id(0)", *body]
        if self.kind == "several":
            start = "for p in range(tl.program_id(0), rows * columns, tiles):"
            lines = [start, *(f"    {line}" for line in body)]
        if self.kind == "again":
            lines = ["p = tl.program_id(0)", "for turn in range(3):", *(f"    {x}" for x in body)]
        names = "a, b, c, m, n, k, wide, rows, columns, tiles"
        head = f"@tilewright.jit\ndef {self.name}({names}):\n"
        return head + "".join(f"    {line}\n" for line in lines) + "\n\n"

    def _tile(self) -> list[str]:
        """One tile of the result."""
        lines = [
            f"i = r * {self.bm} + tl.arange(0, {self.bm})",
            f"j = s * {self.bn} + tl.arange(0, {self.bn})",
            f"acc = tl.zeros(({self.bm}, {self.bn}), tl.{self.sum})",
            *self._loop("a", "acc"),
        ]
        if self.kind == "twice":
            place, mask = "c + i[:, None] * n + j[None, :]", "(i < m)[:, None] & (j < n)[None, :]"
            lines.append(f"tl.store({place}, acc, mask={mask})")
            lines += self._loop("a", "acc")
        if self.writes_b:
            place = f"b + {self._place_of_b('i', 'j')}"
            mask = "(i < k)[:, None] & (j < n)[None, :]"
            value = f"(acc.to(tl.int32) & 3).to(tl.{self.dtype})"
            return [*lines, f"tl.store({place}, {value}, mask={mask})"]
        place, mask = "c + i[:, None] * n + j[None, :]", "(i < m)[:, None] & (j < n)[None, :]"
        return [*lines, f"tl.store({place}, acc, mask={mask})"]

    def _place_of_b(self, row: str, column: str) -> str:
        if self.is_turned:
            return f"{column}[None, :] * wide + {row}[:, None]"
        return f"{row}[:, None] * wide + {column}[None, :]"

    def _loop(self, a: str, acc: str) -> list[str]:
        column = "jj" if self.wraps else "j"
        inside = "(kk < k)[:, None]" + " & (j < n)[None, :]" * (not self.wraps)
        lines = ["jj = j % n"] if self.wraps else []
        lines += ["wide += r % 2 * 16"] if self.kind == "pitches" else []
        return [
            *lines,
            f"for t in range(0, k, {self.bk}):",
            f"    kk = t + tl.arange(0, {self.bk})",
            f"    x = tl.load({a} + i[:, None] * k + kk[None, :],"
            " mask=(i < m)[:, None] & (kk < k)[None, :], other=0)",
            f"    y = tl.load(b + {self._place_of_b('kk', column)}, mask={inside}, other=0)",
            f"    {acc} = tl.dot(x, y, {acc})",
        ]

    def launches(self, count: int) -> list[Launch]:
        """Launches of up to some dozen programs, with odd sizes."""
        rng = self.rng
        made: list[Launch] = []
        for _ in range(count):
            m, n = (rng.choice((size, 2 * size, 5 * size, 3 * size - 7, 1)) for size in self.sides)
            k, gap = rng.choice(DEPTHS), rng.choice((0, 0, 3, 16))
            if self.writes_b:
                m = k = rng.choice((self.bm, self.bm - 1))
            tiles = -(-m // self.bm) * -(-n // self.bn)
            programs = rng.choice((1, 2, 3)) if self.kind == "several" else tiles
            made.append(Launch(m, n, k, gap, programs))
        return made

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of a tile."""
        return self.bm, self.bn

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int]:
        """The same arguments every time; B in the one memory, but where it is written."""
        rng = np.random.default_rng(seed)
        m, n, k = launch.m, launch.n, launch.k
        wide = (k if self.is_turned else n) + launch.gap
        memory = self.memory.copy() if self.writes_b else self.memory
        memory[:] = rng.integers(-2, 3, ROOM)
        return {
            "a": rng.integers(-2, 3, (m, k)).astype(_numpy(self.dtype)), "b": memory,
            "c": np.full((m, n), 77, self.sum), "m": m, "n": n, "k": k, "wide": wide,
            "rows": -(-m // self.bm), "columns": -(-n // self.bn), "tiles": launch.programs,
        }  # fmt: skip


def _numpy(dtype: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def programs(seeds: range) -> tuple[str, list[NeighbouringProducts]]:
    """A module of programs, and what they are."""
    made = [NeighbouringProducts(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
