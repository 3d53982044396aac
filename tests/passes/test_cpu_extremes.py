"""Maxima and minima in loops over vectors: NaN is ignored unless there is nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import count, nests

F32 = np.zeros(1, np.float32)


@tilewright.jit
def row_extremes(x, most, least, width, BLOCK: tl.constexpr):
    """The greatest and the least number of a row."""
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    greatest = tl.load(x + row * width + i, mask=i < width, other=-float("inf"))
    tl.store(most + row, tl.max(greatest, axis=0))
    smallest = tl.load(x + row * width + i, mask=i < width, other=float("inf"))
    tl.store(least + row, tl.min(smallest, axis=0))


@tilewright.jit
def column_maximum(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The greatest number of each column."""
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(out + tl.arange(0, COLUMNS), tl.max(tl.load(x + r * COLUMNS + c), axis=0))


def test_a_step_waits_for_one_comparison() -> None:
    module, _ = nests(row_extremes, x=F32, most=F32, least=F32, width=1024, BLOCK=1024)
    assert count(module, "arith.maxnumf") <= 1  # that of the lanes at the end
    assert count(module, "arith.cmpf") >= 4


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("width", "block"), [(17, 32), (64, 64), (1000, 1024), (4097, 8192)])
def test_rows_with_holes_and_without_a_number(
    dtype: str, width: int, block: int, rng: np.random.Generator
) -> None:
    x = rng.standard_normal((9, width)).astype(dtype)
    x[0] = np.nan
    x[1, 1:] = np.nan
    x[2, :-1] = np.nan
    x[3] = -np.inf
    x[4] = np.inf
    x[5, ::2] = np.nan
    x[5, 1::2] = -np.inf
    x[6, ::3] = np.nan
    x[7] = 0.0
    most, least = np.zeros((2, 9), dtype)
    row_extremes[(9,)](x, most, least, width, BLOCK=block)
    greatest, smallest = np.fmax.reduce(x, 1), np.fmin.reduce(x, 1)
    if block > width:  # what lies beyond the row is no NaN
        greatest[0], smallest[0] = -np.inf, np.inf
    np.testing.assert_array_equal(most, greatest)
    np.testing.assert_array_equal(least, smallest)


@pytest.mark.parametrize(("rows", "columns"), [(16, 64), (128, 16), (1, 128)])
def test_columns_with_holes(rows: int, columns: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal((rows, columns), dtype=np.float32)
    x[:, 0] = np.nan
    x[:, 1] = -np.inf
    x[rng.random(x.shape) < 0.3] = np.nan
    out = np.zeros(columns, np.float32)
    column_maximum[(1,)](x, out, ROWS=rows, COLUMNS=columns)
    np.testing.assert_array_equal(out, np.fmax.reduce(x, 0))
