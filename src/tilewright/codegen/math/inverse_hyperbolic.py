"""Inverse hyperbolic functions, by logarithms of one plus a small number; all on doubles."""

from __future__ import annotations

import math

from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.logarithm import log, log1p

_LN2 = 0.6931471805599453
# From here on the 1 beside a square is lost.
_LARGE = 2.0**28


def asinh(code: LaneCode, x: LaneValue) -> LaneValue:
    """The inverse hyperbolic sine."""
    magnitude = x.absolute()
    inside = magnitude.at_most(_LARGE)
    square = inside * inside
    excess = square / (code.intrinsic("sqrt", square + 1.0) + 1.0)
    near = log1p(code, inside + excess)
    far = log(code, magnitude) + _LN2
    return magnitude.compare("ogt", _LARGE).select(far, near).with_sign_of(x)


def acosh(code: LaneCode, x: LaneValue) -> LaneValue:
    """The inverse hyperbolic cosine; NaN below 1."""
    above = x.at_most(_LARGE) - 1.0
    root = code.intrinsic("sqrt", above * (above + 2.0))
    near = log1p(code, above + root)
    far = log(code, x) + _LN2
    result = x.compare("ogt", _LARGE).select(far, near)
    return x.compare("oge", 1.0).select(result, result.coerce(math.nan))


def atanh(code: LaneCode, x: LaneValue) -> LaneValue:
    """The inverse hyperbolic tangent; infinite at ±1, NaN beyond."""
    magnitude = x.absolute()
    double = magnitude + magnitude
    # 2x/(1 - x) = 2x + 2x²/(1 - x): exact where x is small.
    argument = code.multiply_add(double, magnitude / (1.0 - magnitude), double)
    result = (log1p(code, argument) * 0.5).with_sign_of(x)
    return magnitude.compare("ole", 1.0).select(result, result.coerce(math.nan))
