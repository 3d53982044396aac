"""The functions of libdevice as emitted code: bounds, exact results, every form on this CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest

from tests.asm.lane_harness import AVX2, LaneKernel, compile_lanes, host_features
from tests.asm.special_values import VALUES
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.math import ABSOLUTE_BOUND, LIBRARY_BOUND, ULP_BOUND, MathEmitter
from tilewright.ops.extern.ir import EXTERNS, Extern
from tilewright.ops.extern.reference import REFERENCES

HOST = host_features()
LLVM = {
    **{"fp32": "float", "fp64": "double", "int32": "i32", "uint32": "i32"},
    **{"int64": "i64", "uint64": "i64"},
}
NUMPY = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}
ROWS = tuple(EXTERNS.values())
# What the references in doubles may be off by, beside the function itself.
REFERENCE_ULP = 6.0
every_function = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.symbol)


def elements(row: Extern) -> list[str]:
    return [LLVM[name] for name in row.operands]


def compile_extern(row: Extern, lanes: int | None, features: frozenset[str] = HOST) -> LaneKernel:
    selector = elements(row)[row.selector]

    def body(fn: FunctionBuilder, values: Sequence[str]) -> str:
        return MathEmitter(fn.module, features).emit(fn, row.routine, selector, lanes, values)

    return compile_lanes(lanes, elements(row), LLVM[row.result], body, features)


SPECIAL = (
    0.0,
    np.inf,
    np.nan,
    1.0,
    2.0,
    0.5,
    1.5,
    2.5,
    1e-20,
    1e-40,
    5e-324,
    1e300,
    3.4e38,
    1.7e308,
)
WHOLE = (2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e15, 8388609.5, 3.0)


def floats(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    """Special values of both signs, every exponent, and the ranges of interest."""
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    bits = rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True)
    edges = np.array([sign * x for x in (*SPECIAL, *WHOLE) for sign in (1.0, -1.0)])
    with np.errstate(over="ignore", under="ignore"):
        parts = [
            edges.astype(dtype),
            bits.view(dtype),
            rng.uniform(-3, 3, count).astype(dtype),
            rng.uniform(-40, 40, count).astype(dtype),
            np.exp(rng.uniform(-30, 30, count)).astype(dtype),
        ]
    return rng.permutation(np.concatenate(parts))


def integers(rng: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    info = np.iinfo(dtype)
    parts = [
        rng.integers(info.min, info.max, count, dtype, endpoint=True),
        rng.integers(-40, 40, count).astype(dtype),
        np.array([0, 1, -1, info.min, info.max, (1 << 24) + 1, (1 << 30) + 1], dtype),
    ]
    return rng.permutation(np.concatenate(parts))


def arguments(row: Extern, rng: np.random.Generator, count: int = 60) -> list[np.ndarray]:
    operands = []
    for position, element in enumerate(elements(row)):
        dtype = NUMPY[element]
        if row.routine in ("jn", "yn") and position == 0:
            operands.append(rng.integers(-12, 13, 6 * count).astype(np.int32))
        elif element in ("float", "double"):
            operands.append(floats(rng, dtype, count))
        else:
            operands.append(integers(rng, dtype, count))
    length = max(map(len, operands))
    return [np.resize(operand, length) for operand in operands]


CPU_BOUND = {**LIBRARY_BOUND, **ULP_BOUND}


def bound_of(row: Extern, element: str, bounds: Mapping[tuple[str, str], float]) -> float:
    """The stated bound; functions without one are exact."""
    return bounds.get((row.routine.removeprefix("fast_"), element), 0.0)


def assert_near(
    row: Extern,
    result: np.ndarray,
    operands: list[np.ndarray],
    bounds: Mapping[tuple[str, str], float] = CPU_BOUND,
) -> None:
    """The result is within the stated bound of the reference in doubles."""
    is_float = result.dtype == np.float32
    with np.errstate(invalid="ignore"):
        wide = [o.astype(np.float64) if o.dtype == np.float32 else o for o in operands]
    exact = REFERENCES[row.routine](*(wide if is_float else operands))
    with np.errstate(all="ignore"):
        rounded = exact.astype(result.dtype)
        limit = np.finfo(result.dtype).max
        place = np.spacing(np.minimum(np.abs(rounded), limit)).astype(np.float64)
        distance = np.abs(result.astype(np.float64) - exact)
        error = distance / place
    same = (result == rounded) | (np.isnan(result) & np.isnan(rounded))
    is_finite = np.isfinite(result) & np.isfinite(rounded)
    error = np.where(same, 0.0, np.where(is_finite, error, np.inf))
    size = np.maximum(1.0, np.where(is_finite, np.abs(exact), 1.0))
    allowed = ABSOLUTE_BOUND.get(row.routine, 0.0) * 2.0**-53 * size
    slack = 0.02 if is_float else REFERENCE_ULP
    bound = bound_of(row, "float" if is_float else "double", bounds) + slack
    error = np.where(is_finite & (distance <= allowed), 0.0, error)
    worst = int(np.argmax(error))
    where = [operand[worst] for operand in operands]
    assert error[worst] <= bound, (row.symbol, where, result[worst], exact[worst], error[worst])


ROUNDED = ("floor", "ceil", "trunc", "round", "rint", "sqrt")


def is_exact(row: Extern) -> bool:
    """Whether the function has one right result, down to the last bit."""
    if row.routine in ROUNDED:
        return True
    return all(bound_of(row, element, CPU_BOUND) == 0.0 for element in ("float", "double"))


@every_function
def test_every_form_agrees_with_its_reference(row: Extern, rng: np.random.Generator) -> None:
    operands = arguments(row, rng)
    result = compile_extern(row, 8).run(NUMPY[LLVM[row.result]], *operands)
    if is_exact(row):
        expected = REFERENCES[row.routine](*operands)
        np.testing.assert_array_equal(result, expected)
        if result.dtype.kind == "f":
            compared = ~np.isnan(expected)
            signs = np.signbit(result) == np.signbit(expected)
            assert signs[compared].all()
    else:
        assert_near(row, result, operands)


@pytest.mark.parametrize(
    "symbol", ["__nv_erfcf", "__nv_tgamma", "__nv_jn", "__nv_fmod", "__nv_fadd_ru", "__nv_brevll"]
)
def test_every_width_gives_the_same_bits(symbol: str, rng: np.random.Generator) -> None:
    row = EXTERNS[symbol]
    operands = arguments(row, rng, 20)
    dtype = NUMPY[LLVM[row.result]]
    expected = compile_extern(row, 8).run(dtype, *operands)
    for lanes, features in ((None, HOST), (16, HOST), (8, AVX2)):
        result = compile_extern(row, lanes, features).run(dtype, *operands)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("symbol", ["hypot", "rhypot", "norm3d", "rnorm3d", "norm4d", "rnorm4d"])
def test_the_norm_of_zeros_and_a_nan_is_nan(symbol: str) -> None:
    row = EXTERNS[f"__nv_{symbol}"]
    for place in range(len(row.operands)):
        operands = [np.zeros(8) for _ in row.operands]
        operands[place][:] = np.nan
        assert np.isnan(compile_extern(row, 8).run(np.float64, *operands)).all()


@pytest.mark.parametrize("name", sorted(VALUES))
def test_special_functions_are_within_their_bound_of_known_values(name: str) -> None:
    row = next(r for r in ROWS if r.routine == name and r.operands == ("fp64",))
    x, exact = (np.array(column) for column in zip(*VALUES[name], strict=True))
    result = compile_extern(row, 8).run(np.float64, x)
    error = np.abs(result - exact)
    # The known value is itself rounded.
    bound = (LIBRARY_BOUND[name, "double"] + 0.5) * np.spacing(np.abs(exact))
    allowed = ABSOLUTE_BOUND.get(name, 0.0) * 2.0**-53
    assert np.all(error <= np.maximum(bound, allowed)), (x, result, exact)


@pytest.mark.parametrize("mode", ["rn", "rz", "rd", "ru"])
def test_directed_sums_and_products_enclose_the_exact_result(
    mode: str, rng: np.random.Generator
) -> None:
    x, y = (rng.uniform(-2, 2, 400).astype(np.float32) for _ in range(2))
    for name, exact_of in (("fadd", lambda a, b: a + b), ("fmul", lambda a, b: a * b)):
        result = compile_extern(EXTERNS[f"__nv_{name}_{mode}"], 8).run(np.float32, x, y)
        for a, b, r in zip(x.tolist(), y.tolist(), result.tolist(), strict=True):
            exact = exact_of(Fraction(a), Fraction(b))
            if mode == "rd" or (mode == "rz" and exact > 0):
                assert Fraction(r) <= exact
            elif mode == "ru" or mode == "rz":
                assert Fraction(r) >= exact
            step = Fraction(abs(float(np.spacing(np.float32(r)))))
            assert abs(Fraction(r) - exact) < (step * 51 / 100 if mode == "rn" else step)
