"""How kernels start on a GPU: the launch record, the native launcher, the history of launches."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import llvmlite.binding as llvm

from tilewright.codegen.launch_calls import LAUNCHER_SYMBOLS
from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.optimize import LAUNCH_PIPELINE, compile_module
from tilewright.codegen.whitelist import CPU_WHITELIST
from tilewright.runtime.cache import DiskCache
from tilewright.runtime.driver import Grid
from tilewright.runtime.fingerprint import digest
from tilewright.runtime.grid import persistent_grid
from tilewright.runtime.launcher import LauncherFactory
from tilewright.runtime.object_layout import has_known_object_layout
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.launch_maps_ir import MAP_FIELDS
from tilewright.targets.nvidia.launcher_ir import (
    CONFIG_FIELDS,
    CONFIG_WORDS,
    ENTRY_BYTES,
    ENTRY_FIELDS,
    HISTORY_FIELDS,
    LAUNCHER_EXTERNALS,
    NUM_ENTRIES,
    NUM_ENTRY_SLOTS,
    RECORD_FIELDS,
    nvidia_launcher_text,
)

# Source: cuda.h, CUlaunchAttributeID: launch attributes by the driver's number.
_COOPERATIVE, _CLUSTER, _PROGRAMMATIC = 2, 4, 6
# Source: cuda.h, CUlaunchAttributeValue: 64 bytes.
_ATTRIBUTE_WORDS = 8


class LaunchAttribute(ctypes.Structure):
    """The driver's own structure (CUlaunchAttribute): a number and 64 bytes of value."""

    _fields_ = (
        ("id", ctypes.c_int32),
        ("padding", ctypes.c_int32),
        ("value", ctypes.c_int32 * (2 * _ATTRIBUTE_WORDS)),
    )


class LaunchConfig(ctypes.Structure):
    """The driver's own structure (CUlaunchConfig)."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("num_attributes", ctypes.c_uint32),
    )


class LaunchRecord(ctypes.Structure):
    """What the native launcher knows of one loaded kernel; it must outlive every launch.

    `grid_scale` multiplies the first axis of the grid: the ctas of one program, or of a persistent
    kernel the programs of a cluster. `stream_slot`
    is the slot that holds the stream's handle, -1 when `stream_getter(stream_argument)` gives
    it, or nothing does. `otherwise` is the record of the kernel for launches that this one is not
    made for. `most_programs` of a persistent kernel run at once, counted in clusters; 0 says that a
    launch starts all.
    """

    _fields_ = (
        ("config", LaunchConfig),
        ("function", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("launch", ctypes.c_void_p),
        ("get_context", ctypes.c_void_p),
        ("num_params", ctypes.c_int64),
        ("grid_scale", ctypes.c_int64),
        ("stream_getter", ctypes.c_void_p),
        ("stream_argument", ctypes.c_void_p),
        ("stream_slot", ctypes.c_int64),
        ("history", ctypes.c_void_p),
        ("maps", ctypes.c_void_p),
        ("otherwise", ctypes.c_void_p),
        ("most_programs", ctypes.c_int64),
    )


class MapRecord(ctypes.Structure):
    """Where the native launcher finds the tensor maps of launches like an earlier one.

    `key_slots` lists the `num_keys` slots that the maps depend on. An entry has a word that says
    what it holds, the keys, and from `maps_at` on the maps. `maker(slots, entry)` fills one.
    """

    _fields_ = (
        ("num_maps", ctypes.c_int64),
        ("num_keys", ctypes.c_int64),
        ("key_slots", ctypes.c_void_p),
        ("entries", ctypes.c_void_p),
        ("entry_bytes", ctypes.c_int64),
        ("maps_at", ctypes.c_int64),
        ("maker", ctypes.c_void_p),
    )


class HistoryEntry(ctypes.Structure):
    """One launch: the address of its record, its grid, and the first of its slots."""

    _fields_ = (
        ("record", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("num_slots", ctypes.c_int32),
        ("slots", ctypes.c_uint64 * NUM_ENTRY_SLOTS),
    )


class LaunchedKernel(Protocol):
    """Whoever can put a launch into words."""

    def describe(self, grid: Grid, slots: Sequence[int]) -> str:
        """A launch of this kernel over `grid`, with the words of its first slots."""
        ...


class History(ctypes.Structure):
    """The last launches of this process, in a ring; launchers write it under the GIL.

    `owners` are the kernels that records belong to, by the address of the record. Records live
    as long as their launchers, a kernel as long as its function.
    """

    _fields_ = (("count", ctypes.c_int64), ("entries", HistoryEntry * NUM_ENTRIES))

    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[int, LaunchedKernel] = {}

    def note(self, record: LaunchRecord, grid: Grid, slots: bytes) -> None:
        """Write down a launch, as the native launcher does."""
        entry = self.entries[self.count % NUM_ENTRIES]
        words = min(len(slots) // 8, NUM_ENTRY_SLOTS)
        entry.record, entry.grid, entry.num_slots = ctypes.addressof(record), grid, words
        ctypes.memmove(entry.slots, slots, 8 * words)
        self.count += 1

    def latest(self, limit: int = 4) -> list[str]:
        """The last launches in words, the very last one first."""
        first = max(self.count - min(limit, NUM_ENTRIES), 0)
        return [self._describe(index) for index in range(self.count - 1, first - 1, -1)]

    def _describe(self, index: int) -> str:
        entry = self.entries[index % NUM_ENTRIES]
        x, y, z = entry.grid
        owner = self.owners.get(entry.record)
        if owner is None:
            return f"a kernel over the grid {(x, y, z)}"
        return owner.describe((x, y, z), tuple(entry.slots[: entry.num_slots]))


# One a process: every native launcher has its address, and a fault is the process's.
HISTORY: Final = History()


@dataclass(frozen=True)
class LaunchShape:
    """How a kernel is launched, whatever its grid and its arguments.

    `cluster` is None without clusters. `shared_bytes` is what is asked for at the launch.
    """

    num_threads: int
    shared_bytes: int = 0
    cluster: tuple[int, int, int] | None = None
    is_cooperative: bool = False
    is_programmatic: bool = False

    def attributes(self) -> ctypes.Array[LaunchAttribute]:
        """The launch attributes as the driver takes them."""
        chosen: list[tuple[int, tuple[int, ...]]] = []
        if self.cluster is not None:
            chosen.append((_CLUSTER, self.cluster))
        if self.is_cooperative:
            chosen.append((_COOPERATIVE, (1,)))
        if self.is_programmatic:
            chosen.append((_PROGRAMMATIC, (1,)))
        array = (LaunchAttribute * len(chosen))()
        for entry, (number, values) in zip(array, chosen, strict=True):
            entry.id = number
            entry.value[: len(values)] = values
        return array

    def config(self, attributes: ctypes.Array[LaunchAttribute]) -> LaunchConfig:
        """The launch configuration, without a grid; `attributes` must outlive it."""
        config = LaunchConfig()
        config.block[:] = (self.num_threads, 1, 1)
        config.shared_bytes = self.shared_bytes
        if len(attributes):
            config.attributes = ctypes.addressof(attributes)
            config.num_attributes = len(attributes)
        return config


@functools.cache
def raw_launcher(address: int) -> Callable[..., int]:
    """`cuLaunchKernelEx` at its address, as a Python callable that releases the GIL."""
    pointer = ctypes.c_void_p
    return ctypes.CFUNCTYPE(ctypes.c_int32, pointer, pointer, pointer, pointer)(address)


def launch_raw(
    record: LaunchRecord, grid: Grid, slots: bytes, stream: int, values: Sequence[bytes] = ()
) -> int:
    """Launch with packed slots (8 bytes each), from Python: the driver's result code.

    `values` are the parameters behind the slots that are passed by value. *Raises*: InvalidGrid.
    """
    config = LaunchConfig.from_buffer_copy(record.config)
    most = record.most_programs
    x, y, z = persistent_grid(grid, most) if most else grid
    config.grid[:] = (x * record.grid_scale, y, z)
    if most:
        values = (*values, *(extent.to_bytes(4, "little") for extent in grid))
    config.stream = stream
    buffer = ctypes.create_string_buffer(slots, max(len(slots), 8))
    base = ctypes.addressof(buffer)
    buffers = [ctypes.create_string_buffer(value, len(value)) for value in values]
    addresses = [base + 8 * index for index in range(record.num_params)]
    addresses += map(ctypes.addressof, buffers)
    params = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
    HISTORY.note(record, grid, slots)
    return raw_launcher(record.launch)(ctypes.addressof(config), record.function, params, None)


def launcher_factory(cache: DiskCache | None) -> LauncherFactory | None:
    """The native launcher of this process; None where Python's objects are not as expected."""
    if not has_known_object_layout():
        return None
    code = _load_code(cache)
    return LauncherFactory(code.addresses, code)


