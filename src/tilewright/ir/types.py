"""Types of the tile IR: pointers, descriptors, and interned tile types.

Attributes of xDSL cache no hash and are not interned (building a `TensorType` costs 7 µs,
comparing two equal ones 1 µs), so every type that passes ask for goes through the caches here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntAttr,
    IntegerType,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

if TYPE_CHECKING:  # a compile neither parses nor prints
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

i1, i8, i16, i32, i64 = (IntegerType(width) for width in (1, 8, 16, 32, 64))
f16, bf16, f32, f64 = Float16Type(), BFloat16Type(), Float32Type(), Float64Type()
f8e4m3fn, f8e5m2 = Float8E4M3FNType(), Float8E5M2Type()
f8e4m3fnuz, f8e5m2fnuz = Float8E4M3FNUZType(), Float8E5M2FNUZType()
f8e4m3b11fnuz = Float8E4M3B11FNUZType()

FLOAT8 = (f8e4m3fn, f8e5m2, f8e4m3fnuz, f8e5m2fnuz, f8e4m3b11fnuz)
FLOATS: dict[Attribute, int] = {
    **dict.fromkeys(FLOAT8, 8),
    f16: 16,
    bf16: 16,
    f32: 32,
    f64: 64,
}
# Floats have no parameters: by class, as hashing and comparing attributes takes longer.
_FLOAT_BITS = {type(element): bits for element, bits in FLOATS.items()}


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """A typed pointer `!tt.ptr<T>` into global memory, or `!tt.ptr<T, space>`."""

    name = "tt.ptr"
    pointee: Attribute
    address_space: IntAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            space = 1
            if parser.parse_optional_punctuation(",") is not None:
                space = parser.parse_integer()
        return (pointee, IntAttr(space))

    def print_parameters(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)
            if self.address_space.data != 1:
                printer.print_string(f", {self.address_space.data}")


@irdl_attr_definition
class DescriptorType(ParametrizedAttribute, TypeAttribute):
    """A tensor descriptor `!tt.tensordesc<tensor<64x64xf16>>` with its block type."""

    name = "tt.tensordesc"
    block: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Read what stands behind the name."""
        with parser.in_angle_brackets():
            return (parser.parse_type(),)

    def print_parameters(self, printer: Printer) -> None:
        """Write what stands behind the name."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.block)


@cache
def pointer_to(pointee: Attribute) -> PointerType:
    """The interned `!tt.ptr<pointee>` into global memory."""
    return PointerType(pointee, IntAttr(1))


@cache
def tile_of(element: Attribute, shape: tuple[int, ...]) -> Attribute:
    """The interned tile type of `shape`; the bare element for shape ()."""
    return TensorType(element, shape) if shape else element


@cache
def vector_of(element: Attribute, lanes: int) -> Attribute:
    """The interned vector type of `lanes` elements; the bare element for one lane."""
    return VectorType(element, (lanes,)) if lanes > 1 else element


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """The shape of a tile or vector type; () for scalars, pointers and descriptors."""
    # Asked 7,000 times by the compile of a product: `isinstance` of abstract classes takes 1 µs.
    if type(type_) is TensorType or type(type_) is VectorType:
        return tuple([extent.data for extent in type_.shape.data])
    return ()


def element_of(type_: Attribute) -> Attribute:
    """The element type of a tile or vector; the type itself for a scalar."""
    if type(type_) is TensorType or type(type_) is VectorType:
        return type_.element_type
    return type_


def with_element(type_: Attribute, element: Attribute) -> Attribute:
    """`type_` with its element type replaced, its shape and kind kept."""
    if isinstance(type_, VectorType):
        return VectorType(element, type_.get_shape())
    return tile_of(element, shape_of(type_))


def is_float(type_: Attribute) -> bool:
    """Whether the element type is a floating-point type."""
    return type(element_of(type_)) in _FLOAT_BITS


def is_integer(type_: Attribute) -> bool:
    """Whether the element type is an integer type (any width)."""
    return type(element_of(type_)) is IntegerType


def is_pointer(type_: Attribute) -> bool:
    """Whether the element type is a pointer."""
    return type(element_of(type_)) is PointerType


def width_bits(type_: Attribute) -> int:
    """Width of the element type in bits; pointers have 64."""
    element = element_of(type_)
    if type(element) is IntegerType:
        return element.width.data
    if type(element) is PointerType:
        return 64
    return _FLOAT_BITS[type(element)]


def storage_bytes(type_: Attribute) -> int:
    """Bytes that one element takes in memory (i1 takes one byte)."""
    return max(1, width_bits(type_) // 8)
