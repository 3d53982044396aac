"""Rounding in every direction against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tilewright.interp.simt import rounding
from tilewright.interp.simt.rounding import MODES

COUNT = 400
FORMATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def floats(seed: int, dtype: type = np.float32) -> np.ndarray:
    """Floats of many magnitudes, some of them close together."""
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.integers(-20, 20, COUNT))
    return (rng.standard_normal(COUNT) * scale).astype(dtype)


def neighbours(value: Fraction, dtype: np.dtype) -> tuple[float, float]:
    """The representable numbers below and above an exact value."""
    nearest = np.array([float(value)], np.float64).astype(dtype)
    found = Fraction(float(nearest[0]))
    if found == value:
        return float(nearest[0]), float(nearest[0])
    up, down = np.array([np.inf], dtype), np.array([-np.inf], dtype)
    if found < value:
        return float(nearest[0]), float(np.nextafter(nearest, up)[0])
    return float(np.nextafter(nearest, down)[0]), float(nearest[0])


def expected(value: Fraction, dtype: np.dtype, mode: str) -> float:
    low, high = neighbours(value, dtype)
    if mode == "rz":
        return low if value > 0 else high
    if mode in ("rm", "rp"):
        return low if mode == "rm" else high
    below, above = value - Fraction(low), Fraction(high) - value
    if below != above:
        return low if below < above else high
    low_bits = int(np.array([low], dtype).view(f"u{dtype.itemsize}")[0])
    return high if low_bits & 1 else low


@pytest.mark.parametrize("mode", MODES)
def test_fma_rounds_once(mode: str) -> None:
    a, b = floats(1), floats(2)
    c = (-a.astype(np.float64) * b * (1 + floats(3).astype(np.float64) * 1e-9)).astype(np.float32)
    got = rounding.fused_multiply_add(a, b, c, mode)
    for x, y, z, result in zip(a, b, c, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert float(result) == expected(exact, np.dtype(np.float32), mode)


@pytest.mark.parametrize("mode", MODES)
def test_sums_and_products_round_as_they_say(mode: str) -> None:
    a, b = floats(4), floats(5)
    sums, products = rounding.add(a, b, mode), rounding.multiply(a, b, mode)
    quotients = rounding.divide(a, b, mode)
    for i in range(COUNT):
        x, y = Fraction(float(a[i])), Fraction(float(b[i]))
        for exact, result in ((x + y, sums[i]), (x * y, products[i]), (x / y, quotients[i])):
            assert float(result) == expected(exact, np.dtype(np.float32), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", FORMATS)
def test_narrowing_rounds_once(target: str, mode: str) -> None:
    wide = floats(6, np.float64) * (1 if target != "f16" else 1e-2)
    got = rounding.convert_float(wide, target, mode)
    for x, result in zip(wide, got, strict=True):
        want = expected(Fraction(float(x)), np.dtype(FORMATS[target]), mode)
        assert float(result) == want


def test_ties_of_a_double_do_not_round_twice() -> None:
    # Half way between two halves once it is a float, but not before.
    value = np.array([1 + 2.0**-11 + 2.0**-40])
    assert rounding.narrow(value, np.dtype(np.float16))[0] == np.float16(1 + 2.0**-10)


def test_overflow_saturates_where_the_direction_says() -> None:
    value = np.array([1e6, -1e6])
    with np.errstate(over="ignore"):
        toward_zero = rounding.convert_float(value, "f16", "rz")
        up = rounding.convert_float(value, "f16", "rp")
        saturated = rounding.convert_float(value, "f16", saturates=True)
    assert toward_zero.tolist() == [65504.0, -65504.0]
    assert up.tolist() == [np.inf, -65504.0]
    assert saturated.tolist() == [65504.0, -65504.0]


def test_tf32_keeps_ten_bits() -> None:
    value = np.array([1 + 2.0**-11, 1 + 2.0**-11 - 2.0**-20, -1 - 2.0**-11], np.float32)
    away = rounding.round_to_tf32(value)
    assert away.tolist() == [1 + 2.0**-10, 1.0, -1 - 2.0**-10]
    assert rounding.round_to_tf32(value, "rn").tolist() == [1.0, 1.0, -1.0]
