"""The errors of the NVIDIA target that a user can see."""

from __future__ import annotations

from tilewright.support.errors import CompileError, KernelFault, UnsupportedError


class AssemblerNotFound(UnsupportedError):
    """No ptxas is on this machine."""

    is_of_configuration = False
    help = (
        "run `pip install nvidia-cuda-nvcc`, put a CUDA toolkit's ptxas on PATH, or set "
        "TILEWRIGHT_PTXAS to one"
    )


class AssemblerFailed(UnsupportedError):
    """The ptxas of this machine cannot be run, is too old, or took too long."""


class ResourcesExceeded(CompileError):
    """A kernel needs more registers, threads or shared memory than the machine has."""

    is_of_configuration = True
    help = "use smaller blocks, fewer warps or fewer stages"


class DriverNotFound(UnsupportedError):
    """The NVIDIA driver, or the Python package that talks to it, is missing."""

    is_of_configuration = False


class DeviceNotSupported(UnsupportedError):
    """The GPU is older than what the NVIDIA target compiles for."""

    is_of_configuration = False
    help = "the NVIDIA target compiles for compute capability 9.0 (Hopper)"


class MachineNotSupported(UnsupportedError):
    """A GPU is known by name, and the NVIDIA target has no rules for it."""


class StreamNotSupported(CompileError):
    """The `stream=` of a launch is no CUDA stream."""

    help = "pass a stream's handle as an int, or an object with `cuda_stream` or `ptr`"


class DeviceFault(KernelFault):
    """A kernel did something on the GPU that stopped it.

    The context is lost with it: every later call into CUDA from this process fails.
    """

    help = "run the kernel on the CPU with TILEWRIGHT_CHECKED=1, or under compute-sanitizer"


class LaunchRefused(CompileError):
    """The driver refused to start a kernel."""

    is_of_configuration = True


def no_clusters(kernel: str, cluster: tuple[int, int, int] | None) -> LaunchRefused:
    """The error for a grid that does not come apart into clusters."""
    return LaunchRefused(
        f"{kernel}: the GPU does not take this grid in clusters of {cluster}",
        hint="every axis of the grid must be a multiple of the cluster's; a cluster has at "
        "most 16 programs",
    )


class DeviceError(UnsupportedError):
    """A call into the NVIDIA driver failed outside of any kernel."""

    is_of_configuration = False
