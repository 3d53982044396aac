"""Bessel functions of integer order, on doubles.

Up to 8 polynomials, those of J with the first zeros taken out; beyond Hankel's expansion. Other
orders by the three-term recurrence, upward where that is stable and downward elsewhere.
"""

from __future__ import annotations

import math

from tilewright.codegen.math import special_tables as tables
from tilewright.codegen.math.exponential import exp_parts, scale
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.math.logarithm import log
from tilewright.codegen.math.loops import repeat
from tilewright.codegen.math.trigonometric import reduce_half_pi, sine_of
from tilewright.support.dataclass import dataclass

_FAR = 8.0
_TWO_OVER_PI = 0.6366197723675814
_ONE_OVER_PI = 0.3183098861837907
# Below, the first term of the series is all of J.
_TINY = 1e-9
# Miller's recurrence starts so far above the order, and is scaled down at the second number.
_HEADROOM = 60
_HUGE = 2.0**500


@dataclass(frozen=True)
class Orders:
    """J and Y of orders 0 and 1 at one argument."""

    j0: LaneValue
    j1: LaneValue
    y0: LaneValue
    y1: LaneValue


def _without_zeros(
    code: LaneCode,
    x: LaneValue,
    zeros: tuple[tuple[float, float], ...],
    table: tuple[float, ...],
) -> LaneValue:
    """A function that is `Π(x² - z²)` times a polynomial in `x²`, for `x ≤ 8`."""
    result = code.horner(code.multiply_add(x * x, 1 / 32, -1.0), table)
    for high, low in zeros:
        result = result * (((x - high) - low) * (x + high))
    return result


def _near(code: LaneCode, x: LaneValue) -> Orders:
    """The functions for `0 ≤ x ≤ 8`."""
    j0 = _without_zeros(code, x, tables.J0_ZEROS, tables.J0_NEAR)
    j1 = x * _without_zeros(code, x, tables.J1_ZEROS, tables.J1_NEAR)
    t = code.multiply_add(x * x, 1 / 32, -1.0)
    logarithm = log(code, x) * _TWO_OVER_PI
    y0 = code.multiply_add(logarithm, j0, code.horner(t, tables.Y0_NEAR))
    regular = code.multiply_add(logarithm, j1, x * code.horner(t, tables.Y1_NEAR))
    return Orders(j0, j1, y0, regular - _TWO_OVER_PI / x)


def _far(code: LaneCode, x: LaneValue, sine: LaneValue, cosine: LaneValue) -> Orders:
    """The functions for `x ≥ 8`, from sine and cosine of `x`."""
    ratio = _FAR / x
    t = code.multiply_add(ratio * ratio, 2.0, -1.0)
    amplitude = code.intrinsic("sqrt", _ONE_OVER_PI / x)
    total, difference = sine + cosine, sine - cosine
    p, q = code.horner(t, tables.P0), code.horner(t, tables.Q0) / x
    j0 = amplitude * (p * total - q * difference)
    y0 = amplitude * (p * difference + q * total)
    p, q = code.horner(t, tables.P1), code.horner(t, tables.Q1) / x
    j1 = amplitude * (p * difference + q * total)
    y1 = amplitude * (q * difference - p * total)
    return Orders(j0, j1, y0, y1)


def orders(code: LaneCode, x: LaneValue) -> Orders:
    """The functions of `x ≥ 0`; code that starts in the entry block."""
    reduced = reduce_half_pi(code, x)
    far = _far(code, x.at_least(_FAR), sine_of(code, reduced, 0), sine_of(code, reduced, 1))
    near = _near(code, x.at_most(_FAR))
    is_near, is_infinite = x.compare("ole", _FAR), x.compare("oeq", math.inf)

    def choose(a: LaneValue, b: LaneValue) -> LaneValue:
        return is_infinite.select(a.coerce(0.0), is_near.select(a, b))

    is_zero = x.compare("oeq", 0.0)
    y0, y1 = choose(near.y0, far.y0), choose(near.y1, far.y1)
    return Orders(
        choose(near.j0, far.j0),
        choose(near.j1, far.j1),
        is_zero.select(y0.coerce(-math.inf), y0),
        is_zero.select(y1.coerce(-math.inf), y1),
    )


