"""Kernels of several loops whose rings take turns with one memory, or with one ring."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Values, blank, wide
from tests.corpus.partitioned import Partitioned, halves


@tilewright.jit
def two_products(
    a, b, c, d, x, y, m, n, k, h, k_end, h_end,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, H: tl.constexpr
):  # fmt: skip
    """X = A·B and Y = C·D for each tile, of the first `k_end` and `h_end` of the depths."""
    first = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    second = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    third = tl.make_tensor_descriptor(c, [m, h], [h, 1], [M, H])
    fourth = tl.make_tensor_descriptor(d, [h, n], [n, 1], [H, N])
    left = tl.make_tensor_descriptor(x, [m, n], [n, 1], [M, N])
    right = tl.make_tensor_descriptor(y, [m, n], [n, 1], [M, N])
    columns = tl.cdiv(n, N)
    for tile in range(tl.program_id(0), tl.cdiv(m, M) * columns, tl.num_programs(0)):
        row, column = tile // columns * M, tile % columns * N
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k_end, K):
            acc = tl.dot(first.load([row, start]), second.load([start, column]), acc)
        left.store([row, column], acc.to(tl.float16))
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, h_end, H):
            acc = tl.dot(third.load([row, start]), fourth.load([start, column]), acc)
        right.store([row, column], acc.to(tl.float16))


@tilewright.jit
def held_tiles(
    a, b, c, d, x, m, n, k_end, h_end,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, IS_EARLY: tl.constexpr
):  # fmt: skip
    """A·Bᵀ + C·Dᵀ: each loop reads a tile that stays and others that come."""
    first = tl.make_tensor_descriptor(a, [m, K], [K, 1], [M, K])
    second = tl.make_tensor_descriptor(b, [n, K], [K, 1], [N, K])
    third = tl.make_tensor_descriptor(c, [m, K], [K, 1], [M, K])
    fourth = tl.make_tensor_descriptor(d, [n, K], [K, 1], [N, K])
    out = tl.make_tensor_descriptor(x, [m, N], [N, 1], [M, N])
    row = tl.program_id(0) * M
    acc = tl.zeros((M, N), tl.float32)
    left = first.load([row, 0])
    if IS_EARLY:
        right = third.load([row, 0])
    for start in range(0, k_end, N):
        acc = tl.dot(left, second.load([start, 0]).T, acc)
    if not IS_EARLY:
        right = third.load([row, 0])
    for start in range(0, h_end, N):
        acc = tl.dot(right, fourth.load([start, 0]).T, acc)
    out.store([row, 0], acc.to(tl.float16))


SIZES = (64, 64, 32, 64)
"""The blocks of `two_products`: M, N, K, H."""


def two_products_case(
    name: str,
    steps: tuple[int, int],
    blocks: tuple[int, int, int, int] = SIZES,
    tiles: tuple[int, int] = (3, 1),
    rest: tuple[int, int] = (0, 0),
    programs: int = 2,
) -> Case:
    """Products of so many steps each, of so many rows and columns of tiles, and `rest` less."""
    sizes = dict(zip("MNKH", blocks, strict=True))
    m, n = blocks[0] * tiles[0] - rest[0], blocks[1] * tiles[1] - rest[1]
    k_end, h_end = blocks[2] * steps[0], blocks[3] * steps[1]
    k, h = max(k_end, blocks[2]), max(h_end, blocks[3])

    def inputs(rng: np.random.Generator) -> Values:
        a, b, c, d = halves(rng, (m, k), (k, n), (m, h), (h, n))
        outs = {"x": blank((m, n), np.float16), "y": blank((m, n), np.float16)}
        ends = {"m": m, "n": n, "k": k, "h": h, "k_end": k_end, "h_end": h_end}
        return {"a": a, "b": b, "c": c, "d": d, **outs, **ends, **sizes}

    def reference(v: SimpleNamespace) -> None:
        v.x[:] = wide(v.a)[:, :k_end] @ wide(v.b)[:k_end]
        v.y[:] = wide(v.c)[:, :h_end] @ wide(v.d)[:h_end]

    return Case(name, two_products, (programs,), inputs, reference)


def held_tiles_case(
    name: str,
    steps: tuple[int, int],
    rows: int = 64,
    keys: int = 64,
    depth: int = 64,
    *,
    is_early: bool = False,
) -> Case:
    """The sum of two products with so many blocks of `keys` rows; both tiles come early or not."""
    m = 2 * rows
    n = keys * max(*steps, 1)
    k_end, h_end = keys * steps[0], keys * steps[1]

    def inputs(rng: np.random.Generator) -> Values:
        a, b, c, d = halves(rng, (m, depth), (n, depth), (m, depth), (n, depth))
        ends = {"m": m, "n": n, "k_end": k_end, "h_end": h_end}
        sizes = {"M": rows, "N": keys, "K": depth, "IS_EARLY": is_early}
        return {"a": a, "b": b, "c": c, "d": d, "x": blank((m, keys)), **ends, **sizes}

    def reference(v: SimpleNamespace) -> None:
        pairs = ((v.a, v.b, steps[0]), (v.c, v.d, steps[1]))
        v.x[:] = sum(
            wide(left) @ wide(right[at * keys : (at + 1) * keys]).T
            for left, right, count in pairs
            for at in range(count)
        )

    return Case(name, held_tiles, (2,), inputs, reference)


APART = "ring ab tiles load#0 load#1 slots {slots}; ring cd tiles load#2 load#3 slots {slots}"
ONE_MEMORY = APART + " shares ab"
ONE_RING = "ring ab tiles load#0 load#1 load#2 load#3 slots {slots}"
HELD = (
    "ring a tiles load#0 slots 1; ring b tiles load#1 slots {slots}; "
    "ring c tiles load#2 slots 1 shares a; ring d tiles load#3 slots {slots} shares b"
)
STEPS = [(1, 1), (2, 3), (5, 4), (0, 3), (3, 0)]
MEMORIES = [
    Partitioned(two_products_case(f"one-memory-{k}-{h}", (k, h)), ONE_MEMORY) for k, h in STEPS
]
ODD = Partitioned(two_products_case("one-memory-odd", (3, 2), rest=(27, 8)), ONE_MEMORY)
TURNS = [
    Partitioned(two_products_case(f"one-ring-{k}-{h}", (k, h), (64, 64, 64, 64)), ONE_RING)
    for k, h in STEPS
]
STAYING = [Partitioned(held_tiles_case(f"held-{k}-{h}", (k, h)), HELD) for k, h in STEPS]
SHARING = [*MEMORIES, ODD, *TURNS, *STAYING]
