"""Functions of a float's representation: bits, exponent, sign, neighbours, classes."""

from __future__ import annotations

import math

from tilewright.codegen.math.exponential import scale
from tilewright.codegen.math.lanes import (
    EXPONENT_BIAS,
    INTEGER_OF,
    MANTISSA_BITS,
    LaneCode,
    LaneValue,
)

_FLOAT_OF = {"i32": "float", "i64": "double"}


def as_integer(code: LaneCode, x: LaneValue) -> LaneValue:
    """The bits of a float."""
    return x.bits()


def as_float(code: LaneCode, x: LaneValue) -> LaneValue:
    """The float of some bits."""
    return x.as_float(_FLOAT_OF[x.element])


def from_words(code: LaneCode, high: LaneValue, low: LaneValue) -> LaneValue:
    """The double of two words."""
    return ((high.convert("zext", "i64") << 32) | low.convert("zext", "i64")).as_float("double")


def high_word(code: LaneCode, x: LaneValue) -> LaneValue:
    """The upper word of a double."""
    return (x.bits() >> 32).convert("trunc", "i32")


def low_word(code: LaneCode, x: LaneValue) -> LaneValue:
    """The lower word of a double."""
    return x.bits().convert("trunc", "i32")


def magnitude(code: LaneCode, x: LaneValue) -> LaneValue:
    """The number without its sign."""
    return x.absolute()


def copysign(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The magnitude of `x` with the sign of `y`."""
    return x.with_sign_of(y)


def _as_i32(condition: LaneValue) -> LaneValue:
    return condition.convert("zext", "i32")


def is_finite(code: LaneCode, x: LaneValue) -> LaneValue:
    """1 for a number, 0 for infinities and NaN."""
    return _as_i32(x.absolute().compare("olt", math.inf))


def is_infinite(code: LaneCode, x: LaneValue) -> LaneValue:
    """1 for infinities."""
    return _as_i32(x.absolute().compare("oeq", math.inf))


def is_nan(code: LaneCode, x: LaneValue) -> LaneValue:
    """1 for NaN."""
    return _as_i32(x.compare("uno", x))


def has_sign(code: LaneCode, x: LaneValue) -> LaneValue:
    """1 where the sign bit is set."""
    return _as_i32(x.bits().compare("slt", 0))


def saturate(code: LaneCode, x: LaneValue) -> LaneValue:
    """The number limited to [0, 1]; NaN gives 0."""
    limited = x.compare("ogt", 1.0).select(x.coerce(1.0), x)
    return x.compare("ogt", 0.0).select(limited, 0.0)


def positive_difference(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """`x - y` where that is positive, else 0."""
    return x.compare("ole", y).select(x.coerce(0.0), x - y)


def neighbour(code: LaneCode, x: LaneValue, y: LaneValue) -> LaneValue:
    """The next number after `x` towards `y`."""
    bits, kind = x.bits(), x.element
    # Away from zero the integer grows; from zero itself the least number is the neighbour.
    grows = x.compare("olt", y).select(bits.compare("sge", 0), bits.compare("slt", 0))
    moved = grows.select(bits + 1, bits - 1).as_float(kind)
    least = x.coerce(0.0).bits() + 1
    moved = x.compare("oeq", 0.0).select(least.as_float(kind).with_sign_of(y), moved)
    result = x.compare("oeq", y).select(y, moved)
    return x.compare("uno", y).select(x + y, result)


def _raw_exponent(code: LaneCode, x: LaneValue) -> LaneValue:
    """The exponent of a finite nonzero number as an integer of the float's width."""
    mantissa, bias = MANTISSA_BITS[x.element], EXPONENT_BIAS[x.element]
    is_denormal = x.absolute().compare("olt", 2.0 ** (1 - bias))
    bits = is_denormal.select(x * 2.0**mantissa, x).absolute().bits()
    offset = is_denormal.select(bits.coerce(bias + mantissa), bias)
    return (bits >> mantissa) - offset


def exponent_as_integer(code: LaneCode, x: LaneValue) -> LaneValue:
    """The exponent as i32; the least integer for 0 and NaN, the greatest for infinities."""
    exponent = _raw_exponent(code, x)
    if exponent.element != "i32":
        exponent = exponent.convert("trunc", "i32")
    exponent = x.absolute().compare("oeq", math.inf).select(exponent.coerce(0x7FFFFFFF), exponent)
    return x.compare("ueq", 0.0).select(exponent.coerce(-(1 << 31)), exponent)


def exponent_as_float(code: LaneCode, x: LaneValue) -> LaneValue:
    """The exponent as a float; -∞ for 0, ∞ for infinities."""
    exponent = _raw_exponent(code, x).convert("sitofp", x.element)
    result = x.absolute().compare("olt", math.inf).select(exponent, x * x)
    return x.compare("oeq", 0.0).select(x.coerce(-math.inf), result)


def scale_by_power(code: LaneCode, x: LaneValue, n: LaneValue) -> LaneValue:
    """The value `x·2^n` for an i32 `n`, rounded once."""
    bias, mantissa = EXPONENT_BIAS[x.element], MANTISSA_BITS[x.element]
    # A denormal is made normal first, so that only the last of three factors rounds.
    limit = 2 * bias + 2 * mantissa
    limited = n.compare("sgt", limit).select(n.coerce(limit), n)
    limited = limited.compare("slt", -limit).select(limited.coerce(-limit), limited)
    is_denormal = x.absolute().compare("olt", 2.0 ** (1 - bias))
    start = is_denormal.select(x * 2.0**mantissa, x)
    lifted = is_denormal.select(limited - mantissa, limited)
    fraction, exponent = _split_exponent(code, start)
    total = lifted + exponent
    # Both halves of the exponent stay those of normal numbers.
    farthest = 2 * bias - 4
    ends = total.compare("sgt", farthest).select(total.coerce(farthest), total)
    ends = ends.compare("slt", -farthest).select(ends.coerce(-farthest), ends)
    result = scale(code, fraction, ends.convert("sitofp", x.element))
    is_plain = x.absolute().compare("olt", math.inf) & x.compare("one", 0.0)
    return is_plain.select(result, x)


def _split_exponent(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """`(m, e)` with `x = m·2^e` and `1 ≤ |m| < 2`, `e` as i32, of a normal number."""
    mantissa, bias = MANTISSA_BITS[x.element], EXPONENT_BIAS[x.element]
    bits = x.bits()
    field = (1 << (int(INTEGER_OF[x.element][1:]) - 1 - mantissa)) - 1
    exponent = ((bits >> mantissa) & field) - bias
    fraction = ((bits & ~(field << mantissa)) | (bias << mantissa)).as_float(x.element)
    return fraction, exponent if exponent.element == "i32" else exponent.convert("trunc", "i32")


def truncated_reciprocal(code: LaneCode, x: LaneValue) -> LaneValue:
    """`1/x` without its lower word."""
    reciprocal = 1.0 / x
    return (reciprocal.bits() & ~0xFFFFFFFF).as_float("double")
