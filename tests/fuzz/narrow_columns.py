"""Random kernels that go down the columns of narrow arrays, of which a tile spans several.

    x0, x1 = xi % e, xi // e        columns x0 of several matrices x1, e wide
    tl.load(x + x0 + e * r + e * l * x1, mask)

Rows are folded at once, added up in a loop, or stored. Masks end along columns, along rows, and
where the last matrix does, which `r + l * x1 < t` says; flags hide more. Columns may begin below
zero or end where int32 does, and rows may wrap around. Arrays end where memory does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.unravelled import Truncated
from tests.holes import before_a_hole

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
LAST = 2**31 - 1
WIDTHS = (1, 2, 5, 8, 9, 16, 17, 31, 33, 64, 100)


@dataclass(frozen=True)
class Launch:
    """Width and rows of a matrix, columns and rows that count, and where they begin."""

    programs: int
    width: int
    length: int
    columns: int
    rows: int
    total: int
    first: int
    first_row: int


class NarrowColumns:
    """One random kernel `(x, flags, out, at, e, l, n, m, t, x_first, r_first, k)`."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.name = f"narrow_columns_{seed}"
        self.columns = rng.choice((4, 8, 8, 16, 32, 64))
        self.rows = rng.choice((4, 8, 16, 64))
        self.steps = rng.choice((1, 2, 3))
        self.width = rng.choice(WIDTHS)
        self.is_constant = rng.random() < 0.7
        self.dtype = rng.choice(("float32", "float32", "int32", "int16", "float64"))
        self.form = rng.choice(("fold", "loop", "loop", "store"))
        if self.form != "loop":
            self.steps = 1
        self.mask = self._mask()

    def _mask(self) -> str:
        parts = ["(xi < n)", "(ri < m)", "(ri + l * x1 < t)", "(t > ri + l * x1)", "(x0 < 7)"]
        parts += ["(xi < n)", "(ri < m)", "(ri + x0 < m)", "flag", "(l * x1 + ri * 2 < t)"]
        return " & ".join(self.rng.sample(parts, self.rng.choice((2, 2, 3, 4))))

    def text(self) -> str:
        """The kernel."""
        rng, wide = self.rng, self.rng.choice(("", "", ".to(tl.int64)"))
        e = str(self.width) if self.is_constant else "e"
        other = rng.choice(("0", "3", None))
        mask = f"({self.mask}) & (r < {self.rows})"
        load = f"tl.load(x + at + (x0 + {e} * (ri - r_first){wide} + {e} * l * x1), {mask}"
        load += ")" if other is None else f", other={other})"
        lines = [
            "@tilewright.jit",
            f"def {self.name}(x, flags, out, at, e, l, n, m, t, x_first, r_first, k):",
            f"    c = tl.program_id(0) * {self.columns} + tl.arange(0, {self.columns})[:, None]",
            f"    r = tl.arange(0, {self.rows})[None, :]",
            "    xi = x_first + c",
            f"    x0 = xi % {e}",
            f"    x1 = xi // {e} - k",
            f"    here = c * {self.rows} + r",
            "    flag = tl.load(flags + r) != 0",
        ]
        lines += self._fold(load, other) if self.form != "loop" else self._loop(load, mask)
        return "\n".join(lines) + "\n\n\n"

    def _fold(self, load: str, other: str | None) -> list[str]:
        shown = "v" if other is not None else f"tl.where({self.mask}, v, 1)"
        end = {
            "fold": f"tl.store(out + c, tl.{self.rng.choice(('sum', 'max'))}(v, 1)[:, None])",
            "store": f"tl.store(out + here, v * 2 + 1{self.rng.choice(('', ', xi < n'))})",
        }[self.form]
        return ["    ri = r_first + r", f"    v = {load}", f"    v = {shown}", f"    {end}"]

    def _loop(self, load: str, mask: str) -> list[str]:
        rng = self.rng
        fresh = rng.choice(("acc + v", "tl.maximum(acc, v)", "acc * 2 - v"))
        kept = f"tl.where({mask}, {fresh}, acc)" if rng.random() < 0.8 else fresh
        fill = "" if "other" in load else f"        v = tl.where({mask}, v, 0)"
        return [
            f"    acc = tl.full([{self.columns}, {self.rows}], 1, tl.{self.dtype})",
            f"    for s in range({self.steps}):",
            f"        ri = r_first + s * {self.rows} + r",
            f"        v = {load}",
            *([fill] if fill else []),
            f"        acc = {kept}",
            f"    tl.store(out + c, tl.{rng.choice(('sum', 'max'))}(acc, 1)[:, None])",
        ]

    def launches(self, count: int) -> list[Launch]:
        """Launches: all or some columns and rows, matrices of which the last is not whole."""
        made, rng = [], self.rng
        for _ in range(count):
            programs, rows = rng.choice((1, 2, 3)), self.rows * self.steps
            width = self.width if self.is_constant else rng.choice(WIDTHS)
            columns = programs * self.columns
            used = rng.choice((columns, columns, columns - 1, rng.randint(0, columns)))
            first = rng.choice((0, 0, 0, 5, -3, -40, LAST - columns, LAST - columns // 2))
            first_row = rng.choice((0, 0, 0, 2, -9, LAST - rows // 2))
            length = rng.choice((1, rows, rows - 1, rows + 3))
            counted = rng.choice((rows, rows - 1, rng.randint(0, rows)))
            total = rng.choice((length * 100, length * (1 + columns // width) - 2, length))
            made.append(
                Launch(programs, width, length, min(LAST, first + used),
                       min(LAST, first_row + counted), min(LAST, first_row + total), first,
                       first_row)
            )  # fmt: skip
        return made

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int] | None:
        """Arrays that end where memory does; None where they would be too large."""
        rng = np.random.default_rng(seed)
        flags = rng.integers(0, 2, self.rows).astype(np.int32)
        read = self._read(launch, flags != 0)
        low, high = (int(read.min()), int(read.max())) if read.size else (0, 0)
        if high - low > 1 << 20:
            return None
        values = rng.integers(-3, 4, high - low + 1).astype(self.dtype)
        out = np.full(launch.programs * self.columns * self.rows, -9, self.dtype)
        first = np.asarray(launch.first, np.int32).view(Truncated)
        return {
            "x": before_a_hole(values), "flags": before_a_hole(flags), "out": out, "at": -low,
            "e": launch.width, "l": launch.length, "n": launch.columns, "m": launch.rows,
            "t": launch.total, "x_first": launch.first, "r_first": launch.first_row,
            "k": int(first // launch.width),
        }  # fmt: skip

    def _read(self, launch: Launch, flag: np.ndarray) -> np.ndarray:
        """The indices that a launch reads, as NumPy computes them."""
        rows = np.arange(self.rows * self.steps, dtype=np.int32)
        columns = np.arange(launch.programs * self.columns, dtype=np.int32)[:, None]
        with np.errstate(over="ignore"):
            xi = (columns + np.int32(launch.first)).view(Truncated)
            first = np.asarray(launch.first, np.int32).view(Truncated) // launch.width
            x0, x1 = xi % launch.width, xi // launch.width - np.int32(first)
            names: dict[str, Any] = {
                "xi": np.asarray(xi), "x0": np.asarray(x0), "x1": np.asarray(x1),
                "ri": rows + np.int32(launch.first_row), "l": np.int32(launch.length),
                "n": launch.columns, "m": launch.rows, "t": launch.total,
                "flag": np.tile(flag, self.steps),
            }  # fmt: skip
            shown = np.broadcast_to(eval(self.mask, {}, names), (columns.size, rows.size))
            moved = launch.width * (rows + launch.length * names["x1"])
            return (names["x0"].astype(np.int64) + moved)[shown]


def programs(seeds: range) -> tuple[str, list[NarrowColumns]]:
    """A module of programs, and what they are."""
    made = [NarrowColumns(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
