"""Shape, indexing, matrix and folding ops against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.apply import FLOATS, INTEGERS, NARROW, apply
from tests.ops.examples import combine_region


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return rng.integers(-8, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.dtype(np.bool_), *INTEGERS, *FLOATS], ids=str)
def test_shape_ops_move_elements_of_every_dtype(dtype: np.dtype, rng: np.random.Generator) -> None:
    a = rng.integers(0, 2, (4, 8)).astype(dtype)
    b = rng.integers(0, 2, (4, 8)).astype(dtype)
    cases = {
        "tt.expand_dims": ("axis = 1 : i32", a[:, None]),
        "tt.reshape": ("", a.reshape(2, 16)),
        "tt.trans": ("order = array<i32: 1, 0>", a.T),
        "tw.flip": ("axis = 1 : i32", a[:, ::-1]),
    }
    for name, (properties, want) in cases.items():
        (got,) = apply(name, [a], (want.shape, dtype), properties=properties)
        assert np.array_equal(got, want), name
    (joined,) = apply("tt.join", [a, b], ((4, 8, 2), dtype))
    assert np.array_equal(joined, np.stack([a, b], -1))
    left, right = apply("tt.split", [joined], ((4, 8), dtype), ((4, 8), dtype))
    assert np.array_equal(left, a) and np.array_equal(right, b)
    (both,) = apply("tt.cat", [a, b], ((8, 8), dtype))
    assert np.array_equal(both, np.concatenate([a, b]))
    (wide,) = apply("tt.broadcast", [a[:, :1]], ((4, 8), dtype))
    assert np.array_equal(wide, np.broadcast_to(a[:, :1], (4, 8)))


def test_trans_permutes_three_dimensions(rng: np.random.Generator) -> None:
    a = numbers(rng, (2, 4, 8), np.dtype(np.int32))
    (got,) = apply("tt.trans", [a], ((8, 2, 4), np.int32), properties="order = array<i32: 2, 0, 1>")
    assert np.array_equal(got, a.transpose(2, 0, 1))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_takes_along_an_axis(axis: int, rng: np.random.Generator) -> None:
    src = numbers(rng, (8, 4), np.dtype(np.float32))
    shape = (16, 4) if axis == 0 else (8, 2)
    index = rng.integers(0, src.shape[axis], shape).astype(np.int32)
    (got,) = apply(
        "tt.gather", [src, index], (shape, np.float32), properties=f"axis = {axis} : i32"
    )
    assert np.array_equal(got, np.take_along_axis(src, index.astype(np.int64), axis))


def test_histogram_counts_what_the_mask_keeps() -> None:
    src = np.array([0, 1, 1, 3, 7, -1, 3, 3], np.int32)
    mask = np.array([1, 1, 0, 1, 1, 1, 1, 1], np.bool_)
    (plain,) = apply("tt.histogram", [src], ((4,), np.int32))
    (masked,) = apply("tt.histogram", [src, mask], ((4,), np.int32))
    assert plain.tolist() == [1, 2, 0, 3]
    assert masked.tolist() == [1, 1, 0, 3]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable_in_both_directions(
    dtype: np.dtype, descending: bool, rng: np.random.Generator
) -> None:
    a = numbers(rng, (4, 32), dtype)
    flag = "descending" if descending else ""
    got, order = apply("tw.sort", [a], (a.shape, dtype), (a.shape, np.int32), properties=flag)
    sign = -1 if descending else 1
    want = np.argsort(sign * a.astype(np.float64), axis=-1, kind="stable")
    assert np.array_equal(order, want)
    assert np.array_equal(got, np.take_along_axis(a, want, -1))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_dot_is_rounded_once(dtype: np.dtype, rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal((16, 16)).astype(dtype) for _ in range(2))
    accumulator = np.float64 if dtype == np.float64 else np.float32
    c = rng.standard_normal((16, 16)).astype(accumulator)
    (got,) = apply("tt.dot", [a, b, c], ((16, 16), accumulator))
    wide = np.longdouble if dtype == np.float64 else np.float64
    want = (a.astype(wide) @ b.astype(wide) + c).astype(accumulator)
    assert np.array_equal(got, want)


def test_dot_of_bytes_is_exact(rng: np.random.Generator) -> None:
    a = rng.integers(-128, 128, (16, 64)).astype(np.int8)
    b = rng.integers(-128, 128, (64, 16)).astype(np.int8)
    c = rng.integers(-9, 9, (16, 16)).astype(np.int32)
    (got,) = apply("tt.dot", [a, b, c], ((16, 16), np.int32))
    assert np.array_equal(got, a.astype(np.int64) @ b.astype(np.int64) + c)


def test_dot_takes_batches(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal((4, 8, 8)).astype(np.float32) for _ in range(2))
    c = np.zeros((4, 8, 8), np.float32)
    (got,) = apply("tt.dot", [a, b, c], ((4, 8, 8), np.float32))
    assert np.allclose(got, a @ b, rtol=1e-6, atol=1e-6)


def region(op: str, element: str, terminator: str) -> str:
    """A combine region of one op."""
    return f"""{{
      ^bb0(%x: {element}, %y: {element}):
        %z = "{op}"(%x, %y) : ({element}, {element}) -> {element}
        "{terminator}"(%z) : ({element}) -> ()
      }}"""


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_reduce_folds_one_axis(axis: int, rng: np.random.Generator) -> None:
    a = numbers(rng, (2, 8, 4), np.dtype(np.int32))
    want = a.sum(axis, dtype=np.int32)
    body = region("arith.addi", "i32", "tt.reduce.return")
    (got,) = apply(
        "tt.reduce", [a], (want.shape, np.int32), properties=f"axis = {axis} : i32", region=body
    )
    assert np.array_equal(got, want)


def test_reduce_of_an_odd_extent_loses_nothing(rng: np.random.Generator) -> None:
    a = numbers(rng, (7, 4), np.dtype(np.int32))
    body = region("arith.addi", "i32", "tt.reduce.return")
    (got,) = apply("tt.reduce", [a], ((4,), np.int32), properties="axis = 0 : i32", region=body)
    assert np.array_equal(got, a.sum(0))


@pytest.mark.parametrize("dtype", NARROW[:2], ids=str)
def test_narrow_floats_are_rounded_in_each_step(dtype: np.dtype) -> None:
    # 256 + 1 is not a bf16, 2048 + 1 no f16: the order of the fold shows.
    big = 2048 if dtype == np.float16 else 256
    a = np.array([[big, 1], [1, 1]], np.float32).astype(dtype)
    name = "f16" if dtype == np.float16 else "bf16"
    body = region("arith.addf", name, "tt.reduce.return")
    (got,) = apply("tt.reduce", [a], ((2,), dtype), properties="axis = 1 : i32", region=body)
    assert got.astype(float).tolist() == [big, 2]


LAST_DEFINED = """{
  ^bb0(%x: i32, %y: i32):
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %empty = "arith.cmpi"(%y, %zero) <{predicate = 0 : i64}> : (i32, i32) -> i1
    %z = "scf.if"(%empty) ({
      "scf.yield"(%x) : (i32) -> ()
    }, {
      "scf.yield"(%y) : (i32) -> ()
    }) : (i1) -> i32
    "TERMINATOR"(%z) : (i32) -> ()
  }"""


def test_combine_regions_may_branch_and_need_not_commute() -> None:
    a = np.array([[3, 0, 5, 0], [0, 0, 0, 0], [7, 1, 0, 0]], np.int32)
    body = LAST_DEFINED.replace("TERMINATOR", "tt.reduce.return")
    (got,) = apply("tt.reduce", [a], ((3,), np.int32), properties="axis = 1 : i32", region=body)
    assert got.tolist() == [5, 0, 1]


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_keeps_the_order_of_elements(reverse: bool) -> None:
    a = np.array([[3, 0, 5, 0, 0, 2, 0, 0]], np.int32)
    body = LAST_DEFINED.replace("TERMINATOR", "tt.scan.return")
    properties = f"axis = 1 : i32, reverse = {str(reverse).lower()}"
    (got,) = apply("tt.scan", [a], ((1, 8), np.int32), properties=properties, region=body)
    # Backwards the element next to the end comes first, so a later one gives way to it.
    want = [3, 5, 5, 2, 2, 2, 0, 0] if reverse else [3, 3, 5, 5, 5, 2, 2, 2]
    assert got[0].tolist() == want


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("extent", [1, 2, 5, 16])
def test_cumulative_sums(axis: int, extent: int, rng: np.random.Generator) -> None:
    a = numbers(rng, (extent, 4) if axis == 0 else (4, extent), np.dtype(np.int64))
    body = region("arith.addi", "i64", "tt.scan.return")
    properties = f"axis = {axis} : i32, reverse = false"
    (got,) = apply("tt.scan", [a], (a.shape, np.int64), properties=properties, region=body)
    assert np.array_equal(got, np.cumsum(a, axis))


def test_reduce_of_several_operands_finds_the_leftmost_maximum() -> None:
    values = np.array([[1, 9, 9, 2], [4, 3, 2, 1]], np.float32)
    places = np.broadcast_to(np.arange(4, dtype=np.int32), (2, 4))
    body = """{
      ^bb0(%v: f32, %i: i32, %w: f32, %j: i32):
        %more = "arith.cmpf"(%v, %w) <{predicate = 2 : i64}> : (f32, f32) -> i1
        %same = "arith.cmpf"(%v, %w) <{predicate = 1 : i64}> : (f32, f32) -> i1
        %left = "arith.cmpi"(%i, %j) <{predicate = 2 : i64}> : (i32, i32) -> i1
        %tie = "arith.andi"(%same, %left) : (i1, i1) -> i1
        %first = "arith.ori"(%more, %tie) : (i1, i1) -> i1
        %a = "arith.select"(%first, %v, %w) : (i1, f32, f32) -> f32
        %b = "arith.select"(%first, %i, %j) : (i1, i32, i32) -> i32
        "tt.reduce.return"(%a, %b) : (f32, i32) -> ()
      }"""
    best, where = apply(
        "tt.reduce", [values, places], ((2,), np.float32), ((2,), np.int32),
        properties="axis = 1 : i32", region=body,
    )  # fmt: skip
    assert best.tolist() == [9, 4]
    assert where.tolist() == [1, 0]


def test_sum_of_a_long_row_is_accurate() -> None:
    a = np.full((1, 1 << 14), 0.1, np.float32)
    body = combine_region("tt.reduce.return").removeprefix("(").removesuffix(")")
    (got,) = apply("tt.reduce", [a], ((1,), np.float32), properties="axis = 1 : i32", region=body)
    assert abs(float(got[0]) - float(a.astype(np.float64).sum())) < 1e-3
