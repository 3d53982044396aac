"""Random loads of tiles, most of them boxes of tensors and some of them almost: for the engine.

A program loads tiles of `x` by pointers and adds them up, each iteration with another weight, so
that a tile from elsewhere shows. Its launches are not friendly: strides that overlap or are 0,
addresses that are not aligned, sizes that no tile divides, tiles before the array and behind it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tests.corpus.case import Values

HEADER = "import tilewright\nimport tilewright.language as tl\n\n"
MARGIN = 1 << 13
"""Elements of memory before and behind what a launch calls its tensor."""


@dataclass(frozen=True)
class Launch:
    """The arguments of one launch, but for the arrays."""

    grid: tuple[int, int]
    n0: int
    n1: int
    s0: int
    s1: int
    sb: int
    k: int
    shift: int
    dtype: str

    def values(self, rng: np.random.Generator, tile: int) -> Values:
        """The arguments: `x` is a part of an array, so that what lies around it can be told."""
        everything = rng.integers(-8, 9, 1 << 16).astype(self.dtype)
        x = everything[MARGIN + self.shift :]
        out = np.zeros(self.grid[0] * self.grid[1] * tile, np.float32)
        numbers = {name: getattr(self, name) for name in ("n0", "n1", "s0", "s1", "sb", "k")}
        return {"x": x, "out": out, **numbers}


class BoxProgram:
    """One random kernel `(x, out, n0, n1, s0, s1, sb, k)`."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.name = f"box_{seed}"
        self.rows = self.rng.choice((8, 16, 32))
        self.columns = self.rng.choice((16, 32, 64))
        self.wraps = False, False

    @property
    def tile(self) -> int:
        """The elements of a tile."""
        return self.rows * self.columns

    def text(self) -> str:
        """The kernel."""
        rng, rows, columns = self.rng, self.rows, self.columns
        row = self._index(rows, "i", "n0", "tl.program_id(0)")
        column = self._index(columns, "j", "n1", rng.choice(("tl.program_id(1)", "0", "0")))
        self.wraps = "%" in row, "%" in column
        wide = rng.choice(("", "", ".to(tl.int64)"))
        batch = rng.choice(("", "", "tl.program_id(1) * sb + ", "(tl.program_id(1) // 2) * sb + "))
        swapped = rng.random() < 0.3
        lines = [
            "@tilewright.jit",
            f"def {self.name}(x, out, n0, n1, s0, s1, sb, k):",
            f"    i = tl.arange(0, {rows})",
            f"    j = tl.arange(0, {columns})",
            f"    row = ({row}){wide}",
            f"    column = {column}",
            f"    at = x + {batch}row[:, None] * s0 + column[None, :] * s1",
            f"    total = tl.zeros(({rows}, {columns}), tl.float32)",
        ]
        if rng.random() < 0.25:
            lines.append(f"    total += {self._load('at', '0')}.to(tl.float32)")
        else:
            lines += self._loop()
        if swapped:
            lines.append("    total = total.T.T")
        lines += [
            "    pid = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)",
            f"    to = out + pid * {self.tile} + i[:, None] * {columns} + j[None, :]",
        ]
        mask = rng.choice(("", "", ", mask=mine[:, None] < n0", ", mask=n1 > j[None, :]"))
        if "mine" in mask:
            lines.append(f"    mine = tl.program_id(0) * {rows} + i")
        lines.append(f"    tl.store(to, total{mask})")
        return "\n".join(lines) + "\n\n\n"

    def _index(self, extent: int, steps: str, size: str, program: str) -> str:
        start = f"{program} * {extent} + {steps}"
        grouped = f"({program} // (k + 1) * 2 + {program} % 2) * {extent} + {steps}"
        usual = (start, start, steps, f"({start}) % {size}")
        if self.rng.random() < 0.7:
            return self.rng.choice(usual)
        return self.rng.choice(
            (start, start, f"({start}) % {size}", f"({start}) % {size}", steps, grouped,
             f"{start} - 3", f"{start} - {extent}", f"({start}) * 2", f"{size} - 1 - ({start})",
             f"{program} * {size} + {steps}", f"{program} * {extent // 2} + {steps}")
        )  # fmt: skip

    def _loop(self) -> list[str]:
        columns = self.columns
        bounds = self.rng.choice(
            (
                f"0, tl.cdiv(k, {columns})",
                f"0, k, {columns}",
                "0, k",
                "1, k",
                f"k, 3 * k, {columns}",
            )
        )
        counted = bounds in (f"0, tl.cdiv(k, {columns})", "0, k", "1, k")
        count = f"c * {columns}" if counted else "c"
        usual = f"{columns} * s1"
        steps = (f"{columns}", usual, f"{self.rows} * s0", "s0", "0", "-s1")
        step = self.rng.choice((usual, usual, *steps))
        is_carried = self.rng.random() < 0.6
        moved = f"{count} * {self.rng.choice(('s1', 's1', 's0', '1'))}"
        at = "at" if is_carried else f"at + {moved}"
        lines = [
            f"    for c in range({bounds}):",
            f"        total += {self._load(at, count)}.to(tl.float32) * (c + 1)",
        ]
        if is_carried:
            lines.append(f"        at += {step}")
        return lines

    def _load(self, at: str, count: str) -> str:
        rows = ("(row[:, None] < n0)", "(row[:, None] >= 0)")
        columns = (
            "(column[None, :] < n1)",
            f"(j[None, :] < k - {count})",
            f"(column[None, :] + {count} < n1)",
            "(column[None, :] >= 0)",
        )
        # What is wrapped needs no mask, and has one here and there all the same.
        parts = [part for part in rows if self.rng.random() < (0.03 if self.wraps[0] else 0.4)]
        parts += [part for part in columns if self.rng.random() < (0.03 if self.wraps[1] else 0.25)]
        if not parts:
            return f"tl.load({at})"
        other = self.rng.choice(("0", "0", "0", "0", "0", "0", "1"))
        return f"tl.load({at}, mask={' & '.join(parts)}, other={other})"

    def launches(self, count: int) -> list[Launch]:
        """Launches of the program, most of them such that rows are aligned."""
        return [self._launch() for _ in range(count)]

    def _launch(self) -> Launch:
        rng = self.rng
        dtype = rng.choice(("float16", "float16", "float16", "float32", "int8"))
        n0 = rng.choice((1, self.rows, 3 * self.rows, 20, 33, 0))
        n1 = rng.choice((self.columns, 2 * self.columns, 48, 72, 17, 0))
        padded = 16 * -(-n1 // 16)
        row = rng.choice((padded, padded, padded, 128, 128, 208, n1, 16, 0, 200, n1 + 1))
        strides = [row, 1] if rng.random() < 0.8 else [1, row]
        k = rng.choice((0, 1, 2, 3, self.columns, 2 * self.columns, 50, n1))
        shift = rng.choice((0, 0, 0, 0, 0, 0, 0, 8, 16, 1))
        grid = rng.choice(((1, 1), (2, 1), (3, 2), (4, 1)))
        sb = rng.choice((n0 * row, 512, 48, 0, 7))
        return Launch(grid, n0, n1, strides[0], strides[1], sb, min(k, 130), shift, dtype)


def programs(seeds: range) -> tuple[str, list[BoxProgram]]:
    """A module of programs, and what they are."""
    made = [BoxProgram(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