def j0(code: LaneCode, x: LaneValue) -> LaneValue:
    """The Bessel function of the first kind and order 0."""
    return orders(code, x.absolute()).j0


def j1(code: LaneCode, x: LaneValue) -> LaneValue:
    """The Bessel function of the first kind and order 1."""
    result = orders(code, x.absolute()).j1
    return x.compare("olt", 0.0).select(-result, result)


def _on_positive(x: LaneValue, result: LaneValue) -> LaneValue:
    return x.compare("oge", 0.0).select(result, x.coerce(math.nan))


def y0(code: LaneCode, x: LaneValue) -> LaneValue:
    """The Bessel function of the second kind and order 0; NaN below 0."""
    return _on_positive(x, orders(code, x.absolute()).y0)


def y1(code: LaneCode, x: LaneValue) -> LaneValue:
    """The Bessel function of the second kind and order 1; NaN below 0."""
    return _on_positive(x, orders(code, x.absolute()).y1)


def _magnitude(n: LaneValue) -> LaneValue:
    return n.compare("slt", 0).select(n.coerce(0) - n, n)


def _upward(
    code: LaneCode, n: LaneValue, x: LaneValue, zeroth: LaneValue, first: LaneValue
) -> LaneValue:
    """The function of order `n ≥ 0` from those of orders 0 and 1."""

    def one_round(values: list[LaneValue]) -> tuple[list[LaneValue], LaneValue]:
        k, low, high = values
        goes = k.compare("slt", n)
        factor = (k + k).convert("sitofp", "double") / x
        following = [k + 1, high, code.multiply_add(factor, high, -low)]
        chosen = [goes.select(a, b) for a, b in zip(following, values, strict=True)]
        return chosen, chosen[0].compare("slt", n)

    result = repeat(code, [n.coerce(1) + 0, zeroth, first], one_round)[2]
    return n.compare("eq", 0).select(zeroth, result)


def _downward(code: LaneCode, n: LaneValue, x: LaneValue) -> LaneValue:
    """J of order `n ≥ 1` for `0 < x ≤ n`, by Miller's recurrence and `J0 + 2·ΣJ2k = 1`."""
    zero = x.coerce(0.0) + 0.0
    start = ((n + _HEADROOM) >> 1) << 1

    def one_round(values: list[LaneValue]) -> tuple[list[LaneValue], LaneValue]:
        k, current, above, total, found = values
        goes = k.compare("sgt", 0)
        is_even = (k & 1).compare("eq", 0)
        total = is_even.select(code.multiply_add(current, 2.0, total), total)
        found = k.compare("eq", n).select(current, found)
        factor = (k + k).convert("sitofp", "double") / x
        below = code.multiply_add(factor, current, -above)
        is_huge = below.absolute().compare("ogt", _HUGE)
        shrink = is_huge.select(below.coerce(1.0 / _HUGE), 1.0)
        following = [k - 1, *(value * shrink for value in (below, current, total, found))]
        chosen = [goes.select(a, b) for a, b in zip(following, values, strict=True)]
        return chosen, chosen[0].compare("sgt", 0)

    first = zero + 1e-150
    _, zeroth, _, total, found = repeat(code, [start, first, zero, zero, zero], one_round)
    return found / (total + zeroth)


