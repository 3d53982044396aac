"""The NVIDIA driver, as much of it as launching takes: plain integers in, plain integers out.

Handles (contexts, modules, functions, streams) are addresses. The seam is a protocol: the tests
run the driver's logic against a fake, and `cuda-bindings` is loaded on the first launch.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Protocol, cast

from tilewright.targets.nvidia.errors import DriverNotFound

# The version of the entry points that are asked for: CUDA 12.0, the first with all of them.
# Source: cuda.h.
_ENTRY_VERSION = 12000
# Source: cuda.h, CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTALLOC_DEVICEMAP.
_PORTABLE, _MAPPED = 1, 2
# By definition: room for the name of a device, which the driver cuts off.
_NAME_BYTES = 256


class CudaError(Exception):
    """A call into the driver that failed: its result code, the code's name, and what it means."""

    def __init__(self, code: int, name: str, text: str, call: str) -> None:
        super().__init__(f"{call} gave {name}: {text}")
        self.code = code
        self.name = name
        self.text = text
        self.call = call


class Cuda(Protocol):
    """The calls that the driver of the NVIDIA target makes. Raises: CudaError from each."""

    def device_name(self, device: int) -> str:
        """A GPU's name."""
        ...

    def attribute(self, device: int, number: int) -> int:
        """An attribute of a GPU by the driver's number for it."""
        ...

    def current_context(self) -> int:
        """The context of this thread, 0 without one."""
        ...

    def context_device(self) -> int:
        """The GPU of this thread's context."""
        ...

    def primary_context(self, device: int) -> int:
        """The context of a GPU that libraries share, kept for the life of the process."""
        ...

    def set_context(self, context: int) -> None:
        """Make a context this thread's; 0 for none."""
        ...

    def load_module(self, image: bytes) -> int:
        """Load a cubin into the current context."""
        ...

    def function(self, module: int, name: str) -> int:
        """A kernel of a module."""
        ...

    def set_function_attribute(self, function: int, number: int, value: int) -> None:
        """Change an attribute of a kernel by the driver's number for it."""
        ...

    def ctas_per_sm(self, function: int, num_threads: int, shared_bytes: int) -> int:
        """How many ctas of a kernel run on an SM at once."""
        ...

    def entry_point(self, name: str) -> int:
        """The address of a function of the driver, for native code."""
        ...

    def allocate_host(self, size_bytes: int) -> int:
        """Memory of the host that kernels write too, at the same address."""
        ...

    def set_global(self, module: int, name: str, value: int) -> None:
        """Write a 64-bit global of a module."""
        ...

    def pointer_device(self, address: int) -> int:
        """The GPU whose memory `address` is in."""
        ...

    def describe(self, code: int) -> tuple[str, str]:
        """The name and the meaning of a result code."""
        ...


