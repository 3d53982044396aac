"""The memory of a simulated launch: every access is checked before it happens."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from tilewright.interp.simt.arithmetic import LOCAL_WINDOW, SHARED_WINDOW
from tilewright.interp.simt.faults import Fault
from tilewright.ir.op import Array
from tilewright.support.errors import (
    MisalignedAccess,
    OutOfBoundsAccess,
    ReadOnlyWrite,
    UninitializedRead,
)

# Above every address of a process (47 bits), so that a real one is told from one of ours.
_FIRST = 1 << 52
_SPACING_LOG2 = 40
_PADDING = 64


class Region:
    """A stretch of memory: `size` bytes at virtual address `base`.

    The bytes are kept `lead` bytes into `storage`, so that an aligned address is an aligned
    index. `initialized` holds one flag per byte; None means that all are.
    """

    def __init__(self, name: str, base: int, size: int, *, is_initialized: bool) -> None:
        self.name = name
        self.base = base
        self.size = size
        self.lead = base % _PADDING
        length = -(-(self.lead + size) // _PADDING) * _PADDING + _PADDING
        self.storage = np.zeros(length, np.uint8)
        self.initialized = None if is_initialized else np.zeros(length, np.bool_)
        self.is_writable = True

    def bytes(self) -> Array:
        """The bytes of the region itself."""
        return self.storage[self.lead : self.lead + self.size]

    def indices(self, addresses: Array, num_bytes: int) -> Array:
        """The places in `storage` of accesses of `num_bytes`, all inside the region."""
        offsets = addresses.view(np.int64) - self.base
        low, high = int(offsets.min()), int(offsets.max())
        if low < 0 or high + num_bytes > self.size:
            offset = low if low < 0 else high
            lane = int(np.argmin(offsets) if low < 0 else np.argmax(offsets))
            raise Fault(
                OutOfBoundsAccess,
                f"{num_bytes} bytes at offset {offset} of {self.name}, which has {self.size} "
                f"bytes (active thread {lane} of the access)",
            )
        return offsets + self.lead

    def gather(self, addresses: Array, num_bytes: int, align: int) -> Array:
        """The bytes at the addresses, shape [accesses, num_bytes]."""
        indices = self.indices(addresses, num_bytes)
        if self.initialized is not None:
            written = _rows(self.initialized.view(np.uint8), indices, num_bytes, align)
            if not written.all():
                place = int(indices[int(np.argmin(written.all(1)))]) - self.lead
                raise Fault(
                    UninitializedRead,
                    f"{num_bytes} bytes at offset {place} of {self.name} are read before they "
                    "are written",
                )
        return _rows(self.storage, indices, num_bytes, align)

    def peek(self, addresses: Array, num_bytes: int, align: int) -> Array:
        """The bytes at the addresses, whether they were written or not."""
        return _rows(self.storage, self.indices(addresses, num_bytes), num_bytes, align)

    def scatter(self, addresses: Array, data: Array, align: int) -> None:
        """Write rows of bytes at the addresses; of equal addresses the last one wins."""
        if not self.is_writable:
            raise Fault(ReadOnlyWrite, f"a store into {self.name}, which may not be written")
        num_bytes = data.shape[1]
        indices = self.indices(addresses, num_bytes)
        _write_rows(self.storage, indices, data, align)
        if self.initialized is not None:
            flags = np.ones((len(indices), num_bytes), np.uint8)
            _write_rows(self.initialized.view(np.uint8), indices, flags, align)


def _unit(num_bytes: int, align: int) -> int:
    """The width of the elements that an access is made of."""
    unit = min(align, 8)
    while num_bytes % unit:
        unit //= 2
    return unit


def _rows(storage: Array, indices: Array, num_bytes: int, align: int) -> Array:
    unit = _unit(num_bytes, align)
    view = storage.view(f"u{unit}")
    if unit == num_bytes:
        return view[indices // unit][:, None].view(np.uint8)
    places = (indices // unit)[:, None] + np.arange(num_bytes // unit)
    return view[places].view(np.uint8)


def _write_rows(storage: Array, indices: Array, data: Array, align: int) -> None:
    unit = _unit(data.shape[1], align)
    view = storage.view(f"u{unit}")
    elements = np.ascontiguousarray(data).view(f"u{unit}")
    if elements.shape[1] == 1:
        view[indices // unit] = elements[:, 0]
        return
    view[(indices // unit)[:, None] + np.arange(elements.shape[1])] = elements


def check_alignment(addresses: Array, align: int) -> None:
    """Raise when an address is no multiple of `align`."""
    if align > 1 and (addresses & np.uint64(align - 1)).any():
        wrong = int(addresses[int(np.argmax((addresses & np.uint64(align - 1)) != 0))])
        raise Fault(MisalignedAccess, f"address {wrong:#x} is no multiple of {align}")


class GlobalMemory:
    """The arrays of the caller and the constants of the module, 2^40 bytes apart.

    The bytes of the arrays are copied in when they are mapped and copied back by `flush`.
    Addresses agree with the real ones modulo 16. Pointers that a kernel reads from memory are real
    addresses; `translate` has the virtual ones.
    """

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self._mapped: list[tuple[Region, int]] = []

    def add(self, name: str, size: int, low_bits: int = 0, *, initialized: bool = True) -> Region:
        """A new region of `size` bytes."""
        base = _FIRST + (len(self.regions) << _SPACING_LOG2) + low_bits
        region = Region(name, base, size, is_initialized=initialized)
        self.regions.append(region)
        return region

    def map_arrays(self, arrays: Sequence[tuple[str, Array]]) -> list[int]:
        """Map arrays and return their addresses; arrays that share bytes share a region."""
        bounds = [np.lib.array_utils.byte_bounds(array) for _, array in arrays]
        order = sorted(range(len(arrays)), key=lambda i: bounds[i])
        pointers = [0] * len(arrays)
        groups: list[list[int]] = []
        end = -1
        for index in order:
            if groups and bounds[index][0] < end:
                groups[-1].append(index)
            else:
                groups.append([index])
            end = max(end, bounds[index][1])
        for group in groups:
            self._map_group([(*arrays[i], bounds[i]) for i in group], group, pointers)
        return pointers

    def _map_group(
        self,
        members: list[tuple[str, Array, tuple[int, int]]],
        group: list[int],
        pointers: list[int],
    ) -> None:
        low = min(bounds[0] for _, _, bounds in members)
        high = max(bounds[1] for _, _, bounds in members)
        size = high - low if any(array.size for _, array, _ in members) else 0
        region = self.add(" and ".join(name for name, _, _ in members), size, low % 16)
        region.bytes()[:] = _real_bytes(low, size)
        region.is_writable = any(array.flags.writeable for _, array, _ in members)
        self._mapped.append((region, low))
        for index, (_, array, _) in zip(group, members, strict=True):
            pointers[index] = region.base + array.__array_interface__["data"][0] - low

    def flush(self) -> None:
        """Copy what the program wrote into the caller's arrays."""
        for region, real in self._mapped:
            if region.is_writable:
                _real_bytes(real, region.size)[:] = region.bytes()

    def translate(self, addresses: Array) -> Array:
        """Real addresses in mapped arrays as virtual ones; others stay as they are."""
        if (addresses >= np.uint64(_FIRST)).all():
            return addresses
        found = addresses.copy()
        for region, real in self._mapped:
            inside = (addresses >= real) & (addresses < real + max(region.size, 1))
            found[inside] = addresses[inside] - np.uint64(real) + np.uint64(region.base)
        return found

    def find(self, address: int) -> Region:
        """The region that an address points into or near."""
        index = address - _FIRST + (1 << _SPACING_LOG2 - 1) >> _SPACING_LOG2
        if 0 <= index < len(self.regions):
            return self.regions[index]
        if address < 1 << 16:
            raise Fault(OutOfBoundsAccess, "a null pointer lies in no argument")
        raise Fault(
            OutOfBoundsAccess,
            f"address {address:#x} lies in no argument",
            hint="pass the arrays that pointers in memory lead to as `reachable`",
        )

    def gather(self, addresses: Array, num_bytes: int, align: int) -> Array:
        """The bytes at global addresses, shape [accesses, num_bytes]."""
        check_alignment(addresses, align)
        region = self.find(int(addresses[0]))
        if self._is_inside(region, addresses):
            return region.gather(addresses, num_bytes, align)
        result = np.empty((len(addresses), num_bytes), np.uint8)
        for index, part in self._parts(addresses):
            result[part] = self.regions[index].gather(addresses[part], num_bytes, align)
        return result

    def scatter(self, addresses: Array, data: Array, align: int) -> None:
        """Write rows of bytes at global addresses."""
        check_alignment(addresses, align)
        region = self.find(int(addresses[0]))
        if self._is_inside(region, addresses):
            region.scatter(addresses, data, align)
            return
        for index, part in self._parts(addresses):
            self.regions[index].scatter(addresses[part], data[part], align)

    @staticmethod
    def _is_inside(region: Region, addresses: Array) -> bool:
        offsets = addresses.view(np.int64) - region.base
        half = 1 << _SPACING_LOG2 - 1
        return bool(-half <= offsets.min() and offsets.max() < half)

    def by_region(self, addresses: Array) -> list[tuple[Region, Array]]:
        """The accesses of each region, as their numbers."""
        region = self.find(int(addresses[0]))
        if self._is_inside(region, addresses):
            return [(region, np.arange(len(addresses)))]
        return [(self.regions[index], part) for index, part in self._parts(addresses)]

    def _parts(self, addresses: Array) -> list[tuple[int, Array]]:
        """The accesses of each region."""
        half = np.uint64(1 << _SPACING_LOG2 - 1)
        beyond = (addresses + half).view(np.int64) - _FIRST
        owners = beyond >> _SPACING_LOG2
        for address in addresses[(owners < 0) | (owners >= len(self.regions))]:
            self.find(int(address))
        return [(int(i), np.flatnonzero(owners == i)) for i in np.unique(owners)]


def _real_bytes(address: int, size: int) -> Array:
    """The caller's bytes at a real address."""
    if size == 0:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_ubyte * size).from_address(address))


def space_of(address: int) -> int:
    """The address space that a generic address points into: 1, 3 or 5."""
    if address >= LOCAL_WINDOW:
        return 5
    return 3 if address >= SHARED_WINDOW else 1
