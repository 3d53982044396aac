"""What random programs are made of: dtypes with their exact ranges, arrays, sizes, variables."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.fuzz.program import Buffer, Kind

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
# The greatest whole number below which every whole number is exact.
LIMITS = {
    "float8e5": 8,
    "float8e4nv": 16,
    "bfloat16": 1 << 8,
    "float16": 1 << 11,
    "float32": 1 << 24,
    "float64": 1 << 30,
}
NUMBERS = (*INTEGERS, *LIMITS)
COMMON = ("int32",) * 4 + ("float32",) * 6 + NUMBERS
ITEM_BYTES = {name: max(1, int("".join(c for c in name if c.isdigit())) // 8) for name in INTEGERS}
ITEM_BYTES |= {"float8e5": 1, "float8e4nv": 1, "bfloat16": 2, "float16": 2, "float32": 4}
ITEM_BYTES |= {"float64": 8}
TABLES = tuple((f"a{k}", dtype) for k, dtype in enumerate((*NUMBERS, "int1")))
# One kind of atomic for each array: those commute with themselves.
CELLS = {
    "c0": ("add", "int32"),
    "c1": ("max", "int32"),
    "c2": ("xor", "int32"),
    "c3": ("add", "float32"),
    "c4": ("min", "int64"),
    "c5": ("or", "uint32"),
    "c6": ("and", "uint64"),
    "c7": ("max", "float32"),
}
SIZES = ((1, 16), (2, 8), (4, 4), (4, 32), (8, 8), (8, 16), (16, 16), (16, 32), (32, 8), (2, 64))

Made = tuple[str, int]


@dataclass(frozen=True)
class Variable:
    """A name with its kind; `bound` limits the magnitude of floats."""

    name: str
    kind: Kind
    bound: int = 0


class Vocabulary:
    """The random choices of one program, its arrays and the variables in scope."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.rows, self.columns = self.rng.choice(SIZES)
        self.grid = self.rng.choice((1, 3, 5, 8))
        self.buffers = [Buffer(name, dtype, "table") for name, dtype in TABLES]
        self.buffers += [Buffer(name, dtype, "cells") for name, (_, dtype) in CELLS.items()]
        self.buffers += [Buffer("s0", "int32", "slack"), Buffer("w0", "int32", "V")]
        self.count = 0
        scalars = ("pid", "n", "num")
        tiles = (("i", "V"), ("r", "R"), ("c", "C"), ("rc", "T"), ("cr", "U"))
        self.scope = [Variable(name, Kind("int32", "S")) for name in scalars]
        self.scope += [Variable(name, Kind("int32", shape)) for name, shape in tiles]
        self.fixed = frozenset(v.name for v in self.scope)

    def roll(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def new_name(self, letter: str) -> str:
        """A name that is not taken."""
        self.count += 1
        return f"{letter}{self.count}"

    def changeable(self) -> list[Variable]:
        """The variables that statements may assign anew."""
        return [v for v in self.scope if v.name not in self.fixed]

    def table(self, dtype: str) -> str:
        """The array of a dtype that every program reads."""
        return next(name for name, held in TABLES if held == dtype)
