"""Masked gathers of elements that no instruction gathers: the lanes of a mask, and no others."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.holes import before_a_hole

DTYPES = ("float16", "bfloat16", "int8", "uint16", "bool")
FAR = 1 << 30
"""An index that is far behind any array."""


@tilewright.jit
def pick(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i)
    tl.store(out + i, tl.load(x + at, mask=(at < n) & (i % 3 != 1), other=1))


@tilewright.jit
def pick_unfilled(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(index + i)
    tl.store(out + i, tl.load(x + at, mask=at < n))


@tilewright.jit
def follow(places, out, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Each lane has an address of its own; 0 is none."""
    i = tl.arange(0, BLOCK)
    place = tl.load(places + i)
    tl.store(out + i, tl.load(place.to(tl.pointer_type(KIND)), mask=place != 0, other=1))


@tilewright.jit
def wrapped(x, out, rows, columns, first, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Columns from `first` on, the first ones again behind the last; rows under a mask."""
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    at = r * columns + (first + c) % columns
    tl.store(out + r * COLUMNS + c, tl.load(x + at, mask=r < rows, other=0))


def numbers(rng: np.random.Generator, count: int, dtype: str) -> np.ndarray:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return rng.integers(0, 2 if dtype == "bool" else 120, count).astype(kind)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 17, 1000])
@pytest.mark.parametrize("block", [8, 64, 512])
def test_lanes_of_the_mask_are_read_and_no_others(dtype: str, n: int, block: int) -> None:
    rng = np.random.default_rng(n)
    x = before_a_hole(numbers(rng, n, dtype))
    index = rng.integers(0, n, 1024).astype(np.int32)
    index[rng.random(1024) < 0.4] = FAR
    inside = index < n
    out = np.empty(1024, x.dtype)
    pick_unfilled[(1024 // block,)](x, index, out, n, BLOCK=block)
    found = x[np.where(inside, index, 0)]
    np.testing.assert_array_equal(out, np.where(inside, found, np.zeros(1, x.dtype)))
    inside &= np.arange(1024) % 3 != 1
    pick[(1024 // block,)](x, index, out, n, BLOCK=block)
    np.testing.assert_array_equal(out, np.where(inside, found, np.ones(1, x.dtype)))


@pytest.mark.parametrize(("dtype", "kind"), [("float16", tl.float16), ("int8", tl.int8)])
def test_addresses_are_followed_where_there_are_any(dtype: str, kind: object) -> None:
    rng = np.random.default_rng(5)
    x = before_a_hole(numbers(rng, 33, dtype))
    index, has_place = rng.integers(0, 33, 64), rng.random(64) < 0.5
    places = np.where(has_place, x.ctypes.data + index * x.itemsize, 0).astype(np.int64)
    out = np.empty(64, x.dtype)
    follow[(1,)](places, out, 64, KIND=kind, BLOCK=64)
    np.testing.assert_array_equal(out, np.where(has_place, x[index], np.ones(1, x.dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [3, 63, 100])
def test_columns_wrap_in_the_rows_that_there_are(dtype: str, columns: int) -> None:
    rng, first = np.random.default_rng(columns), 2
    x = before_a_hole(numbers(rng, 5 * columns, dtype))
    out = np.empty((8, 64), x.dtype)
    wrapped[(1,)](x, out, 5, columns, first, ROWS=8, COLUMNS=64)
    expected = np.zeros((8, 64), x.dtype)
    expected[:5] = x.reshape(5, columns)[:, (first + np.arange(64)) % columns]
    np.testing.assert_array_equal(out, expected)
