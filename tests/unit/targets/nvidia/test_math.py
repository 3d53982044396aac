"""Math functions as the GPU's lanes compute them, on the simulated GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.asm.test_libdevice import (
    NUMPY,
    ROWS,
    arguments,
    assert_near,
    elements,
    is_exact,
)
from tests.ptxas.kernels import ptx_of, request_of
from tests.unit.targets.nvidia.lane_programs import lane_module, run_lanes
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.ops.extern.ir import EXTERNS, Extern
from tilewright.ops.extern.reference import REFERENCES
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.math import FAST_BOUND, ULP_BOUND, NvidiaMath

MATH = NvidiaMath()
MODES = ("_rn", "_rz", "_rd", "_ru")


def function_module(row: Extern) -> ModuleBuilder:
    kinds = elements(row)
    result = {"fp32": "float", "fp64": "double"}.get(row.result) or f"i{row.result[-2:]}"

    def body(fn: FunctionBuilder, values: Sequence[str]) -> list[str]:
        return [MATH.emit(fn, row.routine, kinds[row.selector], values)]

    return lane_module(kinds, [result], body)


def run(row: Extern, operands: list[np.ndarray]) -> np.ndarray:
    result = {"fp32": np.float32, "fp64": np.float64}.get(row.result)
    dtype = result or NUMPY[f"i{row.result[-2:]}"]
    return run_lanes(function_module(row), operands, [dtype])[0]


def moderate(operands: list[np.ndarray]) -> list[np.ndarray]:
    """Rows of operands that neither overflow nor underflow in any product or quotient."""
    kept = np.ones(len(operands[0]), bool)
    for operand in operands:
        if operand.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                kept &= (np.abs(operand) < 1e15) & (np.abs(operand) > 1e-15)
    return [operand[kept] for operand in operands]


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.routine not in FAST_BOUND], ids=lambda r: r.symbol
)
def test_every_form_of_libdevice_agrees_with_its_reference(
    row: Extern, rng: np.random.Generator
) -> None:
    operands = arguments(row, rng, 40)
    if row.routine.endswith(MODES) or row.routine == "llrint":
        # Directed overflow and NaN are the instruction's own: the simulator has them plainer.
        operands = moderate(operands)
    result = run(row, operands)
    if row.routine == "rcp64h":
        # The instruction is an approximation to 20 bits; both keep the upper word only.
        expected = REFERENCES[row.routine](*operands)
        is_normal = np.isfinite(expected) & (np.abs(expected) > 1e-300) & (expected != 0)
        np.testing.assert_allclose(result[is_normal], expected[is_normal], rtol=2**-19)
    elif row.routine.startswith("fma") and row.result == "fp64":
        # The simulator's fused product of doubles may be off by the last place.
        np.testing.assert_allclose(result, REFERENCES[row.routine](*operands), rtol=2.5e-16)
    elif is_exact(row) and (row.routine, "float") not in ULP_BOUND:
        np.testing.assert_array_equal(result, REFERENCES[row.routine](*operands))
    else:
        assert_near(row, result, operands, ULP_BOUND)


@tilewright.jit
def divided_by_rows(x, out):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tile = tl.load(x + at)
    tl.store(out + at, tile / tl.sum(tile, 1)[:, None])


@tilewright.jit
def divided_by_tiles(x, out):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tile = tl.load(x + at)
    tl.store(out + at, tile / (tile + 1))


RANGES = {"fast_pow": (0.1, 5.0), "fast_log": (2.0, 50.0)}


@pytest.mark.parametrize("name", sorted(FAST_BOUND))
def test_fast_functions_are_near_the_accurate_ones(name: str, rng: np.random.Generator) -> None:
    row = next(r for r in ROWS if r.routine == name)
    low, high = RANGES.get(name, (0.2, 3.0))
    operands = [rng.uniform(low, high, 256).astype(np.float32) for _ in row.operands]
    expected = REFERENCES[name](*operands)
    tolerance = 1e-3 if name == "fast_tanh" else 1e-5
    np.testing.assert_allclose(run(row, operands), expected, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["exp", "exp2", "sigmoid", "sqrt", "rsqrt", "div", "div_by_shared"]
)
def test_functions_of_the_special_unit_keep_their_bound(
    name: str, rng: np.random.Generator
) -> None:
    count = 2 if name.startswith("div") else 1

    def body(fn: FunctionBuilder, values: Sequence[str]) -> list[str]:
        return [MATH.emit(fn, name, "float", values)]

    x = [rng.uniform(0.01, 80, 1024).astype(np.float32) for _ in range(count)]
    if name in ("exp", "sigmoid"):
        x[0] = rng.uniform(-103, 88, 1024).astype(np.float32)
    (result,) = run_lanes(lane_module(["float"] * count, ["float"], body), x, [np.float32])
    wide = [operand.astype(np.float64) for operand in x]
    exact = {
        "exp": np.exp,
        "exp2": np.exp2,
        "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
        "sqrt": np.sqrt,
        "rsqrt": lambda v: 1 / np.sqrt(v),
        "div": np.divide,
        "div_by_shared": np.divide,
    }[name](*wide)
    error = np.abs(result.astype(np.float64) - exact) / np.spacing(exact.astype(np.float32))
    assert error.max() <= ULP_BOUND[name, "float"]


def test_quotients_by_a_shared_divisor_cover_the_whole_range_of_floats() -> None:
    """Divisors whose reciprocals are denormal, denormal divisors, zeros, infinities and NaN."""
    tiny, large = 1e-42, 3e38
    special = np.array([0.0, -0.0, 1.0, -3.5, tiny, large, np.inf, -np.inf, np.nan], np.float32)
    x, y = (grid.ravel() for grid in np.meshgrid(special, special))

    def body(fn: FunctionBuilder, values: Sequence[str]) -> list[str]:
        return [MATH.emit(fn, "div_by_shared", "float", values)]

    module = lane_module(["float"] * 2, ["float"], body)
    (result,) = run_lanes(module, [x, y], [np.float32])
    with np.errstate(all="ignore"):
        expected = (x.astype(np.float64) / y.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(result, expected, rtol=2.5e-7, atol=2e-45)


def test_registers_with_one_divisor_take_its_reciprocal_once() -> None:
    """A row's elements are divided by its sum with one reciprocal; others keep `div.full`."""
    x = np.zeros((64, 64), np.float32)
    for kernel, reciprocals in ((divided_by_rows, True), (divided_by_tiles, False)):
        ptx = ptx_of(request_of(kernel, (x, x), {"num_warps": 4}))
        assert ("div.full.f32" in ptx) is not reciprocals
        assert ("rcp.approx.ftz.f32" in ptx) is reciprocals


