"""A random kernel as data: statements that can be deleted and sizes that can be shrunk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np

Array = np.ndarray
# The shapes of tiles by letter, as they are spelt in the kernel.
SHAPES = {"S": "()", "V": "(B,)", "R": "(M,)", "C": "(N,)", "T": "(M, N)", "U": "(N, M)"}
# What is added to an array's pointer to give each program elements of its own.
PLACES = {
    "S": "pid",
    "V": "pid * B + i",
    "R": "pid * M + r",
    "C": "pid * N + c",
    "T": "pid * B + rc",
    "U": "pid * B + cr",
}
DTYPES: dict[str, np.dtype] = {
    "int1": np.dtype(np.bool_),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8e5": np.dtype(ml_dtypes.float8_e5m2),
    **{
        name: np.dtype(name)
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                     "float16", "float32", "float64")
    },
}  # fmt: skip
TABLE_SIZE = 1024
SLACK = 16
PREAMBLE = """import tilewright
import tilewright.language as tl
"""
# Functions that statements may call: each is written before the kernel where it is named.
FUNCTIONS = {
    "helper": "(a, b):\n    return a * 2 - b\n",
    "pick": "(a, b, condition):\n    if condition > 0:\n        return a\n    return b\n",
    "greater": "(a, b):\n    return tl.maximum(a, b)\n",
    "both": "(a, b):\n    return a, b\n",
    # Associative, but not commutative: the first element above 1, and affine maps in turn.
    "leftmost": "(a, b):\n    return tl.where(a > 1, a, b)\n",
    "then": "(a, s, b, t):\n    return a * b, s * b + t\n",
    "pair_max": """(a, i, b, j):
    is_later = (b > a) | ((b == a) & (j < i))
    return tl.where(is_later, b, a), tl.where(is_later, j, i)
""",
    "swapped": """(x, B: tl.constexpr):
    even, odd = tl.split(tl.reshape(x, (B // 2, 2)))
    return tl.reshape(tl.join(odd, even), (B,))
""",
    "twice": """(x, B: tl.constexpr):
    even, odd = tl.split(tl.reshape(x, (B // 2, 2)))
    return tl.interleave(odd, odd)
""",
    "nan_wins": """(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "finite": """(x):
    return tl.where(x == x, tl.where(tl.abs(x) < 100000.0, x, 2.0), -3.0)
""",
    "branchy": """(x, y):
    if x > y:
        result = x + 1
    elif x < 0:
        result = -x
    else:
        result = x + y
    return result
""",
}
KERNEL = """

@tilewright.jit
def kernel({parameters}, n, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    pid = tl.program_id(0)
    num = tl.num_programs(0)
    i = tl.arange(0, B)
    r = tl.arange(0, M)
    c = tl.arange(0, N)
    rc = r[:, None] * N + c[None, :]
    cr = c[:, None] * M + r[None, :]
"""


@dataclass(frozen=True)
class Kind:
    """A tile's dtype by name and its shape by letter."""

    dtype: str
    shape: str

    def one(self) -> str:
        """A constant tile of this kind."""
        return f"tl.full({SHAPES[self.shape]}, 1, tl.{self.dtype})"


@dataclass
class Assign:
    """`name = text`; the first assignment of a name has its kind."""

    name: str
    text: str
    kind: Kind | None = None


@dataclass
class Effect:
    """A statement for its effect: a store, an atomic, a return, a break."""

    text: str


@dataclass
class Nested:
    """A header with a body, and with an `else` for an `if`."""

    header: str
    body: list[Node]
    orelse: list[Node] = field(default_factory=list)


Node = Assign | Effect | Nested


@dataclass(frozen=True)
class Buffer:
    """An array argument: `per_program` elements by shape letter, or a table for all programs."""

    name: str
    dtype: str
    shape: str = ""

    def size(self, program: Program) -> int:
        """The number of elements."""
        block = program.rows * program.columns
        if self.shape == "table":
            return max(TABLE_SIZE, program.grid * block)
        if self.shape == "cells":
            return 8
        if self.shape in ("stretch", "bytes"):
            return program.grid * (block * 8 + 256) * (8 if self.shape == "bytes" else 1)
        if self.shape == "slack":
            return program.grid * (block + SLACK)
        sizes = {"S": 1, "R": program.rows, "C": program.columns}
        return program.grid * sizes.get(self.shape, block)


@dataclass(frozen=True)
class Program:
    """A kernel, its arguments and its grid."""

    seed: int
    grid: int
    rows: int
    columns: int
    buffers: tuple[Buffer, ...]
    body: tuple[Node, ...]

    @property
    def num_elements(self) -> int:
        """What the kernel gets as `n`: the last program has a tail."""
        return max(1, self.grid * self.rows * self.columns - self.rows * self.columns // 3)

    def source(self) -> str:
        """The kernel as a Python module."""
        names = ", ".join(buffer.name for buffer in self.used_buffers())
        body = "".join(line for node in self.body for line in render(node, 1))
        functions = [
            f"\n\n@tilewright.jit\ndef {name}{text}"
            for name, text in FUNCTIONS.items()
            if re.search(rf"\b{name}\b", body)
        ]
        head = KERNEL.replace("{parameters}, n", f"{names}, n" if names else "n")
        return PREAMBLE + "".join(functions) + head + body

    def used_buffers(self) -> list[Buffer]:
        """The array arguments that the body names."""
        text = "".join(line for node in self.body for line in render(node, 0))
        named = set(re.findall(r"\b[acmosw]\d+\b", text))
        return [buffer for buffer in self.buffers if buffer.name in named]

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same each time."""
        values: dict[str, object] = {}
        for buffer in self.used_buffers():
            rng = np.random.default_rng([self.seed, *buffer.name.encode()])
            values[buffer.name] = _fill(rng, buffer, buffer.size(self))
        block = self.rows * self.columns
        return {**values, "n": self.num_elements, "M": self.rows, "N": self.columns, "B": block}

    def with_body(self, body: list[Node]) -> Program:
        """The same program with other statements."""
        return replace(self, body=tuple(body))


def _fill(rng: np.random.Generator, buffer: Buffer, size: int) -> Array:
    dtype = DTYPES[buffer.dtype]
    if buffer.dtype == "int1":
        return rng.integers(0, 2, size).astype(np.bool_)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, size, dtype=dtype, endpoint=True)
    return rng.integers(-8, 9, size).astype(dtype)


def render(node: Node, depth: int) -> Iterator[str]:
    """The lines of a statement."""
    indent = "    " * depth
    if isinstance(node, Assign):
        yield f"{indent}{node.name} = {node.text}\n"
    elif isinstance(node, Effect):
        yield f"{indent}{node.text}\n"
    else:
        yield f"{indent}{node.header}\n"
        yield from _render_block(node.body, depth + 1)
        if node.orelse:
            yield f"{indent}else:\n"
            yield from _render_block(node.orelse, depth + 1)


def _render_block(body: list[Node], depth: int) -> Iterator[str]:
    if not body:
        yield "    " * depth + "pass\n"
    for node in body:
        yield from render(node, depth)
