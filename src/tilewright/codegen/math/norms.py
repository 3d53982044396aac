"""Roots of sums of squares, their reciprocals, and cube roots; all on doubles."""

from __future__ import annotations

import math

from tilewright.codegen.math.exponential import exp2
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.logarithm import log2

_EXPONENT = 0x7FF << 52
# Exponents are kept where neither 2^e nor 2^-e overflows.
_FARTHEST = 1020


def _largest(operands: tuple[LaneValue, ...]) -> LaneValue:
    largest = operands[0].absolute()
    for operand in operands[1:]:
        magnitude = operand.absolute()
        largest = magnitude.compare("ogt", largest).select(magnitude, largest)
    return largest


def _scaled_root(code: LaneCode, operands: tuple[LaneValue, ...]) -> tuple[LaneValue, LaneValue]:
    """`(root, scale)` with `√Σx² = root·scale`, `scale` a power of two."""
    largest = _largest(operands)
    bounded = largest.at_most(2.0**_FARTHEST).at_least(2.0**-_FARTHEST)
    bounded = largest.compare("uno", largest).select(largest.coerce(1.0), bounded)
    bits = bounded.bits() & _EXPONENT
    scale = bits.as_float("double")
    inverse = (bits.coerce(2046 << 52) - bits).as_float("double")
    total = operands[0].coerce(0.0)
    for operand in operands:
        scaled = operand * inverse
        total = code.multiply_add(scaled, scaled, total)
    return code.intrinsic("sqrt", total), scale


def _any_infinite(operands: tuple[LaneValue, ...]) -> LaneValue:
    found = operands[0].absolute().compare("oeq", math.inf)
    for operand in operands[1:]:
        found = found | operand.absolute().compare("oeq", math.inf)
    return found


def norm(code: LaneCode, *operands: LaneValue) -> LaneValue:
    """The root of the sum of squares; infinite where any operand is, even beside a NaN."""
    root, scale = _scaled_root(code, operands)
    result = root * scale
    return _any_infinite(operands).select(result.coerce(math.inf), result)


def reciprocal_norm(code: LaneCode, *operands: LaneValue) -> LaneValue:
    """1 over the root of the sum of squares; 0 where any operand is infinite."""
    root, scale = _scaled_root(code, operands)
    inverse = (scale.bits().coerce(2046 << 52) - scale.bits()).as_float("double")
    # Of zeros alone this is infinite; a NaN beside them stays one.
    result = (1.0 / root) * inverse
    return _any_infinite(operands).select(result.coerce(0.0), result)


def cbrt(code: LaneCode, x: LaneValue) -> LaneValue:
    """The cube root: an estimate by logarithms, and one step of Newton's method."""
    magnitude = x.absolute()
    estimate = exp2(code, log2(code, magnitude) * (1.0 / 3.0))
    square, square_error = code.two_product(estimate, estimate)
    cube, cube_error = code.two_product(square, estimate)
    excess = (cube - magnitude) + (cube_error + square_error * estimate)
    root = estimate - excess / (square * 3.0)
    is_plain = magnitude.compare("olt", math.inf) & magnitude.compare("one", 0.0)
    return is_plain.select(root.with_sign_of(x), x)


def reciprocal_cbrt(code: LaneCode, x: LaneValue) -> LaneValue:
    """1 over the cube root."""
    return 1.0 / cbrt(code, x)
