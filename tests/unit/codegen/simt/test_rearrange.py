"""Reversals, concatenations and look-ups on a simulated GPU agree with the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import check, ptx_text, random_array

WARPS = (1, 4)


@tilewright.jit
def flips(x, y, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + places, tl.flip(tl.load(x + places), AXIS))


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((4, 64), "int32"), ((128, 32), "float16"), ((2, 2), "int64"), ((1, 1024), "int8")],
)
def test_flip_along_an_axis(dtype: str, shape: tuple[int, int], axis: int, num_warps: int) -> None:
    x = random_array(shape, dtype)
    options = {"M": shape[0], "N": shape[1], "AXIS": axis}
    check(flips, (1,), x, np.zeros_like(x), num_warps=num_warps, **options)


@tilewright.jit
def joins(x, y, N: tl.constexpr, DIM: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + places)
    both = tl.cat(tile, tile * 2, dim=DIM)
    rows: tl.constexpr = 2 * N if DIM == 0 else N
    columns: tl.constexpr = N if DIM == 0 else 2 * N
    tl.store(y + tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :], both)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", ["int64", "int8"])
def test_cat_keeps_the_order(dtype: str, dim: int, num_warps: int) -> None:
    x = random_array((16, 16), dtype, span=50)
    check(joins, (1,), x, np.zeros((2, 16, 16), dtype), N=16, DIM=dim, num_warps=num_warps)


@tilewright.jit
def look_ups(x, indices, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr):
    tile = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    rows: tl.constexpr = K if AXIS == 0 else M
    columns: tl.constexpr = K if AXIS == 1 else N
    places = tl.arange(0, rows)[:, None] * columns + tl.arange(0, columns)[None, :]
    tl.store(y + places, tl.gather(tile, tl.load(indices + places), AXIS))


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((8, 32), "int32"), ((64, 16), "float16"), ((1, 512), "int64")]
)
def test_gather_along_an_axis(
    dtype: str, shape: tuple[int, int], axis: int, num_warps: int
) -> None:
    m, n = shape
    x = random_array(shape, dtype)
    for k in (shape[axis], 16):
        result = (k, n) if axis == 0 else (m, k)
        indices = random_array(result, "uint32", 1, span=shape[axis]).astype(np.int32)
        y = np.zeros(result, dtype)
        check(look_ups, (1,), x, indices, y, M=m, N=n, K=k, AXIS=axis, num_warps=num_warps)


def test_gather_within_a_warp_takes_no_memory() -> None:
    x = np.zeros((64, 32), np.int32)
    text = ptx_text(look_ups, (x, x, x), M=64, N=32, K=32, AXIS=1, num_warps=4)
    assert "shfl.sync.idx" in text
    assert "bar.sync" not in text


@tilewright.jit
def counts(x, y, limit, N: tl.constexpr, BINS: tl.constexpr):
    places = tl.program_id(0) * N + tl.arange(0, N)
    values = tl.load(x + places)
    found = tl.histogram(values, BINS, mask=values < limit)
    found += tl.histogram(values, BINS)
    tl.store(y + tl.program_id(0) * BINS + tl.arange(0, BINS), found)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize(("n", "bins"), [(512, 64), (16, 256), (1024, 2)])
def test_histogram_counts_what_is_in_its_bins(n: int, bins: int, num_warps: int) -> None:
    x = random_array((2, n), "int32", span=2 * bins)
    y = np.zeros((2, bins), np.int32)
    check(counts, (2,), x, y, bins // 2 + 1, N=n, BINS=bins, num_warps=num_warps)
