"""Random chains over rows of which a mask hides the end: sums, extremes and tiles read again.

    a = tl.load(x, mask=c < w, other=-inf)
    a = tl.exp(a * s - tl.max(a * s, 1)[:, None])
    tl.store(out, a / tl.sum(a, 1)[:, None])

What is hidden has values as well, which folds may take once for all and tiles keep: whole tiles are
stored, so that each of their elements shows. Rows hold infinities, NaN and both zeros.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tests.holes import before_a_hole

HEADER = "import tilewright\nimport tilewright.language as tl\n\n\n"
STEPS = (
    "a * 2.0",
    "a * 0.7071067811865476",
    "a * -0.5",
    "-a",
    "tl.abs(a)",
    "1.0 + a",
    "a - 1.0",
    "a * a",
    "a * s",
    "a - s",
    "s * a",
    "a + b",
    "a * b",
    "b - a",
    "tl.where(a > 0.0, a, 0.0)",
    "tl.erf(a)",
    "tl.exp(a)",
    "tl.exp2(a)",
    "tl.sqrt(tl.abs(a))",
    "tl.extra.libdevice.tanh(a)",
    "tl.sin(a)",
    "tl.sigmoid(a)",
    "a * tl.sigmoid(a)",
    "a / 2.0",
    "1.0 / (1.0 + tl.abs(a))",
    "a - tl.max(a, 1)[:, None]",
    "tl.exp(a - tl.max(a, 1)[:, None])",
    "a - (tl.sum(a, 1) / 8)[:, None]",
    "tl.where(m, a, 0.0)",
    "tl.where(m, a, -float('inf'))",
    "a * (1.0 + tl.erf(a * 0.7071067811865476))",
    "a.to(tl.float16).to(tl.float32)",
)
FOLDS = ("sum", "max", "min")
WEIRD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)


@dataclass(frozen=True)
class Launch:
    """How many columns exist, what the scalar is, and how much of the rows is no plain number."""

    columns: int
    scalar: float
    weird: float


class MaskedRows:
    """One random kernel `(x, y, out, folds, w, s)`."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(seed)
        self.name = f"masked_rows_{seed}"
        self.rows = rng.choice((1, 1, 2, 4))
        self.columns = rng.choice((64, 128, 256, 512, 1024))
        self.text = self._kernel()
        # An extremum of zeros of both signs may be either of them.
        self.has_signs = "tl.max(a, 1)[" not in self.text

    def _kernel(self) -> str:
        rng = self.rng
        first, second = (
            rng.choice(("0.0", "0.0", "-0.0", "-float('inf')", "float('inf')", "1.0")) for _ in "ab"
        )
        lines = [
            "@tilewright.jit",
            f"def {self.name}(x, y, out, folds, w, s):",
            f"    r = tl.program_id(0) * {self.rows} + tl.arange(0, {self.rows})",
            f"    c = tl.arange(0, {self.columns})",
            "    m = (c < w)[None, :]",
            f"    whole = r[:, None] * {self.columns} + c[None, :]",
            f"    a = tl.load(x + r[:, None] * w + c[None, :], mask=m, other={first})",
            f"    b = tl.load(y + r[:, None] * w + c[None, :], mask=m, other={second})",
        ]
        for number in range(3):
            lines += (f"    a = {rng.choice(STEPS)}" for _ in range(rng.randint(1, 3)))
            lines.append(f"    tl.store(folds + r * 3 + {number}, tl.{rng.choice(FOLDS)}(a, 1))")
            if rng.random() < 0.5:
                lines.append("    tl.store(out + whole, a, mask=m)")
        lines.append("    tl.store(out + whole, a)")
        return "\n".join(lines) + "\n\n\n"

    def launches(self, count: int) -> list[Launch]:
        """Launches of the program: whole rows and parts of them."""
        rng, whole = self.rng, self.columns
        return [
            Launch(
                rng.choice((whole, whole - 1, whole // 2 + 3, whole // 2, 5, 0)),
                rng.choice((0.5, 2.0, 0.0, -1.0, float("inf"), float("-inf"), float("nan"))),
                rng.choice((0.0, 0.0, 0.2, 1.0)),
            )
            for _ in range(count)
        ]

    def arguments(self, launch: Launch, seed: int) -> dict[str, np.ndarray | int | float]:
        """Arrays that end where memory does; two programs' worth of rows."""
        rng, rows = np.random.default_rng(seed), 2 * self.rows
        values = rng.integers(-8, 9, (2, rows, launch.columns)).astype(np.float32) / 8
        chosen = rng.random(values.shape) < launch.weird
        values[chosen] = rng.choice(WEIRD, values.shape)[chosen]
        return {
            "x": before_a_hole(values[0]),
            "y": before_a_hole(values[1]),
            "out": np.full((rows, self.columns), 7, np.float32),
            "folds": np.full((rows, 3), 7, np.float32),
            "w": launch.columns,
            "s": launch.scalar,
        }


def programs(seeds: range) -> tuple[str, list[MaskedRows]]:
    """A module of programs, and what they are."""
    made = [MaskedRows(seed) for seed in seeds]
    return HEADER + "".join(program.text for program in made), made
