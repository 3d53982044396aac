"""Random programs of products in loops and branches, to be split into roles.

A program loads blocks through descriptors wherever it stands (under conditions, in nests, in
loops of no iteration), multiplies them, and computes with what comes out: elementwise, row by
row, with values that loops carry. All numbers are whole and small, so no order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tests.corpus.case import Case, Values, blank, whole
from tilewright.jit import JITFunction

HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(a, b, d, c, out, sums, n, steps, rows, M: tl.constexpr, N: tl.constexpr,
           K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [rows, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, N], [N, 1], [K, N])
    z = tl.make_tensor_descriptor(d, [n, N], [N, 1], [N, N])
    pid = tl.program_id(0)
    first = pid * M
    at = first + tl.arange(0, M)
    across = tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    other = tl.zeros((M, N), tl.float32) + 1.0
    low = tl.zeros((M,), tl.float32)
    count = 0
"""
TAIL = """    inside = at < rows
    tl.store(out + at[:, None] * N + across[None, :], acc + other, mask=inside[:, None])
    tl.store(sums + at, low + tl.sum(acc, 1) + count, mask=inside)
"""
TILES_HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def kernel(a, b, d, c, out, sums, n, steps, rows, M: tl.constexpr, N: tl.constexpr,
           K: tl.constexpr):
    x = tl.make_tensor_descriptor(a, [rows, n], [n, 1], [M, K])
    y = tl.make_tensor_descriptor(b, [n, N], [N, 1], [K, N])
    z = tl.make_tensor_descriptor(d, [n, N], [N, 1], [N, N])
    into = tl.make_tensor_descriptor(out, [rows, N], [N, 1], [M, N])
    below = tl.make_tensor_descriptor(sums, [rows], [1], [M])
    pid = tl.program_id(0)
    across = tl.arange(0, N)
    for tile in range(pid, tl.cdiv(rows, M), tl.num_programs(0)):
        first = tile * M
        at = first + tl.arange(0, M)
        acc = tl.zeros((M, N), tl.float32)
        other = tl.zeros((M, N), tl.float32) + 1.0
        low = tl.zeros((M,), tl.float32)
        count = 0
"""
TILES_TAIL = """        into.store([first, 0], acc + other)
        below.store([first], low + tl.sum(acc, 1) + count)
