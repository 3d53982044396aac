"""How the interpreter holds values: element types as NumPy dtypes, constants, undefined bits.

Every value is a NumPy array or NumPy scalar: integers signed, i1 as bool, bf16 and fp8 as the
dtypes of `ml_dtypes`, pointers as int64 addresses. Block pointers and descriptors are records
of their own (interp/blocks.py).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute

from tilewright.ir import types as ir
from tilewright.ir.op import Array
from tilewright.support.errors import InternalError

_FLOATS: dict[Attribute, np.dtype] = {
    ir.f16: np.dtype(np.float16),
    ir.bf16: np.dtype(ml_dtypes.bfloat16),
    ir.f32: np.dtype(np.float32),
    ir.f64: np.dtype(np.float64),
    ir.f8e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn),
    ir.f8e5m2: np.dtype(ml_dtypes.float8_e5m2),
    ir.f8e4m3fnuz: np.dtype(ml_dtypes.float8_e4m3fnuz),
    ir.f8e5m2fnuz: np.dtype(ml_dtypes.float8_e5m2fnuz),
    ir.f8e4m3b11fnuz: np.dtype(ml_dtypes.float8_e4m3b11fnuz),
}
_INTEGERS = {bits: np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)}
BOOL = np.dtype(np.bool_)
ADDRESS = np.dtype(np.int64)
NOWHERE, EVERYWHERE = np.zeros((), BOOL), np.ones((), BOOL)
"""Masks of undefined elements that broadcast to any shape."""

NARROW_FLOATS = frozenset(dtype for dtype in _FLOATS.values() if dtype.itemsize < 4)
"""Float dtypes whose arithmetic is done in float32 and rounded once per op."""


def dtype_of(type_: Attribute) -> np.dtype:
    """The NumPy dtype that holds elements of a scalar, tile or vector type."""
    element = ir.element_of(type_)
    if isinstance(element, IntegerType):
        bits = element.width.data
        return BOOL if bits == 1 else _INTEGERS[bits]
    if isinstance(element, ir.PointerType | IndexType):
        return ADDRESS
    if element not in _FLOATS:
        raise InternalError(f"the interpreter holds no values of type {type_}")
    return _FLOATS[element]


def memory_dtype_of(element: Attribute) -> np.dtype:
    """The dtype under which an element lies in memory (i1 takes a byte)."""
    dtype = dtype_of(element)
    return np.dtype(np.uint8) if dtype == BOOL else dtype


def is_narrow(array: Array) -> bool:
    """Whether arithmetic on `array` goes through float32."""
    return array.dtype in NARROW_FLOATS


def widened(array: Array) -> Array:
    """`array` as float32 if it is a narrow float (exact), else itself."""
    return array.astype(np.float32) if array.dtype in NARROW_FLOATS else array


def constant_array(value: Attribute, type_: Attribute) -> Array:
    """The array of a constant of `type_`; a splat takes no memory."""
    dtype = dtype_of(type_)
    shape = ir.shape_of(type_)
    if isinstance(value, DenseIntOrFPElementsAttr):
        elements = np.array(value.get_values()).astype(dtype)
        return np.broadcast_to(elements, shape) if elements.size == 1 else elements.reshape(shape)
    if not isinstance(value, IntegerAttr | FloatAttr):
        raise InternalError(f"the interpreter knows no constant {value}")
    return np.broadcast_to(scalar(value.value.data, dtype), shape)


def scalar(value: int | float, dtype: np.dtype) -> Array:
    """A Python number as a 0-d array, integers wrapped to the width."""
    if dtype.kind == "i":
        bits = dtype.itemsize * 8
        wrapped = int(value) & ((1 << bits) - 1)
        return np.array(wrapped, f"u{dtype.itemsize}").view(dtype)
    return np.array(value).astype(dtype)


def spread(value: Array, shape: tuple[int, ...]) -> Array:
    """A scalar as a read-only tile that takes no memory.

    Ten times as fast as `np.broadcast_to`, which dtypes without a buffer format need.
    """
    value = np.asarray(value)
    if value.dtype.kind == "V" or value.dtype in NARROW_FLOATS:
        return np.broadcast_to(value, shape)
    tile = np.ndarray(shape, value.dtype, value, 0, (0,) * len(shape))
    tile.flags.writeable = False
    return tile


def undefined(shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """An array of values that stand out: NaN for floats, 0xAA bytes for integers."""
    if dtype == BOOL:
        return np.zeros(shape, BOOL)
    if dtype.kind == "i":
        return np.full(shape, 0xAA, np.uint8).repeat(dtype.itemsize).view(dtype).reshape(shape)
    return np.full(shape, np.nan).astype(dtype)