def _load_code(cache: DiskCache | None) -> LoadedCode:
    text = nvidia_launcher_text()
    cpu = llvm.get_host_cpu_name()
    key = digest(text, llvm.get_default_triple(), cpu, *map(str, llvm.llvm_version_info))
    stored = None if cache is None else cache.get(key)
    if stored is not None and "object" in stored:
        # A cached object that does not link is as good as none.
        with contextlib.suppress(InternalError):
            return _link(stored["object"])
    whitelist = CPU_WHITELIST.extended(LAUNCHER_EXTERNALS)
    compiled = compile_module(
        text, cpu, (), whitelist=whitelist, passes=LAUNCH_PIPELINE, opt_level=0
    )
    if cache is not None:
        cache.put(key, {"object": compiled.object})
    return _link(compiled.object)


def _link(object_bytes: bytes) -> LoadedCode:
    code = load_object(object_bytes, *LAUNCHER_SYMBOLS)
    code.keep_forever()
    return code


def _check_layout() -> None:
    """Raise unless the structures lie as the native code takes them to."""
    offsets: Sequence[tuple[type[ctypes.Structure], dict[str, int]]] = (
        (LaunchConfig, CONFIG_FIELDS),
        (LaunchRecord, RECORD_FIELDS),
        (HistoryEntry, ENTRY_FIELDS),
        (History, HISTORY_FIELDS),
        (MapRecord, MAP_FIELDS),
    )
    wrong = [
        f"{structure.__name__}.{name}"
        for structure, fields in offsets
        for name, offset in fields.items()
        if getattr(structure, name).offset != offset
    ]
    if wrong or ctypes.sizeof(LaunchConfig) != 8 * CONFIG_WORDS:
        raise InternalError(f"the native launcher reads {', '.join(wrong)} at other offsets")
    if ctypes.sizeof(HistoryEntry) != ENTRY_BYTES:
        raise InternalError("an entry of the history has another size than the native code's")


_check_layout()