"""
_WIDE_BLOCKS = """    w = tl.make_tensor_descriptor(a, [rows, n], [n, 1], [M, M])
    pid ="""
_PRODUCTS = (
    "acc = tl.dot(x.load([first, {k}]), y.load([{k}, 0]), acc)",
    "other = tl.dot(x.load([first, {k}]), y.load([{k}, 0]), other)",
    "acc += tl.dot(x.load([first, {k}]), y.load([{k}, 0])) * 2.0",
    "acc = tl.dot((tl.dot(x.load([first, {k}]), y.load([{k}, 0])) % 8).to(tl.float16),"
    " z.load([{k}, 0]).T, acc)",
    "acc = tl.dot(((other % 4) + tl.max(other % 4, 1)[:, None]).to(tl.float16),"
    " z.load([{k}, 0]), acc)",
)
_GATHERING = (
    "acc = tl.dot(w.load([first, 0]), (acc % 4).to(tl.float16), acc % 64)",
    "other = tl.dot(w.load([first, {k}]).T, ((other + low[:, None]) % 4).to(tl.float16),"
    " other % 64)",
    "acc = tl.dot(w.load([first, 0]), (tl.dot(x.load([first, {k}]), y.load([{k}, 0])) % 8)"
    ".to(tl.float16), acc)",
)
"""Products that sum up along the rows of what was computed: replicas need all of it."""
_COPIED = {
    "x.load([first, {k}])": "tl.load(a + (at * 3 % rows)[:, None] * n + ({k} + kk)[None, :],"
    " mask=(at < rows)[:, None] & ({k} + kk < n)[None, :], other=0.0)",
    "y.load([{k}, 0])": "tl.load(b + ({k} + kk)[:, None] * N + across[None, :],"
    " mask=({k} + kk < n)[:, None], other=0.0)",
}
"""Blocks by pointers that threads copy: rows in another order, and rows as they are."""
_COMPUTATIONS = (
    "acc = acc % 1024",
    "other = tl.where(acc > other, acc % 512, other - 1.0)",
    "low = tl.maximum(low, tl.max(acc, 1) % 64)",
    "acc += low[:, None]",
    "other += tl.load(c + across)[None, :]",
    "acc += tl.load(c + at % 16, mask=at < rows, other=0.0)[:, None]",
    "acc, other = other % 256, acc % 256",
    "count += 1",
    "count = count * 2 % 7",
    "other = tl.where(across[None, :] < count, other, other % 128 - 1.0)",
    "acc = tl.where(at[:, None] % 3 == count % 3, acc, acc + 1.0)",
    "acc = acc - other % 2",
)
_CONDITIONS = ("count % 2 == 0", "{k} > 16", "steps > 1", "(count + pid) % 3 != 1", "n > 40")


@dataclass(frozen=True)
class RoleProgram:
    """A program as text, and the sizes of a launch of it."""

    seed: int
    text: str
    rows: int
    depth: int
    steps: int
    columns: int
    programs: int

    @property
    def num_loads(self) -> int:
        """How often a block is loaded, in the text."""
        return self.text.count(".load([")

    def case(self, kernel: JITFunction) -> Case:
        """The launch of its kernel."""
        sizes = {"n": self.depth, "steps": self.steps, "rows": self.rows}
        fixed = {"M": 128, "N": self.columns, "K": 16}

        def inputs(rng: np.random.Generator) -> Values:
            def halves(*shape: int) -> np.ndarray:
                return whole(rng, shape, np.int32, -2, 3).astype(np.float16)

            arrays = {"a": halves(self.rows, self.depth), "b": halves(self.depth, self.columns)}
            arrays |= {"d": halves(self.depth, self.columns), "c": halves(64).astype(np.float32)}
            outs = {"out": blank((self.rows, self.columns)), "sums": blank(self.rows)}
            return {**arrays, **outs, **sizes, **fixed}

        def reference(values: SimpleNamespace) -> None:
            raise NotImplementedError("the program itself is the reference")

        return Case(f"roles-{self.seed}", kernel, (self.programs,), inputs, reference)


def generate_roles(
    seed: int, *, over_tiles: bool = False, gathers: bool = False, copies: bool = False
) -> RoleProgram:
    """The program of a seed; `over_tiles`: each program computes several, in a loop of its own.

    `gathers`: there are products that sum up along the rows of tiles. `copies`: some blocks are
    loaded by pointers.
    """
    rng = random.Random(seed)
    head, tail, indent = (TILES_HEAD, TILES_TAIL, 8) if over_tiles else (HEAD, TAIL, 4)
    products = _PRODUCTS
    if gathers:
        head, products = head.replace("    pid =", _WIDE_BLOCKS, 1), (*_PRODUCTS, *_GATHERING)
    if copies:
        head = head.replace("    pid =", "    kk = tl.arange(0, K)\n    pid =", 1)
        products = tuple(_by_pointers(product, rng) for product in products)
    while True:
        lines = _Writer(rng, products).body(rng.randint(2, 4), 3 if over_tiles else 1, "0")
        text = head + "".join(f"{' ' * indent}{line}\n" for line in lines) + tail
        if ".load([" in text or (copies and "kk < n" in text):
            break
    depth = rng.choice((0, 16, 40, 48, 64, 80)) or 16
    rows = rng.choice((128, 100, 200, 256))
    steps, columns, programs = rng.randint(0, 3), rng.choice((16, 32)), -(-rows // 128)
    if over_tiles:
        rows, programs = rng.choice((100, 300, 512, 700)), rng.randint(1, 2)
    return RoleProgram(seed, text, rows, depth, steps, columns, programs)


def _by_pointers(product: str, rng: random.Random) -> str:
    """A product some of whose blocks, or all, are loaded by pointers."""
    for block, load in _COPIED.items():
        if rng.random() < 0.6:
            product = product.replace(block, load)
    return product


class _Writer:
    def __init__(self, rng: random.Random, products: tuple[str, ...] = _PRODUCTS) -> None:
        self.rng = rng
        self.products = products
        self.names = 0

    def body(self, size: int, depth: int, k: str) -> list[str]:
        """Statements; `k` is what counts along the depth of products where they stand."""
        lines: list[str] = []
        for _ in range(size):
            lines += self.statement(depth, k)
        return lines

    def statement(self, depth: int, k: str) -> list[str]:
        kind = self.rng.random()
        if depth < 4 and kind < 0.3:
            return self.loop(depth)
        if depth < 4 and kind < 0.42:
            return self.branch(depth, k)
        if kind < 0.68:
            return [self.rng.choice(self.products).format(k=k)]
        return [self.rng.choice(_COMPUTATIONS)]

    def loop(self, depth: int) -> list[str]:
        self.names += 1
        name = f"k{self.names}"
        inner = [f"    {x}" for x in self.body(self.rng.randint(1, 3), depth + 1, name)]
        kind = self.rng.random()
        if kind < 0.6:
            bound = self.rng.choice(("n", "n - 16", "steps * 16", "32", "count * 16"))
            return [f"for {name} in range(0, {bound}, 16):", *inner]
        if kind < 0.8:
            step = [f"    {name} += 16"]
            return [f"{name} = 0", f"while {name} < steps * 16:", *inner, *step]
        head = f"for t{self.names} in range(pid, steps, tl.num_programs(0) + 1):"
        return [head, f"    {name} = t{self.names} * 16", *inner]

    def branch(self, depth: int, k: str) -> list[str]:
        condition = self.rng.choice(_CONDITIONS).format(k=k)
        lines = [f"if {condition}:"]
        lines += [f"    {x}" for x in self.body(self.rng.randint(1, 2), depth + 1, k)]
        if self.rng.random() < 0.4:
            lines += ["else:", *(f"    {x}" for x in self.body(1, depth + 1, k))]
        return lines


def write_program(program: RoleProgram, folder: Path) -> Path:
    """The program as a file, so that its source can be found."""
    path = folder / f"roles_{program.seed}.py"
    path.write_text(program.text)
    return path
