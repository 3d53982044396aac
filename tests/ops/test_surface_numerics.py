"""Numeric rules of user functions: result dtypes, rounding modes, warnings, odd scan lengths."""

from __future__ import annotations

import warnings

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.apply import apply
from tests.ops.emission import Emission
from tests.ops.harness import interpret
from tilewright.language.core import (
    bfloat16,
    dtype,
    float8e5,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    uint32,
)
from tilewright.support.errors import InvalidOption


@pytest.mark.parametrize(
    ("operand", "asked", "result"),
    [
        (int8, float32, int32),
        (float64, float32, float64),
        (float64, float16, float64),
        (float32, float16, float32),
        (bfloat16, float64, float32),
        (float16, float16, float16),
        (float16, float64, float32),
        (float8e5, float16, float16),
        (float8e5, int32, float32),
    ],
)
def test_dot_ignores_an_out_dtype_that_is_no_choice(
    operand: dtype, asked: dtype, result: dtype
) -> None:
    emission = Emission()
    x = emission.value(operand, 32, 32)
    assert emission.call("dot", x, x, out_dtype=asked).dtype == result


@pytest.mark.parametrize("operand", [float16, bfloat16, float32, float64, float8e5])
def test_dot_gives_no_bfloat16(operand: dtype) -> None:
    emission = Emission()
    x = emission.value(operand, 32, 32)
    with pytest.raises(InvalidOption, match="out_dtype"):
        emission.call("dot", x, x, out_dtype=bfloat16)


def test_only_products_of_fp8_limit_their_imprecise_steps() -> None:
    emission = Emission()
    x = emission.value(float16, 32, 32)
    emission.call("dot", x, x, max_num_imprecise_acc=64)
    y = emission.value(float8e5, 32, 32)
    emission.call("dot", y, y, max_num_imprecise_acc=32)
    with pytest.raises(InvalidOption, match="must be <= K"):
        emission.call("dot", y, y, max_num_imprecise_acc=33)


@pytest.mark.parametrize(
    ("source", "target"),
    [(float32, float32), (float16, float32), (float8e5, float16), (int32, int32), (int16, int16)],
)
def test_a_rounding_mode_may_be_named_where_nothing_is_rounded(
    source: dtype, target: dtype
) -> None:
    emission = Emission()
    value = emission.call("cast", emission.value(source, 8), target, fp_downcast_rounding="rtz")
    assert value.dtype == target


@pytest.mark.parametrize(
    ("source", "target"), [(float16, bfloat16), (int32, float16), (float32, uint32)]
)
def test_a_rounding_mode_is_refused_where_it_could_not_be_kept(
    source: dtype, target: dtype
) -> None:
    emission = Emission()
    with pytest.raises(InvalidOption, match="fp_downcast_rounding"):
        emission.call("cast", emission.value(source, 8), target, fp_downcast_rounding="rtz")


@tilewright.jit
def choose_by_integer(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, tl.where(a, a, -1))


@tilewright.jit
def choose_by_comparison(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(out + i, tl.where(a != 0, a, -1))


def test_where_warns_of_a_condition_that_is_no_int1_at_its_line() -> None:
    x, out = np.array([0, 5, 0, 7], np.int32), np.zeros(4, np.int32)
    with pytest.warns(UserWarning, match="non-boolean condition") as caught:
        interpret(choose_by_integer, (1,), x, out, N=4)
    assert out.tolist() == [-1, 5, -1, 7]
    assert caught[0].filename.endswith("test_surface_numerics.py")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interpret(choose_by_comparison, (1,), x, out, N=4)
    assert out.tolist() == [-1, 5, -1, 7]


@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("size", [1, 17, 64, 65, 1000, 4097])
def test_scans_of_any_length_add_up_in_a_tree(size: int, is_reverse: bool) -> None:
    ones = np.ones((size, 2), ml_dtypes.bfloat16)
    region = """{
      ^bb0(%x: bf16, %y: bf16):
        %z = "arith.addf"(%x, %y) : (bf16, bf16) -> bf16
        "tt.scan.return"(%z) : (bf16) -> ()
    }"""
    way = "true" if is_reverse else "false"
    (sums,) = apply(
        "tt.scan", [ones], (ones.shape, ones.dtype),
        properties=f"axis = 0 : i32, reverse = {way}", region=region,
    )  # fmt: skip
    exact = np.arange(1, size + 1, dtype=np.float64)[:, None]
    got = sums.astype(np.float64)[::-1] if is_reverse else sums.astype(np.float64)
    # A running sum in bfloat16 would stay at 256.
    assert np.abs(got / exact - 1).max() <= 2.0**-6
