"""Tiles that a loop carries, added to along their columns."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import count, nests

F32 = np.zeros(1, np.float32)


@tilewright.jit
def outer_sum(x, out, rows, columns, C: tl.constexpr, R: tl.constexpr):
    """out[c] = sum of x[r, c] over r, as Inductor writes it."""
    c = tl.program_id(0) * C + tl.arange(0, C)[:, None]
    acc = tl.full([C, R], 0, tl.float32)
    for first in tl.range(0, rows, R):
        r = first + tl.arange(0, R)[None, :]
        seen = (r < rows) & (c < columns)
        acc = tl.where(seen, acc + tl.load(x + c + columns * r, seen, other=0.0), acc)
    tl.store(out + c, tl.sum(acc, 1)[:, None], c < columns)


@tilewright.jit
def outer_scan(x, out, rows, C: tl.constexpr, R: tl.constexpr):
    """out[c, r] = sums of x[r, c] along r, of steps of R rows: a scan counts on rows."""
    c = tl.arange(0, C)[:, None]
    acc = tl.full([C, R], 0, tl.float32)
    for first in tl.range(0, rows, R):
        acc += tl.load(x + c + C * (first + tl.arange(0, R)[None, :]))
    tl.store(out + c * R + tl.arange(0, R)[None, :], tl.cumsum(acc, 1))


def test_a_sum_over_rows_is_loaded_by_vectors() -> None:
    module, _ = nests(outer_sum, x=F32, out=F32, rows=100, columns=70, C=64, R=32)
    assert count(module, "cpu.gather") == 0


def test_a_tile_of_few_columns_stays_as_it_is() -> None:
    module, _ = nests(outer_sum, x=F32, out=F32, rows=100, columns=70, C=4, R=32)
    assert count(module, "cpu.gather") > 0


@pytest.mark.parametrize("shape", [(1, 1), (31, 64), (100, 70), (257, 129), (64, 9)])
@pytest.mark.parametrize("tile", [(64, 32), (16, 64), (64, 8), (8, 8)])
def test_sums_over_rows_are_right(shape: tuple[int, int], tile: tuple[int, int]) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    out = np.full(shape[1] + 1, 7, np.float32)
    grid = (-(-shape[1] // tile[0]),)
    outer_sum[grid](x, out, *shape, C=tile[0], R=tile[1])
    np.testing.assert_array_equal(out, [*x.sum(0), 7])


def test_scans_of_such_tiles_are_right() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (64, 16)).astype(np.float32)
    out = np.zeros((16, 32), np.float32)
    outer_scan[(1,)](x, out, 64, C=16, R=32)
    np.testing.assert_array_equal(out, np.cumsum(x[:32] + x[32:], 0).T)
