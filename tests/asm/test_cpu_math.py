"""Vector math functions: error bounds, special values, and the same bits on every width."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

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
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.math import ULP_BOUND, MathEmitter

HOST = host_features()
DTYPES = {"float": np.float32, "double": np.float64}
# One type more precise than the argument's: 64 bits of mantissa for doubles on x86.
WIDER = {"float": np.float64, "double": np.longdouble}
BINARY = ("atan2", "pow")
FUNCTIONS = sorted({name for name, _ in ULP_BOUND})


def round_half_away(x: np.ndarray) -> np.ndarray:
    whole = np.trunc(x)
    return np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x)


def erf_series(x: np.ndarray) -> np.ndarray:
    """erf in long double, of doubles: Taylor's series near 0, a continued fraction beyond."""
    x = x.astype(np.longdouble)
    magnitude = np.minimum(np.abs(x), 8)
    square = magnitude * magnitude
    root = np.sqrt(np.longdouble("3.14159265358979323846264338327950288"))
    small = np.minimum(magnitude, 2.5)
    # erf x = 2/√π · e^(-x²) · Σ 2^n x^(2n+1) / (2n+1)!!: all terms positive.
    term = total = small
    for n in range(1, 70):
        term = term * (2 * small * small / (2 * n + 1))
        total = total + term
    near = 2 / root * np.exp(-small * small) * total
    fraction = np.zeros_like(magnitude)
    large = np.maximum(magnitude, 2)
    for n in range(120, 0, -1):
        fraction = np.longdouble(n) / 2 / (large + fraction)
    far = 1 - np.exp(-square) / root / (large + fraction)
    result = np.copysign(np.where(magnitude < 2.5, near, far), x)
    return np.where(np.isnan(x), x, result)


REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "pow": np.power,
    "erf": erf_series,
    "round": round_half_away,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def reference(name: str, element: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    function = REFERENCES.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        return function(*(operand.astype(WIDER[element]) for operand in operands))


def compile_math(
    name: str, element: str, lanes: int | None, features: frozenset[str]
) -> LaneKernel:
    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return MathEmitter(fn.module, features).emit(fn, name, element, lanes, values)

    operands = [element] * (2 if name in BINARY else 1)
    return compile_lanes(lanes, operands, element, body, features)


def ulps(result: np.ndarray, exact: np.ndarray, dtype: type) -> np.ndarray:
    """The error in units in the last place; infinite where one is finite and the other not."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        limit = np.finfo(dtype).max
        place = np.spacing(np.minimum(np.abs(rounded), limit)).astype(np.longdouble)
        error = np.abs(result.astype(np.longdouble) - exact.astype(np.longdouble)) / place
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    is_finite = np.isfinite(result) & np.isfinite(rounded)
    return np.where(is_finite, error, np.where(same, 0.0, np.inf))


def arguments(rng: np.random.Generator, element: str, count: int) -> np.ndarray:
    """Every exponent, the ranges where functions change their method, and overflow's edge."""
    dtype = DTYPES[element]
    unsigned = np.uint32 if element == "float" else np.uint64
    edge = 90.0 if element == "float" else 712.0
    bits = rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True)
    parts = [
        rng.uniform(-2, 2, count),
        rng.uniform(-10, 10, count),
        rng.uniform(-1.2 * edge, edge, count),
        rng.uniform(-1e6, 1e6, count),
        np.exp(rng.uniform(-20, 20, count)),
        1 + rng.uniform(-1e-3, 1e-3, count),
    ]
    return np.concatenate([bits.view(dtype), *(part.astype(dtype) for part in parts)])


