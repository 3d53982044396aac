"""The gamma function and its logarithm, on doubles.

Near the origin the argument moves to [3/2, 5/2] by the recurrence, beyond Stirling's formula
holds, and below 1/2 `Γ(x)·Γ(1 - x) = π / sin(πx)`.
"""

from __future__ import annotations

import math
import sys

from tilewright.codegen.math import double_double
from tilewright.codegen.math import special_tables as tables
from tilewright.codegen.math.double_double import Pair
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.logarithm import log
from tilewright.codegen.math.turns import sinpi

_HALF_LOG_TAU = 0.9189385332046728
_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG2_ROOT_TAU = (1.3257480647361595, -7.153413670427599e-17)
_FAR_LOGARITHM, _FAR = 8.0, 10.0


def _lacking(code: LaneCode, x: LaneValue) -> LaneValue:
    """What Stirling's formula lacks of `log Γ(x)`, for `x ≥ 8`."""
    ratio = 8.0 / x
    t = code.multiply_add(ratio * ratio, 2.0, -1.0)
    return code.horner(t, tables.STIRLING) / x


def _moved_down(x: LaneValue, steps: int) -> tuple[LaneValue, LaneValue]:
    """`(y, product)` with `Γ(x) = Γ(y)·product` and `y ≤ 5/2`."""
    y, product = x, x.coerce(1.0)
    for _ in range(steps):
        is_above = y.compare("ogt", 2.5)
        below = y - 1.0
        product = is_above.select(product * below, product)
        y = is_above.select(below, y)
    return y, product


def _log_gamma(code: LaneCode, x: LaneValue) -> LaneValue:
    """`log Γ(x)` for `x ≥ 1/2`."""
    y, product = _moved_down(x.at_most(_FAR_LOGARITHM), 6)
    near = (y - 1.0) * (y - 2.0) * code.horner(y - 1.5, tables.LGAMMA) + log(code, product)
    far = x.at_least(_FAR_LOGARITHM)
    total = (far - 0.5) * (log(code, far) - 1.0)
    stirling = total + (_lacking(code, far) + (_HALF_LOG_TAU - 0.5))
    return x.compare("olt", _FAR_LOGARITHM).select(near, stirling)


def _recurring(x: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue]:
    """`(argument, is_low, is_middle)`: below -1/2 the mirrored one, around 0 the next one."""
    is_low, is_middle = x.compare("ole", -0.5), x.absolute().compare("olt", 0.5)
    return is_low.select(-x, is_middle.select(x + 1.0, x)), is_low, is_middle


def lgamma(code: LaneCode, x: LaneValue) -> LaneValue:
    """The logarithm of the magnitude of the gamma function; infinite at its poles."""
    argument, is_low, is_middle = _recurring(x)
    result = _log_gamma(code, argument)
    # Γ(x) = Γ(x + 1)/x, and -x·Γ(x)·Γ(-x) = π/sin(πx).
    divisor = is_low.select(x * sinpi(code, x) * (1.0 / math.pi), x).absolute()
    logarithm = log(code, divisor)
    # At a pole that overflows in Stirling's formula too, both would be infinite.
    finite = result.at_most(sys.float_info.max)
    result = is_low.select(-logarithm - finite, is_middle.select(result - logarithm, result))
    return x.absolute().compare("oeq", math.inf).select(x.absolute(), result)


def _near(code: LaneCode, x: LaneValue) -> LaneValue:
    """`Γ(x)` for `1/2 ≤ x ≤ 10`."""
    y, product = _moved_down(x, 8)
    is_below = y.compare("olt", 1.5)
    divisor = is_below.select(y, 1.0)
    y = is_below.select(y + 1.0, y)
    return code.horner(y + y - 4.0, tables.GAMMA) * product / divisor


def _logarithm(code: LaneCode, x: LaneValue) -> Pair:
    """The base-2 logarithm of `Γ(x)` in two doubles, for `x ≥ 10`."""
    power = double_double.log2(code, x).times_number(x - 0.5)
    base = double_double.constant(code, _LOG2_E).times_number(-x)
    rest = _lacking(code, x) * _LOG2_E[0]
    constant = double_double.constant(code, _LOG2_ROOT_TAU)
    return power.plus(base).plus(constant).plus(Pair(rest, rest.coerce(0.0)))


def tgamma(code: LaneCode, x: LaneValue) -> LaneValue:
    """The gamma function; NaN at the negative integers, infinite at zeros."""
    argument, is_low, is_middle = _recurring(x)
    near = _near(code, argument.at_most(_FAR))
    # The reciprocal by the exponent's sign: the function overflows before it does.
    exponent = _logarithm(code, argument.at_most(200.0).at_least(_FAR))
    exponent = Pair(
        is_low.select(-exponent.high, exponent.high), is_low.select(-exponent.low, exponent.low)
    )
    far = double_double.exp2(code, exponent)
    value = argument.compare("olt", _FAR).select(is_low.select(1.0 / near, near), far)
    sine = sinpi(code, x)
    value = is_middle.select(value / x, value)
    result = is_low.select(value * (-math.pi / (x * sine)), value)
    is_pole = sine.compare("oeq", 0.0) & is_low
    result = is_pole.select(x.coerce(math.nan), result)
    result = x.compare("ogt", 180.0).select(x.coerce(math.inf), result)
    return (x - x).compare("uno", x).select(x + x.absolute(), result)
