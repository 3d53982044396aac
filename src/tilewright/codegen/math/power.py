"""The power function."""

from __future__ import annotations

import math

from tilewright.codegen.math import double_double
from tilewright.codegen.math.exponential import exp2
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.logarithm import log2


def _magnitude_power(code: LaneCode, magnitude: LaneValue, exponent: LaneValue) -> LaneValue:
    """`magnitude^exponent` for doubles, through a logarithm of 68 bits."""
    logarithm = double_double.log2(code, magnitude)
    product = logarithm.times_number(exponent)
    # 0 and infinity have no finite logarithm; their powers are 0 and infinity again.
    ends = magnitude.compare("oeq", 0.0).select(magnitude.coerce(-math.inf), math.inf)
    is_end = magnitude.compare("oeq", 0.0) | magnitude.compare("oeq", math.inf)
    high = is_end.select(ends * exponent, product.high)
    # Where the exponent is so great that the error of the product is lost, it is not needed.
    direct = logarithm.high * exponent
    is_great = direct.absolute().compare("oge", 1100.0) & direct.compare("ord", direct)
    high = is_end.select(high, is_great.select(direct, high))
    return double_double.exp2(code, double_double.Pair(high, product.low))


def power(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The value `x^y` with the special cases of IEEE 754.

    *Dtypes*: `float` as `2^(y·log2 x)` in doubles, whose 2^-45 of error leaves half a unit of
    the float result; `double` by a logarithm in two doubles.
    """
    is_float = x.element == "float"
    base = x.convert("fpext", "double") if is_float else x
    exponent = y.convert("fpext", "double") if is_float else y
    magnitude = base.absolute()
    if is_float:
        result = exp2(code, exponent * log2(code, magnitude))
    else:
        result = _magnitude_power(code, magnitude, exponent)
    return _specials(code, base, exponent, magnitude, result, x.element)


def _specials(
    code: LaneCode,
    base: LaneValue,
    exponent: LaneValue,
    magnitude: LaneValue,
    result: LaneValue,
    element: str,
) -> LaneValue:
    """`result` with the sign of the base's power and the cases that no formula gives."""
    is_integer = code.intrinsic("trunc", exponent).compare("oeq", exponent)
    half = exponent * 0.5
    is_odd = is_integer & code.intrinsic("trunc", half).compare("one", half)
    # (±1)^(±∞): the product above is 0·∞.
    is_endless = exponent.absolute().compare("oeq", math.inf) & magnitude.compare("oeq", 1.0)
    result = is_endless.select(base.coerce(1.0), result)
    result = is_odd.select(result.with_sign_of(base), result)
    is_real = is_integer | base.compare("uge", 0.0) | base.compare("oeq", -math.inf)
    result = is_real.select(result, base.coerce(math.nan))
    result = base.compare("uno", exponent).select(base + exponent, result)
    # These two are 1 even beside a NaN.
    is_one = exponent.compare("oeq", 0.0) | base.compare("oeq", 1.0)
    result = is_one.select(base.coerce(1.0), result)
    return result if element == "double" else result.convert("fptrunc", "float")
