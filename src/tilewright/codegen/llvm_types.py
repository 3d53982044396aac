"""LLVM spellings of IR types and constants."""

from __future__ import annotations

import struct
from functools import cache

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, TensorType, VectorType
from xdsl.ir import Attribute

from tilewright.ir import types as ir
from tilewright.ir.narrow_floats import DTYPES, nearest
from tilewright.support.errors import InternalError

# Narrow floats are carried as their bits and computed with in float32: where the machine has no
# 16-bit arithmetic LLVM takes vectors of half and bfloat apart, and rounds the lanes back by
# library calls that no library has.
_FLOATS: dict[Attribute, str] = {
    ir.f16: "i16",
    ir.bf16: "i16",
    ir.f32: "float",
    ir.f64: "double",
}
LLVM_FLOATS: dict[Attribute, str] = {**_FLOATS, ir.f16: "half", ir.bf16: "bfloat"}
FLOAT_KEYS: dict[Attribute, str] = {
    ir.f8e4m3fn: "f8E4M3FN",
    ir.f8e5m2: "f8E5M2",
    ir.f8e4m3fnuz: "f8E4M3FNUZ",
    ir.f8e5m2fnuz: "f8E5M2FNUZ",
    ir.f8e4m3b11fnuz: "f8E4M3B11FNUZ",
    ir.f16: "f16",
    ir.bf16: "bf16",
    ir.f32: "f32",
    ir.f64: "f64",
}


@cache
def llvm_type(type_: Attribute) -> str:
    """The LLVM type of a scalar, pointer or vector; floats under 32 bits are integers."""
    if isinstance(type_, VectorType):
        return f"<{type_.get_shape()[0]} x {llvm_type(type_.element_type)}>"
    if isinstance(type_, IntegerType):
        return f"i{type_.width.data}"
    if isinstance(type_, ir.PointerType):
        return "ptr"
    if isinstance(type_, IndexType):
        return "i64"
    if type_ in _FLOATS:
        return _FLOATS[type_]
    if type_ in ir.FLOAT8:
        return "i8"
    kind = "tile" if isinstance(type_, TensorType) else "type"
    raise InternalError(f"{kind} {type_} has no LLVM type")


def lanes_of(type_: Attribute) -> int | None:
    """The number of lanes of a vector type, None for a scalar."""
    shape = ir.shape_of(type_)
    return shape[0] if shape else None


def scalar_constant(value: int | float, element: Attribute) -> str:
    """The LLVM spelling of one constant."""
    if isinstance(element, IntegerType):
        if element.width.data == 1:
            return "true" if value else "false"
        return str(int(value))
    if isinstance(element, IndexType):
        return str(int(value))
    if isinstance(element, ir.PointerType):
        return "null" if not value else f"inttoptr (i64 {int(value)} to ptr)"
    return _float_constant(float(value), element)


def _float_constant(value: float, element: Attribute) -> str:
    if element == ir.f64:
        return _hex_double(value)
    if element == ir.f32:
        with np.errstate(over="ignore"):
            return _hex_double(float(np.float32(value)))
    width = ir.width_bits(element)
    with np.errstate(over="ignore"):
        rounded = nearest(np.asarray(value, np.float64), DTYPES[element])
    return str(int(rounded.view(f"i{width // 8}")))


def _hex_double(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def constant_text(value: int | float, type_: Attribute) -> str:
    """The LLVM spelling of a constant of a scalar or vector type (every lane equal)."""
    element = ir.element_of(type_)
    text = scalar_constant(value, element)
    if lanes_of(type_) is None:
        return text
    if text in ("0", "false", "null", "0x0000000000000000"):
        return "zeroinitializer"
    return f"splat ({llvm_type(element)} {text})"
