"""Conversions to and from 8-bit floats against the formats' definitions, exhaustively."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.fp8 import FORMATS, SOURCES, edges, every_value
from tilewright.interp import casts
from tilewright.ir import types as ir
from tilewright.ir.narrow_floats import DTYPES, largest, widened
from tilewright.language.core import dtype
from tilewright.ops.builder import ir_type

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
NAMES = {"float8e4nv": "fp8e4nv", "float8e5": "fp8e5", "float8e4b8": "fp8e4b8"}
NAMES |= {"float8e5b16": "fp8e5b16", "float8e4b15": "fp8e4b15"}
every_format = pytest.mark.parametrize("name", FORMATS)
every_rounding = pytest.mark.parametrize("rounding", ["rtne", "rtz"])


def held(name: str) -> np.dtype:
    """The dtype in which NumPy holds a format."""
    return DTYPES[ir_type(dtype(NAMES[name]))]


@every_format
def test_every_code_widens_to_its_value(name: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    got = widened(codes.view(held(name))).astype(np.float64)
    expected = FORMATS[name].values()
    np.testing.assert_array_equal(got, expected)
    known = ~np.isnan(expected)
    assert np.array_equal(np.signbit(got[known]), np.signbit(expected[known]))


@every_rounding
@pytest.mark.parametrize("source", SOURCES)
@every_format
def test_every_16_bit_float_rounds_once_and_saturates(
    name: str, source: str, rounding: str
) -> None:
    values = every_value(source)
    got = np.asarray(casts.round_float(values, held(name), rounding)).view(np.uint8)
    expected = FORMATS[name].codes(values.astype(np.float64), rounding)
    assert FORMATS[name].same(got, expected).all()


@every_rounding
@pytest.mark.parametrize("source", [np.float32, np.float64])
@every_format
def test_wide_floats_round_once_and_saturate(name: str, source: type, rounding: str) -> None:
    values = edges(FORMATS[name], np.dtype(source))
    got = np.asarray(casts.round_float(values, held(name), rounding)).view(np.uint8)
    expected = FORMATS[name].codes(values.astype(np.float64), rounding)
    assert FORMATS[name].same(got, expected).all()


def test_infinity_saturates_to_nearest_and_stays_towards_zero_where_it_exists() -> None:
    infinite = np.array([np.inf, -np.inf], np.float32)
    e5, e4 = DTYPES[ir.f8e5m2], DTYPES[ir.f8e4m3fn]
    assert casts.round_float(infinite, e5).astype(np.float32).tolist() == [57344, -57344]
    assert np.isinf(casts.round_float(infinite, e5, "rtz").astype(np.float32)).all()
    assert casts.round_float(infinite, e4, "rtz").astype(np.float32).tolist() == [448, -448]


@every_format
def test_integers_saturate_too(name: str) -> None:
    values = np.array([0, 1, -1, 100000, -100000], np.int32)
    got = casts.integer_to_float(values, held(name), signed=True)
    limit = largest(held(name))
    assert widened(got).tolist() == [0, 1, -1, limit, -limit]


@tilewright.jit
def flip_and_clear_signs(x, flipped, cleared, FORMAT: tl.constexpr):
    at = tl.arange(0, 256)
    values = tl.load(x + at).to(FORMAT, bitcast=True)
    tl.store(flipped + at, (-values).to(tl.uint8, bitcast=True))
    tl.store(cleared + at, tl.abs(values).to(tl.uint8, bitcast=True))


@pytest.mark.parametrize("form", ["compiled", "interpreted", "simulated"])
def test_signs_of_infinities_and_nans_are_bits(form: str) -> None:
    """A conversion saturates: 57344 is the greatest number beside infinity, and no infinity."""
    codes = np.arange(256, dtype=np.uint8)
    flipped, cleared = np.zeros_like(codes), np.zeros_like(codes)
    kernel = flip_and_clear_signs
    launched = {
        "compiled": kernel,
        "interpreted": kernel.interpret,
        "simulated": kernel.simulate,
    }[form]
    launched[(1,)](codes, flipped, cleared, FORMAT=tl.float8e5)
    np.testing.assert_array_equal(flipped, codes ^ 0x80)
    np.testing.assert_array_equal(cleared, codes & 0x7F)


@tilewright.jit
def extrema_beside_zero(x, greater, lesser):
    at = tl.arange(0, 256)
    values = tl.load(x + at).to(tl.float8e5, bitcast=True)
    zeros = tl.full((256,), 0.0, tl.float8e5)
    tl.store(greater + at, tl.maximum(values, zeros).to(tl.uint8, bitcast=True))
    tl.store(lesser + at, tl.minimum(values, zeros).to(tl.uint8, bitcast=True))


@pytest.mark.parametrize("form", ["compiled", "interpreted", "simulated"])
def test_extrema_are_one_of_their_operands(form: str) -> None:
    numbers = np.array([c for c in range(256) if c & 0x7F <= 0x7C and c & 0x7F], np.uint8)
    codes = np.resize(numbers, 256)
    greater, lesser = np.zeros_like(codes), np.zeros_like(codes)
    kernel = extrema_beside_zero
    launched = {
        "compiled": kernel,
        "interpreted": kernel.interpret,
        "simulated": kernel.simulate,
    }[form]
    launched[(1,)](codes, greater, lesser)
    np.testing.assert_array_equal(greater, np.where(codes < 0x80, codes, 0))
    np.testing.assert_array_equal(lesser, np.where(codes < 0x80, 0, codes))


@tilewright.jit
def limit_and_order(x, limited, ordered, greatest):
    at = tl.arange(0, 256)
    values = tl.load(x + at).to(tl.float8e5, bitcast=True)
    low = tl.full((256,), 0xFC, tl.uint8).to(tl.float8e5, bitcast=True)
    high = tl.full((256,), 0x7C, tl.uint8).to(tl.float8e5, bitcast=True)
    tl.store(limited + at, tl.clamp(values, low, high).to(tl.uint8, bitcast=True))
    tl.store(ordered + at, tl.sort(values).to(tl.uint8, bitcast=True))
    tl.store(greatest + tl.arange(0, 8), tl.topk(values, 8).to(tl.uint8, bitcast=True))


@pytest.mark.parametrize("form", ["compiled", "interpreted", "simulated"])
def test_values_that_are_chosen_keep_their_infinities(form: str) -> None:
    """`clamp`, `sort` and `topk` choose among their inputs, where a conversion saturates."""
    codes = np.arange(256, dtype=np.uint8)
    finite_or_infinite = codes[(codes & 0x7F) <= 0x7C]
    x = np.resize(finite_or_infinite, 256)
    limited, ordered, greatest = np.zeros_like(x), np.zeros_like(x), np.zeros(8, np.uint8)
    launched = {
        "compiled": limit_and_order,
        "interpreted": limit_and_order.interpret,
        "simulated": limit_and_order.simulate,
    }[form]
    launched[(1,)](x, limited, ordered, greatest)
    e5 = DTYPES[ir.f8e5m2]
    values = x.view(e5).astype(np.float32)
    np.testing.assert_array_equal(limited, x)
    np.testing.assert_array_equal(ordered.view(e5).astype(np.float32), np.sort(values))
    expected = np.sort(values)[::-1][:8]
    np.testing.assert_array_equal(greatest.view(e5).astype(np.float32), expected)
