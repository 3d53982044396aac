"""A tile load completes before a later tile store, whatever aliases."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def shift_down(x, n, BLOCK: tl.constexpr):
    """x[i] = x[i + 1]."""
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i + 1, mask=i < n - 1)
    tl.store(x + i, value, mask=i < n - 1)


@tilewright.jit
def shift_up(x, n, BLOCK: tl.constexpr):
    """x[i + 1] = x[i]."""
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n - 1)
    tl.store(x + i + 1, value, mask=i < n - 1)


@tilewright.jit
def two_stores(x, y, z, BLOCK: tl.constexpr):
    """A load, a store, the load again, a store of both."""
    i = tl.arange(0, BLOCK)
    first = tl.load(x + i)
    tl.store(y + i, first + 1)
    second = tl.load(x + i)
    tl.store(z + i, second + first)


@tilewright.jit
def reverse(x, BLOCK: tl.constexpr):
    """x reversed in place."""
    i = tl.arange(0, BLOCK)
    tl.store(x + BLOCK - 1 - i, tl.load(x + i))


@tilewright.jit
def permute(x, order, BLOCK: tl.constexpr):
    """x[order[i]] = x[i]; the addresses come from memory that the store may hit."""
    i = tl.arange(0, BLOCK)
    tl.store(x + tl.load(order + i), tl.load(x + i))


@tilewright.jit
def count_up(x, BLOCK: tl.constexpr):
    """Atomics whose operand is loaded from the words that they change."""
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + i + 1, tl.load(x + i))


@pytest.mark.parametrize("n", [2, 63, 65, 1000, 4096])
def test_a_shift_within_one_array_reads_before_it_writes(n: int, rng: np.random.Generator) -> None:
    start = rng.standard_normal(4097, dtype=np.float32)
    down, up = start.copy(), start.copy()
    shift_down[(1,)](down, n, BLOCK=4096)
    shift_up[(1,)](up, n, BLOCK=4096)
    np.testing.assert_array_equal(down[: n - 1], start[1:n])
    np.testing.assert_array_equal(up[1:n], start[: n - 1])


@pytest.mark.parametrize("offsets", [(0, 0), (1, 3), (3, 1), (0, 7), (500, 0), (-1, -2)])
def test_stores_and_loads_of_overlapping_views_keep_their_order(
    offsets: tuple[int, int], rng: np.random.Generator
) -> None:
    size, start = 4096, 16
    memory = rng.standard_normal(8192, dtype=np.float32)
    expected = memory.copy()
    x, y, z = (expected[start + o : start + o + size] for o in (0, *offsets))
    first = x.copy()
    y[:] = first + 1
    z[:] = x.copy() + first
    views = [memory[start + o :] for o in (0, *offsets)]
    two_stores[(1,)](*views, BLOCK=size)
    np.testing.assert_array_equal(memory, expected)


def test_a_reversal_in_place_is_complete(rng: np.random.Generator) -> None:
    x = rng.standard_normal(2048, dtype=np.float32)
    expected = x[::-1].copy()
    reverse[(1,)](x, BLOCK=2048)
    np.testing.assert_array_equal(x, expected)


def test_a_scatter_over_its_own_indices_uses_the_old_ones(rng: np.random.Generator) -> None:
    order = rng.permutation(512).astype(np.int32)
    expected = np.zeros_like(order)
    expected[order] = order
    permute[(1,)](order, order, BLOCK=512)
    np.testing.assert_array_equal(order, expected)
