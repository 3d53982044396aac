"""Byte-accurate memory: every access is checked before it happens.

Each argument lies at a virtual address of its own, 2^40 bytes from the next, so an offset that
overflows 32 bits lands in no other argument. Addresses agree with the real ones modulo 4096.
Arrays that share bytes share one allocation. Pointers that a kernel reads from memory as
integers are real addresses; `translate` maps them to virtual ones.

An *access* is a batch of element addresses of one size; the checks are vectorised and look at
single lanes only to report a fault.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from tilewright.interp.foreign import mapping_of
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass

_FIRST = 1 << 56
_NULL_PAGE = 1 << 16
_SPACING_LOG2 = 40
_HALF_SPACING = 1 << (_SPACING_LOG2 - 1)
_GUARD = 64


@dataclass(frozen=True)
class BufferArgument:
    """Memory of the caller that is no NumPy array: `num_bytes` at real `address`.

    `owner` keeps the memory alive.
    """

    address: int
    num_bytes: int
    dtype: np.dtype
    writable: bool = True
    owner: object = None


@dataclass(frozen=True)
class Extent:
    """One argument inside an allocation: bytes [start, stop), its pointer at `origin`."""

    name: str
    start: int
    stop: int
    origin: int
    dtype: np.dtype
    writable: bool


@dataclass
class Allocation:
    """A stretch of bytes at virtual address `base`, real address `real`.

    `initialized` and `inside` hold one flag per byte; None means all. `inside` excludes the
    gaps of strided views. `private` memory belongs to one program, `foreign` memory is that of
    the process outside of the arguments.
    """

    base: int
    real: int
    size: int
    storage: Array
    extents: list[Extent] = field(default_factory=list)
    initialized: Array | None = None
    inside: Array | None = None
    writable: bool = True
    private: bool = False
    foreign: bool = False
    lead: int = 0

    def view(self, dtype: np.dtype) -> Array:
        """The bytes as elements of `dtype`, for aligned accesses; index 0 is `base - lead`."""
        return self.storage.view(dtype)

    def extent_at(self, offset: int) -> Extent:
        """The argument that byte `offset` belongs to, or the nearest one."""
        return min(self.extents, key=lambda e: max(e.start - offset, offset - e.stop + 1, 0))


def _raw_bytes(address: int, num_bytes: int) -> tuple[Array, int]:
    """The bytes at a real address, and how many were added in front.

    The view is widened to multiples of 64 so that elements of any size can be indexed; a
    64-byte line never crosses a page, and the bytes that were added are never accessed.
    """
    lead = address % _GUARD
    length = -(-(lead + num_bytes) // _GUARD) * _GUARD
    raw = (ctypes.c_ubyte * max(length, _GUARD)).from_address(address - lead)
    return np.ctypeslib.as_array(raw), lead


class Memory:
    """The memory that a kernel may touch."""

    def __init__(self, *, reaches_foreign: bool = False) -> None:
        self._reaches_foreign = reaches_foreign
        self.allocations: list[Allocation | None] = []
        self.version = 0
        self._owners: list[object] = []

    def map_buffers(
        self, buffers: Sequence[tuple[str, Array | BufferArgument]], uninitialized: Sequence[str]
    ) -> dict[str, int]:
        """Map named arguments and return their virtual addresses.

        Arrays that overlap share an allocation. Those named in `uninitialized` may not be read
        before they are written.
        """
        described = [_describe(name, buffer) for name, buffer in buffers]
        self._owners.extend(buffer for _, buffer in buffers)
        pointers: dict[str, int] = {}
        for group in _overlapping(described):
            low = min(d.low for d in group)
            high = max(d.high for d in group)
            allocation = self._place(low, high - low)
            for d in group:
                _add_extent(allocation, d, d.name in uninitialized)
                pointers[d.name] = allocation.base + d.pointer - low
        return pointers

    def _place(self, real: int, size: int) -> Allocation:
        storage, lead = _raw_bytes(real, size)
        index = len(self.allocations)
        base = _FIRST + (index << _SPACING_LOG2) + real % 4096
        allocation = Allocation(base, real, size, storage, lead=lead)
        self.allocations.append(allocation)
        return allocation

    def allocate(self, name: str, num_bytes: int, dtype: np.dtype) -> Allocation:
        """A private buffer, 64-byte aligned, whose bytes are uninitialised."""
        padded = np.full(-(-num_bytes // _GUARD) * _GUARD + _GUARD, 0xAA, np.uint8)
        index = len(self.allocations)
        base = _FIRST + (index << _SPACING_LOG2)
        allocation = Allocation(base, 0, num_bytes, padded, private=True)
        allocation.extents.append(Extent(name, 0, num_bytes, 0, dtype, True))
        allocation.initialized = np.zeros(num_bytes, np.bool_)
        self.allocations.append(allocation)
        return allocation

    def release(self, allocation: Allocation) -> None:
        """Give a private buffer back; its addresses stay invalid."""
        self.allocations[(allocation.base - _FIRST) >> _SPACING_LOG2] = None

    def find(self, address: int) -> Allocation | None:
        """The allocation whose 2^40 bytes of address space hold `address`."""
        index = (address - _FIRST + _HALF_SPACING) >> _SPACING_LOG2
        if 0 <= index < len(self.allocations):
            return self.allocations[index]
        return None

    def translate(self, addresses: Array) -> Array:
        """Real addresses in known memory as virtual ones; others stay as they are.

        With `reaches_foreign`, memory of the process that is no argument becomes known when
        one of its addresses is seen.
        """
        flat = np.atleast_1d(addresses)
        result = flat.copy()
        pending = (flat >= _NULL_PAGE) & (flat < _FIRST)
        for allocation in self.allocations:
            if allocation is not None and not allocation.private:
                pending &= ~_move(allocation, flat, result)
        while self._reaches_foreign and pending.any():
            found = self._map_foreign(int(flat[np.argmax(pending)]))
            if found is None:
                break
            pending &= ~_move(found, flat, result)
        return result.reshape(np.shape(addresses))

    def _map_foreign(self, address: int) -> Allocation | None:
        mapping = mapping_of(address)
        if mapping is None:
            return None
        size = mapping.high - mapping.low
        allocation = self._place(mapping.low, size)
        name = "memory outside of the arguments"
        allocation.extents.append(Extent(name, 0, size, 0, np.dtype(np.uint8), mapping.writable))
        allocation.writable = mapping.writable
        allocation.foreign = True
        return allocation


def _move(allocation: Allocation, addresses: Array, result: Array) -> Array:
    """Translate the addresses that lie in one allocation, and say which they are."""
    offsets = addresses - allocation.real
    inside = (offsets >= 0) & (offsets < max(allocation.size, 1))
    result[inside] = offsets[inside] + allocation.base
    return inside


@dataclass(frozen=True)
class _Described:
    """What is known of one buffer before it is placed."""

    name: str
    buffer: Array | BufferArgument
    low: int
    high: int
    pointer: int
    dtype: np.dtype
    writable: bool


def _describe(name: str, buffer: Array | BufferArgument) -> _Described:
    if isinstance(buffer, BufferArgument):
        low, high = buffer.address, buffer.address + buffer.num_bytes
        return _Described(name, buffer, low, high, low, buffer.dtype, buffer.writable)
    low, high = np.lib.array_utils.byte_bounds(buffer)
    if buffer.size == 0:
        high = low
    pointer = buffer.__array_interface__["data"][0]
    return _Described(name, buffer, low, high, pointer, buffer.dtype, buffer.flags.writeable)


def _overlapping(described: Sequence[_Described]) -> list[list[_Described]]:
    """Groups of buffers that share bytes, in address order."""
    groups: list[list[_Described]] = []
    end = -1
    for d in sorted(described, key=lambda d: (d.low, d.high)):
        if groups and d.low < end:
            groups[-1].append(d)
        else:
            groups.append([d])
        end = max(end, d.high)
    return groups


def _add_extent(allocation: Allocation, d: _Described, uninitialized: bool) -> None:
    start, stop = d.low - allocation.real, d.high - allocation.real
    origin = d.pointer - allocation.real
    allocation.extents.append(Extent(d.name, start, stop, origin, d.dtype, d.writable))
    # Memory is writable when any of the arrays that share it is.
    allocation.writable = any(extent.writable for extent in allocation.extents)
    if uninitialized:
        if allocation.initialized is None:
            allocation.initialized = np.ones(allocation.size, np.bool_)
        allocation.initialized[start:stop] = False
    if isinstance(d.buffer, BufferArgument):
        has_gaps = False
    else:
        has_gaps = d.buffer.nbytes < stop - start
    if not has_gaps and allocation.inside is None:
        return
    if allocation.inside is None:
        allocation.inside = np.zeros(allocation.size, np.bool_)
        for extent in allocation.extents[:-1]:
            allocation.inside[extent.start : extent.stop] = True
    allocation.inside[_element_bytes(d, start, stop, has_gaps)] = True


def _element_bytes(d: _Described, start: int, stop: int, has_gaps: bool) -> Array | slice:
    """Which bytes of an allocation the elements of an array take."""
    if not has_gaps or isinstance(d.buffer, BufferArgument):
        return slice(start, stop)
    offsets = np.array([d.pointer - d.low + start])
    for extent, stride in zip(d.buffer.shape, d.buffer.strides, strict=True):
        offsets = offsets[..., None] + np.arange(extent) * stride
    return (offsets[..., None] + np.arange(d.dtype.itemsize)).ravel()
