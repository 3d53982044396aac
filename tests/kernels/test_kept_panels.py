"""Panels of B that stay packed from program to program, and those that may not."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import named, nests

M, N, K = 32, 32, 256
STEPS = {"BM": M, "BN": N, "BK": 64}


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Small whole numbers: every order of summing gives the same bits."""
    return rng.integers(-3, 4, shape).astype(np.float32)


@tilewright.jit
def product(a, b, c, K, pitch, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """`c = a @ b.T`, rows of tiles first."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, K, BK):
        k = t + tl.arange(0, BK)
        acc = tl.dot(tl.load(a + i[:, None] * K + k[None, :]),
                     tl.load(b + j[None, :] * pitch + k[:, None]), acc)  # fmt: skip
    tl.store(c + i[:, None] * (tl.num_programs(1) * BN) + j[None, :], acc)


@tilewright.jit
def own_pitches(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Every second program reads rows that lie twice as far apart, from the same first one."""
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    pitch = K * (1 + tl.program_id(0) % 2)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, K, BK):
        k = t + tl.arange(0, BK)
        acc = tl.dot(tl.load(a + i[:, None] * K + k[None, :]),
                     tl.load(b + j[None, :] * pitch + k[:, None]), acc)  # fmt: skip
    tl.store(c + i[:, None] * BN + j[None, :], acc)


@tilewright.jit
def reads_what_it_wrote(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Each program adds one to its own B, multiplies, and once more; one step, alike each time."""
    i, j, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    b += tl.program_id(0) * BN * BK
    place = b + j[None, :] * BK + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(3):
        tl.store(place, tl.load(place) + 1)
        acc = tl.dot(tl.load(a + i[:, None] * BK + k[None, :]), tl.load(place), acc)
    tl.store(c + tl.program_id(0) * BM * BN + i[:, None] * BN + j[None, :], acc)


@tilewright.jit
def counts(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Who is done is counted: programs may wait for each other."""
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, K, BK):
        k = t + tl.arange(0, BK)
        acc = tl.dot(tl.load(a + i[:, None] * K + k[None, :]),
                     tl.load(b + j[None, :] * K + k[:, None]), acc)  # fmt: skip
    tl.atomic_add(c + i[:, None] * BN + j[None, :], acc)


@tilewright.jit
def volatile(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """B is what another device writes."""
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(0, K, BK):
        k = t + tl.arange(0, BK)
        acc = tl.dot(tl.load(a + i[:, None] * K + k[None, :], volatile=True),
                     tl.load(b + j[None, :] * K + k[:, None]), acc)  # fmt: skip
    tl.store(c + i[:, None] * BN + j[None, :], acc)


@tilewright.jit
def several_tiles(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A program takes all tiles, and writes between them."""
    j = tl.arange(0, BN)
    for r in range(4):
        i = r * BM + tl.arange(0, BM)
        acc = tl.zeros((BM, BN), tl.float32)
        for t in range(0, K, BK):
            k = t + tl.arange(0, BK)
            acc = tl.dot(tl.load(a + i[:, None] * K + k[None, :]),
                         tl.load(b + j[None, :] * K + k[:, None]), acc)  # fmt: skip
        tl.store(c + i[:, None] * BN + j[None, :], acc)


def keeps(kernel: tilewright.JITFunction, **arguments: object) -> bool:
    """Whether programs of a kernel keep panels."""
    module, _ = nests(kernel, **arguments)
    return "cpu.forget" in str(module)


def test_the_next_launch_finds_what_is_in_memory_then(rng: np.random.Generator) -> None:
    a, c = whole(rng, 5 * M, K), np.empty((5 * M, 3 * N), np.float32)
    b = np.empty((3 * N, K), np.float32)
    for _ in range(3):
        b[:] = whole(rng, 3 * N, K)
        product[(5, 3)](a, b, c, K, K, **STEPS)
        np.testing.assert_array_equal(c, a @ b.T)


def test_other_sizes_find_their_own_tiles_in_the_same_memory(rng: np.random.Generator) -> None:
    memory = np.empty(3 * N * 4 * K, np.float32)
    for deep in (K, 4 * K, 3 * K, K):
        a, c = whole(rng, 4 * M, deep), np.empty((4 * M, 3 * N), np.float32)
        memory[:] = whole(rng, memory.size)
        b = memory[: 3 * N * deep].reshape(3 * N, deep)
        product[(4, 3)](a, b, c, deep, deep, **STEPS)
        np.testing.assert_array_equal(c, a @ b.T)


def test_a_tile_is_packed_where_its_slot_does_not_hold_it(rng: np.random.Generator) -> None:
    a, b, c = whole(rng, M, K), whole(rng, N, K), np.empty((M, N), np.float32)
    module, _ = nests(product, a=a, b=b, c=c, K=K, pitch=K, **STEPS)
    packs = [op for op in named(module, "cpu.pack") if op.properties["role"].data == "b"]
    assert packs
    for pack in packs:
        choice = pack.parent_op()
        assert choice is not None and choice.name == "scf.if"
        assert [len(region.block.ops) for region in choice.regions] == [1, 5]


def test_rows_that_lie_farther_apart_are_another_tile(rng: np.random.Generator) -> None:
    a, b = whole(rng, 6 * M, K), whole(rng, 2 * N, K)
    c = np.empty((6 * M, N), np.float32)
    assert keeps(own_pitches, a=a, b=b, c=c, K=K, **STEPS)
    own_pitches[(6,)](a, b, c, K, **STEPS)
    for program in range(6):
        rows = slice(program * M, (program + 1) * M)
        expected = a[rows] @ (b[::2] if program % 2 else b[:N]).T
        np.testing.assert_array_equal(c[rows], expected)


def test_a_program_finds_what_it_wrote_itself(rng: np.random.Generator) -> None:
    a, b = whole(rng, M, 64), whole(rng, 3, N, 64)
    before, c = b.copy(), np.empty((3, M, N), np.float32)
    assert not keeps(reads_what_it_wrote, a=a, b=b, c=c, K=64, **STEPS)
    reads_what_it_wrote[(3,)](a, b, c, 64, **STEPS)
    expected = sum(a @ (before + turn).transpose(0, 2, 1) for turn in (1, 2, 3))
    np.testing.assert_array_equal(c, expected)


@tilewright.jit
def one_step(a, b, c, SIZE: tl.constexpr):
    """Rows of B are packed by the product itself, and there is one product."""
    i = tl.arange(0, SIZE)
    x = tl.load(a + i[:, None] * SIZE + i[None, :])
    y = tl.load(b + i[:, None] * SIZE + i[None, :])
    tl.store(c + i[:, None] * SIZE + i[None, :], tl.dot(x, y))


def test_a_single_product_that_packs_b_itself_has_no_slot() -> None:
    matrix = np.zeros((64, 64), np.float32)
    assert not keeps(one_step, a=matrix, b=matrix, c=matrix, SIZE=64)


@pytest.mark.parametrize("kernel", [counts, volatile, several_tiles], ids=lambda k: k.__name__)
def test_what_may_be_ordered_or_written_between_is_not_kept(
    kernel: tilewright.JITFunction, rng: np.random.Generator
) -> None:
    a, b = whole(rng, 4 * M, K), whole(rng, N, K)
    c = np.zeros((4 * M, N), np.float32)
    assert not keeps(kernel, a=a, b=b, c=c, K=K, **STEPS)
    kernel[(1 if kernel is several_tiles else 4,)](a, b, c, K, **STEPS)
    np.testing.assert_array_equal(c, a @ b.T)
