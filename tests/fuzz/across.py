"""Random kernels that write tiles across the rows in which they read them.

    t = tl.load(x + r * pitch + c, mask)      along c
    tl.store(out + c * height + r, t)         along r

The tile has its rows first or last, and `tl.trans` may turn it round. Masks end along rows and
columns, along both at once, or have holes; what is read is changed, chosen from, added to what lies
as it is written, or also stored along its rows or summed. Arrays end where memory does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tests.holes import before_a_hole

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
DTYPES = ("float32", "float32", "float16", "int8", "int16", "int32", "int64", "float64", "bool")


@dataclass(frozen=True)
class Launch:
    """Rows and columns that count, of arrays whose rows may be longer, and programs along each."""

    tiles: tuple[int, int]
    rows: int
    columns: int
    pitch: int
    height: int

    @property
    def programs(self) -> int:
        """One for each tile."""
        return self.tiles[0] * self.tiles[1]


class Across:
    """One random kernel `(x, y, flags, out, along, sums, n, m, w, h, across)`."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.name = f"across_{seed}"
        self.rows, self.columns = rng.choice((4, 8, 16, 32, 64)), rng.choice((4, 8, 16, 32, 64))
        self.dtype = rng.choice(DTYPES)
        self.is_turned = rng.random() < 0.5
        self.slabs = rng.choice((1, 1, 1, 2, 3))

    def text(self) -> str:
        """The kernel."""
        rng, turned = self.rng, self.is_turned
        rows, columns = ("[None, :]", "[:, None]") if turned else ("[:, None]", "[None, :]")
        parts = ["(r < n)", "(c < m)"]
        parts += rng.sample(("(r + c < n + 3)", "flag", "(c * 2 < m + r)"), rng.choice((0, 0, 1)))
        rng.shuffle(parts)
        other = rng.choice(("0", "1"))
        lines = [
            "@tilewright.jit",
            f"def {self.name}(x, y, flags, out, along, sums, n, m, w, h, across):",
            "    p = tl.program_id(0)",
            f"    r = (p // across * {self.rows} + tl.arange(0, {self.rows})){rows}",
            f"    c = (p % across * {self.columns} + tl.arange(0, {self.columns})){columns}",
            f"    flag = tl.load(flags + {rng.choice('rc')}) != 0",
            f"    mask = {' & '.join(parts)}",
            f"    for s in range({self.slabs}):" if self.slabs > 1 else "    if True:",
            *("        " + line for line in self._body(other)),
        ]
        slab = "s" if self.slabs > 1 else "0"
        return "\n".join(lines).replace("SLAB", slab) + "\n\n\n"

    def _body(self, other: str) -> list[str]:
        rng, is_number = self.rng, self.dtype != "bool"
        lines = [f"v = tl.load(x + SLAB * n * w + r * w + c, mask=mask, other={other})"]
        if is_number and rng.random() < 0.5:
            lines.append(rng.choice(("v = v * 2 + 1", "v = tl.where(c > r, v, 1 - v)", "v = -v")))
        if is_number and rng.random() < 0.3:
            lines.append("v += tl.load(y + c * h + r, mask=(r < n) & (c < m), other=2)")
        if rng.random() < 0.3:
            lines.append("tl.store(along + SLAB * n * w + r * w + c, v, mask=(r < n) & (c < m))")
        if is_number and rng.random() < 0.3:
            lines.append("tl.store(sums + p * 64 + tl.arange(0, SIZE), tl.sum(v, 1))")
        written, mask = "out + SLAB * m * h + c * h + r", rng.choice(("mask", "(r < n) & (c < m)"))
        if rng.random() < 0.4:
            lines.append(f"tl.store(tl.trans({written}), tl.trans(v), mask=tl.trans({mask}))")
        else:
            lines.append(f"tl.store({written}, v, mask={mask})")
        size = self.columns if self.is_turned else self.rows
        return [line.replace("SIZE", str(size)) for line in lines]

    def launches(self, count: int) -> list[Launch]:
        """Whole tiles, tiles that end early, and few elements of one."""
        made, rng = [], self.rng
        for _ in range(count):
            tiles = rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2))
            most = tiles[0] * self.rows, tiles[1] * self.columns
            rows, columns = (
                rng.choice((size, size, size - 1, max(1, size - 3), rng.randint(1, size)))
                for size in most
            )
            pitch, height = columns + rng.choice((0, 0, 1, 5)), rows + rng.choice((0, 0, 1, 7))
            made.append(Launch(tiles, rows, columns, pitch, height))
        return made

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int]:
        """Arrays that end with the last element that is read or written."""
        rng = np.random.default_rng(seed)
        there = (self.slabs * launch.rows - 1) * launch.pitch + launch.columns
        turned = (self.slabs * launch.columns - 1) * launch.height + launch.rows

        def numbers(size: int) -> np.ndarray:
            return before_a_hole(rng.integers(0, 2 if self.dtype == "bool" else 9, size)
                                 .astype(self.dtype))  # fmt: skip

        most = max(launch.tiles[0] * self.rows, launch.tiles[1] * self.columns)
        return {
            "x": numbers(there), "y": numbers(turned),
            "flags": rng.integers(0, 2, most).astype(np.int32),
            "out": before_a_hole(np.zeros(turned, self.dtype)),
            "along": before_a_hole(np.zeros(there, self.dtype)),
            "sums": np.zeros(64 * launch.programs, np.float64),
            "n": launch.rows, "m": launch.columns, "w": launch.pitch, "h": launch.height,
            "across": launch.tiles[1],
        }  # fmt: skip


def programs(seeds: range) -> tuple[str, list[Across]]:
    """A module of programs, and what they are."""
    made = [Across(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
