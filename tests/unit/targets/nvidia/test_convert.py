"""Float conversions as the GPU's lanes compute them, against the reference interpreter's."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

from tests.unit.targets.nvidia.lane_programs import lane_module, run_lanes
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.llvm_types import FLOAT_KEYS
from tilewright.interp.casts import round_float
from tilewright.ir import types as ir
from tilewright.ir.narrow_floats import E4B15, widened
from tilewright.targets.nvidia.convert import convert_float, convert_floats

DTYPES = {
    ir.f64: np.dtype(np.float64),
    ir.f32: np.dtype(np.float32),
    ir.f16: np.dtype(np.float16),
    ir.bf16: np.dtype(ml_dtypes.bfloat16),
    ir.f8e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn),
    ir.f8e5m2: np.dtype(ml_dtypes.float8_e5m2),
    ir.f8e4m3fnuz: np.dtype(ml_dtypes.float8_e4m3fnuz),
    ir.f8e5m2fnuz: np.dtype(ml_dtypes.float8_e5m2fnuz),
    ir.f8e4m3b11fnuz: E4B15,
}
PAIRS = [(a, b) for a in DTYPES for b in DTYPES if a != b]
WIDE = {ir.f32: ("float", np.float32), ir.f64: ("double", np.float64)}
every_pair = pytest.mark.parametrize(
    ("source", "target"), PAIRS, ids=[f"{FLOAT_KEYS[a]}-{FLOAT_KEYS[b]}" for a, b in PAIRS]
)


def carrier(type_: object) -> tuple[str, type]:
    """The LLVM type and the NumPy type that hold a value."""
    if type_ in WIDE:
        return WIDE[type_]  # type: ignore[index]
    return ("i16", np.int16) if type_ in (ir.f16, ir.bf16) else ("i8", np.int8)


def values_of(dtype: np.dtype, rng: np.random.Generator) -> np.ndarray:
    """Every code of a narrow type; of a wide one the neighbourhood of every narrow number."""
    if dtype.itemsize <= 2:
        codes = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}")
        return (
            codes.view(dtype) if dtype.itemsize == 1 else rng.permutation(codes)[:2048].view(dtype)
        )
    narrow = [d for d in DTYPES.values() if d.itemsize <= 2]
    parts = [np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e38, 1e-40])]
    with np.errstate(all="ignore"):
        for other in narrow:
            exact = widened(values_of(other, rng)[:256]).astype(np.float64)
            exact = exact[np.isfinite(exact)]
            middle = (exact[1:] + exact[:-1]) / 2
            for base in (exact, middle):
                parts += [base, base * (1 + 2.0**-22), base * (1 - 2.0**-22), base * (1 + 2.0**-50)]
        return np.concatenate([*parts, rng.normal(0, 300, 500)]).astype(dtype)


def converted(
    source: object, target: object, values: np.ndarray, rounding: str, together: int = 1
) -> np.ndarray:
    """The values on the simulated GPU, converted in groups of `together`."""
    (kind, storage), (result_kind, result_storage) = carrier(source), carrier(target)

    def body(fn: FunctionBuilder, operands: Sequence[str]) -> list[str]:
        if together == 1:
            return [convert_float(fn, source, target, None, operands[0], rounding)]  # type: ignore[arg-type]
        return convert_floats(fn, source, target, operands, rounding)  # type: ignore[arg-type]

    module = lane_module([kind] * together, [result_kind] * together, body)
    bits = values.view(storage)
    columns = [np.roll(bits, shift) for shift in range(together)]
    results = run_lanes(module, columns, [result_storage] * together)
    for shift, result in enumerate(results):
        np.testing.assert_array_equal(np.roll(result, -shift), results[0])
    return results[0].view(DTYPES[target])  # type: ignore[index]


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@every_pair
def test_every_conversion_agrees_with_the_interpreter(
    source: object, target: object, rounding: str, rng: np.random.Generator
) -> None:
    values = values_of(DTYPES[source], rng)  # type: ignore[index]
    with np.errstate(all="ignore"):
        expected = np.asarray(round_float(values, DTYPES[target], rounding))  # type: ignore[index]
        result = converted(source, target, values, rounding)
        wide, exact = (widened(v).astype(np.float64) for v in (result, expected))
    np.testing.assert_array_equal(wide, exact)
    compared = ~np.isnan(exact)
    assert np.array_equal(np.signbit(wide[compared]), np.signbit(exact[compared]))


TOGETHER = [(ir.f32, t) for t in (ir.f16, ir.bf16, ir.f8e4m3fn, ir.f8e5m2)]
TOGETHER += [(s, t) for s in (ir.f8e4m3fn, ir.f8e5m2) for t in (ir.f16, ir.f32)]


@pytest.mark.parametrize("together", [2, 3])
@pytest.mark.parametrize(("source", "target"), TOGETHER, ids=lambda t: FLOAT_KEYS[t])
def test_neighbours_convert_as_each_would_alone(
    source: object, target: object, together: int, rng: np.random.Generator
) -> None:
    values = values_of(DTYPES[source], rng)[:256]  # type: ignore[index]
    alone = converted(source, target, values, "rtne")
    grouped = converted(source, target, values, "rtne", together)
    np.testing.assert_array_equal(grouped.view(np.uint8), alone.view(np.uint8))


def test_two_halves_are_one_instruction() -> None:
    module = lane_module(
        ["float", "float"],
        ["i16", "i16"],
        lambda fn, values: convert_floats(fn, ir.f32, ir.bf16, values),
    )
    assert module.text().count("= call <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn") == 1
