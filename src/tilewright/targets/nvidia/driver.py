"""The NVIDIA driver: loads cubins and launches them on the arrays' device and stream.

Imported on the first launch of a CUDA array, also on a cache hit, so it imports llvmlite's
binding and neither xDSL nor the compiler.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from tilewright.machine.model import MachineModel
from tilewright.runtime.arguments import guard_of
from tilewright.runtime.artifact import Artifact
from tilewright.runtime.cache import DiskCache, open_default
from tilewright.runtime.driver import FastLaunch, Grid, LoadedKernel, ParameterGuard
from tilewright.runtime.launch_table import Guard
from tilewright.runtime.launcher import SLOW_PATH, LauncherFactory, pack_slot
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import Deadlock
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.cuda import Cuda, CudaError, open_cuda
from tilewright.targets.nvidia.faults import launch_error, load_error
from tilewright.targets.nvidia.hang_reports import HANG_REPORTS
from tilewright.targets.nvidia.host import device_machine, named_machine
from tilewright.targets.nvidia.kernel_shape import check_options, check_shape, launch_shape
from tilewright.targets.nvidia.launcher import (
    HISTORY,
    LaunchAttribute,
    LaunchRecord,
    LaunchShape,
    launch_raw,
    launcher_factory,
)
from tilewright.targets.nvidia.map_cache import TensorMaps, tensor_maps
from tilewright.targets.nvidia.native_maps import NativeMaps
from tilewright.targets.nvidia.streams import StreamGetter, stream_getter, stream_handle

# Source: cuda.h, CUfunction_attribute: the driver's numbers for attributes of a kernel.
_DYNAMIC_SHARED_BYTES, _ANY_CLUSTER_SIZE = 8, 14
# Source: CUDA C++ programming guide 13.0: what a launch gets without asking for more.
_DEFAULT_SHARED_BYTES = 48 << 10
_PORTABLE_CLUSTER_SIZE = 8


@dataclass(frozen=True)
class Entry:
    """Where native code finds the driver's functions."""

    launch: int
    get_context: int


@dataclass(frozen=True)
class NvidiaKernel:
    """One kernel loaded into the context of one device.

    `attributes` are what the configuration in `record` points to.
    """

    cuda: Cuda
    name: str
    types: tuple[str, ...]
    slot_names: tuple[str, ...]
    device: int
    shape: LaunchShape
    record: LaunchRecord
    attributes: ctypes.Array[LaunchAttribute]
    factory: LauncherFactory | None
    tensor_maps: TensorMaps

    def launch(self, grid: Grid, arguments: Sequence[object], stream: int | None = None) -> None:
        """Start every program of `grid`; arguments in signature order, arrays by their address.

        Raises: LaunchRefused, DeviceFault when an earlier launch stopped the device.
        """
        slots = b"".join(
            pack_slot(type_, value) for type_, value in zip(self.types, arguments, strict=True)
        )
        with using_context(self.cuda, self.record.context):
            maps = self.tensor_maps.values(arguments, grid)
            code = launch_raw(self.record, grid, slots, stream or 0, maps)
        if code:
            self.report(code)

    def report(self, code: int) -> None:
        """Raise what the driver's result code of a launch means."""
        raise launch_error(self.cuda, code, self.name, self.shape, HISTORY.latest())

    def describe(self, grid: Grid, slots: Sequence[int]) -> str:
        """A launch in words: the name, the grid, and the arguments as far as slots tell."""
        pairs = zip(self.slot_names, self.types, slots, strict=False)
        shown = ", ".join(f"{name}={_value_text(type_, word)}" for name, type_, word in pairs)
        return f"{self.name}[{grid}]({shown})"

    def fast_launcher(
        self,
        parameters: Sequence[ParameterGuard],
        arguments: Sequence[object],
        others: Sequence[LoadedKernel] = (),
    ) -> FastLaunch | None:
        """The guarded native launcher for arguments like these, or None."""
        if self.factory is None:
            return None
        guards: list[Guard] = []
        for parameter, value in zip(parameters, arguments, strict=True):
            guard = guard_of(parameter, value, self.device)
            if guard is None or not _is_here(parameter, value, self.device):
                return None
            guards.append(guard)
        has_stream = any(p.slot == len(self.types) for p in parameters)
        arrays = [_array(p, value) for p, value in zip(parameters, arguments, strict=True)]
        getter = None if has_stream else stream_getter(a for a in arrays if a is not None)
        stream_slot = len(self.types) if has_stream else -1
        record, *kept = self._record_for(getter, stream_slot)
        last: LaunchRecord = record
        for other in others:
            assert isinstance(other, NvidiaKernel)
            found = other._record_for(getter, stream_slot)
            last.otherwise = ctypes.addressof(found[0])
            last = found[0]
            kept += [other, *found]
        keepalive = (self, getter, self.device, *kept)
        return self.factory.make(guards, record, self.report, keepalive)

    def _record_for(
        self, getter: StreamGetter | None, stream_slot: int
    ) -> tuple[LaunchRecord, NativeMaps | None]:
        """The record of a launcher whose stream comes from `getter` or from a slot; its maps."""
        record = LaunchRecord.from_buffer_copy(self.record)
        record.stream_slot = stream_slot
        if getter is not None:
            record.stream_getter = id(getter)
            record.stream_argument = id(self.device)
        has_maps = bool(self.tensor_maps.recipes or self.tensor_maps.conditions.guards)
        maps = NativeMaps(self.tensor_maps, len(self.types)) if has_maps else None
        if maps is not None:
            record.maps = ctypes.addressof(maps.record)
        HISTORY.owners[ctypes.addressof(record)] = self
        return record, maps


