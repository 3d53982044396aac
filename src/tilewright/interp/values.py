"""How the interpreter holds values: element types as NumPy dtypes, constants, undefined bits.

Every value is a NumPy array or NumPy scalar: integers signed, i1 as bool, bf16 and fp8 as
`ir.narrow_floats` says, pointers as int64 addresses. Block pointers and descriptors are records
of their own (interp/blocks.py).
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute

from tilewright.ir import narrow_floats
from tilewright.ir import types as ir
from tilewright.ir.narrow_floats import NARROW_FLOATS, nearest
from tilewright.ir.op import Array
from tilewright.support.errors import InternalError

_FLOATS: dict[Attribute, np.dtype] = {
    **narrow_floats.DTYPES,
    ir.f32: np.dtype(np.float32),
    ir.f64: np.dtype(np.float64),
}
_INTEGERS = {bits: np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)}
BOOL = np.dtype(np.bool_)
ADDRESS = np.dtype(np.int64)
NOWHERE, EVERYWHERE = np.zeros((), BOOL), np.ones((), BOOL)
"""Masks of undefined elements that broadcast to any shape."""


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


def constant_array(value: Attribute, type_: Attribute) -> Array:
    """The array of a constant of `type_`; a splat takes no memory."""
    dtype = dtype_of(type_)
    shape = ir.shape_of(type_)
    if isinstance(value, DenseIntOrFPElementsAttr):
        elements = cast_number(np.array(value.get_values()), dtype)
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
    return cast_number(np.array(value), dtype)


def cast_number(numbers: Array, dtype: np.dtype) -> Array:
    """Numbers of Python as elements of `dtype`; what fp8 cannot hold saturates."""
    with np.errstate(over="ignore"):  # beyond its type a number is infinite, as in a launch
        if dtype in NARROW_FLOATS:
            return nearest(numbers.astype(np.float64), dtype)
        return numbers.astype(dtype)


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
    return cast_number(np.full(shape, np.nan), dtype)
