"""Elementwise arithmetic, comparison and math against NumPy, one dtype at a time."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.ops.apply import FLOATS, INTEGERS, NARROW, apply
from tilewright.ir.narrow_floats import nearest
from tilewright.ops.elementwise.comparisons import FLOAT_PREDICATES, INTEGER_PREDICATES

SHAPE = (4, 16)
each_integer = pytest.mark.parametrize("dtype", INTEGERS, ids=str)
each_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)


def integers(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, SHAPE, dtype=dtype, endpoint=True)
    values[0, :5] = [info.min, info.max, 0, -1, 1]
    return values


def floats(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    values = (rng.standard_normal(SHAPE) * 4).astype(dtype)
    values[0, :2] = [0, 1]
    return values


def saturated(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Wide values rounded to `dtype`; in 8 bits what is too large is the largest number."""
    if dtype.itemsize == 1:
        largest = float(ml_dtypes.finfo(dtype).max)
        values = np.clip(values, -largest, largest)
    return values.astype(dtype)


def same(got: np.ndarray, want: np.ndarray) -> bool:
    return np.array_equal(got.astype(np.float64), want.astype(np.float64), equal_nan=True)


@each_integer
@pytest.mark.parametrize("name", ["addi", "subi", "muli", "andi", "ori", "xori"])
def test_integer_arithmetic_wraps(name: str, dtype: np.dtype, rng: np.random.Generator) -> None:
    function = {
        "addi": np.add, "subi": np.subtract, "muli": np.multiply,
        "andi": np.bitwise_and, "ori": np.bitwise_or, "xori": np.bitwise_xor,
    }[name]  # fmt: skip
    a, b = integers(rng, dtype), integers(rng, dtype)[::-1]
    (got,) = apply(f"arith.{name}", [a, b], (SHAPE, dtype))
    assert np.array_equal(got, function(a, b))


@each_integer
def test_division_rounds_towards_zero(dtype: np.dtype, rng: np.random.Generator) -> None:
    a, b = integers(rng, dtype), integers(rng, dtype)[::-1].copy()
    b[b == 0] = 3
    b[(b == -1) & (a == np.iinfo(dtype).min)] = 7
    (quotient,) = apply("arith.divsi", [a, b], (SHAPE, dtype))
    (remainder,) = apply("arith.remsi", [a, b], (SHAPE, dtype))
    for x, y, q, r in zip(a.flat, b.flat, quotient.flat, remainder.flat, strict=True):
        exact = math.trunc(Fraction(int(x), int(y)))
        assert (int(q), int(r)) == (exact, int(x) - exact * int(y))


@each_integer
def test_unsigned_division_sees_the_bits(dtype: np.dtype, rng: np.random.Generator) -> None:
    a, b = integers(rng, dtype), integers(rng, dtype)[::-1].copy()
    b[b == 0] = 3
    unsigned = f"u{dtype.itemsize}"
    for name, function in (("divui", np.floor_divide), ("remui", np.remainder)):
        (got,) = apply(f"arith.{name}", [a, b], (SHAPE, dtype))
        assert np.array_equal(got.view(unsigned), function(a.view(unsigned), b.view(unsigned)))


@each_integer
def test_shifts(dtype: np.dtype, rng: np.random.Generator) -> None:
    a = integers(rng, dtype)
    by = rng.integers(0, 8 * dtype.itemsize, SHAPE).astype(dtype)
    unsigned = f"u{dtype.itemsize}"
    (left,) = apply("arith.shli", [a, by], (SHAPE, dtype))
    (arithmetic,) = apply("arith.shrsi", [a, by], (SHAPE, dtype))
    (logical,) = apply("arith.shrui", [a, by], (SHAPE, dtype))
    assert np.array_equal(left, a << by)
    assert np.array_equal(arithmetic, a >> by)
    assert np.array_equal(logical.view(unsigned), a.view(unsigned) >> by.view(unsigned))


@each_integer
def test_amounts_of_the_width_and_more_shift_out_all_bits(
    dtype: np.dtype, rng: np.random.Generator
) -> None:
    a, bits = integers(rng, dtype), 8 * dtype.itemsize
    by = rng.choice([bits, bits + 1, 127, -1, -bits], SHAPE).astype(dtype)
    (left,) = apply("arith.shli", [a, by], (SHAPE, dtype))
    (arithmetic,) = apply("arith.shrsi", [a, by], (SHAPE, dtype))
    (logical,) = apply("arith.shrui", [a, by], (SHAPE, dtype))
    assert not left.any()
    assert not logical.any()
    assert np.array_equal(arithmetic, np.where(a < 0, -1, 0))


@each_integer
def test_high_product_is_that_of_unsigned_integers(
    dtype: np.dtype, rng: np.random.Generator
) -> None:
    a, b = integers(rng, dtype), integers(rng, dtype)[::-1]
    (got,) = apply("tt.mulhiui", [a, b], (SHAPE, dtype))
    bits = 8 * dtype.itemsize
    for x, y, high in zip(a.flat, b.flat, got.flat, strict=True):
        product = (int(x) % (1 << bits)) * (int(y) % (1 << bits))
        assert int(high) % (1 << bits) == product >> bits


