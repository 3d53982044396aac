"""`/` on the CPU is rounded once, whatever is divided by, as NumPy rounds it."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def quotients(x, y, rows, by_scalar, by_constant, by_row, by_tile, N: tl.constexpr):
    i, row = tl.arange(0, N), tl.arange(0, 8)
    tile, others = tl.load(x + i), tl.load(y + i)
    tl.store(by_scalar + i, tile / tl.load(y))
    tl.store(by_constant + i, tile / 127.0)
    tl.store(by_tile + i, tile / others)
    of_rows = row[:, None] * (N // 8) + tl.arange(0, N // 8)[None, :]
    tl.store(by_row + of_rows, tl.load(x + of_rows) / tl.load(rows + row)[:, None])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quotient_is_rounded_once(dtype: type, rng: np.random.Generator) -> None:
    n = 1024
    x, y = (rng.standard_normal(n).astype(dtype) for _ in range(2))
    rows = rng.standard_normal(8).astype(dtype)
    found = [np.zeros(n, dtype) for _ in range(4)]
    quotients[(1,)](x, y, rows, *found, N=n)
    by_row = (x.reshape(8, -1) / rows[:, None]).ravel()
    for actual, expected in zip(found, (x / y[0], x / dtype(127), by_row, x / y), strict=True):
        np.testing.assert_array_equal(actual, expected)
