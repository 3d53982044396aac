"""`triton.testing`: timing, reports, comparison, and what a device could reach."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Protocol, cast

from tilewright.runtime.drivers import load_driver
from tilewright.runtime.timer import HasGradient
from tilewright.support.errors import UnsupportedError
from tilewright.testing import (
    Benchmark,
    Mark,
    assert_close,
    do_bench,
    do_bench_cudagraph,
    perf_report,
)

from ._names import refuse
from .runtime.driver import CUDADriver, driver

# The driver's numbers of two device attributes (cuda.h): memory clock in kHz, bus width in bits.
_MEMORY_CLOCK, _BUS_WIDTH = 36, 37
# Operations a clock of one SM of compute capability 9.0. Source: H100 data sheet, 132 SMs.
_TENSOR_CORE_OPS = {8: 8192, 16: 4096, 32: 2048, 64: 128}
_SIMD_OPS = {16: 512, 32: 256, 64: 128}
_COPY_BYTES = 64 << 20


class _HasAttributes(Protocol):
    def attribute(self, device: int, number: int) -> int: ...


class _HasCuda(Protocol):
    cuda: _HasAttributes


def do_bench_proton(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[HasGradient] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> float | list[float]:
    """`do_bench`: no profiler is needed for the time of a function."""
    return do_bench(fn, warmup, rep, grad_to_none, quantiles, return_mode)


def do_bench_cudagraph_proton(
    fn: Callable[[], object],
    rep: float = 20,
    grad_to_none: Iterable[HasGradient] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> float | list[float]:
    """`do_bench_cudagraph`: no profiler is needed for the time of a function."""
    return do_bench_cudagraph(fn, rep, grad_to_none, quantiles, return_mode)


def _is_gpu() -> bool:
    return isinstance(driver.active, CUDADriver)


def get_dram_gbps(device: int | None = None) -> float:
    """The memory bandwidth in GB/s: a GPU's nominal one, or what the CPU copies, read and written.

    *Source*: measured on the CPU, once in a process, over 64 MiB.
    """
    if not _is_gpu():
        return _copy_gbps()
    cuda = cast("_HasCuda", load_driver("nvidia")).cuda
    index = driver.active.get_current_device() if device is None else device
    kilohertz, bits = cuda.attribute(index, _MEMORY_CLOCK), cuda.attribute(index, _BUS_WIDTH)
    return kilohertz * bits * 2 / 1e6 / 8


@cache
def _copy_gbps() -> float:
    source, target = bytes(_COPY_BYTES), bytearray(_COPY_BYTES)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        target[:] = source
        best = min(best, time.perf_counter() - started)
    return 2 * _COPY_BYTES / best / 1e9


def _bits(dtype: object) -> int:
    """The width of a dtype of the language or of torch."""
    width = getattr(dtype, "primitive_bitwidth", None)
    return int(width) if width is not None else 8 * int(getattr(dtype, "itemsize", 4))


def get_max_simd_tflops(dtype: object, clock_rate: float, device: int | None = None) -> float:
    """The peak of the vector units in 10^12 operations a second; `clock_rate` is in kHz."""
    if _is_gpu():
        return _sm_tflops(_SIMD_OPS.get(_bits(dtype), _SIMD_OPS[32]), clock_rate, device)
    machine = load_driver("cpu").machine()
    lanes = machine.vector_bytes * 8 // max(_bits(dtype), 8)
    cores = driver.active.utils.get_device_properties()["multiprocessor_count"]
    # Two units that multiply and add in every clock.
    return cores * lanes * 4 * clock_rate * 1e3 / 1e12


def get_max_tensorcore_tflops(dtype: object, clock_rate: float, device: int | None = None) -> float:
    """The peak of the matrix units in 10^12 operations a second; `clock_rate` is in kHz.

    Raises: `UnsupportedError` on the CPU.
    """
    if not _is_gpu():
        raise UnsupportedError(
            "the CPU has no tensor cores", hint="ask get_max_simd_tflops for its vector units"
        )
    return _sm_tflops(_TENSOR_CORE_OPS.get(_bits(dtype), 2048), clock_rate, device)


def _sm_tflops(operations: int, clock_rate: float, device: int | None) -> float:
    index = driver.active.get_current_device() if device is None else device
    sms = driver.active.utils.get_device_properties(index)["multiprocessor_count"]
    return sms * operations * clock_rate * 1e3 / 1e12


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """Attributes of the first GPU, as `nvidia-smi` prints them.

    Raises: `UnsupportedError` where there is no such program.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        raise UnsupportedError(
            "nvsmi() asks nvidia-smi, which is not on this machine",
            hint="it comes with NVIDIA's driver",
        )
    command = [
        program,
        "-i",
        "0",
        f"--query-gpu={','.join(attrs)}",
        "--format=csv,noheader,nounits",
    ]
    output = subprocess.check_output(command, text=True)
    return [int(text) for text in output.strip().split(",")]


__getattr__ = refuse(
    __name__,
    {
        "set_gpu_clock": "fix the clocks with nvidia-smi before the program starts",
        "cublas": "call torch.matmul",
        "cuda_memcheck": "run the program under compute-sanitizer",
    },
)

__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "do_bench",
    "do_bench_cudagraph",
    "do_bench_cudagraph_proton",
    "do_bench_proton",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
]
