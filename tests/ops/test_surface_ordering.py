"""Gather, sort, top-k and histogram against NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.emission import Emission
from tests.ops.harness import interpret
from tilewright.language.core import float32, int1, int8, int32, int64
from tilewright.support.errors import (
    AxisOutOfRange,
    DtypeNotAllowed,
    InvalidOption,
    NotPowerOfTwo,
    ShapeMismatch,
    UnsupportedError,
)

ROWS, N = 4, 32
NAMES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e5m2",
]


def random_array(rng: np.random.Generator, name: str, *shape: int) -> np.ndarray:
    """Numbers with repetitions, so that stability shows."""
    if name == "bool":
        return rng.random(shape) < 0.5
    if name.startswith(("float", "bfloat")):
        values = rng.integers(-8, 8, shape) / 4
        return values.astype(getattr(ml_dtypes, name, None) or name)
    info = np.iinfo(name)
    edges = np.array([info.min, info.max, 0, 1, info.max // 2], name)
    return rng.choice(edges, shape)


@tilewright.jit
def sort_kernel(x, out, where, DESCENDING: tl.constexpr, M: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tile = tl.load(x + at)
    values, positions = tl.sort(tile, descending=DESCENDING, return_indices=True)
    tl.store(out + at, values)
    tl.store(where + at, positions)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_sort_is_stable_and_agrees_with_numpy(
    name: str, descending: bool, rng: np.random.Generator
) -> None:
    x = random_array(rng, name, ROWS, N)
    out, where = np.zeros_like(x), np.zeros(x.shape, np.int32)
    interpret(sort_kernel, (1,), x, out, where, DESCENDING=descending, M=ROWS, SIZE=N)
    key = x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(object)
    order = [
        sorted(range(N), key=lambda i, row=row: row[i], reverse=descending) for row in key.tolist()
    ]
    assert where.tolist() == order
    assert np.array_equal(out, np.take_along_axis(x, where, axis=1))


def test_nan_sorts_as_the_greatest() -> None:
    x = np.array([[2.0, np.nan, -np.inf, np.inf]], np.float32)
    out, where = np.zeros_like(x), np.zeros(x.shape, np.int32)
    interpret(sort_kernel, (1,), x, out, where, DESCENDING=False, M=1, SIZE=4)
    assert np.array_equal(out[0], [-np.inf, 2.0, np.inf, np.nan], equal_nan=True)


@tilewright.jit
def topk_kernel(x, out, where, K: tl.constexpr, M: tl.constexpr, SIZE: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    values, positions = tl.topk(
        tl.load(x + rows * SIZE + tl.arange(0, SIZE)[None, :]), K, return_indices=True
    )
    at = rows * K + tl.arange(0, K)[None, :]
    tl.store(out + at, values)
    tl.store(where + at, positions)


@pytest.mark.parametrize("k", [1, 4, N])
def test_topk_gives_the_greatest_and_where_they_were(k: int, rng: np.random.Generator) -> None:
    x = rng.permuted(np.arange(ROWS * N, dtype=np.float32).reshape(ROWS, N), axis=1)
    out, where = np.zeros((ROWS, k), np.float32), np.zeros((ROWS, k), np.int32)
    interpret(topk_kernel, (1,), x, out, where, K=k, M=ROWS, SIZE=N)
    assert np.array_equal(out, -np.sort(-x, axis=1)[:, :k])
    assert np.array_equal(np.take_along_axis(x, where, axis=1), out)


@tilewright.jit
def rank_kernel(x, order, merged, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tile = tl.load(x + at)
    tl.store(order + at, tl.argsort(tile))
    tl.store(merged + at, tl.bitonic_merge(tile))


def test_argsort_and_merge_of_a_bitonic_row() -> None:
    x = np.array([1, 4, 7, 9, 8, 5, 2, 0], np.int32)
    order, merged = np.zeros(8, np.int32), np.zeros(8, np.int32)
    interpret(rank_kernel, (1,), x, order, merged, SIZE=8)
    assert order.tolist() == np.argsort(x).tolist()
    assert merged.tolist() == sorted(x.tolist())


@tilewright.jit
def gather_kernel(x, index, out, AXIS: tl.constexpr, M: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + at, tl.load(x + at).gather(tl.load(index + at), AXIS))


@pytest.mark.parametrize("name", ["float32", "int8", "bool"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_agrees_with_numpy(axis: int, name: str, rng: np.random.Generator) -> None:
    x = random_array(rng, name, ROWS, N)
    index = rng.integers(0, x.shape[axis], x.shape, np.int32)
    out = np.zeros_like(x)
    interpret(gather_kernel, (1,), x, index, out, AXIS=axis, M=ROWS, SIZE=N)
    assert np.array_equal(out, np.take_along_axis(x, index, axis=axis))


@tilewright.jit
def histogram_kernel(x, out, limit, SIZE: tl.constexpr, BINS: tl.constexpr):
    tile = tl.load(x + tl.arange(0, SIZE))
    tl.store(out + tl.arange(0, BINS), tile.histogram(BINS, mask=tile < limit))


def test_histogram_counts_what_the_mask_leaves(rng: np.random.Generator) -> None:
    x = rng.integers(-3, 12, 64, np.int32)
    out = np.zeros(8, np.int32)
    interpret(histogram_kernel, (1,), x, out, 6, SIZE=64, BINS=8)
    kept = x[(x >= 0) & (x < 6)]
    assert out.tolist() == np.bincount(kept, minlength=8).tolist()


def test_sorting_another_dimension_is_not_supported() -> None:
    emission = Emission()
    with pytest.raises(UnsupportedError, match="only the last dimension, 1"):
        emission.call("sort", emission.value(float32, 4, 8), 0)


@pytest.mark.parametrize("key", ["sort", "argsort"])
def test_a_scalar_is_not_sorted(key: str) -> None:
    emission = Emission()
    with pytest.raises(ShapeMismatch, match="scalar"):
        emission.call(key, emission.value(float32))


def test_pointers_are_not_sorted() -> None:
    emission = Emission()
    with pytest.raises(DtypeNotAllowed, match="numbers"):
        emission.call("sort", emission.pointer(int32, 4))


def test_k_is_a_power_of_two_within_the_dimension() -> None:
    emission = Emission()
    x = emission.value(float32, 8)
    with pytest.raises(NotPowerOfTwo):
        emission.call("topk", x, 3)
    with pytest.raises(InvalidOption, match="8 elements"):
        emission.call("topk", x, 16)


def test_gather_needs_an_integer_index_that_fits() -> None:
    emission = Emission()
    x = emission.value(float32, 4, 8)
    with pytest.raises(DtypeNotAllowed, match="`index`"):
        emission.call("gather", x, emission.value(float32, 4, 8), 0)
    with pytest.raises(DtypeNotAllowed, match="`index`"):
        emission.call("gather", x, emission.value(int1, 4, 8), 0)
    with pytest.raises(ShapeMismatch, match="all dimensions but 0"):
        emission.call("gather", x, emission.value(int32, 4, 4), 0)
    with pytest.raises(AxisOutOfRange):
        emission.call("gather", x, emission.value(int64, 4, 8), 2)


def test_histogram_takes_one_dimension_of_32_bit_integers() -> None:
    emission = Emission()
    with pytest.raises(DtypeNotAllowed, match="32-bit"):
        emission.call("histogram", emission.value(int8, 8), 4)
    with pytest.raises(ShapeMismatch, match="2 dimensions"):
        emission.call("histogram", emission.value(int32, 8, 2), 4)
    with pytest.raises(NotPowerOfTwo):
        emission.call("histogram", emission.value(int32, 8), 5)
    with pytest.raises(DtypeNotAllowed, match="`mask`"):
        emission.call("histogram", emission.value(int32, 8), 4, emission.value(int32, 8))