def _leading(code: LaneCode, n: LaneValue, x: LaneValue) -> LaneValue:
    """`(x/2)^n / n!`, all of J for a tiny `x`."""
    half = x * 0.5

    def one_round(values: list[LaneValue]) -> tuple[list[LaneValue], LaneValue]:
        k, term = values
        goes = k.compare("sle", n) & term.compare("ogt", 0.0)
        following = [k + 1, term * (half / k.convert("sitofp", "double"))]
        chosen = [goes.select(a, b) for a, b in zip(following, values, strict=True)]
        return chosen, chosen[0].compare("sle", n) & chosen[1].compare("ogt", 0.0)

    return repeat(code, [n.coerce(1) + 0, x.coerce(1.0) + 0.0], one_round)[1]


def jn(code: LaneCode, n: LaneValue, x: LaneValue) -> LaneValue:
    """The Bessel function of the first kind and order `n`, in about `|n|` rounds."""
    order, magnitude = _magnitude(n), x.absolute()
    known = orders(code, magnitude)
    limit = order.convert("sitofp", "double")
    is_low = magnitude.compare("ole", limit)
    is_tiny = magnitude.compare("olt", _TINY)
    # Lanes for which another method holds run the loops once, with harmless arguments.
    up_order = is_low.select(order.coerce(1), order)
    upward = _upward(code, up_order, is_low.select(x.coerce(1.0), magnitude), known.j0, known.j1)
    uses_down = is_low & is_tiny.select(order.coerce(0), 1).compare("ne", 0)
    down_order = uses_down.select(order, 1)
    downward = _downward(code, down_order, uses_down.select(magnitude, 1.0))
    leading = _leading(code, is_tiny.select(order, 0), magnitude)
    result = is_low.select(downward, upward)
    result = is_tiny.select(leading, result)
    result = magnitude.compare("oeq", math.inf).select(result.coerce(0.0), result)
    result = x.compare("uno", x).select(x, result)
    is_odd = (order & 1).compare("ne", 0)
    flips = is_odd & ((n >> 31).compare("ne", 0) ^ x.compare("olt", 0.0))
    return flips.select(-result, result)


def yn(code: LaneCode, n: LaneValue, x: LaneValue) -> LaneValue:
    """The Bessel function of the second kind and order `n`, in about `|n|` rounds."""
    order, magnitude = _magnitude(n), x.absolute()
    known = orders(code, magnitude)
    result = _upward(code, order, magnitude, known.y0, known.y1)
    # An overflow is a difference of infinities one round later.
    result = result.compare("uno", result).select(result.coerce(-math.inf), result)
    is_odd = (order & 1).compare("ne", 0) & n.compare("slt", 0)
    result = is_odd.select(-result, result)
    result = magnitude.compare("oeq", math.inf).select(result.coerce(0.0), result)
    return _on_positive(x, result)


def _modified(
    code: LaneCode,
    x: LaneValue,
    near: tuple[float, ...],
    far: tuple[float, ...],
    is_odd: bool,
) -> LaneValue:
    magnitude = x.absolute()
    bounded = magnitude.at_most(720.0)
    low = bounded.at_most(_FAR)
    small = code.horner(code.multiply_add(low, 0.25, -1.0), near)
    if is_odd:
        small = small * low
    high = bounded.at_least(_FAR)
    large = code.horner(16.0 / high - 1.0, far) / code.intrinsic("sqrt", high)
    y, n = exp_parts(code, bounded)
    factor = magnitude.compare("ole", _FAR).select(small, large)
    # The product first: e^x overflows before the function does.
    result = scale(code, y * factor, n)
    result = magnitude.compare("ogt", 719.0).select(result.coerce(math.inf), result)
    result = x.compare("uno", x).select(x, result)
    return result.with_sign_of(x) if is_odd else result


def i0(code: LaneCode, x: LaneValue) -> LaneValue:
    """The modified Bessel function of the first kind and order 0."""
    return _modified(code, x, tables.I0_NEAR, tables.I0_FAR, False)


def i1(code: LaneCode, x: LaneValue) -> LaneValue:
    """The modified Bessel function of the first kind and order 1."""
    return _modified(code, x, tables.I1_NEAR, tables.I1_FAR, True)
