"""Kernels that memory limits: vector add, softmax, layer norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

import tilewright
from benchmarks.harness import Row
from benchmarks.peers import compare_with_torch
from examples import fused_softmax, layer_norm, vector_add

FAMILY = "memory"
THREADS = (2,)
ADD_BLOCK = 16384
EPSILON = 1e-5


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    for log2_size in (20, 26):
        yield add_row(log2_size, threads)
    for shape in ((4096, 1024), (1024, 4096)):
        yield softmax_row(shape, threads)
    yield layer_norm_row((4096, 1024), threads)


def add_row(log2_size: int, threads: int) -> Row:
    """Vector add: three streams through memory, or through the cache at 2^20."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1 << log2_size), dtype=np.float32)
    out = np.empty_like(x)
    grid = (tilewright.cdiv(x.size, ADD_BLOCK),)

    def ours() -> np.ndarray:
        vector_add.add_kernel[grid](x, y, out, x.size, BLOCK=ADD_BLOCK)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, b, c = (torch.from_numpy(each) for each in (x, y, np.empty_like(out)))
        return lambda: torch.add(a, b, out=c)

    return compare_with_torch(FAMILY, f"vector add f32 2^{log2_size}", threads, 1.0, ours, peer)


def softmax_row(shape: tuple[int, int], threads: int) -> Row:
    """Softmax along rows."""
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    out = np.empty_like(x)
    height, width = shape

    def ours() -> np.ndarray:
        fused_softmax.softmax_kernel[(height,)](x, out, width, width, width, BLOCK=width)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, b = torch.from_numpy(x), torch.from_numpy(np.empty_like(out))
        return lambda: torch.softmax(a, 1, out=b)

    work = f"softmax f32 {height}×{width}"
    return compare_with_torch(FAMILY, work, threads, 1.3, ours, peer)


def layer_norm_row(shape: tuple[int, int], threads: int) -> Row:
    """Layer norm forward. torch allocates its result, so ours is allocated in each call too."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape, dtype=np.float32)
    height, width = shape
    weight, bias = rng.standard_normal((2, width), dtype=np.float32)
    mean, rstd = np.empty((2, height), dtype=np.float32)

    def ours() -> np.ndarray:
        y = np.empty_like(x)
        layer_norm.forward_kernel[(height,)](
            *(x, weight, bias, y, mean, rstd, width, width), EPSILON=EPSILON, BLOCK=width
        )
        return y

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, w, b = (torch.from_numpy(each) for each in (x, weight, bias))
        return lambda: torch.nn.functional.layer_norm(a, (width,), w, b, EPSILON)

    work = f"layer norm f32 {height}×{width}"
    return compare_with_torch(FAMILY, work, threads, 1.1, ours, peer, tolerance=1e-4)
