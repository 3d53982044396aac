"""Conversions between floating-point types, bit for bit against ml_dtypes and NumPy models.

8-bit types are held, and saturate, as `ir/narrow_floats.py` says; tests/ops/test_fp8.py compares
that with the formats' definitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.asm.lane_harness import (
    AVX2,
    BASELINE,
    LaneKernel,
    compile_lanes,
    foreign_assembly,
    host_features,
    loop_module,
)
from tilewright.codegen.convert import (
    FORMATS,
    emit_fp_to_fp,
    emit_int_to_fp,
    llvm_element,
)
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.ir import narrow_floats

DTYPES = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "f8E4M3B11FNUZ": narrow_floats.E4B15,
}
FP8 = tuple(name for name in FORMATS if name.startswith("f8"))
NARROW = tuple(FORMATS)
HOST = host_features()
MACHINES = [
    pytest.param(HOST, 16, id="host-16"),
    pytest.param(HOST, 64, id="host-64"),
    pytest.param(HOST, None, id="host-scalar"),
    pytest.param(AVX2, 8, id="avx2-8"),
    pytest.param(BASELINE, 16, id="baseline-16"),
]


def converter(
    source: str,
    target: str,
    lanes: int | None,
    features: frozenset[str],
    rounding: str = "rtne",
) -> LaneKernel:
    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return emit_fp_to_fp(fn, source, target, lanes, values[0], rounding, features)

    return compile_lanes(lanes, [llvm_element(source)], llvm_element(target), body, features)


def bits_of(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")


def all_values(dtype: str) -> np.ndarray:
    kind = DTYPES[dtype]
    return np.arange(1 << (8 * kind.itemsize), dtype=f"u{kind.itemsize}").view(kind)


def cast(array: np.ndarray, *dtypes: str) -> np.ndarray:
    """The conversions of NumPy and ml_dtypes one after the other, without their warnings."""
    with np.errstate(all="ignore"):
        for dtype in dtypes:
            if array.dtype != DTYPES[dtype]:
                array = narrow_floats.nearest(narrow_floats.widened(array), DTYPES[dtype])
    return array


def is_nan(array: np.ndarray) -> np.ndarray:
    return np.isnan(cast(array, "f64"))


def assert_same(result: np.ndarray, expected: np.ndarray, arguments: np.ndarray) -> None:
    """Equal bits, NaN payloads excluded."""
    both_nan = is_nan(result) & is_nan(expected)
    wrong = np.flatnonzero((bits_of(result) != bits_of(expected)) & ~both_nan)
    first = wrong[:5]
    assert not len(wrong), (len(wrong), arguments[first], result[first], expected[first])


def finite_values(target: str) -> np.ndarray:
    """The nonnegative finite values of a narrow type, ascending, as float64 (exact)."""
    return cast(all_values(target)[: FORMATS[target].largest + 1], "f64")


def boundaries(target: str, dtype: np.dtype) -> np.ndarray:
    """Every value and every midpoint of `target` with its neighbours in `dtype`, both signs."""
    values = finite_values(target)
    last = values[-1] + (values[-1] - values[-2]) * np.array([0.5, 1.0, 1.5])
    points = np.concatenate([values, (values[1:] + values[:-1]) / 2, last])
    with np.errstate(all="ignore"):
        points = np.unique(points.astype(dtype))
        points = np.concatenate(
            [points, np.nextafter(points, dtype.type(np.inf)), np.nextafter(points, -points - 1)]
        )
    return np.concatenate([points, -points])


def random_bits(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    unsigned = np.dtype(f"u{dtype.itemsize}")
    numbers = rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True)
    return numbers.view(dtype)


def near_range(rng: np.random.Generator, target: str, dtype: np.dtype, count: int) -> np.ndarray:
    """Random values between the smallest and twice the largest number of `target`."""
    values = finite_values(target)
    logs = rng.uniform(np.log2(values[1]) - 3, np.log2(values[-1]) + 1, count)
    with np.errstate(over="ignore"):
        return (np.exp2(logs) * rng.choice([-1, 1], count)).astype(dtype)


def arguments_for(rng: np.random.Generator, target: str, source: str, count: int) -> np.ndarray:
    dtype = DTYPES[source]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    parts = (special, boundaries(target, dtype), random_bits(rng, dtype, count))
    return np.concatenate([*parts, near_range(rng, target, dtype, count)])


def toward_zero(arguments: np.ndarray, target: str) -> np.ndarray:
    """The model of `rtz`: the largest magnitude of `target` that is not above the argument."""
    form, dtype = FORMATS[target], DTYPES[target]
    wide = cast(arguments, "f64")
    codes = np.searchsorted(finite_values(target), np.abs(wide), side="right") - 1
    if form.infinity is not None:
        codes = np.where(np.isinf(wide), form.infinity, codes)
    codes = np.where(np.isnan(wide), form.largest if form.nan is None else form.nan, codes)
    sign = np.where(np.signbit(wide) & ~np.isnan(wide), form.sign_bit, 0)
    if form.is_unsigned_zero:
        sign = np.where(codes & (form.sign_bit - 1), sign, 0)
    return (codes | sign).astype(f"u{dtype.itemsize}").view(dtype)


@pytest.mark.parametrize("features, lanes", MACHINES)
@pytest.mark.parametrize("source", NARROW)
def test_widening_is_exact_for_every_code(
    source: str, features: frozenset[str], lanes: int | None
) -> None:
    values = all_values(source)
    for target in ("f32", "f64"):
        result = converter(source, target, lanes, features).run(DTYPES[target], values)
        assert_same(result, cast(values, target), values)


@pytest.mark.parametrize("features, lanes", MACHINES)
@pytest.mark.parametrize("target", NARROW)
def test_float_rounds_to_nearest_even(
    target: str, features: frozenset[str], lanes: int | None, rng: np.random.Generator
) -> None:
    arguments = arguments_for(rng, target, "f32", 20_000)
    result = converter("f32", target, lanes, features).run(DTYPES[target], arguments)
    assert_same(result, cast(arguments, target), arguments)


@pytest.mark.parametrize("target", NARROW)
def test_a_million_floats_round_as_ml_dtypes_does(target: str, rng: np.random.Generator) -> None:
    arguments = random_bits(rng, DTYPES["f32"], 1_000_000)
    result = converter("f32", target, 16, HOST).run(DTYPES[target], arguments)
    assert_same(result, cast(arguments, target), arguments)


@pytest.mark.parametrize("target", FP8)
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_16_bit_value_rounds_once_to_8_bits(source: str, target: str) -> None:
    arguments = all_values(source)
    expected = cast(arguments, "f32", target)
    for features in (HOST, AVX2):
        result = converter(source, target, 16, features).run(DTYPES[target], arguments)
        assert_same(result, expected, arguments)


@pytest.mark.parametrize("source, target", [("f16", "bf16"), ("bf16", "f16")])
def test_the_16_bit_types_convert_into_each_other(source: str, target: str) -> None:
    arguments = all_values(source)
    expected = cast(arguments, "f32", target)
    result = converter(source, target, 16, HOST).run(DTYPES[target], arguments)
    assert_same(result, expected, arguments)


@pytest.mark.parametrize("source", FP8)
@pytest.mark.parametrize("target", NARROW)
def test_8_bit_types_convert_into_every_narrow_type(source: str, target: str) -> None:
    arguments = all_values(source)
    expected = arguments if source == target else cast(arguments, "f32", target)
    result = converter(source, target, 16, HOST).run(DTYPES[target], arguments)
    assert_same(result, expected, arguments)


def nearest_even(arguments: np.ndarray, target: str) -> np.ndarray:
    """The model of one rounding from float64: NumPy only, no intermediate type."""
    form, dtype = FORMATS[target], DTYPES[target]
    values = finite_values(target)
    step = values[-1] - values[-2]
    grid = np.append(values, values[-1] + step)
    magnitude = np.minimum(np.nan_to_num(np.abs(arguments), nan=0.0), grid[-1])
    low = np.minimum(np.searchsorted(grid, magnitude, side="right") - 1, len(grid) - 2)
    # Differences from grid points are exact: both are multiples of the argument's last place.
    below, above = magnitude - grid[low], grid[low + 1] - magnitude
    codes = low + ((above < below) | ((above == below) & (low & 1 == 1)))
    beyond = form.largest if dtype.itemsize == 1 else form.infinity
    codes = np.where(codes > form.largest, beyond, codes)
    codes = np.where(np.isnan(arguments), form.largest if form.nan is None else form.nan, codes)
    sign = np.where(np.signbit(arguments) & ~np.isnan(arguments), form.sign_bit, 0)
    if form.is_unsigned_zero:
        sign = np.where(codes & (form.sign_bit - 1), sign, 0)
    return (codes | sign).astype(f"u{dtype.itemsize}").view(dtype)


@pytest.mark.parametrize("features, lanes", MACHINES)
@pytest.mark.parametrize("target", NARROW)
def test_double_rounds_once(
    target: str, features: frozenset[str], lanes: int | None, rng: np.random.Generator
) -> None:
    arguments = arguments_for(rng, target, "f64", 5_000)
    result = converter("f64", target, lanes, features).run(DTYPES[target], arguments)
    assert_same(result, nearest_even(arguments, target), arguments)


@pytest.mark.parametrize("features, lanes", MACHINES)
@pytest.mark.parametrize("target", NARROW)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_rtz_drops_what_does_not_fit(
    source: str,
    target: str,
    features: frozenset[str],
    lanes: int | None,
    rng: np.random.Generator,
) -> None:
    arguments = arguments_for(rng, target, source, 5_000)
    result = converter(source, target, lanes, features, "rtz").run(DTYPES[target], arguments)
    assert_same(result, toward_zero(arguments, target), arguments)


def test_double_to_float_toward_zero_never_grows(rng: np.random.Generator) -> None:
    arguments = np.concatenate(
        [random_bits(rng, DTYPES["f64"], 50_000), rng.uniform(-2, 2, 50_000), [1e300, -np.inf, 0.1]]
    )
    arguments = arguments[~np.isnan(arguments)]
    result = converter("f64", "f32", 16, HOST, "rtz").run(np.float32, arguments)
    nearest = cast(arguments, "f32")
    grew = np.abs(cast(nearest, "f64")) > np.abs(arguments)
    expected = np.where(grew, np.nextafter(nearest, np.float32(0)), nearest)
    assert_same(result, expected, arguments)


def test_the_bfloat_instruction_agrees_on_normal_numbers(rng: np.random.Generator) -> None:
    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return emit_fp_to_fp(fn, "f32", "bf16", 16, values[0], features=HOST, flush_denormals=True)

    arguments = random_bits(rng, DTYPES["f32"], 50_000)
    arguments = arguments[np.isfinite(arguments) & (np.abs(arguments) >= 2.0**-126)]
    result = compile_lanes(16, ["float"], "bfloat", body, HOST).run(DTYPES["bf16"], arguments)
    assert_same(result, cast(arguments, "bf16"), arguments)


def rounded_integer(number: int, mantissa_bits: int) -> int:
    """`number` with `mantissa_bits + 1` significant bits, ties to even, in exact arithmetic."""
    drop = max(abs(number).bit_length() - mantissa_bits - 1, 0)
    # Python's round() of a fraction ties to even.
    return round(Fraction(number, 1 << drop)) << drop


def tricky_integers(rng: np.random.Generator, is_signed: bool) -> np.ndarray:
    """64-bit integers at, just above and just below ties of 8, 11, 24 and 53 bits."""
    numbers = [int(n) for n in rng.integers(0, 2**63, 2_000)]
    for exponent in range(8, 63):
        for keep in (8, 11, 24, 53):
            base = (1 << exponent) | (1 << max(exponent - keep, 0))
            numbers += [base - 1, base, base + 1, base | (1 << max(exponent - keep + 1, 0))]
    if is_signed:
        return np.array([*numbers, *(-n for n in numbers), -(2**63), 0], np.int64)
    return np.array([*numbers, *(2**64 - 1 - n for n in numbers), 0], np.uint64)


@pytest.mark.parametrize("features, lanes", MACHINES)
@pytest.mark.parametrize("is_signed", [True, False])
def test_64_bit_integers_round_once_to_bfloat(
    is_signed: bool, features: frozenset[str], lanes: int | None, rng: np.random.Generator
) -> None:
    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return emit_int_to_fp(fn, 64, is_signed, "bf16", lanes, values[0], features)

    arguments = tricky_integers(rng, is_signed)
    kernel = compile_lanes(lanes, ["i64"], "bfloat", body, features)
    expected = np.array([float(rounded_integer(int(n), 7)) for n in arguments])
    result = kernel.run(DTYPES["bf16"], arguments)
    assert_same(result, cast(expected, "f32", "bf16"), arguments)


@pytest.mark.parametrize("num_bits", [8, 16, 32])
@pytest.mark.parametrize("target", NARROW)
def test_shorter_integers_round_once(num_bits: int, target: str, rng: np.random.Generator) -> None:
    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return emit_int_to_fp(fn, num_bits, True, target, 16, values[0], HOST)

    info = np.iinfo(f"i{num_bits // 8}")
    arguments = rng.integers(info.min, info.max, 4_000, info.dtype, endpoint=True)
    kernel = compile_lanes(16, [f"i{num_bits}"], llvm_element(target), body, HOST)
    result = kernel.run(DTYPES[target], arguments)
    assert_same(result, nearest_even(arguments.astype(np.float64), target), arguments)


@pytest.mark.parametrize("target", [*NARROW, "f32"])
@pytest.mark.parametrize("source", ["f32", "f64", "f8E4M3FN"])
def test_conversions_compile_for_arm(source: str, target: str) -> None:
    if source == target:
        return
    features = frozenset({"neon"})

    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return emit_fp_to_fp(fn, source, target, 16, values[0], features=features)

    module = loop_module(16, [llvm_element(source)], llvm_element(target), body)
    assembly = foreign_assembly(module, features, "aarch64-unknown-linux-gnu")
    # No calls: each of them would be a symbol that no library holds.
    assert "\tbl\t" not in assembly


@pytest.mark.parametrize("features", [HOST, AVX2, BASELINE], ids=["host", "avx2", "baseline"])
@pytest.mark.parametrize("target", NARROW)
def test_no_conversion_calls_a_library_function(target: str, features: frozenset[str]) -> None:
    for source in ("f64", "f32", "f16", "bf16"):

        def body(fn: FunctionBuilder, values: Sequence[str], source: str = source) -> str:
            return emit_fp_to_fp(fn, source, target, 16, values[0], features=features)

        module = loop_module(16, [llvm_element(source)], llvm_element(target), body)
        assembly = foreign_assembly(module, features, "x86_64-unknown-linux-gnu")
        assert "\tcallq\t" not in assembly, source
