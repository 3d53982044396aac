"""Conversions between element types: one rounding, every pair of types, all rounding modes.

Narrowing goes through float32 with its last bit made sticky ("round to odd"), so that the
second rounding sees what the first one dropped and the result is rounded once.

fp8 saturates (`ir.narrow_floats`); towards zero the infinity of a format that has one stays.
Float to integer out of range is undefined in the language; here it saturates and NaN gives 0.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from tilewright.interp.values import BOOL, dtype_of
from tilewright.ir.narrow_floats import (
    E4B15,
    NARROW_FLOATS,
    is_saturating,
    largest,
    nearest,
    widened,
)
from tilewright.ir.op import Array
from tilewright.ir.types import element_of
from tilewright.ops.elementwise.reference import unsigned

_EXACT_IN_DOUBLE = 1 << 53


def round_float(values: Array, dtype: np.dtype, rounding: str = "rtne") -> Array:
    """Floats converted to float `dtype`: to nearest even, or towards zero for "rtz"."""
    if values.dtype == dtype:
        return values
    if rounding == "rtz":
        return _towards_zero(values, dtype)
    if values.dtype == np.float64 and dtype in NARROW_FLOATS:
        return nearest(_odd_single(values), dtype)
    return nearest(widened(values), dtype)


def _odd_single(values: Array) -> Array:
    """float64 to float32, inexact results with an odd last bit."""
    values = np.asarray(values)
    nearest = values.astype(np.float32)
    inexact = np.isfinite(values) & (nearest.astype(np.float64) != values)
    truncated = _step_towards_zero(nearest, np.abs(nearest.astype(np.float64)) > np.abs(values))
    bits = truncated.view(np.uint32)
    return np.where(inexact, bits | np.uint32(1), bits).view(np.float32)


def _step_towards_zero(values: Array, where: Array) -> Array:
    """The next float nearer to zero in the same format, where asked."""
    values = np.asarray(values)
    bits = values.view(f"u{values.dtype.itemsize}")
    return (bits - where.astype(bits.dtype)).view(values.dtype)


def _towards_zero(values: Array, dtype: np.dtype) -> Array:
    wide = np.asarray(widened(values)).astype(np.float64)
    size = np.abs(wide)
    rounded = np.asarray(round_float(size, dtype))
    is_above = np.asarray(widened(rounded)).astype(np.float64) > size
    sized = np.asarray(widened(_step_towards_zero(rounded, is_above))).astype(np.float64)
    sized = np.where(np.isfinite(size) & ~np.isfinite(sized), largest(dtype), sized)
    sized = np.where(np.isnan(size), size, sized)
    # The sign comes last: stepping from a negative value may meet a format's only NaN.
    result = nearest(np.copysign(sized, wide), dtype)
    if not is_saturating(dtype) or dtype == E4B15:
        return result
    infinite = np.copysign(np.inf, wide).astype(dtype)
    keeps = np.isinf(wide) & np.isinf(infinite.astype(np.float64))
    return np.where(keeps, infinite, result)


def integer_to_float(values: Array, dtype: np.dtype, *, signed: bool) -> Array:
    """Integers converted to float `dtype` with one rounding to nearest even."""
    integers = values if signed else unsigned(np.asarray(values))
    if integers.dtype == BOOL:
        return nearest(np.asarray(integers) * np.float64(-1 if signed else 1), dtype)
    if dtype == np.float64 or (integers.dtype.itemsize == 8 and dtype == np.float32):
        return integers.astype(dtype)
    return round_float(_sticky_double(np.asarray(integers)), dtype)


def _sticky_double(integers: Array) -> Array:
    """Integers as float64, bits below the 53rd folded into one sticky bit."""
    if integers.dtype.itemsize < 8:
        return integers.astype(np.float64)
    dropped = integers & 0x7FF
    folded = (integers - dropped) | ((dropped != 0).astype(integers.dtype) << 11)
    large = (integers >= _EXACT_IN_DOUBLE) | (integers < -_EXACT_IN_DOUBLE)
    return np.where(large, folded, integers).astype(np.float64)


def float_to_integer(values: Array, dtype: np.dtype, *, signed: bool) -> Array:
    """Floats converted towards zero; out of range saturates, NaN gives 0."""
    wide = np.trunc(np.asarray(widened(values)).astype(np.float64))
    bits = 1 if dtype == BOOL else 8 * dtype.itemsize
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    wide = np.where(np.isnan(wide), 0.0, wide)
    inside = np.where((wide >= low) & (wide < high), wide, 0.0)
    target = f"{'i' if signed else 'u'}{dtype.itemsize}"
    converted = inside.astype(target)
    converted = np.where(wide >= high, np.array(high - 1, dtype=target), converted)
    converted = np.where(wide < low, np.array(low, dtype=target), converted)
    return (converted & 1).astype(BOOL) if dtype == BOOL else converted.view(dtype)


def extend_integer(values: Array, dtype: np.dtype, *, signed: bool) -> Array:
    """Integers of a wider type, sign or zero extended; i1 counts as one bit."""
    if values.dtype == BOOL:
        return -values.astype(dtype) if signed else values.astype(dtype)
    return values.astype(dtype) if signed else unsigned(np.asarray(values)).astype(dtype)


def truncate_integer(values: Array, dtype: np.dtype) -> Array:
    """Integers without their high bits."""
    return (values & 1).astype(BOOL) if dtype == BOOL else values.astype(dtype)


def reinterpret(values: Array, dtype: np.dtype) -> Array:
    """The same bits as another type of equal width."""
    if values.dtype == dtype:
        return values
    return np.ascontiguousarray(values).reshape(np.shape(values)).view(dtype)


def index_cast(values: Array, source: Attribute, target: Attribute) -> Array:
    """Integer to or from index, as a signed conversion."""
    dtype = dtype_of(target)
    if isinstance(element_of(source), IndexType):
        return truncate_integer(values, dtype)
    return extend_integer(values, dtype, signed=True)