def operands_of(name: str, x: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    return [x, rng.permutation(x)] if name in BINARY else [x]


def assert_within(name: str, element: str, result: np.ndarray, operands: list[np.ndarray]) -> None:
    bound = ULP_BOUND[name, element]
    exact = reference(name, element, operands)
    error = ulps(result, exact, DTYPES[element])
    worst = int(np.argmax(error))
    where = [operand[worst] for operand in operands]
    assert error[worst] <= bound, (name, where, result[worst], exact[worst], error[worst])


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_within_the_stated_bound(
    name: str, element: str, rng: np.random.Generator
) -> None:
    operands = operands_of(name, arguments(rng, element, 8_000), rng)
    lanes = 16 if element == "float" else 8
    result = compile_math(name, element, lanes, HOST).run(DTYPES[element], *operands)
    assert_within(name, element, result, operands)


@pytest.mark.parametrize("features", [HOST, AVX2], ids=["host", "avx2"])
def test_the_error_function_of_floats_joins_its_intervals_and_ends_at_one(
    features: frozenset[str],
) -> None:
    """Around each end of an interval of the table, and from where the function is 1."""
    ends = np.arange(1, 33, dtype=np.float32) / np.float32(8)
    x = np.concatenate([np.nextafter(ends, np.float32(0)), ends, np.nextafter(ends, np.float32(9))])
    erf = compile_math("erf", "float", 8, features)
    assert_within("erf", "float", erf.run(np.float32, x), [x])
    large = np.array([3.93, 3.99, 4, 5, 16, 1e30, np.inf, 7], np.float32)
    np.testing.assert_array_equal(erf.run(np.float32, large), 1)
    np.testing.assert_array_equal(erf.run(np.float32, -large), -1)
    assert np.signbit(erf.run(np.float32, np.full(8, -0.0, np.float32))).all()


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_width_and_feature_set_gives_the_same_bits(
    name: str, element: str, rng: np.random.Generator
) -> None:
    """But the error function of floats, whose table is as wide as a register."""
    operands = operands_of(name, arguments(rng, element, 400), rng)
    dtype = DTYPES[element]
    expected = {HOST: compile_math(name, element, 16, HOST).run(dtype, *operands)}
    has_own_table = (name, element) == ("erf", "float") and "avx512f" in HOST
    expected[AVX2] = (
        compile_math(name, element, 16, AVX2).run(dtype, *operands)
        if has_own_table
        else expected[HOST]
    )
    for lanes, features in (
        (None, HOST),
        (8, HOST),
        (64, HOST),
        (None, AVX2),
        (8, AVX2),
        (16, AVX2),
        (12, HOST),
        (3, AVX2),
        (24, HOST),
    ):
        result = compile_math(name, element, lanes, features).run(dtype, *operands)
        wanted = expected[features]
        np.testing.assert_array_equal(result, wanted, f"{lanes} lanes, {sorted(features)}")


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_cpu_without_fused_multiply_add_is_nearly_as_accurate(
    name: str, element: str, rng: np.random.Generator
) -> None:
    operands = operands_of(name, arguments(rng, element, 500), rng)
    result = compile_math(name, element, 4, BASELINE).run(DTYPES[element], *operands)
    error = ulps(result, reference(name, element, operands), DTYPES[element])
    assert error.max() <= ULP_BOUND[name, element] + 0.5


MAGNITUDES = (0.0, math.inf, math.nan, 1.0, 0.5, 0.75, 2.0, 3.0, 1e-20, 5e-324, 1e-45, 1e-39)
SPECIAL = [sign * x for sign in (1.0, -1.0) for x in (*MAGNITUDES, 3.4e38, 1e308)]


@pytest.mark.parametrize("lanes", [None, 8, 16])
@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_and_signs_of_zero_are_those_of_the_standard(
    name: str, element: str, lanes: int | None
) -> None:
    with np.errstate(over="ignore"):
        x = np.array(SPECIAL).astype(DTYPES[element])
    operands = [x]
    if name in BINARY:
        operands = [np.repeat(x, len(x)), np.tile(x, len(x))]
    result = compile_math(name, element, lanes, HOST).run(DTYPES[element], *operands)
    assert_within(name, element, result, operands)
    exact = reference(name, element, operands)
    compared = ~np.isnan(exact)
    signs = np.signbit(result) == np.signbit(exact)
    assert signs[compared].all(), [operand[compared & ~signs] for operand in operands]


def test_exp_rounds_denormal_results_once() -> None:
    x = np.linspace(-104, -87, 20_000, dtype=np.float32)
    for lanes, features in ((16, HOST), (8, AVX2)):
        result = compile_math("exp", "float", lanes, features).run(np.float32, x)
        assert np.all(result[x > -103] > 0)
        error = ulps(result, np.exp(x.astype(np.float64)), np.float32)
        # A denormal's last place is coarse: one rounding is all that remains.
        assert error[x < -100].max() <= 0.501


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_arguments_next_to_multiples_of_half_pi_keep_their_digits(name: str) -> None:
    turns = np.arange(-70_000, 70_000, 7)
    near = (turns * (np.pi / 2)).astype(np.float32)
    x = np.concatenate([near, np.nextafter(near, np.float32(np.inf))])
    result = compile_math(name, "float", 16, HOST).run(np.float32, x)
    assert_within(name, "float", result, [x])


def test_the_double_nearest_to_a_multiple_of_half_pi_is_reduced_exactly() -> None:
    # 6381956970095103·2^797, the worst case of Payne and Hanek's method for doubles.
    x = np.array([6381956970095103.0 * 2.0**797])
    result = compile_math("cos", "double", None, HOST).run(np.float64, x)
    assert abs(result[0] - -4.6871659242546277e-19) < 1e-33


def test_the_functions_with_a_bound_are_supported() -> None:
    emitter = MathEmitter(ModuleBuilder(), HOST)
    assert all(emitter.supports(name) for name in FUNCTIONS)
    assert not emitter.supports("zeta")


def math_module(name: str, element: str, lanes: int, features: frozenset[str]) -> ModuleBuilder:
    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return MathEmitter(fn.module, features).emit(fn, name, element, lanes, values)

    return loop_module(lanes, [element] * (2 if name in BINARY else 1), element, body)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_compile_for_arm(name: str) -> None:
    features = frozenset({"neon"})
    for element in ("float", "double"):
        module = math_module(name, element, 16, features)
        assembly = foreign_assembly(module, features, "aarch64-unknown-linux-gnu")
        calls = set(re.findall(r"\tbl\t(\S+)", assembly))
        assert {call for call in calls if not call.startswith("tw.")} <= {"pow"}


def test_exp_is_one_scalef_and_no_call_on_avx512() -> None:
    features = AVX2 | {"avx512f", "avx512vl", "avx512dq", "avx512bw"}
    module = math_module("exp", "float", 16, features)
    assembly = foreign_assembly(module, features, "x86_64-unknown-linux-gnu")
    assert assembly.count("vscalefps") == 1
    assert assembly.count("vfmadd") == 8
    assert "callq" not in assembly


def test_a_long_function_is_written_once_for_a_wide_tile() -> None:
    module = math_module("sin", "float", 256, AVX2 | {"avx512f"})
    names = [name for name in module.functions if name.startswith("tw.sin")]
    assert names == ["tw.sin.v16f32"]
    assert module.functions["kernel"].count("call fastcc") == 16