@each_integer
def test_bit_counts(dtype: np.dtype, rng: np.random.Generator) -> None:
    a = integers(rng, dtype)
    bits = 8 * dtype.itemsize
    (ones,) = apply("math.ctpop", [a], (SHAPE, dtype))
    (leading,) = apply("math.ctlz", [a], (SHAPE, dtype))
    (trailing,) = apply("math.cttz", [a], (SHAPE, dtype))
    for x, count, high, low in zip(a.flat, ones.flat, leading.flat, trailing.flat, strict=True):
        text = format(int(x) % (1 << bits), f"0{bits}b")
        assert int(count) == text.count("1")
        assert int(high) == len(text) - len(text.lstrip("0"))
        assert int(low) == len(text) - len(text.rstrip("0"))


def test_one_bit_integers_add_without_carry() -> None:
    a = np.array([False, False, True, True])
    b = np.array([False, True, False, True])
    for name, want in (
        ("addi", a ^ b), ("subi", a ^ b), ("muli", a & b), ("xori", a ^ b),
        ("maxui", a | b), ("minui", a & b), ("maxsi", a & b), ("minsi", a | b),
    ):  # fmt: skip
        (got,) = apply(f"arith.{name}", [a, b], ((4,), np.bool_))
        assert np.array_equal(got, want), name


@each_integer
@pytest.mark.parametrize("code", range(10), ids=lambda c: INTEGER_PREDICATES[c])
def test_integer_comparisons(code: int, dtype: np.dtype, rng: np.random.Generator) -> None:
    a, b = integers(rng, dtype), integers(rng, dtype)[::-1].copy()
    b[1] = a[1]
    (got,) = apply("arith.cmpi", [a, b], (SHAPE, np.bool_), properties=f"predicate = {code} : i64")
    name = INTEGER_PREDICATES[code]
    if name.startswith("u"):
        a, b = a.view(f"u{dtype.itemsize}"), b.view(f"u{dtype.itemsize}")
    want = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    assert np.array_equal(got, want[name[-2:]])


@each_float
@pytest.mark.parametrize("code", range(16), ids=lambda c: FLOAT_PREDICATES[c])
def test_float_comparisons_know_nan(code: int, dtype: np.dtype) -> None:
    a = np.array([1, 2, 2, np.nan, np.nan, 0, -1, 3], dtype)
    b = np.array([2, 2, 1, 1, np.nan, -0.0, np.nan, 3], dtype)
    (got,) = apply("arith.cmpf", [a, b], ((8,), np.bool_), properties=f"predicate = {code} : i64")
    name = FLOAT_PREDICATES[code]
    x, y = a.astype(np.float64), b.astype(np.float64)
    either = np.isnan(x) | np.isnan(y)
    if name in ("true", "false"):
        want = np.full(8, name == "true")
    elif name in ("ord", "uno"):
        want = either == (name == "uno")
    else:
        plain = {"eq": x == y, "gt": x > y, "ge": x >= y, "lt": x < y, "le": x <= y, "ne": x != y}
        want = plain[name[1:]] & ~either | either & (name[0] == "u")
    assert np.array_equal(got, want)


FLOAT_FUNCTIONS = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}


@each_float
@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_float_arithmetic_rounds_once(name: str, dtype: np.dtype, rng: np.random.Generator) -> None:
    a, b = floats(rng, dtype), floats(rng, dtype)[::-1].copy()
    b[b == 0] = 1
    (got,) = apply(f"arith.{name}", [a, b], (SHAPE, dtype))
    wide = np.float64 if dtype == np.float64 else np.float32
    assert same(got, saturated(FLOAT_FUNCTIONS[name](a.astype(wide), b.astype(wide)), dtype))


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize == 1], ids=str)
@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_float8_arithmetic_of_all_values(name: str, dtype: np.dtype) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype)
    a, b = (side.copy() for side in np.meshgrid(every, every))
    (got,) = apply(f"arith.{name}", [a, b], (a.shape, dtype))
    with np.errstate(all="ignore"):
        exact = FLOAT_FUNCTIONS[name](a.astype(np.float32), b.astype(np.float32))
    assert same(got, saturated(exact, dtype))


@each_float
def test_maximum_propagates_nan_and_maxnum_ignores_it(dtype: np.dtype) -> None:
    a = np.array([1, np.nan, 3, np.nan], dtype)
    b = np.array([2, 2, np.nan, np.nan], dtype)
    (strict,) = apply("arith.maximumf", [a, b], ((4,), dtype))
    (lenient,) = apply("arith.maxnumf", [a, b], ((4,), dtype))
    assert same(strict, np.array([2, np.nan, np.nan, np.nan]))
    assert same(lenient, np.array([2, 2, 3, np.nan]))