class BoundCuda:
    """The driver of this machine through `cuda-bindings`."""

    def __init__(self, driver: ModuleType) -> None:
        self._driver = driver
        self._primary: dict[int, object] = {}
        self._call("cuInit", 0)

    def _call(self, name: str, *arguments: object) -> object:
        """Call a function of the driver: its result, or a tuple of several."""
        code, *results = getattr(self._driver, name)(*arguments)
        if int(code) != 0:
            raise CudaError(int(code), *self.describe(int(code)), name)
        return results[0] if len(results) == 1 else tuple(results)

    def _number(self, name: str, *arguments: object) -> int:
        return int(cast("int", self._call(name, *arguments)))

    def device_name(self, device: int) -> str:
        """A GPU's name."""
        name = cast("bytes", self._call("cuDeviceGetName", _NAME_BYTES, device))
        return name.rstrip(b"\0").decode(errors="replace")

    def attribute(self, device: int, number: int) -> int:
        """An attribute of a GPU by the driver's number for it."""
        kind = self._driver.CUdevice_attribute(number)
        return self._number("cuDeviceGetAttribute", kind, device)

    def current_context(self) -> int:
        """The context of this thread, 0 without one."""
        return self._number("cuCtxGetCurrent")

    def context_device(self) -> int:
        """The GPU of this thread's context."""
        return self._number("cuCtxGetDevice")

    def primary_context(self, device: int) -> int:
        """The context of a GPU that libraries share, kept for the life of the process."""
        if device not in self._primary:
            self._primary[device] = self._call("cuDevicePrimaryCtxRetain", device)
        return int(cast("int", self._primary[device]))

    def set_context(self, context: int) -> None:
        """Make a context this thread's; 0 for none."""
        self._call("cuCtxSetCurrent", self._driver.CUcontext(context))

    def load_module(self, image: bytes) -> int:
        """Load a cubin into the current context."""
        return self._number("cuModuleLoadData", image)

    def function(self, module: int, name: str) -> int:
        """A kernel of a module."""
        handle = self._driver.CUmodule(module)
        return self._number("cuModuleGetFunction", handle, name.encode())

    def set_function_attribute(self, function: int, number: int, value: int) -> None:
        """Change an attribute of a kernel by the driver's number for it."""
        kind = self._driver.CUfunction_attribute(number)
        self._call("cuFuncSetAttribute", self._driver.CUfunction(function), kind, value)

    def ctas_per_sm(self, function: int, num_threads: int, shared_bytes: int) -> int:
        """How many ctas of a kernel run on an SM at once."""
        handle = self._driver.CUfunction(function)
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return self._number(name, handle, num_threads, shared_bytes)

    def entry_point(self, name: str) -> int:
        """The address of a function of the driver, for native code."""
        found = self._call("cuGetProcAddress", name.encode(), _ENTRY_VERSION, 0)
        address = cast("tuple[object, ...]", found)[0]
        return int(cast("int", address))

    def allocate_host(self, size_bytes: int) -> int:
        """Memory of the host that kernels write too, at the same address."""
        return self._number("cuMemHostAlloc", size_bytes, _PORTABLE | _MAPPED)

    def set_global(self, module: int, name: str, value: int) -> None:
        """Write a 64-bit global of a module."""
        handle = self._driver.CUmodule(module)
        found = self._call("cuModuleGetGlobal", handle, name.encode())
        address, _ = cast("tuple[object, object]", found)
        self._call("cuMemcpyHtoD", address, value.to_bytes(8, "little"), 8)

    def pointer_device(self, address: int) -> int:
        """The GPU whose memory `address` is in."""
        kind = self._driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return self._number("cuPointerGetAttribute", kind, self._driver.CUdeviceptr(address))

    def synchronize(self) -> None:
        """Wait for all work of this thread's context."""
        self._call("cuCtxSynchronize")

    def create_event(self) -> int:
        """A new event that notes the time."""
        return self._number("cuEventCreate", 0)

    def destroy_event(self, event: int) -> None:
        """Give an event back."""
        self._call("cuEventDestroy", self._driver.CUevent(event))

    def record_event(self, event: int, stream: int) -> None:
        """Note the time at which what is in `stream` now is done."""
        self._call("cuEventRecord", self._driver.CUevent(event), self._driver.CUstream(stream))

    def elapsed_milliseconds(self, start: int, end: int) -> float:
        """The time between two events that both happened."""
        events = (self._driver.CUevent(start), self._driver.CUevent(end))
        return float(cast("float", self._call("cuEventElapsedTime", *events)))

    def allocate(self, size_bytes: int) -> int:
        """Memory on the GPU of this thread's context."""
        return self._number("cuMemAlloc", size_bytes)

    def free(self, address: int) -> None:
        """Give memory back."""
        self._call("cuMemFree", self._driver.CUdeviceptr(address))

    def fill(self, address: int, size_bytes: int, stream: int) -> None:
        """Write zeros, in the order of a stream."""
        place, order = self._driver.CUdeviceptr(address), self._driver.CUstream(stream)
        self._call("cuMemsetD8Async", place, 0, size_bytes, order)

    def describe(self, code: int) -> tuple[str, str]:
        """The name and the meaning of a result code."""
        return self._text("cuGetErrorName", code), self._text("cuGetErrorString", code)

    def _text(self, function: str, code: int) -> str:
        try:
            _, text = getattr(self._driver, function)(self._driver.CUresult(code))
        except ValueError:
            return f"error {code}"  # a code that came after these bindings
        return text.decode() if text else f"error {code}"


@functools.cache
def open_cuda() -> Cuda:
    """The driver of this machine, loaded once. Raises: DriverNotFound."""
    try:
        module = importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise DriverNotFound(
            "the Python package `cuda-bindings` is not installed",
            hint="run `pip install tilewright[cuda]`",
        ) from error
    try:
        return BoundCuda(module)
    except (RuntimeError, OSError) as error:
        # The bindings look for libcuda when the first function is called.
        raise DriverNotFound(
            f"the NVIDIA driver cannot be loaded: {error}",
            hint="install NVIDIA's driver, or pass NumPy arrays to run on the CPU",
        ) from error
    except CudaError as error:
        raise DriverNotFound(
            f"the NVIDIA driver does not start: {error}",
            hint="look at `nvidia-smi`, and at CUDA_VISIBLE_DEVICES",
        ) from error
