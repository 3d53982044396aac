"""Scans on a simulated GPU agree with the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.codegen.simt.launching import check, random_array

WARPS = (1, 8)
SHAPES = [(4, 64), (32, 64), (1, 1024), (1024, 2), (2, 2)]


@tilewright.jit
def prefix_sums(x, y, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    places = tl.program_id(0) * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + places, tl.cumsum(tl.load(x + places), AXIS, reverse=REVERSE))


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_prefix_sums_along_an_axis(shape: tuple[int, int], axis: int, num_warps: int) -> None:
    x = random_array((2 * shape[0], shape[1]), "int32")
    options = {"M": shape[0], "N": shape[1], "AXIS": axis, "REVERSE": False}
    check(prefix_sums, (2,), x, np.zeros_like(x), num_warps=num_warps, **options)


@tilewright.jit
def affine_maps(x, y, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    shift = tl.load(x + places)
    scale = shift % 3 + 1
    scale, shift = tl.associative_scan((scale, shift), AXIS, _then, reverse=REVERSE)
    tl.store(y + places, scale ^ shift)


@tilewright.jit
def _then(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_order_is_kept_for_a_function_that_does_not_commute(
    dtype: str, is_reverse: bool, num_warps: int
) -> None:
    x = random_array((2, 512), dtype)
    options = {"M": 2, "N": 512, "AXIS": 1, "REVERSE": is_reverse}
    check(affine_maps, (1,), x, np.zeros_like(x), num_warps=num_warps, **options)


@pytest.mark.parametrize("axis", [0, 1])
def test_reverse_across_warps_and_repeats(axis: int) -> None:
    x = random_array((512, 16), "int64")
    options = {"M": 512, "N": 16, "AXIS": axis, "REVERSE": True}
    check(affine_maps, (1,), x, np.zeros_like(x), num_warps=8, **options)


@tilewright.jit
def products(x, y, N: tl.constexpr):
    places = tl.arange(0, N)
    tl.store(y + places, tl.cumprod(tl.load(x + places), 0))


def test_products_of_floats() -> None:
    x = 1 + random_array((256,), "float32", span=1) / 100
    check(products, (1,), x.astype(np.float32), np.zeros(256, np.float32), rtol=1e-5, N=256)
