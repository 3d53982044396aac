"""Kernels that memory limits: vector add, softmax, layer norm, RMS norm.

Rows of 1000 are masked in tiles of 1024. NumPy lays large arrays 16 bytes after a page, torch
starts them at a line: each is measured. A note says what share of the bandwidth of a copy of the
same arrays, in the same run, a row kernel reaches: the bound that no kernel passes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

import tilewright
import tilewright.language as tl
from benchmarks.harness import Row, measure_pairs, show_seconds
from benchmarks.peers import MISSING, compare_with_torch, fresh_like, load_torch
from examples import fused_softmax, layer_norm, vector_add

FAMILY = "memory"
THREADS = (1, 2)
ADD_BLOCK = 16384
EPSILON = 1e-5
SOFTMAX_SHAPES = ((4096, 1000), (4096, 1024), (1024, 4096), (512, 32000))
NORM_SHAPES = ((4096, 1000), (4096, 1024))
OFFSETS = (0, 16)
"""Bytes from a line to the first element."""
SOFTMAX_BAR, NORM_BAR = 1.5, 1.3
COPY_BLOCK, COPY_PAIRS = 4096, 7


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    for log2_size in (20, 24, 26):
        yield add_row(log2_size, threads)
    for offset in OFFSETS:
        for shape in SOFTMAX_SHAPES:
            yield softmax_row(shape, threads, offset)
        for shape in NORM_SHAPES:
            yield layer_norm_row(shape, threads, offset)
            yield rms_norm_row(shape, threads, offset)
    for shape in NORM_SHAPES:
        for norm in ("layer norm", "RMS norm"):
            yield bf16_norm_row(norm, shape, threads)


def array(shape: tuple[int, ...], offset: int = 0, seed: int = 0) -> np.ndarray:
    """Random-normal f32 values that start `offset` bytes after a line."""
    count = int(np.prod(shape))
    memory = np.empty(count * 4 + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    values = memory[start : start + count * 4].view(np.float32).reshape(shape)
    values[...] = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return values


def name_of(work: str, shape: tuple[int, int], offset: int) -> str:
    """What a row is called."""
    return f"{work} f32 {shape[0]}×{shape[1]}" + f", rows at +{offset} bytes" * bool(offset)


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


def softmax_row(shape: tuple[int, int], threads: int, offset: int = 0) -> Row:
    """Softmax along rows."""
    x, out, theirs = (array(shape, offset) for _ in range(3))
    height, width = shape
    block = tilewright.next_power_of_2(width)

    def ours() -> np.ndarray:
        fused_softmax.softmax_kernel[(height,)](x, out, width, width, width, BLOCK=block)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, b = torch.from_numpy(x), torch.from_numpy(theirs)
        return lambda: torch.softmax(a, 1, out=b)

    work = name_of("softmax", shape, offset)
    row = compare_with_torch(FAMILY, work, threads, SOFTMAX_BAR, ours, peer)
    return beside_copy(row, ours, x)


def layer_norm_row(shape: tuple[int, int], threads: int, offset: int = 0) -> Row:
    """Layer norm forward. torch allocates its result, so ours is allocated in each call too."""
    x = array(shape, offset)
    height, width = shape
    weight, bias = (array((width,), seed=seed) for seed in (1, 2))
    mean, rstd = np.empty((2, height), dtype=np.float32)
    block = tilewright.next_power_of_2(width)

    def ours() -> np.ndarray:
        y = fresh_like(x)
        layer_norm.forward_kernel[(height,)](
            *(x, weight, bias, y, mean, rstd, width, width), EPSILON=EPSILON, BLOCK=block
        )
        return y

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, w, b = (torch.from_numpy(each) for each in (x, weight, bias))
        return lambda: torch.nn.functional.layer_norm(a, (width,), w, b, EPSILON)

    work = name_of("layer norm", shape, offset)
    row = compare_with_torch(FAMILY, work, threads, NORM_BAR, ours, peer, tolerance=1e-4)
    return beside_copy(row, ours, x)


@tilewright.jit
def copy_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """`out = x`."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size), mask=i < size)


