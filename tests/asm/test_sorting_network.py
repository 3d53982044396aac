"""Rows sorted by a network are in the stable order, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import count, nests


@tilewright.jit
def sort_rows(x, out, WIDTH: tl.constexpr, DESCENDING: tl.constexpr):
    """Each row of a matrix sorted."""
    place = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    tl.store(out + place, tl.sort(tl.load(x + place), descending=DESCENDING))


@tilewright.jit
def first_rows(x, values, places, WIDTH: tl.constexpr, K: tl.constexpr):
    """The K greatest of each row of a tile and where they lay."""
    row, column = tl.arange(0, 4)[:, None], tl.arange(0, WIDTH)[None, :]
    best, where = tl.topk(tl.load(x + row * WIDTH + column), K, return_indices=True)
    place = row * K + tl.arange(0, K)[None, :]
    tl.store(values + place, best)
    tl.store(places + place, where)


def stable_order(x: np.ndarray, descending: bool) -> np.ndarray:
    """The positions of a stable sort of rows; NaN is the greatest."""
    if not descending:
        return np.argsort(x, axis=1, kind="stable")
    flipped = np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
    return x.shape[1] - 1 - flipped


def rows_of(dtype: str, width: int, rng: np.random.Generator) -> np.ndarray:
    """Random rows, among them equal keys, both zeros, infinities and NaN."""
    x = (rng.standard_normal((6, width)) * 20).astype(dtype)
    x[0] = x[0, 0]
    if x.dtype.kind == "f":
        x[1, ::3] = np.nan
        x[2, ::2], x[2, 1::2] = -0.0, 0.0
        x[3, 3], x[3, 5] = np.inf, -np.inf
        x[4, ::2] = -np.finfo(dtype).smallest_subnormal
    else:
        x[1, 0], x[1, 1] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return x


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("width", [8, 16, 64, 256, 1024])
def test_rows_come_out_in_the_stable_order(
    width: int, dtype: str, descending: bool, rng: np.random.Generator
) -> None:
    x = rows_of(dtype, width, rng)
    out = np.zeros_like(x)
    sort_rows[(len(x),)](x, out, WIDTH=width, DESCENDING=descending)
    expected = np.take_along_axis(x, stable_order(x, descending), axis=1)
    bits = f"u{x.itemsize}"
    np.testing.assert_array_equal(out.view(bits), expected.view(bits))


@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("width", "k"), [(16, 1), (16, 8), (32, 16), (256, 1), (256, 8), (256, 64), (1024, 256)]
)
def test_the_greatest_keep_their_order_and_know_their_places(
    dtype: str, width: int, k: int, rng: np.random.Generator
) -> None:
    x = rng.integers(-9, 9, (4, width)).astype(dtype)
    values, places = np.zeros((4, k), dtype), np.zeros((4, k), np.int32)
    first_rows[(1,)](x, values, places, WIDTH=width, K=k)
    order = stable_order(x, descending=True)[:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis=1))


def test_wide_keys_are_merged_and_small_ones_are_not() -> None:
    arguments = {"WIDTH": 64, "DESCENDING": False}
    narrow, _ = nests(sort_rows, x=np.zeros(64, "f4"), out=np.zeros(64, "f4"), **arguments)
    wide, _ = nests(sort_rows, x=np.zeros(64, "f8"), out=np.zeros(64, "f8"), **arguments)
    assert count(narrow, "cpu.shuffle") > 0
    assert count(wide, "cpu.shuffle") == 0
