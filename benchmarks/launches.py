"""What a launch costs the host: a warm kernel of one program and hardly any work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import tilewright
import tilewright.language as tl
from benchmarks.harness import Row, measure_alone
from benchmarks.peers import MISSING, load_torch

FAMILY = "launch"
THREADS = (2,)
SIZE = 16


@tilewright.jit
def scaled_add_kernel(x_ptr, y_ptr, out_ptr, size, scale, BLOCK: tl.constexpr):
    """`out = x + scale * y`: five arguments at run time and a constant."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < size
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + scale * y, mask=mask)


def rows(threads: int) -> Iterator[Row]:
    """With torch tensors and with NumPy arrays."""
    arrays = list(np.ones((3, SIZE), dtype=np.float32))
    torch = load_torch(threads)
    work = "launch, 5 arguments, torch tensors"
    if torch is None:
        yield Row(FAMILY, work, threads, None, "µs", 2.0, note=MISSING)
    else:
        tensors = [torch.from_numpy(each.copy()) for each in arrays]
        yield Row(FAMILY, work, threads, launch_microseconds(tensors), "µs", 2.0)
    work = "launch, 5 arguments, NumPy arrays"
    yield Row(FAMILY, work, threads, launch_microseconds(arrays), "µs", 2.5)


def launch_microseconds(arrays: Sequence[object]) -> float:
    """Host time of `kernel[grid](…)` as users write it."""
    x, y, out = arrays
    grid = (1,)

    def run() -> None:
        for _ in range(1000):
            scaled_add_kernel[grid](x, y, out, SIZE, 2.0, BLOCK=SIZE)

    return measure_alone(run) * 1e3
