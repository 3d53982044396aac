"""The complement of the error function, the normal distribution, and their inverses.

All on doubles. `erfc(x) = e^(-x²)·s(x)`, where `s` falls slowly; `x²` is kept in two parts.
"""

from __future__ import annotations

import math

from tilewright.codegen.math import error_function
from tilewright.codegen.math import special_tables as tables
from tilewright.codegen.math.exponential import exp_parts, scale
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.logarithm import log

_SQRT_HALF = 0.7071067811865476
# Up to here erf loses nothing beside 1.
_NEAR = 0.5
_SQRT_2 = 1.4142135623730951
# Where the inverse changes its method: by z = 1 - y, by s = √(-log y) up to 4 and beyond.
_CENTRAL = 0.75
_SEGMENTS = ((1.17, 4.0), (4.0, 27.5))


def _scaled(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `e^(x²)·erfc(x)` for `x ≥ 0`."""
    bounded = x.at_most(1e300)
    t = (bounded - 3.0) / (bounded + 3.0)
    return code.horner(t, tables.ERFCX) * (0.5 / (x + 0.5))


def _times_exponential(
    code: LaneCode, exponent: LaneValue, rest: LaneValue, factor: LaneValue
) -> LaneValue:
    """`e^(exponent + rest)·factor` with one rounding of a denormal result."""
    limited = exponent.at_most(720.0).at_least(-770.0)
    y, n = exp_parts(code, limited)
    is_inside = limited.compare("oeq", exponent)
    y = code.multiply_add(y, is_inside.select(rest, 0.0), y)
    return scale(code, y * factor, n)


def _square(code: LaneCode, x: LaneValue) -> tuple[LaneValue, LaneValue]:
    return code.two_product(x, x)


def _bounded_square(code: LaneCode, magnitude: LaneValue) -> tuple[LaneValue, LaneValue]:
    """The square in two parts, of numbers beyond all exponents too."""
    return _square(code, magnitude.at_most(1e4))


def erfc(code: LaneCode, x: LaneValue) -> LaneValue:
    """1 less the error function."""
    magnitude = x.absolute()
    square, rest = _bounded_square(code, magnitude)
    tail = _times_exponential(code, -square, -rest, _scaled(code, magnitude))
    far = x.compare("olt", 0.0).select(2.0 - tail, tail)
    return magnitude.compare("olt", _NEAR).select(1.0 - error_function.near(code, x), far)


def erfcx(code: LaneCode, x: LaneValue) -> LaneValue:
    """The value `e^(x²)·erfc(x)`."""
    magnitude = x.absolute()
    scaled = _scaled(code, magnitude)
    square, rest = _bounded_square(code, magnitude)
    doubled = _times_exponential(code, square, rest, x.coerce(2.0))
    return x.compare("olt", 0.0).select(doubled - scaled, scaled)


def normcdf(code: LaneCode, x: LaneValue) -> LaneValue:
    """The share of the standard normal distribution below `x`."""
    magnitude = x.absolute()
    square, rest = _bounded_square(code, magnitude)
    scaled = _scaled(code, magnitude * _SQRT_HALF)
    tail = _times_exponential(code, square * -0.5, rest * -0.5, scaled * 0.5)
    far = x.compare("ogt", 0.0).select(1.0 - tail, tail)
    near = code.multiply_add(error_function.near(code, x * _SQRT_HALF), 0.5, 0.5)
    return magnitude.compare("olt", _NEAR).select(near, far)


def _central(code: LaneCode, z: LaneValue) -> LaneValue:
    """The inverse error function for `|z| ≤ 3/4`."""
    t = code.multiply_add(z * z, 2.0 / _CENTRAL**2, -1.0)
    return z * code.horner(t, tables.ERFINV)


def _tail(code: LaneCode, y: LaneValue) -> LaneValue:
    """The inverse of erfc for `0 < y < 1/4`."""
    s = code.intrinsic("sqrt", -log(code, y))
    inverse = 1.0 / s
    results: list[LaneValue] = []
    segments = zip(_SEGMENTS, (tables.ERFCINV_NEAR, tables.ERFCINV_FAR), strict=True)
    for (start, end), table in segments:
        slope = 2.0 / (1.0 / start - 1.0 / end)
        t = code.multiply_add(inverse, slope, -1.0 - slope / end)
        results.append(s * code.horner(t, table))
    return s.compare("olt", _SEGMENTS[1][0]).select(results[0], results[1])


def erfinv(code: LaneCode, z: LaneValue) -> LaneValue:
    """The inverse of the error function on [-1, 1], NaN beyond."""
    magnitude = z.absolute()
    tail = _tail(code, 1.0 - magnitude).with_sign_of(z)
    result = magnitude.compare("ole", _CENTRAL).select(_central(code, z), tail)
    ends = z.coerce(math.inf).with_sign_of(z)
    result = magnitude.compare("oeq", 1.0).select(ends, result)
    return magnitude.compare("ole", 1.0).select(result, z.coerce(math.nan))


def erfcinv(code: LaneCode, y: LaneValue) -> LaneValue:
    """The inverse of erfc on [0, 2], NaN beyond."""
    is_upper = y.compare("ogt", 1.0)
    share = is_upper.select(2.0 - y, y)
    tail = _tail(code, share)
    tail = is_upper.select(-tail, tail)
    result = share.compare("oge", 1.0 - _CENTRAL).select(_central(code, 1.0 - y), tail)
    ends = is_upper.select(y.coerce(-math.inf), math.inf)
    result = share.compare("oeq", 0.0).select(ends, result)
    return share.compare("oge", 0.0).select(result, y.coerce(math.nan))


def normcdfinv(code: LaneCode, p: LaneValue) -> LaneValue:
    """The inverse of `normcdf` on [0, 1], NaN beyond."""
    return erfcinv(code, p + p) * -_SQRT_2
