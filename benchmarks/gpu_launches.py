"""What a warm launch on a GPU costs the host, beside Triton in the same run.

The device runs a kernel of one program in about two microseconds, so a long series of launches
would wait for the queue. A sample is a burst that fits into the queue, and the device is idle
when it starts.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator

import tilewright
import tilewright.language as tl
import torch
from benchmarks import gpu_peers
from benchmarks.harness import Row

FAMILY = "gpu launch"
SIZE = 64
BURST = 300
BURSTS = 41
BAR_MICROSECONDS = 3.5


@tilewright.jit
def five_arguments(x_ptr, y_ptr, out_ptr, size, scale):
    """The kernel of the same name in `gpu_kernels.py`, without the alias."""
    if tl.program_id(0) > size:
        tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr) * scale)


@tilewright.jit
def no_arguments():
    """Nothing: what is left is the driver's own time."""
    tl.debug_barrier()


def rows() -> Iterator[Row]:
    """Launches of a five-argument kernel, ours and Triton's in turn."""
    x, y, out = (torch.ones(SIZE, device="cuda") for _ in range(3))
    grid = (1,)
    alias, triton = gpu_peers.ours().five_arguments, gpu_peers.theirs().five_arguments

    def ours() -> None:
        five_arguments[grid](x, y, out, SIZE, 2.0)

    def with_options() -> None:
        five_arguments[grid](x, y, out, SIZE, 2.0, num_warps=1)

    def through_alias() -> None:
        alias[grid](x, y, out, SIZE, 2.0)

    def theirs() -> None:
        triton[grid](x, y, out, SIZE, 2.0)

    def shortest() -> None:
        empty()

    os.environ["TILEWRIGHT_TARGET"] = "nvidia"  # no array says where this kernel belongs
    no_arguments[grid]()
    empty = no_arguments[grid]
    peer, *others = burst_microseconds(theirs, ours, with_options, through_alias, shortest)
    works = {
        "5 arguments": BAR_MICROSECONDS,
        "5 arguments and an option": BAR_MICROSECONDS,
        "5 arguments, `import triton`": BAR_MICROSECONDS,
        "no arguments": None,
    }
    for (work, bar), value in zip(works.items(), others, strict=True):
        shown = f"{peer:.2f} µs (Triton, 5 arguments)"
        yield Row(FAMILY, f"warm launch, {work}", 1, value, "µs", bar, peer=shown)


def burst_microseconds(*runs: Callable[[], None]) -> list[float]:
    """The median host time of one call of each, over bursts in turn."""
    samples: list[list[float]] = [[] for _ in runs]
    for _ in range(BURSTS + 1):
        for run, times in zip(runs, samples, strict=True):
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(BURST):
                run()
            times.append((time.perf_counter() - started) / BURST * 1e6)
    torch.cuda.synchronize()
    return [statistics.median(times[1:]) for times in samples]
