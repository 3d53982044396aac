"""Inverse trigonometric functions: atan, atan2, asin, acos."""

from __future__ import annotations

import math

from tilewright.codegen.math.lanes import LaneCode, LaneValue

# π/2 and π as the nearest number and what is missing from it.
_HALF_PI = {
    "float": (1.5707963705062866, -4.371138828673793e-08),
    "double": (1.5707963267948966, 6.123233995736766e-17),
}
# Minimax polynomials in x², see exponential.py.
# (atan(x)/x - 1)/x² on |x| ≤ 1: error 2^-28.5 and 2^-56.5 of atan.
_ATAN = {
    "float": (
        -0.33333298563957214,
        0.1999852955341339,
        -0.14264015853405,
        0.10950880497694016,
        -0.08399300277233124,
        0.057881031185388565,
        -0.031096208840608597,
        0.010867957025766373,
        -0.0017825707327574492,
    ),
    "double": (
        -0.33333333333333287,
        0.1999999999999045,
        -0.14285714285036755,
        0.11111111086451092,
        -0.09090908547324777,
        0.076922997126305,
        -0.06666583730131975,
        0.05881716199951192,
        -0.05259434005201634,
        0.04744926902114746,
        -0.042863931391124724,
        0.03821011327853817,
        -0.03278551528022685,
        0.02615178733264715,
        -0.018614332030997088,
        0.01131776512112448,
        -0.005612462409940202,
        0.0021516240546924975,
        -0.0005929051659639664,
        0.00010387432298603392,
        -8.654435382706835e-06,
    ),
}
# (asin(x)/x - 1)/x² on |x| ≤ 1/2: error 2^-27.6 and 2^-58.0 of asin.
_ASIN = {
    "float": (
        0.16666752099990845,
        0.07495306432247162,
        0.04546976834535599,
        0.024180810898542404,
        0.042166322469711304,
    ),
    "double": (
        0.1666666666666676,
        0.07499999999970627,
        0.04464285717478415,
        0.030381942699130714,
        0.022372215241771787,
        0.01735160727364863,
        0.01398087936183669,
        0.011398415415963004,
        0.010783121578578567,
        0.0036952643562057595,
        0.021735292284632494,
        -0.021039476220205886,
        0.03265451458739977,
    ),
}


def _odd_tail(code: LaneCode, t: LaneValue, table: dict[str, tuple[float, ...]]) -> LaneValue:
    """The part beyond `t` of an odd function: `t³` times a polynomial in `t²`."""
    square = t * t
    return t * square * code.horner(square, table[t.element])


def _complement(t: LaneValue, tail: LaneValue) -> LaneValue:
    """The value `π/2 - (t + tail)`."""
    high, low = _HALF_PI[t.element]
    return high - ((tail - low) + t)


def atan(code: LaneCode, x: LaneValue) -> LaneValue:
    """The inverse tangent, through `π/2 - atan(1/|x|)` beyond 1."""
    magnitude = x.absolute()
    is_large = magnitude.compare("ogt", 1.0)
    t = is_large.select(1.0 / magnitude, magnitude)
    tail = _odd_tail(code, t, _ATAN)
    return is_large.select(_complement(t, tail), t + tail).with_sign_of(x)


def atan2(code: LaneCode, y: LaneValue, x: LaneValue) -> LaneValue:
    """The angle of the point `(x, y)`, with the signs of zeros and infinities of IEEE 754."""
    a, b = y.absolute(), x.absolute()
    is_steep = a.compare("ogt", b)
    low, high = is_steep.select(b, a), is_steep.select(a, b)
    quotient = low / high
    # 0/0 and ∞/∞ stand for the axis and the diagonal.
    quotient = high.compare("oeq", 0.0).select(high, quotient)
    quotient = low.compare("oeq", math.inf).select(low.coerce(1.0), quotient)
    tail = _odd_tail(code, quotient, _ATAN)
    half_high, half_low = _HALF_PI[x.element]
    steep = _complement(quotient, tail)
    angle = is_steep.select(steep, quotient + tail)
    # π - angle: for steep points π/2 + atan(low/high), without a second cancellation.
    behind_steep = ((tail + half_low) + quotient) + half_high
    behind_flat = 2.0 * half_high - ((tail - 2.0 * half_low) + quotient)
    behind = is_steep.select(behind_steep, behind_flat)
    # A negative x includes -0: its sign bit decides, as in with_sign_of.
    is_behind = x.coerce(1.0).with_sign_of(x).compare("olt", 0.0)
    result = is_behind.select(behind, angle).with_sign_of(y)
    return y.compare("uno", x).select(y + x, result)


def _half_angle(code: LaneCode, magnitude: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue]:
    """`(is_large, t, tail)`: `asin t = t + tail` of `|x|` or, beyond 1/2, of `√((1-|x|)/2)`."""
    is_large = magnitude.compare("ogt", 0.5)
    root = code.intrinsic("sqrt", (1.0 - magnitude) * 0.5)
    t = is_large.select(root, magnitude)
    return is_large, t, _odd_tail(code, t, _ASIN)


def asin(code: LaneCode, x: LaneValue) -> LaneValue:
    """The inverse sine; NaN outside [-1, 1]."""
    is_large, t, tail = _half_angle(code, x.absolute())
    folded = _complement(t + t, tail + tail)
    return is_large.select(folded, t + tail).with_sign_of(x)


def acos(code: LaneCode, x: LaneValue) -> LaneValue:
    """The inverse cosine; NaN outside [-1, 1]."""
    is_large, t, tail = _half_angle(code, x.absolute())
    high, low = _HALF_PI[x.element]
    signed, signed_tail = t.with_sign_of(x), tail.with_sign_of(x)
    small = _complement(signed, signed_tail)
    near = (t + tail) * 2.0
    far = 2.0 * high - ((tail + tail - 2.0 * low) + (t + t))
    large = x.compare("olt", 0.0).select(far, near)
    return is_large.select(large, small)
