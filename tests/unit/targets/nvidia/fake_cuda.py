"""A GPU that is none: the driver's calls noted down, launches caught with their arguments."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

from tilewright.targets.nvidia.cuda import CudaError
from tilewright.targets.nvidia.launcher import LaunchAttribute, LaunchConfig

POINTER = ctypes.c_void_p
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int32, POINTER, POINTER, POINTER, POINTER)
ENCODE = ctypes.CFUNCTYPE(
    *(ctypes.c_int32, POINTER, ctypes.c_int32, ctypes.c_uint32),
    *(*[POINTER] * 5, *[ctypes.c_int32] * 4),
)
MAP_BYTES = 128
GET_CONTEXT = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(POINTER))
ILLEGAL_ADDRESS = 700
HOPPER = {75: 9, 76: 0, 16: 132, 10: 32, 1: 1024, 39: 2048, 106: 32, 82: 65536, 97: 232448}
NAMES = {
    1: "CUDA_ERROR_INVALID_VALUE",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    720: "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
}


@dataclass(frozen=True)
class Launched:
    """One launch as the driver got it."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    stream: int
    function: int
    words: tuple[int, ...]
    attributes: tuple[tuple[int, tuple[int, ...]], ...]
    maps: tuple[tuple[int, ...], ...] = ()
    asked_grid: tuple[int, ...] = ()


@dataclass
class FakeCuda:
    """Devices with primary contexts 100 + device; kernels take `num_params` words, then maps.

    With `is_persistent` they take the grid that is asked for behind all of that. A tensor map is
    what it was made of: address, rank, extents and strides from the last on.
    """

    num_params: int = 0
    num_maps: int = 0
    is_persistent: bool = False
    num_devices: int = 2
    context: int = 0
    result: int = 0
    load_result: int = 0
    attributes: dict[int, int] = field(default_factory=lambda: dict(HOPPER))
    calls: list[tuple[object, ...]] = field(default_factory=list)
    launches: list[Launched] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._launch = LAUNCH(self._launched)
        self._get_context = GET_CONTEXT(self._current)
        self._encode = ENCODE(self._encoded)

    def _launched(self, config: int, function: int, params: int, extra: int) -> int:
        read = LaunchConfig.from_address(config)
        num_given = self.num_params + self.num_maps
        count = num_given + 3 * self.is_persistent
        pointers = list((POINTER * count).from_address(params)) if count else []
        slots, maps = pointers[: self.num_params], pointers[self.num_params : num_given]
        extents = tuple(ctypes.c_int32.from_address(at).value for at in pointers[num_given:])
        words = tuple(ctypes.c_uint64.from_address(slot).value for slot in slots)
        self.launches.append(
            Launched(
                tuple(read.grid),
                tuple(read.block),
                read.shared_bytes,
                read.stream or 0,
                function,
                words,
                tuple(self._attributes(read)),
                tuple(_words_of(address) for address in maps),
                extents,
            )
        )
        return self.result

    def _encoded(
        self, target: int, kind: int, rank: int, base: int, extents: int, strides: int, *rest: int
    ) -> int:
        self.calls.append(("encode", base))
        words = [base, rank, *(ctypes.c_uint64 * rank).from_address(extents)]
        words += (ctypes.c_uint64 * (rank - 1)).from_address(strides) if rank > 1 else []
        (ctypes.c_uint64 * 16).from_address(target)[: len(words)] = words
        return self.result

    def _attributes(self, config: LaunchConfig) -> list[tuple[int, tuple[int, ...]]]:
        if not config.num_attributes:
            return []
        array = (LaunchAttribute * config.num_attributes).from_address(config.attributes)
        return [(entry.id, tuple(entry.value[:3])) for entry in array]

    def _current(self, target: ctypes._Pointer) -> int:
        target[0] = self.context
        return 0

    def device_count(self) -> int:
        return self.num_devices

    def device_name(self, device: int) -> str:
        return f"Fake {device}"

    def attribute(self, device: int, number: int) -> int:
        return self.attributes.get(number, 0)

    def current_context(self) -> int:
        return self.context

    def context_device(self) -> int:
        return self.context - 100

    def primary_context(self, device: int) -> int:
        self.calls.append(("primary", device))
        return 100 + device

    def set_context(self, context: int) -> None:
        self.calls.append(("context", context))
        self.context = context

    def load_module(self, image: bytes) -> int:
        self.calls.append(("load", image, self.context))
        if self.load_result:
            raise CudaError(self.load_result, *self.describe(self.load_result), "cuModuleLoadData")
        return 7

    def function(self, module: int, name: str) -> int:
        self.calls.append(("function", name))
        return 70 + self.context

    def set_function_attribute(self, function: int, number: int, value: int) -> None:
        self.calls.append(("attribute", number, value))

    def ctas_per_sm(self, function: int, num_threads: int, shared_bytes: int) -> int:
        return 2048 // num_threads

    def entry_point(self, name: str) -> int:
        functions = {
            "cuLaunchKernelEx": self._launch,
            "cuCtxGetCurrent": self._get_context,
            "cuTensorMapEncodeTiled": self._encode,
        }
        return ctypes.cast(functions[name], POINTER).value or 0

    def allocate_host(self, size_bytes: int) -> int:
        raise AssertionError(f"a kernel without bounded waits asks for {size_bytes} bytes")

    def set_global(self, module: int, name: str, value: int) -> None:
        self.calls.append(("global", module, name, value))

    def pointer_device(self, address: int) -> int:
        return address >> 32

    def describe(self, code: int) -> tuple[str, str]:
        return NAMES.get(code, "CUDA_ERROR_UNKNOWN"), "something went wrong"


def _words_of(address: int) -> tuple[int, ...]:
    """The words of a fake tensor map, without the zeros behind them."""
    words = list((ctypes.c_uint64 * (MAP_BYTES // 8)).from_address(address))
    return tuple(words[: 2 + 2 * words[1] - 1])


class FakeDtype:
    """Stands for a dtype object of torch."""

    def __repr__(self) -> str:
        return "torch.float32"


FLOAT32 = FakeDtype()
FLOAT16 = FakeDtype()


@dataclass(frozen=True)
class FakeDevice:
    """A torch device."""

    type: str
    index: int | None


class FakeTensor:
    """An object with the part of torch's protocol that launches use."""

    def __init__(
        self, address: int, dtype: FakeDtype = FLOAT32, device: int = 0, kind: str = "cuda"
    ) -> None:
        self.address = address
        self.dtype = dtype
        self.device = FakeDevice(kind, device if kind == "cuda" else None)
        self.is_cuda = kind == "cuda"

    def data_ptr(self) -> int:
        return self.address

    def get_device(self) -> int:
        return self.device.index if self.device.index is not None else -1
