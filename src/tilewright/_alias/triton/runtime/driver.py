"""`triton.runtime.driver`: the devices that kernels run on."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from tilewright.frontend.devices import HOST_TARGETS
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.fingerprint import usable_cpu_count
from tilewright.runtime.timer import do_bench
from tilewright.support.errors import TilewrightError
from tilewright.support.options import runtime_options

from ..backends.compiler import GPUTarget

# By definition: what every multiprocessor of CUDA has, in registers of 32 bits. Scripts take the
# largest tile from it; a core keeps in its caches what its vector registers do not hold.
_REGISTERS_OF_A_MULTIPROCESSOR = 1 << 16


class Utilities:
    """Questions about a device."""

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """The sizes that scripts plan grids and tiles with; a core stands for a multiprocessor."""
        machine = load_driver("cpu").machine()
        return {
            "multiprocessor_count": usable_cpu_count(),
            "max_shared_mem": machine.l2_bytes,
            "max_num_regs": _REGISTERS_OF_A_MULTIPROCESSOR,
            "warpSize": 1,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    def set_printf_fifo_size(self, size: int) -> None:
        """Nothing: the CPU prints without a buffer."""


class DriverBase:
    """What a device answers; the base of every driver."""

    utils = Utilities()

    @classmethod
    def is_active(cls) -> bool:
        """Whether this process can launch kernels on the device."""
        return False

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for."""
        raise NotImplementedError

    def get_current_device(self) -> int:
        """The number of the current device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Choose the current device."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The current stream of a device."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The compute capability of a GPU."""
        return (0, 0)

    def get_active_torch_device(self) -> object:
        """The torch device that stands for this one."""
        raise NotImplementedError

    def get_device_interface(self) -> object:
        """The module of torch that controls the device."""
        raise NotImplementedError

    def get_benchmarker(self) -> Callable[..., object]:
        """The timer."""
        return do_bench

    def get_empty_cache_for_benchmark(self) -> object:
        """Memory that a benchmark writes between runs to flush the caches."""
        return bytearray(1 << 20)

    def clear_cache(self, cache: object) -> None:
        """Write that memory."""
        if isinstance(cache, bytearray):
            cache[:] = bytes(len(cache))

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type of C that an argument of a signature has."""
        return "void*" if ty.startswith("*") else _C_TYPES[ty]


_C_TYPES = {
    "i1": "int8_t",
    "u1": "int8_t",
    **{f"i{w}": f"int{w}_t" for w in (8, 16, 32, 64)},
    **{f"u{w}": f"uint{w}_t" for w in (8, 16, 32, 64)},
    "fp16": "double",
    "bf16": "double",
    "fp32": "double",
    "f32": "double",
    "fp64": "double",
}


class CPUDriver(DriverBase):
    """The CPU as a device."""

    @classmethod
    def is_active(cls) -> bool:
        """Whether kernels run here by default: where they do not run on a GPU.

        Programs count the active drivers, and take an environment with two for a broken one.
        """
        return not CUDADriver.is_active()

    def get_current_target(self) -> GPUTarget:
        """The CPU of this machine."""
        return GPUTarget("cpu", load_driver("cpu").machine().arch, 32)

    def get_active_torch_device(self) -> object:
        """`torch.device("cpu")`, for scripts that use torch."""
        return cast("_Torch", importlib.import_module("torch")).device("cpu")

    def get_device_interface(self) -> object:
        """`torch.cpu`."""
        return importlib.import_module("torch.cpu")


class _Torch(Protocol):
    def device(self, name: str) -> object: ...


class CUDADriver(DriverBase):
    """The current NVIDIA GPU as a device."""

    def __init__(self) -> None:
        self.utils = CudaUtilities()

    @classmethod
    def is_active(cls) -> bool:
        """Whether there is a GPU, and `TILEWRIGHT_TARGET` does not keep kernels from it."""
        return runtime_options().target not in HOST_TARGETS and has_gpu()

    def get_current_target(self) -> GPUTarget:
        """The current GPU."""
        return GPUTarget("cuda", capability(self.get_current_device()), 32)

    def get_current_device(self) -> int:
        """The number of the current GPU, torch's where torch is in use."""
        torch = _torch_cuda()
        return load_driver("nvidia").device(()) if torch is None else torch.current_device()

    def set_current_device(self, device: int) -> None:
        """Choose the GPU, for torch."""
        _wanted_torch_cuda().set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        """The current stream of a GPU, torch's where torch is in use."""
        torch = _torch_cuda()
        return 0 if torch is None else torch.current_stream(device).cuda_stream

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """The compute capability of a GPU."""
        return divmod(capability(device), 10)

    def get_active_torch_device(self) -> object:
        """The current GPU as a device of torch, equal to the `device` of its tensors."""
        torch = cast("_Torch", importlib.import_module("torch"))
        return torch.device(f"cuda:{self.get_current_device()}")

    def get_device_interface(self) -> object:
        """`torch.cuda`."""
        return importlib.import_module("torch.cuda")


class CudaUtilities(Utilities):
    """Questions about a GPU."""

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """The sizes that scripts plan their grids with."""
        machine = load_driver("nvidia").machine(device)
        return {
            "multiprocessor_count": machine.num_sms,
            "max_shared_mem": machine.max_shared_bytes,
            "max_num_regs": machine.registers_per_sm,
            "warpSize": machine.lanes,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }


def has_gpu() -> bool:
    """Whether there is a GPU that kernels can run on."""
    try:
        load_driver("nvidia").machine()
    except TilewrightError:
        return False
    return True


def capability(device: int | None) -> int:
    """The compute capability of a GPU as one number: 90 for 9.0."""
    return load_driver("nvidia").machine(device).compute_capability


class _Stream(Protocol):
    cuda_stream: int


class _TorchCuda(Protocol):
    def is_available(self) -> bool: ...
    def current_device(self) -> int: ...
    def set_device(self, device: int) -> None: ...
    def current_stream(self, device: int | None) -> _Stream: ...


def _torch_cuda() -> _TorchCuda | None:
    """`torch.cuda` where the program uses torch and torch sees a GPU."""
    module = cast("_TorchCuda | None", sys.modules.get("torch.cuda"))
    return module if module is not None and module.is_available() else None


def _wanted_torch_cuda() -> _TorchCuda:
    return cast("_TorchCuda", importlib.import_module("torch.cuda"))


class DriverConfig:
    """The driver in use: `active`; `default` is the one that this process starts with."""

    def __init__(self) -> None:
        self._active: DriverBase | None = None
        self._default: DriverBase | None = None

    @property
    def default(self) -> DriverBase:
        """The active driver of this machine."""
        if self._default is None:
            self._default = default_driver()
        return self._default

    @property
    def active(self) -> DriverBase:
        """The driver that launches use."""
        if self._active is None:
            self._active = self.default
        return self._active

    def set_active(self, driver: DriverBase) -> None:
        """Launch with `driver` from now on."""
        self._active = driver

    def reset_active(self) -> None:
        """Launch with the default driver again."""
        self._active = None


_CANDIDATES: tuple[type[DriverBase], ...] = (CUDADriver, CPUDriver)


def drivers() -> Sequence[type[DriverBase]]:
    """The drivers that this package has, the preferred one first."""
    return _CANDIDATES


def default_driver() -> DriverBase:
    """A driver that can launch kernels on this machine."""
    return next(candidate() for candidate in _CANDIDATES if candidate.is_active())


driver = DriverConfig()
