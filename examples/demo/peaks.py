"""What the machine can do, measured in the same run: the yardstick of the kernel table."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tilewright
from examples.demo import kernels
from examples.demo.kernel_operations import MATMUL_BLOCKS
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.dot.units import choose_unit
from tilewright.targets.cpu.host import host_machine

MATRIX = 1536
COPY_ELEMS = 1 << 20  # 4 MiB an array: like the network's activations, it stays in cache
COPY_BLOCK = 4096
REPEATS = 9


@dataclass(frozen=True)
class Peaks:
    """The best rates seen, and what measured them."""

    flops_per_second: float
    flops_source: str
    bytes_per_second: float
    bytes_source: str


def measure_peaks() -> Peaks:
    """The FLOP rate of NumPy's sgemm, and the better copy bandwidth of NumPy and a kernel."""
    a = np.ones((MATRIX, MATRIX), dtype=np.float32)
    product = np.empty_like(a)
    flops = 2 * MATRIX**3 / best_seconds(lambda: np.matmul(a, a, out=product))
    source = np.ones(COPY_ELEMS, dtype=np.float32)
    target = np.empty_like(source)
    copies = {
        "copy by a Tilewright kernel": lambda: copy(source, target),
        "copy by NumPy": lambda: np.copyto(target, source),
    }
    rates = {name: 2 * source.nbytes / best_seconds(run) for name, run in copies.items()}
    best = max(rates, key=lambda name: rates[name])
    return Peaks(flops, f"NumPy sgemm {MATRIX}³", rates[best], f"{best}, 4 MiB")


def product_unit(dtype: str) -> str:
    """What multiplies the network's tiles of a dtype on this machine, and why it is not AMX."""
    host = host_machine()
    shape = MATMUL_BLOCKS["BLOCK_M"], MATMUL_BLOCKS["BLOCK_N"], MATMUL_BLOCKS["BLOCK_K"]
    spec = DotSpec(*shape, dtype, dtype, host.enabled_features, host.vector_bytes)
    choice = choose_unit(spec)
    width = f" on vectors of {8 * host.vector_bytes} bits" if choice.why_not_amx else ""
    return f"{choice.name}{width}"


def copy(source: np.ndarray, target: np.ndarray) -> None:
    """`target[:] = source` by a kernel."""
    grid = (tilewright.cdiv(source.size, COPY_BLOCK),)
    kernels.copy[grid](source, target, source.size, BLOCK=COPY_BLOCK)


def best_seconds(run: Callable[[], object]) -> float:
    """The shortest of several runs, after one that warms up."""
    run()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)