def _array(parameter: ParameterGuard, value: object) -> object | None:
    """The array that an argument is or describes; None for others."""
    if parameter.type.startswith("tensordesc"):
        return getattr(value, "base", None)
    return value if parameter.type.startswith("*") else None


def _is_here(parameter: ParameterGuard, value: object, device: int) -> bool:
    """Whether an array is on the device itself; pinned memory of the host is not."""
    array = _array(parameter, value)
    if array is None:
        return True
    ask = getattr(array, "get_device", None)
    return callable(ask) and ask() == device


def _value_text(type_: str, word: int) -> str:
    """The value of a slot, as far as its type tells."""
    if type_ in _FLOAT_FORMATS:
        (value,) = struct.unpack(_FLOAT_FORMATS[type_], word.to_bytes(8, "little"))
        return str(value)
    if type_ not in _INTEGER_BITS:
        return f"{word:#x}"
    bits = _INTEGER_BITS[type_]
    low = word & (1 << bits) - 1
    return str(low - (1 << bits) if bits > 1 and low >> (bits - 1) else low)


# By definition: the widths of the types.
_INTEGER_BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
_FLOAT_FORMATS = {"half": "<exxxxxx", "float": "<fxxxx", "double": "<d"}


@contextmanager
def using_context(cuda: Cuda, context: int) -> Generator[None]:
    """Make a context this thread's for a while; for good where the thread had none."""
    current = cuda.current_context()
    if current == context:
        yield
        return
    cuda.set_context(context)
    try:
        yield
    finally:
        if current:
            cuda.set_context(current)


