"""Tiles of which a mask hides whole rows while it shows all columns of the others."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.holes import before_a_hole


@tilewright.jit
def row_sums(x, out, n, w, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    mask = (r < n)[:, None] & (c < w)[None, :]
    tl.store(out + r, tl.sum(tl.load(x + r[:, None] * w + c[None, :], mask=mask, other=0), 1))


@tilewright.jit
def stack(x, out, m, n, w, MATRICES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    k, r, c = tl.arange(0, MATRICES), tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    mask = (k < m)[:, None, None] & (r < n)[None, :, None] & (c < w)[None, None, :]
    at = k[:, None, None] * n * w + r[None, :, None] * w + c[None, None, :]
    to = k[:, None, None] * ROWS * COLUMNS + r[None, :, None] * COLUMNS + c[None, None, :]
    tl.store(out + to, tl.load(x + at, mask=mask, other=3))


@tilewright.jit
def picked_sums(x, rows, out, n, w, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The row of each sum is read from a table that ends where the mask says."""
    r, c = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    row = tl.load(rows + r, mask=r < n, other=0)
    mask = (r < n)[:, None] & (c < w)[None, :]
    tl.store(out + r, tl.sum(tl.load(x + row[:, None] * w + c[None, :], mask=mask, other=0), 1))


@tilewright.jit
def add_rows(x, rows, table, n, w, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    row = tl.load(rows + r, mask=r < n, other=0)
    mask = (r < n)[:, None] & (c < w)[None, :]
    value = tl.load(x + r[:, None] * w + c[None, :], mask=mask, other=0)
    tl.atomic_add(table + row[:, None] * w + c[None, :], value, mask=mask)


@pytest.mark.parametrize("width", [100, 256, 1000, 1024])
@pytest.mark.parametrize("rows", [0, 1, 3, 4])
def test_a_hidden_row_is_neither_read_nor_summed(rows: int, width: int) -> None:
    block = {"ROWS": 4, "COLUMNS": 1 << (width - 1).bit_length()}
    x = before_a_hole(np.arange(rows * width, dtype=np.float32).reshape(rows, width) % 7)
    expected = np.zeros(4)
    expected[:rows] = x.sum(1)
    out = np.full(4, np.nan, np.float32)
    row_sums[(1,)](x, out, rows, width, **block)
    np.testing.assert_array_equal(out, expected)
    places = np.random.default_rng(0).permutation(rows)
    expected[:rows] = expected[places]
    out[:] = np.nan
    picked_sums[(1,)](x, before_a_hole(places.astype(np.int32)), out, rows, width, **block)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("width", [256, 500, 512])
@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize("matrices", [1, 2])
def test_hidden_rows_of_hidden_matrices_take_the_other_value(
    matrices: int, rows: int, width: int
) -> None:
    x = before_a_hole(np.arange(matrices * rows * width).reshape(matrices, rows, width))
    expected = np.full((2, 4, 512), 3)
    expected[:matrices, :rows, :width] = x
    out = np.zeros((2, 4, 512), np.int64)
    stack[(1,)](x, out, matrices, rows, width, MATRICES=2, ROWS=4, COLUMNS=512)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
@pytest.mark.parametrize("width", [100, 512, 1000])
def test_a_hidden_row_is_added_to_no_row(width: int, dtype: type) -> None:
    rng = np.random.default_rng(width)
    x = before_a_hole(rng.integers(-3, 4, (21, width)).astype(dtype))
    rows = before_a_hole(rng.integers(0, 5, 21))
    expected = np.zeros((5, width), dtype)
    np.add.at(expected, rows, x)
    table = np.zeros((5, width), dtype)
    add_rows[(3,)](x, rows, table, 21, width, ROWS=8, COLUMNS=1 << (width - 1).bit_length())
    np.testing.assert_array_equal(table, expected)
