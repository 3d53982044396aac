"""Tiles that a loop or a branch takes from outside, where their elements are taken one by one.

What is made outside has its place there: a loop that asked for a buffer of its own had nobody to
fill it.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def larger(a, b):
    """The larger of two."""
    return tl.maximum(a, b)


@tilewright.jit
def folded(x, WAY: tl.constexpr, N: tl.constexpr):
    """What takes the elements of a tile in an order."""
    if WAY == "cumsum":
        return tl.cumsum(x, 0)
    if WAY == "scan":
        return tl.associative_scan(x, 0, larger, reverse=True)
    if WAY == "sort":
        return tl.sort(x)
    if WAY == "gather":
        return tl.gather(x, (tl.arange(0, N) * 3) % N, 0)
    if WAY == "histogram":
        return tl.histogram((x & (N - 1)).to(tl.int32), N).to(tl.int64)
    return tl.flip(x, 0)


@tilewright.jit
def in_blocks(x, out, n, WAY: tl.constexpr, AROUND: tl.constexpr, N: tl.constexpr):
    """A tile that is cheap to compute again, made outside and used inside and behind."""
    i = tl.arange(0, N)
    tile = tl.cumsum(tl.load(x + i), 0).to(tl.int64)
    if AROUND == "for":
        for k in range(n):
            tl.store(out + (k + 1) * N + i, folded(tile, WAY, N) + k)
    elif AROUND == "loops":
        for k in range(n):
            inner = folded(tile, WAY, N)
            for _ in range(n):
                inner += 1
            tl.store(out + (k + 1) * N + i, inner)
    elif AROUND == "if":
        if n > 2:
            tl.store(out + N + i, folded(tile, WAY, N))
    else:
        k = 0
        while k < n:
            k += 1
            tl.store(out + k * N + i, folded(tile, WAY, N))
    tl.store(out + i, tile)


@pytest.mark.parametrize("around", ["for", "loops", "if", "while"])
@pytest.mark.parametrize("way", ["cumsum", "scan", "sort", "gather", "histogram", "flip"])
def test_what_is_taken_one_by_one_may_come_from_outside(way: str, around: str) -> None:
    n, size = 3, 16
    x = np.arange(1, size + 1, dtype=np.int32) * 5 % 7
    found, expected = (np.zeros((n + 1) * size, np.int64) for _ in range(2))
    in_blocks.interpret[(1,)](x, expected, n, way, around, size)
    in_blocks[(1,)](x, found, n, way, around, size)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found[:size], np.cumsum(x))


@tilewright.jit
def turned(x, out, n, M: tl.constexpr, N: tl.constexpr):
    """A tile that a loop stores across the rows in which it was loaded."""
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(x + r * N + c)
    for k in range(n):
        tl.store(out + k * M * N + c * M + r, tile + k)


@pytest.mark.parametrize("shape", [(16, 32), (64, 64)])
def test_a_loop_may_store_across_rows_what_was_loaded_outside(shape: tuple[int, int]) -> None:
    x = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    out = np.zeros((3, *shape[::-1]), np.float32)
    turned[(1,)](x, out, 3, *shape)
    np.testing.assert_array_equal(out, x.T[None] + np.arange(3)[:, None, None])
