"""Indices that are quotients and remainders: whole vectors piece by piece, and when not."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl

Array = np.ndarray
LAST = 2**31 - 1


@tilewright.jit
def unravelled(x, o, d, s, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i // d * s + i % d))


@tilewright.jit
def nested(x, o, first, at, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    j = i + first
    tl.store(o + i, tl.load(x + at + (j % D + j // (D * M) % 3 * D)))


@tilewright.jit
def nested_unsigned(x, o, first, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    j = (i + first).to(tl.uint32)
    tl.store(o + i, tl.load(x + (j % D + j // (D * M) % 3 * D)))


@tilewright.jit
def ravelled(x, o, d, s, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i // d * s + i % d, tl.load(x + i, mask=i < n), mask=i < n)


@tilewright.jit
def near_the_end(x, o, first, d, at, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + at + (i + first) % d))


@tilewright.jit
def per_channel(x, w, o, hw, c, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i) + tl.load(w + i // hw % c, mask=i < n, other=-1.0))


@pytest.mark.parametrize("d", [1, 2, 7, 16, 17, 49, 63, 64, 65, 1000])
@pytest.mark.parametrize("s", [0, 1, 16, 17, 1003])
def test_rows_that_a_flat_index_visits(rng: np.random.Generator, d: int, s: int) -> None:
    i = np.arange(256)
    x = rng.standard_normal(255 // d * s + d).astype(np.float32)
    out = np.zeros(256, np.float32)
    unravelled[(1,)](x, out, d, s, 256)
    assert (out == x[i // d * s + i % d]).all()


@pytest.mark.parametrize("n", [0, 1, 17, 200, 256])
@pytest.mark.parametrize("s", [3, 17, 20])
def test_later_elements_overwrite_earlier_ones(rng: np.random.Generator, s: int, n: int) -> None:
    x = rng.integers(0, 100, 256).astype(np.int16)
    out, expected = (np.full(16 * 20 + 17, -1, np.int16) for _ in range(2))
    for i in range(n):
        expected[i // 17 * s + i % 17] = x[i]
    ravelled[(1,)](x, out, 17, s, n, 256)
    assert (out == expected).all()


NEAR = [(d, first) for d in (-7, 7, 100) for first in (-300, -40, 0, LAST - 40, -LAST - 1)]
FAR = [(LAST, 0), (LAST, -40), (LAST - 70, LAST - 170), (LAST, -LAST - 1), (2**30, 2**30 + 7)]


@pytest.mark.parametrize(("d", "first"), [*NEAR, *FAR])
def test_dividends_that_are_negative_or_overflow(d: int, first: int) -> None:
    dividends = (np.arange(128) + np.int64(first) + 2**31) % 2**32 - 2**31
    indices = np.fmod(dividends, d)
    low, high = int(indices.min()), int(indices.max())
    x = np.arange(high - low + 1, dtype=np.int32)
    out = np.zeros(128, np.int32)
    near_the_end[(1,)](x, out, first, d, -low, 128)
    assert (out == indices - low).all()


STARTS = (-300, -40, -17, -16, -1, 0, 5, 2**20, LAST - 140, LAST - 40, -LAST - 1)


@pytest.mark.parametrize("first", STARTS)
@pytest.mark.parametrize(("d", "m"), [(16, 3), (17, 1), (17, 5), (33, 65), (100, 2), (64, 33)])
def test_a_vector_of_at_most_two_pieces(d: int, m: int, first: int) -> None:
    dividends = (np.arange(128) + np.int64(first) + 2**31) % 2**32 - 2**31
    quotients = np.trunc(dividends / (d * m)).astype(np.int64)
    indices = np.fmod(dividends, d) + np.fmod(quotients, 3) * d
    low, high = int(indices.min()), int(indices.max())
    x = np.arange(high - low + 1, dtype=np.int32)
    out = np.zeros(128, np.int32)
    nested[(1,)](x, out, first, -low, d, m, 128)
    assert (out == indices - low).all()


@pytest.mark.parametrize("first", STARTS)
@pytest.mark.parametrize(("d", "m"), [(17, 5), (33, 65), (64, 33)])
def test_a_vector_of_at_most_two_pieces_of_unsigned_indices(d: int, m: int, first: int) -> None:
    dividends = (np.arange(128) + np.int64(first)) % 2**32
    indices = dividends % d + dividends // (d * m) % 3 * d
    x = np.arange(4 * d, dtype=np.int32)
    out = np.zeros(128, np.int32)
    nested_unsigned[(1,)](x, out, first, d, m, 128)
    assert (out == indices).all()


@pytest.mark.parametrize(("hw", "c"), [(49, 3), (17, 5), (1, 7), (1000, 2)])
@pytest.mark.parametrize("n", [0, 100, 512])
def test_one_number_for_each_channel(rng: np.random.Generator, hw: int, c: int, n: int) -> None:
    i = np.arange(512)
    x, w = (rng.standard_normal(size).astype(np.float32) for size in (512, c))
    out = np.zeros(512, np.float32)
    per_channel[(1,)](x, w, out, hw, c, n, 512)
    assert (out == x + np.where(i < n, w[i // hw % c], np.float32(-1))).all()
