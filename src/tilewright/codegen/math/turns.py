"""Sines of half turns and powers of ten: arguments whose reduction is exact."""

from __future__ import annotations

import math

from tilewright.codegen.math import double_double
from tilewright.codegen.math.lanes import MANTISSA_BITS, LaneCode, LaneValue
from tilewright.codegen.math.trigonometric import Remainder, sine_of

# π, log2(10) as the nearest double and what is missing from it.
_PI = (3.141592653589793, 1.2246467991473532e-16)
_LOG2_10 = (3.321928094887362, 1.661617516973592e-16)


def _quarter_turns(code: LaneCode, x: LaneValue) -> Remainder:
    """`x` half turns as quarter turns and a remainder."""
    folded = x - code.intrinsic("roundeven", x * 0.5) * 2.0
    turns = code.intrinsic("roundeven", folded + folded)
    rest = folded - turns * 0.5
    r, error = code.two_product(rest, _PI[0])
    low = code.multiply_add(rest, _PI[1], error)
    return Remainder(r, low, (turns + 1.5 * 2.0 ** MANTISSA_BITS[x.element]).bits())


def sinpi(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `sin(π·x)`; zeros have the sign of `x`."""
    result = sine_of(code, _quarter_turns(code, x), 0)
    result = result.compare("oeq", 0.0).select(result.coerce(0.0).with_sign_of(x), result)
    return x.absolute().compare("oeq", math.inf).select(x - x, result)


def cospi(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `cos(π·x)`; zeros are positive."""
    result = sine_of(code, _quarter_turns(code, x), 1)
    result = result.compare("oeq", 0.0).select(result.coerce(0.0), result)
    return x.absolute().compare("oeq", math.inf).select(x - x, result)


def exp10(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `10^x`, as `2^(x·log2 10)` with the product in two doubles."""
    limited = x.at_most(400.0).at_least(-400.0)
    high, error = code.two_product(limited, _LOG2_10[0])
    low = code.multiply_add(limited, _LOG2_10[1], error)
    result = double_double.exp2(code, double_double.Pair(high, low))
    return x.compare("uno", x).select(x, result)