def test_exp_covers_the_whole_range_of_floats() -> None:
    x = np.array([-np.inf, -104.0, -103.0, -87.5, 88.7, 89.0, np.inf, np.nan, 0.0], np.float32)

    def body(fn: FunctionBuilder, values: Sequence[str]) -> list[str]:
        return [MATH.emit(fn, "exp", "float", values)]

    (result,) = run_lanes(lane_module(["float"], ["float"], body), [x], [np.float32])
    with np.errstate(over="ignore"):
        exact = np.exp(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(result, exact, rtol=3e-7, atol=2e-45)


def test_exp_is_eight_instructions_and_the_fast_one_two() -> None:
    def lines(name: str) -> int:
        module = ModuleBuilder()
        fn = FunctionBuilder(module, "define float @f(float %x)")
        MATH.emit(fn, name, "float", ["%x"])
        # Two casts between floats and integers cost nothing.
        return sum("bitcast" not in line for line in fn.lines)

    assert lines("exp") == 9  # one of them a negation, an operand modifier of the next
    assert lines("fast_exp") == 2


def test_a_function_without_a_form_is_an_internal_error() -> None:
    fn = FunctionBuilder(ModuleBuilder(), "define double @f(double %x)")
    with pytest.raises(InternalError, match="no form"):
        MATH.emit(fn, "fast_zeta", "double", ["%x"])


def test_every_function_has_a_form_in_place() -> None:
    for row in EXTERNS.values():
        module = function_module(row)
        assert list(module.functions) == ["k"]
