"""Logarithms: log, log2, log10, log1p.

`x = 2^k · m` with `m` in [2/3, 4/3): `log x = k·ln 2 + log(1 + f)`, `f = m - 1`. The core gives
`log(1 + f)` as `f + t`, whose small part `t` keeps the sum accurate in every base.
"""

from __future__ import annotations

import math

from tilewright.codegen.math.exponential import LN2_HIGH, LN2_LOW, power_of_two
from tilewright.codegen.math.lanes import (
    EXPONENT_BIAS,
    MANTISSA_BITS,
    LaneCode,
    LaneValue,
    float_bits,
)

# log2(e) and log10(e) as the nearest number and what is missing from it.
_LOG2_E = {
    "float": (1.4426950216293335, 1.9259629911266175e-08),
    "double": (1.4426950408889634, 2.0355273740931033e-17),
}
_LOG10_E = {
    "float": (0.4342944920063019, -1.0103050052231683e-08),
    "double": (0.4342944819032518, 1.098319650216765e-17),
}
# log10(2), the first part with trailing zeros: its product with an exponent is exact.
_LOG10_2 = {
    "float": (0.301025390625, 4.605038981195214e-06),
    "double": (0.3010299955494702, 1.1451100898021838e-10),
}
# (log(1 + f) - f + f²/2) / f³ on |f| ≤ 1/3, relative to log(1 + f): error 2^-26.9.
_LOG = (
    0.33333224058151245,
    -0.24999898672103882,
    0.20010864734649658,
    -0.16676655411720276,
    0.13990122079849243,
    -0.12228278815746307,
    0.1408734917640686,
    -0.12734171748161316,
)
# (2·atanh(s)/s - 2) / s² in s² on s² ≤ 0.0401, relative to 2·atanh(s): error 2^-55.9.
_ATANH = (
    0.6666666666667279,
    0.3999999999611565,
    0.28571429403835263,
    0.2222213778465928,
    0.1818638607344666,
    0.15249577402411651,
    0.15373016567165246,
)
# Above this exponent log1p(x) and log(x) agree.
_LOG1P_EXPONENT = {"float": 60.0, "double": 120.0}


def decompose(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The pair `(k, m)` with `x = 2^k · m`, `m` in [2/3, 4/3), for positive finite `x`."""
    element, mantissa, bias = x.element, MANTISSA_BITS[x.element], EXPONENT_BIAS[x.element]
    is_denormal = x.compare("olt", 2.0 ** (1 - bias))
    bits = is_denormal.select(x * 2.0**mantissa, x).bits()
    start = float_bits(element, 2.0 / 3.0)
    moved = bits + (float_bits(element, 1.0) - start)
    # The exponent as the low bits of 2^mantissa: an integer conversion that every CPU has.
    exponent = ((moved >> mantissa) | float_bits(element, 2.0**mantissa)).as_float(element)
    offset = code.constant(element, 2.0**mantissa + bias)
    k = exponent - is_denormal.select(offset + float(mantissa), offset)
    m = ((moved & ((1 << mantissa) - 1)) + start).as_float(element)
    return k, m


def log1p_tail(code: LaneCode, f: LaneValue) -> LaneValue:
    """The small part `t` of `log(1 + f) = f + t`, for `|f| ≤ 1/3`."""
    square = f * f
    if f.element == "float":
        cubic = code.horner(f, _LOG)
        return square * code.multiply_add(f, cubic, -0.5)
    s = code.plain_quotient(f, f + 2.0)
    z = s * s
    half_square = square * 0.5
    return code.multiply_add(s, half_square + z * code.horner(z, _ATANH), -half_square)


def _special(x: LaneValue, result: LaneValue) -> LaneValue:
    """`result`, but for arguments that are not positive finite numbers."""
    result = x.compare("olt", math.inf).select(result, x)
    result = x.compare("olt", 0.0).select(x.coerce(math.nan), result)
    return x.compare("oeq", 0.0).select(x.coerce(-math.inf), result)


def _natural(code: LaneCode, k: LaneValue, f: LaneValue) -> LaneValue:
    tail = code.multiply_add(k, LN2_LOW[f.element], log1p_tail(code, f))
    return code.multiply_add(k, LN2_HIGH[f.element], f + tail)


def _scaled(code: LaneCode, f: LaneValue, factor: tuple[float, float]) -> LaneValue:
    """`log(1 + f)` times the factor given in two parts."""
    tail = log1p_tail(code, f)
    high, low = factor
    rest = code.multiply_add(tail, high, (f + tail) * low)
    return code.multiply_add(f, high, rest)


def log(code: LaneCode, x: LaneValue) -> LaneValue:
    """The natural logarithm."""
    k, m = decompose(code, x)
    return _special(x, _natural(code, k, m - 1.0))


def log2_finite(code: LaneCode, x: LaneValue) -> LaneValue:
    """The base-2 logarithm of a positive finite number."""
    k, m = decompose(code, x)
    return k + _scaled(code, m - 1.0, _LOG2_E[x.element])


def log2(code: LaneCode, x: LaneValue) -> LaneValue:
    """The base-2 logarithm; exact for powers of two."""
    return _special(x, log2_finite(code, x))


def log10(code: LaneCode, x: LaneValue) -> LaneValue:
    """The base-10 logarithm."""
    k, m = decompose(code, x)
    high, low = _LOG10_2[x.element]
    mantissa_part = _scaled(code, m - 1.0, _LOG10_E[x.element])
    return _special(x, code.multiply_add(k, high, code.multiply_add(k, low, mantissa_part)))


def log1p(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `log(1 + x)`, accurate near zero."""
    u = x + 1.0
    k, m = decompose(code, u)
    # f = (1 + x)·2^-k - 1 from x itself, not from the rounded sum.
    scale = power_of_two(code, -k.at_most(_LOG1P_EXPONENT[x.element]))
    exact = code.multiply_add(scale, x, scale - 1.0)
    f = k.compare("ogt", _LOG1P_EXPONENT[x.element]).select(m - 1.0, exact)
    return _special(u, _natural(code, k, f)).with_sign_of(x)
