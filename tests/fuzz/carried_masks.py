"""Random loops that change the elements of carried tiles that masks show, as reductions do.

Sums of what masks show end where the masks do, too.

    acc = tl.where(mask, acc + x, acc)

Masks are conjunctions of comparisons along rows and columns, with bounds that are arguments, some
at the end of int32 where indices wrap around and a mask holds once more; and of conditions that
are none of an index. Old and new may change places, several tiles may be carried, a store of the
same loop may have another mask. Arrays end where memory does.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tests.holes import before_a_hole

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
LAST = 2**31 - 1


@dataclass(frozen=True)
class Launch:
    """How far rows and columns go, and where their counts begin."""

    rows: int
    columns: int
    first_row: int
    first_column: int
    programs: int = 1


class CarriedMasks:
    """One random kernel `(x, flags, out, seen, n, w, r0, c0, steps)`."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.name = f"carried_masks_{seed}"
        self.rows = rng.choice((1, 2, 4, 8, 16, 64))
        self.columns = rng.choice((4, 8, 16, 32, 64, 128))
        self.dtype = rng.choice(("float32", "float32", "int32", "int16", "float64"))
        self.steps = rng.choice((1, 2, 3))
        self.is_wide = rng.random() < 0.2

    def text(self) -> str:
        """The kernel."""
        rng, shape = self.rng, f"[{self.rows}, {self.columns}]"
        wide = rng.choice((".to(tl.int64)", "")) if self.is_wide else ""
        fresh = rng.choice(("acc + v", "tl.maximum(acc, v)", "v", "acc * 2 - v"))
        old, mask = "acc", self._mask()
        choice = rng.choice((
            f"tl.where({mask}, {fresh}, {old})",
            f"tl.where({mask}, {fresh}, {old})",
            f"tl.where({mask}, {old}, {fresh})",
            f"tl.where({mask}, {fresh}, other)",
        ))  # fmt: skip
        lines = [
            "@tilewright.jit",
            f"def {self.name}(x, flags, out, seen, n, w, r0, c0, steps):",
            f"    r = tl.arange(0, {self.rows})[:, None]",
            f"    c = tl.arange(0, {self.columns})[None, :]",
            f"    here = r * {self.columns} + c",
            "    flag = tl.load(flags + r) != 0",
            f"    acc = tl.full({shape}, 1, tl.{self.dtype})",
            f"    other = tl.full({shape}, 2, tl.{self.dtype})",
            f"    for s in range({rng.choice(('steps', str(self.steps)))}):",
            f"        i = r0 + s * {self.rows} + r{wide}",
            f"        j = c0 + c{wide}",
            f"        v = tl.load(x + {self._place()})",
            f"        acc = {choice}",
        ]
        if rng.random() < 0.4:
            lines.append(f"        other = tl.where({self._mask()}, other + acc, other)")
        if rng.random() < 0.4:
            lines.append(
                f"        tl.store(seen + s * {self.rows * self.columns} + here, v, {self._mask()})"
            )
        size = self.rows * self.columns
        ends = rng.sample((
            f"tl.store(out + here, acc, {self._mask(False)})",
            f"tl.store(out + {size} + c, tl.sum(acc, 0)[None, :])",
            f"tl.store(out + {2 * size} + r, tl.sum(acc, 1)[:, None])",
            f"tl.store(out + {3 * size} + here, acc + other)",
            f"tl.store(out + {size} + c, tl.sum({self._shown()}, 0)[None, :])",
            f"tl.store(out + {2 * size} + r, tl.sum({self._shown()}, 1)[:, None])",
        ), 2)  # fmt: skip
        lines += [f"    {end}" for end in ends]
        return "\n".join(lines) + "\n\n\n"

    def _place(self) -> str:
        """Elements along rows, or along columns."""
        along = (
            f"s * {self.rows * self.columns} + here",
            f"(s * {self.columns} + c) * {self.rows} + r",
        )
        return self.rng.choice(along)

    def _shown(self) -> str:
        """Elements of the array where a mask shows them, and zeros."""
        return f"tl.load(x + here, mask={self._mask(False)}, other=0)"

    def _mask(self, is_inside: bool = True) -> str:
        parts = ["(r < n)", "(c < w)", "(c <= w)", "(here < n * w)", "flag", "(n > 3)"]
        parts += ["(r0 + r < n)", "(c0 + c < w)", "(c0 + c < w)"]
        if is_inside:
            parts += ["(i < n)", "(i < n)", "(i < n)", "(j < w)", "(j < w)", "(w > j)", "(v > 0)"]
        chosen = self.rng.sample(parts, self.rng.choice((1, 2, 2, 3)))
        return " & ".join([*chosen, "(here >= 0)"] if len(chosen) == 1 else chosen)

    def launches(self, count: int) -> list[Launch]:
        """Launches: all or few rows and columns; some count up to the end of int32."""
        made, rng = [], self.rng
        for _ in range(count):
            rows = rng.choice((self.rows * self.steps, rng.randint(0, self.rows * self.steps), 1))
            columns = rng.choice((self.columns, self.columns - 1, rng.randint(0, self.columns), 1))
            first = [0 if rng.random() < 0.7 else LAST - rng.randint(0, 40) for _ in range(2)]
            ends = [
                min(LAST, start + size) for start, size in zip(first, (rows, columns), strict=True)
            ]
            made.append(Launch(*ends, *first))
        return made

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int]:
        """Arrays that end where memory does, and the sizes."""
        rng, size = np.random.default_rng(seed), self.rows * self.columns
        return {
            "x": before_a_hole(rng.integers(-3, 4, size * self.steps).astype(self.dtype)),
            "flags": before_a_hole(rng.integers(0, 2, self.rows).astype(np.int32)),
            "out": np.full(4 * size, -9, self.dtype),
            "seen": before_a_hole(np.full(size * self.steps, -9, self.dtype)),
            "n": launch.rows,
            "w": launch.columns,
            "r0": launch.first_row,
            "c0": launch.first_column,
            "steps": self.steps,
        }


def programs(seeds: range) -> tuple[str, list[CarriedMasks]]:
    """A module of programs, and what they are."""
    made = [CarriedMasks(seed) for seed in seeds]
    return HEADER + "".join(program.text() for program in made), made
