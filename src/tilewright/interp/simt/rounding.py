"""Correct rounding in every direction, and conversions between float formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilewright.ir.op import Array

# The name of a rounding mode in PTX and NVVM: to nearest even, toward zero, down, up.
MODES = ("rn", "rz", "rm", "rp")
FLOAT_DTYPES: dict[str, np.dtype] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2),
}


def round_to_odd(a: Array) -> Array:
    """Float64 as float32, inexact values with an odd last bit: rounding again is then exact."""
    narrow = a.astype(np.float32)
    bits = narrow.view(np.uint32)
    beyond = np.abs(narrow.astype(np.float64)) > np.abs(a)
    truncated = np.where(beyond, bits - np.uint32(1), bits)
    inexact = (narrow.astype(np.float64) != a) & np.isfinite(a)
    return np.where(inexact, truncated | np.uint32(1), bits).view(np.float32)


def _odd_sum(a: Array, b: Array) -> Array:
    """The sum of float64 values, an inexact one with an odd last bit."""
    total = a + b
    error = sum_error(a, b, total)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 0, -1)
    inexact = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    return np.where(inexact, (bits + step) | 1, bits).view(np.float64)


def sum_error(a: Array, b: Array, total: Array) -> Array:
    """What rounding took from `total = a + b`, exactly."""
    back = total - a
    return (a - (total - back)) + (b - back)


def product_error(a: Array, b: Array, product: Array) -> Array:
    """What rounding took from the float64 `product = a·b`, exactly but for overflow."""
    split = 134217729.0
    x, y = a * split, b * split
    high_a, high_b = x - (x - a), y - (y - b)
    low_a, low_b = a - high_a, b - high_b
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def fused_multiply_add(a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
    """a·b + c rounded once; float64 may be off by the last place in rare cases."""
    if a.dtype == np.float64:
        return _fused_double(a, b, c, mode)
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    if a.dtype == np.float32 and mode == "rn":
        total = product + addend
        if not _may_round_twice(total):
            return total.astype(np.float32)
    return narrow(_odd_sum(product, addend), a.dtype, mode)


def _may_round_twice(total: Array) -> bool:
    """Whether a float64 sum lies half way between two float32s, or may do so as a denormal."""
    half_way = (total.view(np.uint64) & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)
    return bool(half_way.any() or (np.abs(total) < 2.0**-125).any())


def _fused_double(a: Array, b: Array, c: Array, mode: str) -> Array:
    product = a * b
    low = product_error(a, b, product)
    total = product + c
    error = sum_error(product, c, total) + low
    corrected = total + error
    left = (total - corrected) + error
    return directed(np.where(np.isfinite(corrected), corrected, total), left, mode)


def add(a: Array, b: Array, mode: str) -> Array:
    """The sum, rounded in a direction."""
    if a.dtype == np.float64:
        return directed(a + b, sum_error(a, b, a + b), mode)
    return narrow(_odd_sum(a.astype(np.float64), b.astype(np.float64)), a.dtype, mode)


def multiply(a: Array, b: Array, mode: str) -> Array:
    """The product, rounded in a direction."""
    if a.dtype == np.float64:
        return directed(a * b, product_error(a, b, a * b), mode)
    return narrow(a.astype(np.float64) * b.astype(np.float64), a.dtype, mode)


def divide(a: Array, b: Array, mode: str) -> Array:
    """The quotient, rounded in a direction."""
    quotient = a / b
    wide_q, wide_b = quotient.astype(np.float64), b.astype(np.float64)
    product = wide_q * wide_b
    left = (a.astype(np.float64) - product) - product_error(wide_q, wide_b, product)
    return directed(quotient, left * np.sign(wide_b), mode)


def square_root(a: Array, mode: str) -> Array:
    """The square root, rounded in a direction."""
    root = np.sqrt(a)
    wide = root.astype(np.float64)
    square = wide * wide
    left = (a.astype(np.float64) - square) - product_error(wide, wide, square)
    return directed(root, left, mode)


def _step(a: Array, *, up: bool) -> Array:
    """The next value above or below."""
    bits = a.view(f"i{a.dtype.itemsize}")
    grows = (bits >= 0) == up
    stepped = bits + np.where(grows, 1, -1).astype(bits.dtype)
    smallest = np.ones((), bits.dtype) if up else np.iinfo(bits.dtype).min + np.ones((), bits.dtype)
    is_zero = (bits << np.ones((), bits.dtype)) == 0
    return np.where(is_zero, smallest, stepped).view(a.dtype)


def directed(nearest: Array, error: Array, mode: str) -> Array:
    """A result rounded to nearest, moved to its neighbour where the mode wants that.

    `error` has the sign of the exact result minus `nearest`.
    """
    if mode == "rn":
        return nearest
    wide = nearest.astype(np.float64)
    known = np.isfinite(wide) & ~np.isnan(error)
    down = known & (error < 0) & ((mode == "rm") | ((mode == "rz") & (wide > 0)))
    up = known & (error > 0) & ((mode == "rp") | ((mode == "rz") & (wide < 0)))
    result = np.where(down, _step(nearest, up=False), nearest)
    return np.where(up, _step(nearest, up=True), result)


def narrow(wide: Array, dtype: np.dtype, mode: str = "rn") -> Array:
    """Float64 rounded once to another format."""
    if dtype.itemsize <= 2:
        nearest = round_to_odd(wide).astype(dtype)
    else:
        nearest = wide.astype(dtype)
    if mode == "rn":
        return nearest
    back = nearest.astype(np.float64)
    overflow = np.isinf(back) & np.isfinite(wide)
    largest = float(ml_dtypes.finfo(dtype).max)
    toward_zero = (mode == "rz") | ((mode == "rm") & (wide > 0)) | ((mode == "rp") & (wide < 0))
    finite = np.where(overflow & toward_zero, np.copysign(largest, wide), back).astype(dtype)
    return directed(finite, wide - finite.astype(np.float64), mode)


def convert_float(
    a: Array, target: str, mode: str = "rn", *, saturates: bool = False, is_relu: bool = False
) -> Array:
    """A float of any format as one of `target`, as PTX's `cvt` does it.

    `saturates` takes what is too large to the largest finite value.
    """
    dtype = FLOAT_DTYPES[target]
    wide = a.astype(np.float64)
    if is_relu:
        wide = np.where(wide > 0, wide, np.where(np.isnan(wide), wide, 0.0))
    if saturates:
        largest = float(ml_dtypes.finfo(dtype).max)
        wide = np.where(np.isnan(wide), wide, np.clip(wide, -largest, largest))
    return narrow(wide, dtype, mode)


def round_to_tf32(a: Array, mode: str = "rna") -> Array:
    """Float32 with 10 bits of fraction: to nearest with ties away, to even, or cut off."""
    bits = a.view(np.uint32)
    if mode == "rna":
        rounded = bits + np.uint32(0x1000)
    elif mode == "rn":
        rounded = bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))
    else:
        rounded = bits
    return np.where(np.isfinite(a), rounded & np.uint32(0xFFFFE000), bits).view(np.float32)


def flush(a: Array) -> Array:
    """Denormals as zeros of the same sign (`.ftz`)."""
    if a.dtype != np.float32:
        return a
    small = np.abs(a) < np.float32(2.0**-126)
    return np.where(small, np.copysign(np.float32(0), a), a)
