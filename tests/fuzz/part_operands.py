"""Random products whose operands end inside of tiles, in memory that ends where they do.

    x = tl.load(a + i[:, None] * p + kk, mask=(i < m)[:, None] & (kk < k), other=0)

Each operand is masked along one of its dimensions or both, or wraps, or is whole there; its rows or
its columns lie together; k counts up to the end or down from it. Masks of both operands may end at
different k, and hide numbers, infinities and NaNs. Tiles are of every size, and the sum is stored
as it is, rounded, added to, or also used elsewhere. All numbers are small integers, so every order
of summing gives the same bits.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tests.holes import before_a_hole

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
SIDES, STEPS = (16, 32, 32, 64, 64, 128), (16, 32, 64, 64, 128)
DTYPES = ("float32", "float64", "float16", "bfloat16", "bfloat16", "int8", "int8")
NUMPY = {"bfloat16": np.dtype(ml_dtypes.bfloat16)}
ENDS = ("mask", "mask", "mask", "wrap", "whole")


@dataclass(frozen=True)
class Launch:
    """The sizes of the product, the k of the second operand, and what lies between rows."""

    m: int
    n: int
    k: int
    l: int
    gap: int
    columns: int
    programs: int


class PartOperands:
    """One random kernel `(a, b, c, sums, m, n, k, l, p, q, columns)`."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.name = f"parts_{seed}"
        self.bm, self.bn, self.bk = rng.choice(SIDES), rng.choice(SIDES), rng.choice(STEPS)
        self.dtype = rng.choice(DTYPES)
        self.sum = {"int8": "int32", "float64": "float64"}.get(self.dtype, "float32")
        self.ends = rng.choice(ENDS), rng.choice(ENDS)
        # Which operands are masked along k; what no mask ends is whole there.
        self.masked = rng.choice(
            ((True, True),) * 4 + ((True, False), (False, True)) + ((False,) * 2,) * 2
        )
        self.turned = rng.random() < 0.3, rng.random() < 0.3
        # Whether the tile is loaded transposed, then turned round.
        self.viewed = rng.random() < 0.2, rng.random() < 0.2
        self.is_counted = rng.random() < 0.5
        self.is_split = all(self.masked) and rng.random() < 0.3
        self.is_rounded = self.sum == "float32" and self.dtype != "float32" and rng.random() < 0.5
        self.result = self.dtype if self.is_rounded else self.sum
        self.value = rng.choice(("acc",) * 4 + ("acc * 2", "acc - tl.max(acc, 1)[:, None]"))
        self.other = rng.choice(("0",) * 6 + ("1",))
        self.has_sums = rng.random() < 0.2

    def text(self) -> str:
        """The kernel."""
        rng = self.rng
        masks = {"mask": "({0} < {1})", "wrap": "", "whole": ""}
        rows, columns = (masks[end] for end in self.ends)
        lines = [
            "pid = tl.program_id(0)",
            f"i = pid // columns * {self.bm} + tl.arange(0, {self.bm})",
            f"j = pid % columns * {self.bn} + tl.arange(0, {self.bn})",
            "ii, jj = " + ", ".join(
                f"{name} % {size}" if end == "wrap" else name
                for name, size, end in zip("ij", "mn", self.ends, strict=True)
            ),
            f"acc = tl.zeros(({self.bm}, {self.bn}), tl.{self.sum})",
        ]  # fmt: skip
        end = "l" if self.is_split else "k"
        left, right = ("{0} < k - t * {1}", "{0} < {2} - t * {1}") if self.is_counted else (
            "t + {0} < k", "t + {0} < {2}"
        )  # fmt: skip
        steps = f"tl.cdiv(k, {self.bk})" if self.is_counted else "k"
        stride = 1 if self.is_counted else self.bk
        first = f"t * {self.bk} + s" if self.is_counted else "t + s"
        if self.is_split:
            steps = steps.replace("k", "tl.maximum(k, l)")
        lines += [f"s = tl.arange(0, {self.bk})", f"for t in range(0, {steps}, {stride}):"]
        parts = [
            rows.format("i", "m"),
            f"({left.format('s', self.bk)})" if self.masked[0] else "",
            f"({right.format('s', self.bk, end)})" if self.masked[1] else "",
            columns.format("j", "n"),
        ]
        x = self._load(0, ("ii", "kk"), parts[:2])
        y = self._load(1, ("kk", "jj"), parts[2:])
        lines += [f"    kk = {first}", f"    x = {x}", f"    y = {y}"]
        lines.append("    acc = tl.dot(x, y, acc)")
        if self.has_sums:
            lines += ["tl.atomic_add(sums, tl.sum(tl.sum((acc.to(tl.int32) & 7), 1), 0))"]
        inside = "(i < m)[:, None] & (j < n)[None, :]"
        place = "c + i[:, None] * n + j[None, :]"
        stored = f"({self.value}).to(tl.{self.result})"
        if rng.random() < 0.2:
            stored = f"tl.load({place}, mask={inside}, other=0) + {stored}"
        lines.append(f"tl.store({place}, {stored}, mask={inside})")
        names = "a, b, c, sums, m, n, k, l, p, q, columns"
        head = f"@tilewright.jit\ndef {self.name}({names}):\n"
        return head + "".join(f"    {line}\n" for line in lines) + "\n\n"

    def _load(self, which: int, place: tuple[str, str], parts: list[str]) -> str:
        base, pitch, is_turned = "ab"[which], "pq"[which], self.turned[which]
        axes = ("[None, :]", "[:, None]") if self.viewed[which] else ("[:, None]", "[None, :]")
        row, column = (name + axis for name, axis in zip(place, axes, strict=True))
        at = f"{column} * {pitch} + {row}" if is_turned else f"{row} * {pitch} + {column}"
        mask = " & ".join(part + axis for part, axis in zip(parts, axes, strict=True) if part)
        other = self.other if which else "0"
        said = f", mask={mask}, other={other}" if mask else ""
        return f"tl.load({base} + {at}{said})" + ".T" * self.viewed[which]

    def launches(self, count: int) -> list[Launch]:
        """Launches of up to some programs, with odd sizes; whole where nothing ends a tile."""
        rng = self.rng
        made: list[Launch] = []
        for _ in range(count):
            m, n = (
                rng.choice((1, 2, 3)) * side
                if end == "whole"
                else rng.choice((1, side, side + 1, 2 * side - 3, 3 * side - 7, side // 2))
                for side, end in zip((self.bm, self.bn), self.ends, strict=True)
            )
            k = rng.choice((1, 7, self.bk, 3 * self.bk + 5, 512, 520, 700))
            if not all(self.masked):
                k = rng.choice((1, 2, 5, 9, 17)) * self.bk
            l = rng.choice((1, k, k + 3, 40)) if self.is_split else k
            columns = -(-n // self.bn)
            programs = columns * -(-m // self.bm)
            made.append(Launch(m, n, k, l, rng.choice((0, 0, 1, 24)), columns, programs))
        return made

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int]:
        """The same arguments every time; between rows there are numbers that nobody reads."""
        rng, dtype = np.random.default_rng(seed), NUMPY.get(self.dtype, np.dtype(self.dtype))
        m, n, k, l = launch.m, launch.n, launch.k, launch.l
        depth = max(k, l)

        hidden = 3 if dtype.kind in "iu" else np.nan

        def in_memory(values: np.ndarray, is_turned: bool) -> np.ndarray:
            laid = values.T if is_turned else values
            wide = np.full((laid.shape[0], laid.shape[1] + launch.gap), hidden, dtype)
            wide[:, : laid.shape[1]] = laid
            return before_a_hole(wide.ravel()[: wide.size - launch.gap])

        a, b = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((m, depth), (depth, n)))
        a[:, k:], b[l:] = hidden, hidden
        result = NUMPY.get(self.result, np.dtype(self.result))
        return {
            "a": in_memory(a, self.turned[0]), "b": in_memory(b, self.turned[1]),
            "c": before_a_hole(np.full((m, n), 5, result)),
            "sums": np.zeros(1, np.int32), "m": m, "n": n, "k": k, "l": l,
            "p": (m if self.turned[0] else depth) + launch.gap,
            "q": (depth if self.turned[1] else n) + launch.gap, "columns": launch.columns,
        }  # fmt: skip


def programs(seeds: range) -> tuple[str, list[PartOperands]]:
    """A module of programs, and what they are."""
    made = [PartOperands(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
