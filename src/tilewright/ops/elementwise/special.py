"""Special functions of float64 arrays by the plainest accurate method: the oracle's versions.

Recurrences, series of positive terms and Newton's method: slow, and no code is shared with
what is emitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tilewright.ir.op import Array

# From this argument on Hankel's expansion of the Bessel functions is exact to the last place.
_FAR = 40.0
_TINY = 1e-3
_EULER = 0.57721566490153286


def each(function: Callable[..., float]) -> Callable[..., Array]:
    """A function of Python floats as one of float64 arrays."""
    return np.vectorize(function, otypes=[np.float64])


def _downward(order: int, x: Array) -> list[Array]:
    """J_0 … J_M of `0 < x` by Miller's recurrence, `M` far beyond order and argument."""
    start = 2 * ((int(max(order, np.fmax.reduce(x, axis=None, initial=1.0))) + 60) // 2)
    values = [np.zeros_like(x)] * (start + 2)
    values[start] = np.full_like(x, 1e-300)
    for k in range(start, 0, -1):
        values[k - 1] = 2 * k / x * values[k] - values[k + 1]
        huge = np.abs(values[k - 1]) > 1e150
        if huge.any():
            values[k - 1 :] = [np.where(huge, value * 1e-200, value) for value in values[k - 1 :]]
    total = values[0] + 2 * np.sum(values[2::2], axis=0)
    return [value / total for value in values]


def _hankel(order: int, x: Array) -> tuple[Array, Array]:
    """The amplitudes P and Q of Hankel's expansion for large `x`."""
    term, square = np.ones_like(x), 4.0 * order * order
    sums = [np.ones_like(x), np.zeros_like(x)]
    for k in range(1, 30):
        term = term * (square - (2 * k - 1) ** 2) / (8 * k * x)
        sums[k % 2] = sums[k % 2] + (-1) ** (k // 2) * term
    return sums[0], sums[1]


def _far_pair(order: int, x: Array) -> tuple[Array, Array]:
    """J and Y of order 0 or 1 for large `x`; the phase is turned, not subtracted."""
    p, q = _hankel(order, x)
    cosine, sine, root = np.cos(x), np.sin(x), math.sqrt(0.5)
    turned = (cosine + sine) * root, (sine - cosine) * root
    if order == 1:
        turned = turned[1], -turned[0]
    amplitude = np.sqrt(2 / math.pi / x)
    return (
        amplitude * (p * turned[0] - q * turned[1]),
        amplitude * (p * turned[1] + q * turned[0]),
    )


def _near_pair(x: Array) -> tuple[Array, ...]:
    """J_0, J_1, Y_0, Y_1 of `_TINY ≤ x ≤ 40` by Neumann's series over the J_k."""
    j = _downward(1, x)
    logarithm = np.log(x / 2) + _EULER
    terms = range(1, len(j) // 2 - 1)
    even = sum((-1) ** k * j[2 * k] / k for k in terms)
    odd = sum((-1) ** k * (2 * k + 1) / (k * (k + 1)) * j[2 * k + 1] for k in terms)
    y0 = 2 / math.pi * (logarithm * j[0] - 2 * even)
    y1 = 2 / math.pi * ((logarithm - 1) * j[1] - odd - j[0] / x)
    return j[0], j[1], y0, y1


def _tiny_pair(x: Array) -> tuple[Array, ...]:
    """J_0, J_1, Y_0, Y_1 of `x < _TINY` by the first terms of their series."""
    square = x * x / 4
    logarithm = np.log(x) - math.log(2) + _EULER
    j0 = 1 - square + square * square / 4
    j1 = x / 2 * (1 - square / 2 + square * square / 12)
    y0 = 2 / math.pi * (logarithm * j0 + square - 0.375 * square * square)
    rest = x / 2 * (1 - 1.25 * square)
    return j0, j1, y0, (2 * logarithm * j1 - 2 / x - rest) / math.pi


def _orders(x: Array) -> list[Array]:
    """J_0, J_1, Y_0, Y_1 of `x > 0`."""
    tiny = _tiny_pair(np.minimum(x, _TINY))
    near = _near_pair(np.clip(x, _TINY, _FAR))
    far_0, far_1 = (_far_pair(order, np.maximum(x, _FAR)) for order in (0, 1))
    far = (far_0[0], far_1[0], far_0[1], far_1[1])
    return [
        np.where(x < _TINY, a, np.where(x <= _FAR, b, c))
        for a, b, c in zip(tiny, near, far, strict=True)
    ]


def _upward(order: int, x: Array, first: Array, second: Array) -> Array:
    """The function of `order` from those of order 0 and 1."""
    for k in range(1, order):
        first, second = second, 2 * k / x * second - first
    return second if order else first


def bessel_j(order: int, x: Array) -> Array:
    """The Bessel function of the first kind of integer order."""
    magnitude = np.abs(x)
    sign = np.where((x < 0) ^ (order < 0), -1.0, 1.0) if order % 2 else np.ones_like(x)
    n, inside = abs(order), np.clip(magnitude, 5e-324, np.finfo(np.float64).max)
    j0, j1, _, _ = _orders(inside)
    result = _upward(n, inside, j0, j1)
    if n > 1:
        result = np.where(magnitude <= n, _downward(n, np.clip(inside, _TINY, n))[n], result)
        leading = np.exp(n * np.log(inside / 2) - math.lgamma(n + 1))
        result = np.where(magnitude < _TINY, leading * (1 - inside**2 / (4 * n + 4)), result)
    result = np.where(magnitude == 0, float(n == 0), np.where(np.isinf(magnitude), 0.0, result))
    return np.where(np.isnan(x), np.nan, sign * result)


def bessel_y(order: int, x: Array) -> Array:
    """The Bessel function of the second kind of integer order."""
    sign = -1.0 if order < 0 and order % 2 else 1.0
    inside = np.clip(x, 5e-324, np.finfo(np.float64).max)
    _, _, y0, y1 = _orders(inside)
    result = sign * _upward(abs(order), inside, y0, y1)
    result = np.where(np.isnan(result), -sign * np.inf, result)
    result = np.where(x == 0, -sign * np.inf, np.where(x == np.inf, 0.0, result))
    return np.where((x < 0) | np.isnan(x), np.nan, result)


def bessel_i(order: int, x: Array) -> Array:
    """The modified Bessel function of the first kind, order 0 or 1."""
    magnitude = np.abs(x)
    half = np.minimum(magnitude, _FAR / 2) / 2
    term = near = half**order
    for k in range(1, 60):
        term = term * (half / k) * (half / (k + order))
        near = near + term
    large = np.clip(magnitude, _FAR / 2, 720.0)
    term = total = np.ones_like(x)
    for k in range(1, 30):
        term = term * ((2 * k - 1) ** 2 - 4 * order) / (8 * k * large)
        total = total + term
    # In two halves: e^x overflows before the function does.
    far = np.exp(large / 2) / np.sqrt(2 * math.pi * large) * total * np.exp(large / 2)
    result = np.where(magnitude <= _FAR / 2, near, np.where(magnitude > 719.0, np.inf, far))
    result = np.where(np.isnan(x), np.nan, result)
    return np.where(np.signbit(x) & (order == 1), -result, result)


def erfcx(x: Array) -> Array:
    """The value `e^(x²)·erfc(x)`."""
    magnitude = np.maximum(np.abs(x), 1.0)
    fraction = np.zeros_like(magnitude)
    for n in range(300, 0, -1):
        fraction = n / 2 / (magnitude + fraction)
    far = 1 / math.sqrt(math.pi) / (magnitude + fraction)
    near = _exp_square(x) * each(math.erfc)(np.clip(x, -1, 1))
    positive = np.where(np.abs(x) < 1, near, far)
    return np.where(x <= -1, 2 * _exp_square(x) - far, positive)


def _exp_square(x: Array) -> Array:
    """The value `e^(x²)`, its argument in two parts."""
    bounded = np.clip(x, -30, 30)
    high = np.round(bounded * 2.0**20) / 2.0**20
    return np.exp(high * high) * np.exp((bounded - high) * (bounded + high))


def normcdf(x: Array) -> Array:
    """The share of the standard normal distribution below `x`."""
    bounded = np.clip(x, -40, 40)
    # e^(-x²/2) in two parts: erfc of the rounded x/√2 would lose the digits of x².
    high = np.round(bounded * 2.0**20) / 2.0**20
    density = np.exp(-high * high / 2) * np.exp(-(bounded - high) * (bounded + high) / 2)
    tail = 0.5 * density * erfcx(np.abs(bounded) / math.sqrt(2))
    return np.where(np.isnan(x), np.nan, np.where(bounded > 0, 1 - tail, tail))


def _scaled_complement(x: float) -> float:
    """The value `e^(x²)·erfc(x)` of one `x ≥ 0`."""
    if x < 2:
        return math.exp(x * x) * math.erfc(x)
    fraction = 0.0
    for n in range(150, 0, -1):
        fraction = n / 2 / (x + fraction)
    return 1 / math.sqrt(math.pi) / (x + fraction)


def _inverse_complement(y: float) -> float:
    """The `x ≥ 0` with `erfc(x) = y`, for `0 < y ≤ 1`, by Newton's method on the logarithm."""
    x = math.sqrt(-math.log(y)) if y < 0.5 else (1 - y) * math.sqrt(math.pi) / 2
    for _ in range(40):
        if y > 0.5:
            step = ((1 - y) - math.erf(x)) * math.exp(x * x)
        else:
            scaled = _scaled_complement(x)
            step = scaled * ((math.log(scaled) - x * x) - math.log(y))
        moved = x + step * math.sqrt(math.pi) / 2
        if abs(moved - x) <= 2e-16 * abs(moved):
            return moved
        x = moved
    return x


def erfcinv(y: float) -> float:
    """The inverse of `erfc` on [0, 2]."""
    if math.isnan(y) or not 0 <= y <= 2:
        return math.nan
    if y in (0.0, 2.0):
        return math.inf if y == 0.0 else -math.inf
    return _inverse_complement(y) if y <= 1 else -_inverse_complement(2 - y)


def erfinv(z: float) -> float:
    """The inverse of `erf` on [-1, 1]."""
    if math.isnan(z) or abs(z) > 1:
        return math.nan
    if abs(z) == 1:
        return math.copysign(math.inf, z)
    if abs(z) > 0.5:
        return math.copysign(_inverse_complement(1 - abs(z)), z)
    x = z * math.sqrt(math.pi) / 2
    for _ in range(40):
        x += (z - math.erf(x)) * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return math.copysign(x, z)


def log_gamma(x: float) -> float:
    """The logarithm of the magnitude of the gamma function."""
    if math.isnan(x):
        return x
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def gamma(x: float) -> float:
    """The gamma function."""
    if x == 0:
        return math.copysign(math.inf, x)
    if x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.copysign(math.inf, x) if abs(x) < 1 else math.inf


def sine_of_turns(x: Array, quarter: bool) -> Array:
    """The value `sin(πx)`, or `cos(πx)` for `quarter`."""
    whole = x - 2 * np.round(x / 2)
    if quarter:
        whole = 0.5 - np.abs(whole)
    folded = np.where(np.abs(whole) > 0.5, np.sign(whole) - whole, whole)
    result = np.sin(math.pi * folded)
    if not quarter:
        result = np.where(result == 0, np.copysign(0.0, x), result)
    return np.where(np.isinf(x), np.nan, result)
