"""Random programs that load and store one array through several arguments, at the same elements.

Arguments are taken not to overlap but there. Tiles are as small as one element and as large as
eight for each thread, so that threads hold copies of what others store; what was loaded is used by
all threads, later. All numbers are whole and wrap, so no order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

SHAPES = ((), (1,), (2,), (16,), (32,), (64,), (256,), (1, 4), (4, 4), (8, 32), (64, 16))
ROOM, WIDE = 8192, 256
"""Elements for the tiles of a shape and kind of place, and of an output."""
_HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(a, b, c, out, n, m):
    k = n * 0
    wide = tl.arange(0, 256)
"""


@dataclass(frozen=True)
class InPlace:
    """A kernel as text, its warps, and how many tiles it stores to `out`."""

    seed: int
    text: str
    num_warps: int
    outputs: int

    def arguments(self) -> list[object]:
        """Fresh arguments: one array three times, and an output."""
        rng = np.random.default_rng(self.seed)
        data = rng.integers(-99, 99, 4 * ROOM * len(SHAPES)).astype(np.int32)
        return [data, data, data, np.zeros(self.outputs * WIDE, np.int32), 3, 5]


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.values: list[tuple[str, tuple[int, ...]]] = []
        self.outputs = 0
        self.pad = "    "

    def say(self, line: str) -> None:
        self.lines.append(self.pad + line)

    def place(self, shape: tuple[int, ...]) -> str:
        """The offsets of a tile: the same numbers, summed in one order or another."""
        kind = self.rng.randrange(4)
        parts = [str((SHAPES.index(shape) * 4 + kind) * ROOM)]
        if len(shape) == 1:
            parts.append(f"tl.arange(0, {shape[0]})")
        if len(shape) == 2:
            parts.append(f"tl.arange(0, {shape[0]})[:, None] * {shape[1]}")
            parts.append(f"tl.arange(0, {shape[1]})[None, :]")
        size = int(np.prod(shape))
        parts += ([], ["n"], ["n * m", f"k * {size}"], [f"{size} * (k + m)"])[kind]
        self.rng.shuffle(parts)
        return " + ".join(parts)

    def mask(self, shape: tuple[int, ...]) -> str:
        if len(shape) != 1 or self.rng.random() < 0.7:
            return ""
        return f", mask=tl.arange(0, {shape[0]}) < n"

    def load(self) -> None:
        shape = self.rng.choice(SHAPES)
        name = f"x{len(self.lines)}"
        mask = self.mask(shape)
        other = ", other=7" if mask else ""
        self.say(f"{name} = tl.load({self.rng.choice('abc')} + {self.place(shape)}{mask}{other})")
        self.values.append((name, shape))

    def store(self) -> None:
        if not self.values:
            return self.load()
        name, shape = self.rng.choice(self.values[-4:])
        value = self.rng.choice((f"{name} + 1", f"{name} * 3 - n", f"{name} + {self.total()}"))
        at = f"{self.rng.choice('abc')} + {self.place(shape)}"
        self.say(f"tl.store({at}, {value}{self.mask(shape)})")
        return None

    def total(self) -> str:
        """A number of which each thread has its own copy."""
        name, shape = self.rng.choice(self.values)
        if not shape:
            return name
        return f"tl.{self.rng.choice(('sum', 'max', 'min'))}({name})"

    def show(self) -> None:
        """All threads tell what they hold."""
        if not self.values:
            return self.load()
        self.say(f"tl.store(out + {self.outputs * WIDE} + wide, {self.total()} + wide)")
        self.outputs += 1
        return None

    def loop(self) -> None:
        known = len(self.values)
        self.say("for k in range(n):")
        self.pad = "        "
        for _ in range(self.rng.randint(2, 5)):
            self.rng.choice((self.load, self.store))()
        self.pad = "    "
        del self.values[known:]
        self.say("k = n - n")


def generate_in_place(seed: int) -> InPlace:
    """The program of a seed."""
    rng = random.Random(seed)
    writer = _Writer(rng)
    for _ in range(rng.randint(4, 12)):
        rng.choice((writer.load, writer.load, writer.store, writer.store, writer.show))()
        if rng.random() < 0.1:
            writer.loop()
    for _ in range(3):
        writer.show()
    text = _HEAD + "\n".join(writer.lines) + "\n"
    return InPlace(seed, text, rng.choice((1, 2, 4, 8)), writer.outputs)