def test_remainder_has_the_sign_of_the_dividend() -> None:
    a = np.array([5.5, -5.5, 5.5, -5.5], np.float32)
    b = np.array([3, 3, -3, -3], np.float32)
    (got,) = apply("arith.remf", [a, b], ((4,), np.float32))
    assert got.tolist() == [2.5, -2.5, 2.5, -2.5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *NARROW], ids=str)
def test_fma_is_rounded_once(dtype: np.dtype, rng: np.random.Generator) -> None:
    dtype = np.dtype(dtype)
    a, b, c = (floats(rng, dtype) for _ in range(3))
    c[1] = -(a[1].astype(np.float64) * b[1].astype(np.float64)).astype(dtype)
    (got,) = apply("math.fma", [a, b, c], (SHAPE, dtype))
    for x, y, z, r in zip(a.flat, b.flat, c.flat, got.flat, strict=True):
        if not all(math.isfinite(float(v)) for v in (x, y, z)):
            continue
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        assert _is_nearest(float(r), exact, dtype)


def _is_nearest(value: float, exact: Fraction, dtype: np.dtype) -> bool:
    """Whether no neighbour of `value` in the format is nearer to `exact`."""
    if not math.isfinite(value):
        return True
    bits = np.array(value, dtype).view(f"u{dtype.itemsize}")
    error = abs(Fraction(value) - exact)
    for step in (-1, 1):
        neighbour = float((bits + np.array(step).astype(bits.dtype)).view(dtype).astype(np.float64))
        if math.isfinite(neighbour) and abs(Fraction(neighbour) - exact) < error:
            return False
    return True


def test_fma_finds_what_two_roundings_lose() -> None:
    # 2^-60 decides between two floats only if the product is kept exactly.
    a = np.array([1 + 2.0**-12], np.float32)
    c = np.array([2.0**-60], np.float32)
    (got,) = apply("math.fma", [a, a, c], ((1,), np.float32))
    assert got[0] == np.float32(1 + 2.0**-11 + 2.0**-23)


UNARY = {
    "math.exp": np.exp, "math.exp2": np.exp2, "math.log": np.log, "math.log2": np.log2,
    "math.sqrt": np.sqrt, "math.sin": np.sin, "math.cos": np.cos, "math.tanh": np.tanh,
    "math.rsqrt": lambda x: 1 / np.sqrt(x), "math.cbrt": np.cbrt, "math.expm1": np.expm1,
    "math.erf": np.vectorize(math.erf), "math.floor": np.floor, "math.ceil": np.ceil,
    "math.trunc": np.trunc, "math.roundeven": np.rint, "math.absf": np.abs,
    "arith.negf": np.negative, "math.atan": np.arctan, "math.sinh": np.sinh,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_are_rounded_from_double(
    name: str, dtype: np.dtype, rng: np.random.Generator
) -> None:
    a = np.abs(floats(rng, dtype)) if "log" in name or "sqrt" in name else floats(rng, dtype)
    (got,) = apply(name, [a], (SHAPE, dtype))
    with np.errstate(all="ignore"):
        want = UNARY[name](a.astype(np.float64))
        if dtype != np.float64:
            want = want.astype(np.float32)
        assert same(got, nearest(want, dtype))


def test_round_goes_away_from_zero_at_halves_only() -> None:
    values = [0.5, -0.5, 2.5, 1.4, -1.6, 0.49999997, 8388609.0, -0.0, np.inf]
    a = np.array(values, np.float32)
    (got,) = apply("math.round", [a], ((9,), np.float32))
    assert got.tolist() == [1, -1, 3, 1, -2, 0, 8388609, 0, np.inf]
    assert np.signbit(got[7])


@each_float
def test_clamp_and_nan(dtype: np.dtype) -> None:
    x = np.array([-5, 0.5, 5, np.nan], dtype)
    low, high = np.full(4, -1, dtype), np.full(4, 1, dtype)
    (ignoring,) = apply("tt.clampf", [x, low, high], ((4,), dtype))
    (passing,) = apply(
        "tt.clampf", [x, low, high], ((4,), dtype), properties="propagateNan = 65535 : i32"
    )
    assert same(ignoring, np.array([-1, 0.5, 1, -1]))
    assert same(passing, np.array([-1, 0.5, 1, np.nan]))


@pytest.mark.parametrize("dtype", (*INTEGERS, *FLOATS), ids=str)
def test_select_picks_by_element(dtype: np.dtype, rng: np.random.Generator) -> None:
    condition = rng.integers(0, 2, SHAPE).astype(np.bool_)
    a, b = rng.integers(0, 5, SHAPE).astype(dtype), rng.integers(5, 9, SHAPE).astype(dtype)
    (got,) = apply("arith.select", [condition, a, b], (SHAPE, dtype))
    assert same(got, np.where(condition, a, b))
