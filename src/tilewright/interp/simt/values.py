"""Values of a simulated program: one array element per thread, tuples for aggregates."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.in_flight import InFlight, merge_in_flight
from tilewright.interp.simt.types import LlvmType
from tilewright.ir.op import Array

Value: TypeAlias = "Array | InFlight | tuple[Value, ...]"


def zero(type_: LlvmType, threads: int) -> Value:
    """The zero of a type in every thread."""
    if isinstance(type_, t.StructType):
        return tuple(zero(field, threads) for field in type_.fields)
    if isinstance(type_, t.ArrayType):
        return (zero(type_.element, threads),) * type_.count
    shape = (type_.count, threads) if isinstance(type_, t.VectorType) else (threads,)
    return np.zeros(shape, t.dtype_of(type_))


def merge(mask: Array, new: Value, old: Value | None) -> Value:
    """`new` in the threads of `mask`, `old` in the others."""
    if old is None or new is old:
        return new
    if isinstance(new, tuple):
        assert isinstance(old, tuple)
        return tuple(merge(mask, n, o) for n, o in zip(new, old, strict=True))
    assert not isinstance(old, tuple)
    if isinstance(new, InFlight) or isinstance(old, InFlight):
        return merge_in_flight(mask, new, old)
    return np.where(mask, new, old)


def to_bytes(value: Value, type_: LlvmType) -> Array:
    """The bytes of a value as it lies in memory, shape [threads, bytes]."""
    if isinstance(type_, t.StructType | t.ArrayType):
        return _aggregate_bytes(value, type_)
    assert isinstance(value, np.ndarray), "a register of an unfinished product reaches memory"
    if value.dtype == np.bool_:
        value = value.astype(np.uint8)
    elements = value[None] if value.ndim == 1 else value
    lanes = np.ascontiguousarray(elements.T)
    size = t.size_bytes(t.element_type(type_))
    if lanes.dtype.kind == "O":
        flat = b"".join(int(x).to_bytes(size, "little") for x in lanes.ravel())
        return np.frombuffer(flat, np.uint8).reshape(lanes.shape[0], -1)
    return lanes.view(np.uint8)


def _aggregate_bytes(value: Value, type_: t.StructType | t.ArrayType) -> Array:
    assert isinstance(value, tuple)
    members = [to_bytes(v, member) for v, member in zip(value, _members(type_), strict=True)]
    result = np.zeros((members[0].shape[0], t.size_bytes(type_)), np.uint8)
    for offset, member in zip(_offsets(type_), members, strict=True):
        result[:, offset : offset + member.shape[1]] = member
    return result


def _members(type_: t.StructType | t.ArrayType) -> tuple[LlvmType, ...]:
    return type_.fields if isinstance(type_, t.StructType) else (type_.element,) * type_.count


def _offsets(type_: t.StructType | t.ArrayType) -> tuple[int, ...]:
    if isinstance(type_, t.StructType):
        return tuple(t.field_offset_bytes(type_, i) for i in range(len(type_.fields)))
    return tuple(i * t.size_bytes(type_.element) for i in range(type_.count))


def from_bytes(data: Array, type_: LlvmType) -> Value:
    """The value whose memory is `data`, shape [threads, bytes], contiguous."""
    if isinstance(type_, t.StructType | t.ArrayType):
        pairs = zip(_offsets(type_), _members(type_), strict=True)
        return tuple(
            from_bytes(np.ascontiguousarray(data[:, o : o + t.size_bytes(m)]), m) for o, m in pairs
        )
    dtype = t.dtype_of(type_)
    if dtype.kind == "O":
        lanes = np.array([[int.from_bytes(row.tobytes(), "little")] for row in data], object)
    elif dtype == np.bool_:
        lanes = (data & 1).view(np.bool_)
    else:
        lanes = data.view(dtype)
    return lanes.T if isinstance(type_, t.VectorType) else lanes[:, 0]


def bit_cast(value: Array, source: LlvmType, target: LlvmType) -> Array:
    """The same bits as another type of the same width."""
    scalars = not isinstance(source, t.VectorType) and not isinstance(target, t.VectorType)
    if scalars and value.dtype != np.bool_:
        return value.view(t.dtype_of(target))
    if t.width_bits(t.element_type(source)) == t.width_bits(t.element_type(target)) == 1:
        return value
    if t.width_bits(t.element_type(source)) == 1 or t.width_bits(t.element_type(target)) == 1:
        return _cast_bits(value, source, target)
    result = from_bytes(to_bytes(value, source), target)
    assert isinstance(result, np.ndarray)
    return result


def _cast_bits(value: Array, source: LlvmType, target: LlvmType) -> Array:
    """Vectors of i1 are packed, their first element lowest."""
    if t.width_bits(t.element_type(source)) == 1:
        elements = value if value.ndim == 2 else value[None]
        weights = np.left_shift(np.uint64(1), np.arange(len(elements), dtype=np.uint64))
        return (elements * weights[:, None]).sum(0).astype(t.dtype_of(target))
    assert isinstance(target, t.VectorType)
    shifts = np.arange(target.count, dtype=value.dtype)
    return ((value[None] >> shifts[:, None]) & 1).astype(np.bool_)
