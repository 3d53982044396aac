"""What elementwise ops compute, over NumPy arrays of one dtype.

Integers are signed arrays; functions that mean unsigned ones reinterpret. Floats are float32 or
float64; each function rounds once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.ir.op import Array

Reference = Callable[..., Array]


def unsigned(array: Array) -> Array:
    """The same bits as unsigned integers (i1 stays as it is)."""
    return array if array.dtype == np.bool_ else array.view(f"u{array.dtype.itemsize}")


def on_unsigned(function: Reference) -> Reference:
    """`function` of the operands' bits as unsigned integers."""

    def apply(lhs: Array, rhs: Array) -> Array:
        return np.asarray(function(unsigned(lhs), unsigned(rhs))).view(lhs.dtype)

    return apply


def nonzero(divisor: Array) -> Array:
    """The divisor with 1 for 0, whose quotient is undefined."""
    return np.where(divisor == 0, divisor.dtype.type(1), divisor)


def truncating_remainder(lhs: Array, rhs: Array) -> Array:
    """The remainder with the dividend's sign."""
    return np.fmod(lhs, nonzero(rhs))


def truncating_division(lhs: Array, rhs: Array) -> Array:
    """The quotient rounded towards zero."""
    divisor = nonzero(rhs)
    # The dividend less its remainder divides exactly, so rounding does not matter.
    return (lhs - np.fmod(lhs, divisor)) // divisor


def unsigned_division(lhs: Array, rhs: Array) -> Array:
    """The quotient of unsigned arrays."""
    return lhs // nonzero(rhs)


def unsigned_remainder(lhs: Array, rhs: Array) -> Array:
    """The remainder of unsigned arrays."""
    return lhs % nonzero(rhs)


def shift_left(array: Array, by: Array) -> Array:
    """`array << by`; an amount of the width or more, or a negative one, shifts out all bits."""
    amount, is_within = _amount_within(by)
    return np.where(is_within, np.left_shift(array, amount), array.dtype.type(0))


def shift_right(array: Array, by: Array) -> Array:
    """`array >> by`; of amounts that shift out all bits the sign is left, or 0 if unsigned."""
    amount, is_within = _amount_within(by)
    shifted = np.right_shift(array, amount)
    return shifted if array.dtype.kind == "i" else np.where(is_within, shifted, 0 * shifted)


def _amount_within(by: Array) -> tuple[Array, Array]:
    """Amounts with the width less one for those beyond it, and which are not."""
    last = 8 * by.dtype.itemsize - 1
    is_within = unsigned(by) <= last
    return np.where(is_within, by, by.dtype.type(last)), is_within


def high_product(lhs: Array, rhs: Array) -> Array:
    """The high half of the product of unsigned arrays."""
    bits = lhs.dtype.itemsize * 8
    if bits < 64:
        return ((lhs.astype(np.uint64) * rhs.astype(np.uint64)) >> np.uint64(bits)).astype(
            lhs.dtype
        )
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    a, b, c, d = lhs >> half, lhs & low, rhs >> half, rhs & low
    middle = a * d + ((b * d) >> half)
    carry = ((middle & low) + b * c) >> half
    return a * c + (middle >> half) + carry


def scalarwise(function: Callable[[float], float]) -> Reference:
    """A function of Python floats as one of arrays, evaluated in double precision."""
    vectorised = np.vectorize(function, otypes=[np.float64])

    def apply(src: Array) -> Array:
        return vectorised(src.astype(np.float64)).astype(src.dtype)

    return apply


def in_double(function: Reference) -> Reference:
    """Evaluate a float32 function in float64 and round once: the best NumPy can do."""

    def apply(*operands: Array) -> Array:
        if operands[0].dtype != np.float32:
            return function(*operands)
        return function(*(o.astype(np.float64) for o in operands)).astype(np.float32)

    return apply


def round_half_away(src: Array) -> Array:
    """The nearest integral value, halves away from zero."""
    whole = np.trunc(src)
    # Not floor(|x| + 0.5): that sum rounds up for the float below one half.
    return np.copysign(whole + np.where(np.abs(src - whole) >= 0.5, np.sign(src), 0), src)


def count_bits(src: Array) -> Array:
    """The number of set bits."""
    return np.bitwise_count(unsigned(src)).astype(src.dtype)


def count_leading(src: Array) -> Array:
    """The number of zero bits above the highest set one."""
    bits = src.dtype.itemsize * 8
    smeared = unsigned(src)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < bits:
            smeared = smeared | (smeared >> smeared.dtype.type(shift))
    return (bits - np.bitwise_count(smeared).astype(np.int64)).astype(src.dtype)


def count_trailing(src: Array) -> Array:
    """The number of zero bits below the lowest set one."""
    bits = unsigned(src)
    return np.bitwise_count(~bits & (bits - bits.dtype.type(1))).astype(src.dtype)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its error, which is exact (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product of doubles and its error (Veltkamp and Dekker)."""

    def split(x: Array) -> tuple[Array, Array]:
        scaled = x * 134217729.0  # 2^27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (a_high, a_low), (b_high, b_low) = split(a), split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def odd_sum(a: Array, b: Array) -> Array:
    """a + b in doubles, with an odd last bit where it is inexact, so a later rounding is right."""
    total, error = two_sum(a, b)
    total = np.asarray(total)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return np.where(inexact, bits + step, bits).view(np.float64)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """a * b + c with one rounding to the operands' dtype (Boldo and Melquiond, 2008)."""
    x, y, z = (np.asarray(o).astype(np.float64) for o in (a, b, c))
    if a.dtype != np.float64:
        return odd_sum(x * y, z).astype(a.dtype)  # the product of two floats is exact
    high, low = two_product(x, y)
    upper, lower = two_sum(z, low)
    top, rest = two_sum(high, upper)
    fused = top + odd_sum(rest, lower)
    return np.where(np.isfinite(fused), fused, x * y + z)
