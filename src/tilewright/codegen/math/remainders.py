"""Remainders of divisions, exactly: a loop over what one quotient leaves; all on doubles."""

from __future__ import annotations

import math

from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.loops import repeat

# One round divides by the divisor times 2^k, where the quotient has at most so many bits.
_ROUND_BITS = 50
_DENORMAL_BITS = 54


def _round(code: LaneCode, rest: LaneValue, divisor: LaneValue) -> LaneValue:
    """The remainder of a nonnegative `rest` by `divisor·2^k`, the smallest `k` of one round."""
    gap = (rest.bits() >> 52) - (divisor.bits() >> 52) - _ROUND_BITS
    shift = gap.compare("sgt", 0).select(gap, 0)
    # Integer arithmetic on the exponent: the divisor is normal, and stays below `rest`.
    moved = (divisor.bits() + (shift << 52)).as_float("double")
    quotient = code.intrinsic("trunc", rest / moved)
    left = code.fused(-quotient, moved, rest)
    # The rounded quotient may be one too great.
    return left.compare("olt", 0.0).select(left + moved, left)


def _reduce(code: LaneCode, rest: LaneValue, divisor: LaneValue) -> LaneValue:
    """`rest mod divisor` of nonnegative finite numbers, `divisor` normal."""

    def one_round(values: list[LaneValue]) -> tuple[list[LaneValue], LaneValue]:
        current = values[0]
        is_done = current.compare("olt", divisor)
        following = is_done.select(current, _round(code, current, divisor))
        return [following], following.compare("oge", divisor)

    return repeat(code, [rest], one_round)[0]


def _modulo(code: LaneCode, rest: LaneValue, divisor: LaneValue) -> LaneValue:
    """`rest mod divisor` of nonnegative finite numbers; a divisor of 0 gives anything."""
    lift = 2.0**_DENORMAL_BITS
    is_denormal = divisor.compare("olt", 2.0**-1022)
    divisor = is_denormal.select(divisor * lift, divisor)
    # First by the lifted divisor, a multiple of the divisor; then by it, everything lifted.
    first = _reduce(code, rest, divisor)
    second = _reduce(code, is_denormal.select(first * lift, first), divisor)
    return is_denormal.select(second * (1.0 / lift), second)


def _defined(x: LaneValue, y: LaneValue, result: LaneValue) -> LaneValue:
    """`result`, but NaN where the remainder is not defined and `x` for an infinite `y`."""
    result = y.absolute().compare("oeq", math.inf).select(x, result)
    is_defined = x.absolute().compare("olt", math.inf) & y.compare("one", 0.0)
    return is_defined.select(result, result.coerce(math.nan))


def _bounded(x: LaneValue) -> LaneValue:
    """The magnitude, 0 for infinities and NaN: the loop ends for every lane."""
    magnitude = x.absolute()
    return magnitude.compare("olt", math.inf).select(magnitude, 0.0)


def fmod(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The remainder of the quotient rounded toward zero; it has the sign of `x`."""
    rest = _modulo(code, _bounded(x), y.absolute())
    return _defined(x, y, rest.with_sign_of(x))


def fmod_of_floats(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """`fmod` of doubles that hold floats: no divisor is a denormal double."""
    rest = _reduce(code, _bounded(x), y.absolute())
    return _defined(x, y, rest.with_sign_of(x))


def remainder(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The remainder of the quotient rounded to nearest even.

    *Undefined*: the choice between the two of a tie for a divisor above 2^1022.
    """
    divisor = y.absolute()
    # Twice the divisor keeps whether the quotient is odd; where it overflows there is no need.
    is_large = divisor.compare("ogt", 2.0**1022)
    doubled = is_large.select(divisor, divisor + divisor)
    rest = _modulo(code, _bounded(x), doubled)
    # rest > divisor/2, without halving a denormal or doubling a large number.
    is_above = rest.compare("ogt", divisor - rest)
    rest = is_above.select(rest - divisor, rest)
    is_above = is_above & rest.compare("oge", divisor - rest)
    rest = is_above.select(rest - divisor, rest)
    flipped = (rest.bits() ^ (x.bits() & -(1 << 63))).as_float("double")
    return _defined(x, y, flipped)
