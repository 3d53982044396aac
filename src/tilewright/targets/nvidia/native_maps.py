"""Tensor maps on the native path: those of earlier launches, found by the slots they depend on."""

from __future__ import annotations

import ctypes

from tilewright.support.forking import ThreadLock
from tilewright.targets.nvidia.launch_maps_ir import (
    HELD,
    MAP_BYTES,
    MAP_ENTRY_KEYS,
    NUM_GRID_WORDS,
    NUM_MAP_ENTRIES,
)
from tilewright.targets.nvidia.launcher import MapRecord
from tilewright.targets.nvidia.map_cache import TensorMaps

# Source: cuda.h, CUtensorMap: its address is a multiple of 64.
_ALIGNMENT_BYTES = 64


class NativeMaps:
    """The maps of one kernel's launches as native code reads them: a table without chains.

    Two launches whose keys fall on one entry take it from each other; that costs a call into
    Python and is right all the same, since entries are compared and copied under the GIL.
    """

    def __init__(self, maps: TensorMaps, num_slots: int) -> None:
        self._maps = maps
        self._num_slots = num_slots
        self._lock = ThreadLock()
        self._keys = maps.key_slots()
        num_maps = len(maps.recipes)
        self._maps_at = _rounded_up(MAP_ENTRY_KEYS + 8 * len(self._keys))
        entry_bytes = self._maps_at + num_maps * MAP_BYTES
        size_bytes = NUM_MAP_ENTRIES * entry_bytes
        self._buffer = ctypes.create_string_buffer(size_bytes + _ALIGNMENT_BYTES)
        self._indices = (ctypes.c_int64 * max(len(self._keys), 1))(*self._keys)
        self._maker = self._make
        self.record = MapRecord(
            num_maps=num_maps,
            num_keys=len(self._keys),
            key_slots=ctypes.addressof(self._indices),
            entries=_rounded_up(ctypes.addressof(self._buffer)),
            entry_bytes=entry_bytes,
            maps_at=self._maps_at,
            maker=id(self._maker),
        )

    def _make(self, slots_address: int, entry_address: int) -> None:
        """Fill an entry for the slots of a launch. Raises: as `TensorMaps.of_slots`."""
        slots = list((ctypes.c_uint64 * self._num_slots).from_address(slots_address))
        before = slots_address - 8 * NUM_GRID_WORDS
        z, y, x = list((ctypes.c_uint64 * NUM_GRID_WORDS).from_address(before))[-3:]
        is_fit = self._maps.conditions.hold(slots, (x, y, z))
        data = b"".join(self._maps.of_slots(slots)) if is_fit else b""
        numbers = {**dict(enumerate(slots)), -1: x, -2: y, -3: z}
        held = ctypes.c_int64.from_address(entry_address)
        keys = (ctypes.c_uint64 * len(self._keys)).from_address(entry_address + MAP_ENTRY_KEYS)
        state = HELD["maps" if is_fit else "unfit"]
        target = (ctypes.c_char * len(data)).from_address(entry_address + self._maps_at)
        # Another thread may look at the entry between any two of these lines.
        with self._lock:
            held.value = 0
            keys[:] = [numbers[index] for index in self._keys]
            target[:] = data
            held.value = state


def _rounded_up(value: int) -> int:
    return -(-value // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
