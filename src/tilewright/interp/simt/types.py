"""LLVM types and the NumPy dtypes that carry their values, one element per thread."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import ml_dtypes
import numpy as np

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

GENERIC, GLOBAL, SHARED, CONSTANT, LOCAL, PARAM = 0, 1, 3, 4, 5, 101
# The driver keeps the first KiB of a cta's shared memory on this machine, so a program's own
# begins there: a zero address is never right.
SHARED_BASE = 1024
# From the shared memory of a cta to that of the next one of its cluster. Source: PTX ISA 8.8,
# "Matrix Descriptor Format": 18 bits of an address, so a descriptor says the same in each cta.
CTA_WINDOW = 1 << 18
_FLOAT_DTYPES: dict[str, np.dtype] = {
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}


@dataclass(frozen=True)
class IntType:
    """An integer of `bits` bits; values are unsigned, i1 is a NumPy boolean."""

    bits: int


@dataclass(frozen=True)
class FloatType:
    """One of half, bfloat, float and double."""

    name: str


@dataclass(frozen=True)
class PointerType:
    """A pointer into an address space; values are 64-bit addresses."""

    space: int = GENERIC


@dataclass(frozen=True)
class VectorType:
    """A vector; values are arrays of shape [count, threads]."""

    count: int
    element: LlvmType


@dataclass(frozen=True)
class ArrayType:
    """An array; values are tuples."""

    count: int
    element: LlvmType


@dataclass(frozen=True)
class StructType:
    """A struct; values are tuples."""

    fields: tuple[LlvmType, ...]


@dataclass(frozen=True)
class VoidType:
    """The type of what has no value."""


LlvmType: TypeAlias = (
    IntType | FloatType | PointerType | VectorType | ArrayType | StructType | VoidType
)
VOID = VoidType()
I1, I8, I16, I32, I64 = (IntType(bits) for bits in (1, 8, 16, 32, 64))
HALF, BFLOAT, FLOAT, DOUBLE = (FloatType(name) for name in _FLOAT_DTYPES)


@cache
def dtype_of(type_: LlvmType) -> np.dtype:
    """The dtype that carries a scalar, or the elements of a vector."""
    if isinstance(type_, VectorType):
        return dtype_of(type_.element)
    if isinstance(type_, FloatType):
        return _FLOAT_DTYPES[type_.name]
    if isinstance(type_, PointerType):
        return np.dtype(np.uint64)
    if isinstance(type_, IntType):
        return _int_dtype(type_.bits)
    raise InternalError(f"{type_} is carried by no single array")


def _int_dtype(bits: int) -> np.dtype:
    if bits == 1:
        return np.dtype(np.bool_)
    for width in (8, 16, 32, 64):
        if bits <= width:
            return np.dtype(f"u{width // 8}")
    return np.dtype(object)


@cache
def signed_dtype(dtype: np.dtype) -> np.dtype:
    """The signed dtype of the same width as an unsigned one."""
    return np.dtype(f"i{dtype.itemsize}")


def element_type(type_: LlvmType) -> LlvmType:
    """The element type of a vector, or the type itself."""
    return type_.element if isinstance(type_, VectorType) else type_


def width_bits(type_: LlvmType) -> int:
    """The number of bits of a scalar or vector."""
    if isinstance(type_, VectorType):
        return type_.count * width_bits(type_.element)
    if isinstance(type_, IntType):
        return type_.bits
    return dtype_of(type_).itemsize * 8


@cache
def alignment_bytes(type_: LlvmType) -> int:
    """The alignment that a type has when nothing is said."""
    if isinstance(type_, StructType):
        return max((alignment_bytes(field) for field in type_.fields), default=1)
    if isinstance(type_, ArrayType):
        return alignment_bytes(type_.element)
    if isinstance(type_, VectorType):
        return 1 << (size_bytes(type_) - 1).bit_length()
    return size_bytes(type_)


@cache
def size_bytes(type_: LlvmType) -> int:
    """The bytes that a value takes in memory, padding between elements included."""
    if isinstance(type_, StructType):
        end = 0
        for index, field in enumerate(type_.fields):
            end = field_offset_bytes(type_, index) + size_bytes(field)
        return -(-end // alignment_bytes(type_)) * alignment_bytes(type_)
    if isinstance(type_, ArrayType | VectorType):
        return type_.count * size_bytes(type_.element)
    if isinstance(type_, IntType):
        return 1 << (-(-type_.bits // 8) - 1).bit_length()
    return dtype_of(type_).itemsize


@cache
def field_offset_bytes(type_: StructType, index: int) -> int:
    """Where field `index` of a struct begins."""
    end = 0
    if index:
        before = type_.fields[index - 1]
        end = field_offset_bytes(type_, index - 1) + size_bytes(before)
    align = alignment_bytes(type_.fields[index])
    return -(-end // align) * align