class NvidiaDriver:
    """Loads and launches kernels on the NVIDIA GPUs of this machine.

    Describing a named machine needs no GPU; `cuda` is opened when one is first needed.
    """

    slow_path: object = SLOW_PATH
    stages = ("source", "ttir", "t1", "t2", "llir", "ptx", "cubin", "sass")
    ignored_options: frozenset[str] = frozenset(("count_cycles",))
    # Copies of 4 bytes are two elements of 16 bits.
    least_divisor = 2

    def __init__(self, cache: DiskCache | None, cuda: Cuda | None = None) -> None:
        self._cache = cache
        self._opened = cuda
        self._machines: dict[int, MachineModel] = {}

    @property
    def cuda(self) -> Cuda:
        """The driver of this machine. Raises: DriverNotFound."""
        if self._opened is None:
            self._opened = open_cuda()
        return self._opened

    @property
    def opened(self) -> Cuda | None:
        """The driver of this machine if something has needed it."""
        return self._opened

    @functools.cached_property
    def _factory(self) -> LauncherFactory | None:
        return launcher_factory(self._cache)

    @functools.cached_property
    def _entry(self) -> Entry:
        return Entry(
            self.cuda.entry_point("cuLaunchKernelEx"), self.cuda.entry_point("cuCtxGetCurrent")
        )

    def machine(self, device: int | None = None) -> MachineModel:
        """The features of a GPU that decide what is compiled."""
        index = self.device(()) if device is None else device
        if index not in self._machines:
            self._machines[index] = device_machine(self.cuda, index)
        return self._machines[index]

    def named_machine(self, name: str) -> MachineModel:
        """The features of a machine by its name; needs no GPU."""
        return named_machine(name)

    def check_options(self, options: CompileOptions) -> None:
        """Refuse what cannot be compiled. Raises: UnsupportedError, ResourcesExceeded."""
        check_options(options)

    def device(self, addresses: Sequence[int]) -> int:
        """The GPU that memory is on; the current one, or the first, without memory."""
        for address in addresses:
            return self.cuda.pointer_device(address)
        return self.cuda.context_device() if self.cuda.current_context() else 0

    def stream(self, given: object, arrays: Sequence[object], device: int) -> int | None:
        """The stream's handle. Raises: StreamNotSupported."""
        if given is not None:
            return stream_handle(given)
        getter = stream_getter(arrays)
        return 0 if getter is None else getter(device)

    def context(self, device: int) -> int:
        """The context to run in: this thread's if it is the device's, else the shared one."""
        if self.cuda.current_context() and self.cuda.context_device() == device:
            return self.cuda.current_context()
        return self.cuda.primary_context(device)

    def pending_fault(self) -> Deadlock | None:
        """What a program that waited too long left to say."""
        return HANG_REPORTS.error()

    def load(self, artifact: Artifact, device: int | None = None) -> NvidiaKernel:
        """Load a cubin on a GPU. Raises: ResourcesExceeded, DeviceFault, LaunchRefused."""
        index = self.device(()) if device is None else device
        metadata = artifact.metadata
        shape = launch_shape(metadata)
        name = str(metadata["name"])
        check_shape(name, shape, self.machine(index))
        context = self.context(index)
        try:
            with using_context(self.cuda, context):
                function = self._function(artifact, shape)
        except CudaError as error:
            raise load_error(error, name, HISTORY.latest()) from error
        types = metadata["slots"]
        assert isinstance(types, list)
        attributes = shape.attributes()
        record = self._record(shape, attributes, function, context, len(types))
        record.grid_scale = int(str(metadata.get("num_ctas", 1)))
        most = int(str(metadata.get("most_programs", 0)))
        if most:
            record.grid_scale = int(str(metadata.get("cluster", 1)))
            record.most_programs = most * self._ctas_per_sm(function, shape) // record.grid_scale
        kernel = NvidiaKernel(
            self.cuda,
            name,
            tuple(map(str, types)),
            _slot_names(metadata),
            index,
            shape,
            record,
            attributes,
            self._factory,
            tensor_maps(self.cuda, metadata, _slot_names(metadata)),
        )
        HISTORY.owners[ctypes.addressof(record)] = kernel
        return kernel

    def _function(self, artifact: Artifact, shape: LaunchShape) -> int:
        """The kernel's handle in the current context, with its attributes set."""
        module = self.cuda.load_module(artifact.sections["cubin"])
        symbol = str(artifact.metadata.get("symbol", artifact.metadata["name"]))
        function = self.cuda.function(module, symbol)
        bounded = artifact.metadata.get("bounded_waits")
        if isinstance(bounded, dict):
            HANG_REPORTS.watch(self.cuda, module, str(artifact.metadata["name"]), bounded)
        if shape.shared_bytes > _DEFAULT_SHARED_BYTES:
            self.cuda.set_function_attribute(function, _DYNAMIC_SHARED_BYTES, shape.shared_bytes)
        x, y, z = shape.cluster or (1, 1, 1)
        if x * y * z > _PORTABLE_CLUSTER_SIZE:
            self.cuda.set_function_attribute(function, _ANY_CLUSTER_SIZE, 1)
        return function

    def _ctas_per_sm(self, function: int, shape: LaunchShape) -> int:
        """How many programs of a kernel run on an SM at once: at least one."""
        count = self.cuda.ctas_per_sm(function, shape.num_threads, shape.shared_bytes)
        return max(1, count)

    def _record(
        self,
        shape: LaunchShape,
        attributes: ctypes.Array[LaunchAttribute],
        function: int,
        context: int,
        num_params: int,
    ) -> LaunchRecord:
        return LaunchRecord(
            config=shape.config(attributes),
            function=function,
            context=context,
            launch=self._entry.launch,
            get_context=self._entry.get_context,
            num_params=num_params,
            grid_scale=1,
            stream_slot=-1,
            history=ctypes.addressof(HISTORY),
        )


def _slot_names(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """A name for every slot: an argument's, with a number behind it where it has several."""
    arguments = metadata.get("arguments", [])
    assert isinstance(arguments, list)
    names: list[str] = []
    for path, type_ in arguments:
        name = ".".join(map(str, path))
        num_slots = 1
        if str(type_).startswith("tensordesc"):
            # An address, then an extent and a stride for every dimension.
            num_slots += 2 * (str(type_).partition("[")[2].partition("]")[0].count(",") + 1)
        names += [name, *(f"{name}.{index}" for index in range(1, num_slots))]
    return tuple(names)


def make_driver() -> NvidiaDriver:
    """The NVIDIA driver over the default cache."""
    return NvidiaDriver(open_default())
