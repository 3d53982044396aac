"""Random programs that read numbers in branches, at places that exist in no other case.

A table has 16 numbers, of which some are places in it and some are none. A number is followed only
where a condition says that it is a place, in branches and behind early returns.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

PLACES, PROGRAMS, OUTPUTS = 16, 6, 8
_HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(table, out, n):
    x0 = tl.program_id(0)
"""


@dataclass(frozen=True)
class Lifted:
    """A kernel as text."""

    seed: int
    text: str

    def values(self) -> dict[str, object]:
        """A table, a place for what was found, and a number."""
        rng = np.random.default_rng(self.seed)
        places = rng.integers(0, PLACES, PLACES)
        table = np.where(rng.random(PLACES) < 0.6, places, rng.choice((-1, 10**7), PLACES))
        out = np.full(PROGRAMS * OUTPUTS, -7, np.int32)
        return {"table": table.astype(np.int32), "out": out, "n": int(rng.integers(0, 4))}


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.stored = 0
        self.count = 0

    def block(self, pad: str, known: list[str], depth: int) -> None:
        """Some statements; `known` are numbers that are places here."""
        known = list(known)
        for _ in range(self.rng.randint(2, 4)):
            kind = self.rng.randrange(8)
            if kind < 4 or not depth:
                self.follow(pad, known, depth)
            elif kind == 4 and self.stored < OUTPUTS:
                at = f"out + x0 * {OUTPUTS} + {self.stored}"
                self.lines.append(f"{pad}tl.store({at}, {self.rng.choice(known)})")
                self.stored += 1
            elif kind == 5 and len(pad) == 4:
                self.lines.append(f"{pad}if {self.rng.choice(known)} % 5 == n:")
                self.lines.append(f"{pad}    return")
            else:
                self.lines.append(f"{pad}if {self.rng.choice(known)} % 3 > n % 2:")
                self.block(pad + "    ", known, depth - 1)

    def follow(self, pad: str, known: list[str], depth: int) -> None:
        """Read what a number leads to; go on with it where that is a place."""
        self.count += 1
        name, of = f"x{self.count}", self.rng.choice(known)
        at = self.rng.choice((of, f"({of} + n) % {PLACES}", f"({of} ^ 1)"))
        mask = self.rng.choice(("", "", f", mask={of} != n, other=3"))
        self.lines.append(f"{pad}{name} = tl.load(table + {at}{mask})")
        is_place = f"({name} >= 0) & ({name} < {PLACES})"
        if len(pad) == 4 and self.rng.random() < 0.5:
            self.lines.append(f"{pad}if ({name} < 0) | ({name} >= {PLACES}):")
            self.lines.append(f"{pad}    return")
            known.append(name)
        elif depth:
            self.lines.append(f"{pad}if {is_place}:")
            self.block(pad + "    ", [*known, name], depth - 1)


def generate_lifted(seed: int) -> Lifted:
    """The program of a seed."""
    writer = _Writer(random.Random(seed))
    writer.block("    ", ["x0"], 3)
    writer.lines.append(f"    tl.store(out + x0 * {OUTPUTS} + {OUTPUTS - 1}, x0 + 100)")
    return Lifted(seed, _HEAD + "\n".join(writer.lines) + "\n")
