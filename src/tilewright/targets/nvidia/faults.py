"""The driver's result codes as errors that name the kernel and what it was launched with."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.support.errors import InternalError, TilewrightError
from tilewright.targets.nvidia.cuda import Cuda, CudaError
from tilewright.targets.nvidia.errors import (
    DeviceError,
    DeviceFault,
    LaunchRefused,
    ResourcesExceeded,
    no_clusters,
)
from tilewright.targets.nvidia.hang_reports import HANG_REPORTS
from tilewright.targets.nvidia.launcher import LaunchShape

# Source: cuda.h, CUresult: result codes.
_INVALID_VALUE, _OUT_OF_MEMORY, _NO_BINARY = 1, 2, 209
_INVALID_HANDLE, _OUT_OF_RESOURCES, _COOPERATIVE_TOO_LARGE = 400, 701, 720
_INVALID_CLUSTER = 912
# Codes of a kernel that stopped: the context is lost, and every later call gives them again.
_STICKY = frozenset((700, 702, 710, 714, 715, 716, 717, 718, 719))
_MEANINGS = {
    700: "a load or store went outside of every allocation",
    702: "a kernel ran for too long",
    710: "a device_assert failed",
    715: "an illegal instruction",
    716: "an address is no multiple of the access's size",
    717: "an access to the wrong kind of memory",
    718: "a jump to no code",
    719: "a kernel failed",
}


def launch_error(
    cuda: Cuda, code: int, kernel: str, shape: LaunchShape, launches: Sequence[str] = ()
) -> TilewrightError:
    """The error that a launch's result code stands for; `launches` are the last, in words."""
    name, text = cuda.describe(code)
    if code in _STICKY:
        return HANG_REPORTS.error() or device_fault(code, name, launches)
    if code == _COOPERATIVE_TOO_LARGE:
        return LaunchRefused(
            f"{kernel}: the programs of this grid do not fit on the GPU together",
            hint="a cooperative launch needs a grid of at most one wave of programs",
        )
    if code == _OUT_OF_RESOURCES:
        return ResourcesExceeded(
            f"{kernel}: the GPU cannot hold a program of {shape.num_threads} threads with "
            f"{shape.shared_bytes} bytes of shared memory and the kernel's registers",
            hint="use fewer warps, smaller blocks, or maxnreg",
        )
    if code == _INVALID_CLUSTER:
        return no_clusters(kernel, shape.cluster)
    if code == _INVALID_HANDLE:
        return LaunchRefused(
            f"{kernel}: the stream of the launch is no stream of the arrays' GPU",
            hint="pass a stream of that GPU, or none",
        )
    if code == _INVALID_VALUE:
        launch = f": {launches[0]}" if launches else ""
        return LaunchRefused(
            f"{kernel}: the GPU does not take this grid, with {shape.num_threads} threads and "
            f"{shape.shared_bytes} bytes of shared memory a program{launch}",
            hint="the first axis takes 2^31-1 programs, the others 65535",
        )
    return LaunchRefused(f"{kernel}: the launch gave {name}: {text}")


def device_fault(code: int, name: str, launches: Sequence[str]) -> DeviceFault:
    """The error for a context that a kernel has stopped."""
    what = _MEANINGS.get(code, "a kernel failed")
    lines = "".join(f"\n  {launch}" for launch in launches)
    after = f"; the last launches, newest first:{lines}" if launches else ""
    return DeviceFault(f"the GPU stopped with {name} ({what}){after}")


def load_error(error: CudaError, kernel: str, launches: Sequence[str] = ()) -> TilewrightError:
    """The error for a cubin that could not be loaded."""
    if error.code in _STICKY:
        return HANG_REPORTS.error() or device_fault(error.code, error.name, launches)
    if error.code == _OUT_OF_MEMORY:
        return DeviceError(f"{kernel}: the GPU has no memory left for the kernel's code")
    if error.code == _NO_BINARY:
        return InternalError(f"{kernel} was compiled for another GPU: {error}")
    return DeviceError(f"{kernel} cannot be loaded: {error}")
