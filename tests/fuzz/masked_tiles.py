"""Random kernels over tiles whose masks hide whole rows, parts of rows, and nothing.

A mask is a conjunction of conditions, each along some dimensions: comparisons with the launch's
sizes, flags out of memory, a condition of the program. What a launch may not read ends where memory
does, so that a mask which is lost shows, be it in a result or by the end of the process.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tests.holes import before_a_hole

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
OUTPUTS = 3 * 1024 * 8
"""Elements of `out`: three tiles of the largest kind for each of two programs and some."""
_CONJUNCTIONS = (
    "({} & {})",
    "(~(~{} | ~{}))",
    "((~{} | ~{}) == 0)",
    "((~{} | ~{}) == False)",
    "tl.where({}, {}, False)",
    "tl.where(~{}, False, {})",
    "(tl.where(~({} & {}), 3, 8) > 5)",
    "(({} * {}) > 0)",
)


@dataclass(frozen=True)
class Launch:
    """The sizes of one launch: rows and columns that exist, of `programs` × rows × columns."""

    programs: int
    rows: int
    columns: int


class MaskedProgram:
    """One random kernel `(x, flags, places, out, table, n, w)`."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.name = f"masked_{seed}"
        self.rows = self.rng.choice((1, 2, 4, 8))
        self.columns = self.rng.choice((16, 64, 128, 256, 256, 512, 1024))
        self.dtype = self.rng.choice(("float32", "float32", "int32", "float16", "int8"))

    def text(self) -> str:
        """The kernel."""
        tile = self.rows * self.columns
        lines = [
            "@tilewright.jit",
            f"def {self.name}(x, flags, places, out, table, n, w):",
            "    p = tl.program_id(0)",
            f"    r = p * {self.rows} + tl.arange(0, {self.rows})",
            f"    c = tl.arange(0, {self.columns})",
            f"    here = tl.arange(0, {self.rows})[:, None] * {self.columns} + c[None, :]",
            "    flag = tl.load(flags + r, mask=r < n, other=1) != 0",
            "    place = tl.load(places + r, mask=r < n, other=0)",
            f"    m = {self._mask()}",
        ]
        # What is read once is computed where it is used: each number of uses has code of its own.
        is_filled, uses = self.rng.random() < 0.7, self.rng.choice((1, 1, 2, 3))
        other = self.rng.choice(("0", "0", "1", "place[:, None]"))
        lines.append(
            "    a = tl.load(x + r[:, None] * w + c[None, :], mask=m"
            + (f", other={other})" if is_filled else ")")
        )
        if not is_filled:
            lines.append(f"    a = tl.where(m, a, {self.rng.choice(('0', '1'))})")
        if self.rng.random() < 0.3:
            lines.append(f"    k = {self._mask()}")
            lines.append("    b = tl.load(x + place[:, None] * w + c[None, :], mask=k, other=2)")
            lines.append("    a += b")
        if self.rng.random() < 0.4:
            lines.append(f"    q = {self._mask()}")
            lines.append(f"    d = tl.load({self._repeated()}, mask=q, other=2)")
            lines.append("    a += d.to(a.dtype)")
        for number, (value, shape) in enumerate(self.rng.sample(self._values(), uses)):
            to = f"out + (p * 3 + {number}) * {tile} + {shape}"
            mask = self.rng.choice(("", "", ", mask=m")) if shape == "here" else ""
            lines.append(f"    tl.store({to}, {value}{mask})")
        if self.rng.random() < 0.5:
            mask = self.rng.choice(("m", "m", "(r < n)[:, None] & (c < w)[None, :]"))
            add = f"tl.atomic_add(table + place[:, None] * {self.columns} + c[None, :], "
            lines.append(f"    {add}a.to(tl.int32), mask={mask})")
        return "\n".join(lines) + "\n\n\n"

    def _mask(self) -> str:
        """Conditions of which the first two keep the load in its array."""
        parts = ["(r < n)[:, None]", "(c < w)[None, :]"]
        others = ("flag[:, None]", "(c[None, :] >= r[:, None])", "(p >= 0)", "(c > 2)[None, :]")
        parts += [part for part in others if self.rng.random() < 0.15]
        self.rng.shuffle(parts)
        if self.rng.random() < 0.7:
            return " & ".join(parts)
        whole, *others = parts
        for part in others:
            whole = self.rng.choice(_CONJUNCTIONS).format(whole, part)
        return whole

    def _repeated(self) -> str:
        """Pointers that are the same along rows or columns."""
        array, place = self.rng.choice((("places", "r[:, None]"), ("x", "c[None, :]")))
        if self.rng.random() < 0.5:
            place = f"tl.broadcast_to({place}, ({self.rows}, {self.columns}))"
        return f"{array} + {place}"

    def _values(self) -> list[tuple[str, str]]:
        """What is stored, and where in its tile."""
        rows, row = f"tl.arange(0, {self.rows})", "c"
        return [
            ("a", "here"),
            ("a * 2 + 1", "here"),
            ("tl.where(m, a, 5)", "here"),
            ("a - tl.max(a, 1)[:, None]", "here"),
            ("tl.sum(a.to(tl.int32), 1)", rows),
            ("tl.max(a, 1)", rows),
            ("tl.argmax(a, 1)", rows),
            ("tl.sum(m.to(tl.int32), 1)", rows),
            ("tl.sum(a.to(tl.int32), 0)", row),
            ("tl.min(a, 0)", row),
            ("tl.cumsum(a.to(tl.int32), 1)", "here"),
            ("tl.cumsum(a.to(tl.int32), 0)", "here"),
        ]

    def launches(self, count: int) -> list[Launch]:
        """Launches of the program: all rows or few, whole rows or a part of each."""
        rng, made = self.rng, []
        for _ in range(count):
            programs = rng.choice((1, 2))
            rows = rng.choice((programs * self.rows, rng.randint(0, programs * self.rows)))
            columns = rng.choice((self.columns, self.columns, self.columns - 1, 5, 0))
            made.append(Launch(programs, rows, columns))
        return made

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int]:
        """Arrays that end where memory does, and the sizes."""
        rng = np.random.default_rng(seed)
        rows, columns = launch.rows, launch.columns
        return {
            "x": before_a_hole(rng.integers(-3, 4, (rows, columns)).astype(self.dtype)),
            "flags": before_a_hole(rng.integers(0, 2, rows).astype(np.int32)),
            "places": before_a_hole(rng.integers(0, max(rows, 1), rows).astype(np.int64)),
            "out": np.full(launch.programs * OUTPUTS, -9, np.int32),
            "table": np.zeros((max(rows, 1), self.columns), np.int32),
            "n": rows,
            "w": columns,
        }


def programs(seeds: range) -> tuple[str, list[MaskedProgram]]:
    """A module of programs, and what they are."""
    made = [MaskedProgram(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
