"""The power function."""

from __future__ import annotations

import math

from tilewright.codegen.math import double_double
from tilewright.codegen.math.exponential import EXP2, scale
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.logarithm import decompose

_LOG2_E, _LN2 = 1.4426950408889634, 0.6931471805599453
# (2·atanh(s)/s - 2) / s² in s² on s² ≤ 0.0401, relative to 2·atanh(s): error 2^-40.4.
_ATANH = (
    0.6666666667009971,
    0.3999999573591467,
    0.2857227435464986,
    0.22163730509276786,
    0.1981708309611309,
)
# Powers of two beyond are 0 or infinite as floats.
_FARTHEST = 200.0


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


def _single_logarithm(code: LaneCode, magnitude: LaneValue) -> LaneValue:
    """The base-2 logarithm of a positive float as a double, relative error 2^-40."""
    k, m = decompose(code, magnitude)
    f = (m - 1.0).convert("fpext", "double")
    s = code.plain_quotient(f, f + 2.0)
    z = s * s
    # 2·atanh(s) = 2·s + s·z·(…).
    natural = s * code.multiply_add(z, code.horner(z, _ATANH), 2.0)
    return code.multiply_add(natural, _LOG2_E, k.convert("fpext", "double"))


def _single_power(code: LaneCode, magnitude: LaneValue, exponent: LaneValue) -> LaneValue:
    """`magnitude^exponent` for floats: the logarithm and the product in doubles."""
    product = _single_logarithm(code, magnitude) * exponent.convert("fpext", "double")
    bounded = product.at_most(_FARTHEST).at_least(-_FARTHEST)
    whole = code.intrinsic("roundeven", bounded)
    rest = bounded - whole
    r = rest.convert("fptrunc", "float")
    low = (rest - r.convert("fpext", "double")).convert("fptrunc", "float")
    fraction = code.multiply_add(r, code.horner(r, EXP2["float"]), low * _LN2)
    result = scale(code, fraction + 1.0, whole.convert("fptrunc", "float"))
    grows = exponent.compare("ogt", 0.0)
    at_zero = grows.select(result.coerce(0.0), math.inf)
    result = magnitude.compare("oeq", 0.0).select(at_zero, result)
    at_infinity = grows.select(result.coerce(math.inf), 0.0)
    return magnitude.compare("oeq", math.inf).select(at_infinity, result)


def power(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The value `x^y` with the special cases of IEEE 754."""
    magnitude = x.absolute()
    if x.element == "float":
        result = _single_power(code, magnitude, y)
    else:
        result = _magnitude_power(code, magnitude, y)
    return _specials(code, x, y, magnitude, result)


def _specials(
    code: LaneCode,
    base: LaneValue,
    exponent: LaneValue,
    magnitude: LaneValue,
    result: LaneValue,
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
    return is_one.select(base.coerce(1.0), result)
