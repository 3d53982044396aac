"""Elements that are the same along a dimension, of which a mask hides some or all."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.holes import before_a_hole

ROWS, COLUMNS = 16, 64


@tilewright.jit
def spread_rows(x, out, n, w, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The load is masked by rows, the store by columns."""
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    place = tl.broadcast_to(r, (ROWS, COLUMNS))
    value = tl.load(x + place, mask=tl.broadcast_to(r < n, (ROWS, COLUMNS)), other=7)
    tl.store(out + r * COLUMNS + c, value, mask=tl.broadcast_to(c < w, (ROWS, COLUMNS)))


@tilewright.jit
def shown_columns(x, out, n, w, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The load is masked by columns, too."""
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    value = tl.load(x + r, mask=(r < n) & (c < w), other=7)
    tl.store(out + r * COLUMNS + c, value)


@tilewright.jit
def repeated_sums(x, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """One row, added up as often as a mask says: it may be never."""
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)
    tl.store(out + c, tl.sum(tl.load(x + c[None, :], mask=r < n, other=0), 0))


@pytest.mark.parametrize("width", [0, 5, 63, 64])
@pytest.mark.parametrize("rows", [0, 1, 5, 16])
def test_elements_of_hidden_rows_are_not_read(rows: int, width: int) -> None:
    x = before_a_hole(np.arange(10, 10 + rows))
    expected = np.full((ROWS, COLUMNS), 7)
    expected[:rows] = x[:, None]
    out = np.full((ROWS, COLUMNS), -1)
    spread_rows[(1,)](x, out, rows, width, ROWS, COLUMNS)
    np.testing.assert_array_equal(out[:, :width], expected[:, :width])
    assert (out[:, width:] == -1).all()
    expected[:, width:] = 7
    shown_columns[(1,)](x, out, rows, width, ROWS, COLUMNS)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("times", [0, 1, 64])
def test_a_row_that_is_added_up_never_is_not_read(times: int) -> None:
    x = before_a_hole(np.arange(COLUMNS if times else 0))
    out = np.full(COLUMNS, -1)
    repeated_sums[(1,)](x, out, times, 64, COLUMNS)
    np.testing.assert_array_equal(out, times * np.arange(COLUMNS))
