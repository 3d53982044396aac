"""Casts between every pair of types, exhaustive where the source has 16 bits or fewer."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.ops.apply import FLOATS, INTEGERS, NARROW, apply
from tilewright.interp import casts

# NumPy warns of signalling NaNs, which the exhaustive tests contain.
pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")


def every_value(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """All values of a dtype of 8 or 16 bits; a sample of a wider one."""
    if dtype.itemsize <= 2:
        codes = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
        return codes.view(dtype)
    info = np.finfo(dtype)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, 448, 464, 57344, 61440]
    spread = rng.standard_normal(4085) * np.exp2(rng.integers(-30, 30, 4085))
    return np.concatenate([edges, spread]).astype(dtype)


def same(got: np.ndarray, want: np.ndarray) -> bool:
    return np.array_equal(got.astype(np.float64), want.astype(np.float64), equal_nan=True)


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_float_casts_agree_with_ml_dtypes(
    source: np.dtype, target: np.dtype, rng: np.random.Generator
) -> None:
    values = every_value(rng, source)
    with np.errstate(all="ignore"):
        if target.itemsize == 1:  # ml_dtypes does not saturate: tests/ops/test_fp8.py
            values = values[np.abs(values.astype(np.float64)) <= float(ml_dtypes.finfo(target).max)]
        got = casts.round_float(values, target)
        # A double goes through float32 in ml_dtypes: the twice rounded cases are tested below.
        wide = values.astype(np.float32) if source.itemsize < 8 else values
        want = wide.astype(target)
    if source.itemsize == 8 and target in NARROW:
        assert np.mean(same_elements(got, want)) > 0.99
    else:
        assert same(got, want)


def same_elements(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    x, y = a.astype(np.float64), b.astype(np.float64)
    return (x == y) | (np.isnan(x) & np.isnan(y))


@pytest.mark.parametrize("target", NARROW, ids=str)
def test_double_is_rounded_once(target: np.dtype) -> None:
    # Just above a tie of the target, by less than float32 can hold.
    one, next_up = np.array([1.0]).astype(target), None
    next_up = (one.view(f"u{target.itemsize}") + 1).astype(f"u{target.itemsize}").view(target)
    tie = (1.0 + float(next_up[0])) / 2
    values = np.array([tie, tie + 2.0**-40, tie - 2.0**-40])
    got = casts.round_float(values, target).astype(np.float64)
    assert got[1] == float(next_up[0])
    assert got[2] == 1.0


@pytest.mark.parametrize("target", NARROW, ids=str)
@pytest.mark.parametrize("source", [np.dtype(np.float32), np.dtype(np.float64)], ids=str)
def test_rounding_towards_zero_never_grows(
    source: np.dtype, target: np.dtype, rng: np.random.Generator
) -> None:
    values = every_value(rng, source)
    values = values[np.isfinite(values)]
    got = casts.round_float(values, target, "rtz").astype(np.float64)
    wide = values.astype(np.float64)
    assert np.isfinite(got).all()
    assert (np.abs(got) <= np.abs(wide)).all()
    # Nothing between the result and the value: the next value of the format is beyond it.
    grid = np.unique(every_value(rng, target).astype(np.float64))
    grid = grid[np.isfinite(grid)]
    position = np.searchsorted(grid, np.abs(wide), side="right") - 1
    assert np.array_equal(np.abs(got), grid[position])


def test_rounding_towards_zero_keeps_infinity_and_nan() -> None:
    values = np.array([np.inf, -np.inf, np.nan], np.float32)
    got = casts.round_float(values, np.dtype(np.float16), "rtz")
    assert np.isinf(got[:2]).all() and np.isnan(got[2])


@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
def test_integers_become_the_nearest_float(
    source: np.dtype,
    target: np.dtype,
    signed: bool,
    rng: np.random.Generator,
) -> None:
    info = np.iinfo(source)
    values = rng.integers(info.min, info.max, 512, dtype=source, endpoint=True)
    values[:4] = [info.min, info.max, 0, -1]
    values[4:64] >>= source.type(source.itemsize * 4)
    got = casts.integer_to_float(values, target, signed=signed).astype(np.float64)
    seen = values if signed else values.view(f"u{source.itemsize}")
    grid = np.unique(every_value(rng, target).astype(np.float64)) if target.itemsize <= 2 else None
    for integer, value in zip(seen.tolist(), got.tolist(), strict=True):
        if not np.isfinite(value):
            assert target.itemsize <= 2
            continue
        error = abs(Fraction(value) - integer)
        if grid is None:
            spacing = np.spacing(np.array(abs(value), target))
            assert error <= Fraction(float(spacing)) / 2
        else:
            finite = grid[np.isfinite(grid)]
            assert error == min(abs(Fraction(float(g)) - integer) for g in _near(finite, value))


def _near(grid: np.ndarray, value: float) -> list[float]:
    position = int(np.searchsorted(grid, value))
    return grid[max(position - 2, 0) : position + 3].tolist()


@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_floats_become_integers_towards_zero(
    source: np.dtype, target: np.dtype, rng: np.random.Generator
) -> None:
    values = every_value(rng, source)
    wide = values.astype(np.float64)
    info = np.iinfo(target)
    inside = np.isfinite(wide) & (np.trunc(wide) >= info.min) & (np.trunc(wide) < info.max)
    chosen = values[inside][:1024]
    chosen = chosen[: chosen.size // 2 * 2]
    (got,) = apply("arith.fptosi", [chosen], (chosen.shape, target))
    assert got.tolist() == [int(v) for v in chosen.astype(np.float64)]


def test_floats_out_of_range_become_the_same_integer_each_time() -> None:
    values = np.array([1e30, -1e30, np.nan, np.inf], np.float32)
    got = casts.float_to_integer(values, np.dtype(np.int32), signed=True)
    assert got.tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1]
    got = casts.float_to_integer(values, np.dtype(np.int32), signed=False)
    assert got.view(np.uint32).tolist() == [2**32 - 1, 0, 0, 2**32 - 1]


@pytest.mark.parametrize("source", INTEGERS[:3], ids=str)
def test_extension_keeps_the_value_or_the_bits(source: np.dtype, rng: np.random.Generator) -> None:
    values = rng.integers(-100, 100, 64).astype(source)
    (signed,) = apply("arith.extsi", [values], ((64,), np.int64))
    (unsigned,) = apply("arith.extui", [values], ((64,), np.int64))
    assert np.array_equal(signed, values.astype(np.int64))
    assert np.array_equal(unsigned, values.view(f"u{source.itemsize}").astype(np.int64))


def test_one_bit_extends_to_minus_one_or_one() -> None:
    values = np.array([True, False])
    (signed,) = apply("arith.extsi", [values], ((2,), np.int32))
    (unsigned,) = apply("arith.extui", [values], ((2,), np.int32))
    assert signed.tolist() == [-1, 0]
    assert unsigned.tolist() == [1, 0]


def test_truncation_drops_high_bits() -> None:
    values = np.array([0x1FF, -1, 256, 3], np.int32)
    (bytes_,) = apply("arith.trunci", [values], ((4,), np.int8))
    (bits,) = apply("arith.trunci", [values], ((4,), np.bool_))
    assert bytes_.tolist() == [-1, -1, 0, 3]
    assert bits.tolist() == [True, True, False, True]


def test_bitcast_keeps_bits(rng: np.random.Generator) -> None:
    values = rng.standard_normal(16).astype(np.float32)
    (bits,) = apply("tt.bitcast", [values], ((16,), np.int32))
    assert np.array_equal(bits, values.view(np.int32))


def test_rounding_mode_of_fp_to_fp_is_obeyed() -> None:
    values = np.array([1.0 + 2.0**-8 + 2.0**-9, -1.0 - 2.0**-8 - 2.0**-9], np.float32)
    bf16 = FLOATS[1]
    (near,) = apply("tt.fp_to_fp", [values], ((2,), bf16), properties='rounding = "rtne"')
    (zero,) = apply("tt.fp_to_fp", [values], ((2,), bf16), properties='rounding = "rtz"')
    assert near.astype(float).tolist() == [1.0078125, -1.0078125]
    assert zero.astype(float).tolist() == [1.0, -1.0]