def beside_copy(row: Row, ours: Callable[[], np.ndarray], x: np.ndarray) -> Row:
    """The row with a note of the share of a copy's bandwidth; `ours` reads `x`, writes as much."""
    out = ours()

    def copied() -> None:
        grid = (tilewright.cdiv(x.size, COPY_BLOCK),)
        copy_kernel[grid](x, out, x.size, BLOCK=COPY_BLOCK)

    share = measure_pairs(ours, copied, pairs=COPY_PAIRS).ratio
    notes = (f"{share:.0%} of a copy's bandwidth", row.note)
    return dataclasses.replace(row, note="; ".join(filter(None, notes)))


@tilewright.jit
def rms_norm_kernel(
    x_ptr, weight_ptr, y_ptr, stride, width, EPSILON: tl.constexpr, BLOCK: tl.constexpr
):
    """RMS norm of one row, `width <= BLOCK`."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0).to(tl.float32)
    rrms = tl.rsqrt(tl.sum(x * x, axis=0) / width + EPSILON)
    weight = tl.load(weight_ptr + columns, mask=mask)
    tl.store(y_ptr + row * stride + columns, x * rrms * weight, mask=mask)


def rms_norm_row(shape: tuple[int, int], threads: int, offset: int = 0) -> Row:
    """RMS norm forward; results are allocated in each call, as torch does."""
    x, weight = array(shape, offset), array((shape[1],), seed=1)
    height, width = shape
    block = tilewright.next_power_of_2(width)

    def ours() -> np.ndarray:
        y = fresh_like(x)
        rms_norm_kernel[(height,)](x, weight, y, width, width, EPSILON=EPSILON, BLOCK=block)
        return y

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, w = torch.from_numpy(x), torch.from_numpy(weight)
        return lambda: torch.nn.functional.rms_norm(a, (width,), w, EPSILON)

    work = name_of("RMS norm", shape, offset)
    row = compare_with_torch(FAMILY, work, threads, NORM_BAR, ours, peer, tolerance=1e-4)
    return beside_copy(row, ours, x)


def bf16_norm_row(norm: str, shape: tuple[int, int], threads: int) -> Row:
    """A norm of bf16 rows, forward; torch tensors, and results are allocated in each call."""
    work, (height, width) = f"{norm} bf16 {shape[0]}×{shape[1]}", shape
    torch = load_torch(threads)
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=NORM_BAR, note=MISSING)
    torch.manual_seed(0)
    x = torch.randn(shape).bfloat16()
    weight, bias = (torch.randn(width).bfloat16() for _ in range(2))
    mean, rstd = (torch.empty(height) for _ in range(2))
    constants = {"EPSILON": EPSILON, "BLOCK": tilewright.next_power_of_2(width)}

    def ours() -> object:
        y = torch.empty_like(x)
        if norm == "RMS norm":
            rms_norm_kernel[(height,)](x, weight, y, width, width, **constants)
        else:
            arguments = (x, weight, bias, y, mean, rstd, width, width)
            layer_norm.forward_kernel[(height,)](*arguments, **constants)
        return y

    def peer() -> object:
        if norm == "RMS norm":
            return torch.nn.functional.rms_norm(x, (width,), weight, EPSILON)
        return torch.nn.functional.layer_norm(x, (width,), weight, bias, EPSILON)

    torch.testing.assert_close(ours(), peer(), rtol=2e-2, atol=2e-2)
    with torch.inference_mode():
        pairs = measure_pairs(ours, peer)
    return Row(
        *(FAMILY, work, threads, pairs.ratio),
        bar=NORM_BAR,
        ours=show_seconds(pairs.ours_seconds),
        peer=f"torch {show_seconds(pairs.peer_seconds)}",
        note=pairs.note,
    )
