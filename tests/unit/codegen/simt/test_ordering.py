"""Sorts on a simulated GPU agree with the reference interpreter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import check, random_array

WARPS = (1, 4)
DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32", "float64"]


@tilewright.jit
def sorts(
    x, y, z, M: tl.constexpr, N: tl.constexpr, DESCENDING: tl.constexpr, INDICES: tl.constexpr
):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + places)
    if INDICES:
        values, positions = tl.sort(tile, descending=DESCENDING, return_indices=True)
        tl.store(z + places, positions)
    else:
        values = tl.sort(tile, descending=DESCENDING)
    tl.store(y + places, values)


@pytest.mark.parametrize("has_indices", [False, True])
@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_of_every_dtype(dtype: str, is_descending: bool, has_indices: bool) -> None:
    x = random_array((2, 128), dtype, span=20)
    z = np.zeros((2, 128), np.int32)
    options = {"M": 2, "N": 128, "DESCENDING": is_descending, "INDICES": has_indices}
    check(sorts, (1,), x, np.zeros_like(x), z, num_warps=4, **options)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("shape", [(1, 512), (64, 8), (4, 2), (1, 1)])
def test_sort_of_every_shape(shape: tuple[int, int], num_warps: int) -> None:
    m, n = shape
    x = random_array(shape, "float32", span=9).round().astype(np.float32)
    z = np.zeros(shape, np.int32)
    options = {"M": m, "N": n, "DESCENDING": False, "INDICES": True}
    check(sorts, (1,), x, np.zeros_like(x), z, num_warps=num_warps, **options)


@pytest.mark.parametrize(
    ("dtype", "has_indices"),
    [("float32", True), pytest.param("int64", False, marks=pytest.mark.slow)],
)
def test_a_large_tile_is_sorted_in_memory(dtype: str, has_indices: bool) -> None:
    x = random_array((2, 1024), dtype)
    z = np.zeros((2, 1024), np.int32)
    options = {"M": 2, "N": 1024, "DESCENDING": True, "INDICES": has_indices}
    check(sorts, (1,), x, np.zeros_like(x), z, num_warps=1, **options)


@pytest.mark.parametrize("is_descending", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_the_greatest_and_zeros_keep_their_order(dtype: str, is_descending: bool) -> None:
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -1.5, -np.nan, -0.0, 0.0, 1e-7, -1e-7]
    x = np.array([special + [0.0, -0.0, 3.0, np.nan]], np.float64).astype(kind)
    y, z = np.zeros_like(x), np.zeros(x.shape, np.int32)
    options = {"M": 1, "N": 16, "DESCENDING": is_descending, "INDICES": True}
    check(sorts, (1,), x, y, z, num_warps=1, **options)


@tilewright.jit
def best(x, y, z, N: tl.constexpr, K: tl.constexpr):
    row = tl.load(x + tl.program_id(0) * N + tl.arange(0, N))
    values, positions = tl.topk(row, K, return_indices=True)
    tl.store(y + tl.program_id(0) * K + tl.arange(0, K), values)
    tl.store(z + tl.program_id(0) * K + tl.arange(0, K), positions)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("k", [1, 8])
def test_topk(k: int, num_warps: int) -> None:
    x = random_array((2, 256), "float32")
    y, z = np.zeros((2, k), np.float32), np.zeros((2, k), np.int32)
    check(best, (2,), x, y, z, N=256, K=k, num_warps=num_warps)
