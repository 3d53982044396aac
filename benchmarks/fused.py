"""Chains of elementwise ops and a norm as one kernel each, beside torch's ops one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

import tilewright
import tilewright.language as tl
from benchmarks.harness import Row
from benchmarks.memory_bound import EPSILON, array
from benchmarks.peers import compare_with_torch

FAMILY = "fused"
THREADS = (1, 2)
BAR = 1.8
ROWS, WIDTH = 2048, 768


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    yield gelu_norm_row(threads)
    yield swiglu_row(threads)
    yield rope_row(threads)


@tilewright.jit
def gelu_norm_kernel(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, out_ptr, width,
    EPSILON: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`layer_norm(gelu(x) + residual)` of one row, with the error function."""
    row = tl.program_id(0) * width
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + row + columns, mask=mask, other=0.0)
    h = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    h += tl.load(residual_ptr + row + columns, mask=mask, other=0.0)
    mean = tl.sum(h, axis=0) / width
    centered = tl.where(mask, h - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centered * centered, axis=0) / width + EPSILON)
    weight = tl.load(weight_ptr + columns, mask=mask)
    bias = tl.load(bias_ptr + columns, mask=mask)
    tl.store(out_ptr + row + columns, centered * rstd * weight + bias, mask=mask)


def gelu_norm_row(threads: int) -> Row:
    """What stands between the products of a transformer's block."""
    x, residual = (array((ROWS, WIDTH), seed=seed) for seed in (0, 1))
    weight, bias = (array((WIDTH,), seed=seed) for seed in (2, 3))
    block = tilewright.next_power_of_2(WIDTH)

    def ours() -> np.ndarray:
        out = np.empty_like(x)
        gelu_norm_kernel[(ROWS,)](
            *(x, residual, weight, bias, out, WIDTH), EPSILON=EPSILON, BLOCK=block
        )
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, r, w, b = (torch.from_numpy(each) for each in (x, residual, weight, bias))
        ops = torch.nn.functional
        return lambda: ops.layer_norm(ops.gelu(a) + r, (WIDTH,), w, b, EPSILON)

    work = f"GELU + residual + layer norm f32 {ROWS}×{WIDTH}"
    return compare_with_torch(FAMILY, work, threads, BAR, ours, peer, tolerance=1e-4)


@tilewright.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """`silu(gate) * up`."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    gate = tl.load(gate_ptr + i, mask=mask)
    tl.store(out_ptr + i, gate * tl.sigmoid(gate) * tl.load(up_ptr + i, mask=mask), mask=mask)


def swiglu_row(threads: int) -> Row:
    """The gate of a feed-forward layer; an odd number of columns."""
    shape = (ROWS, 2730)
    gate, up = (array(shape, seed=seed) for seed in (0, 1))

    def ours() -> np.ndarray:
        out = np.empty_like(gate)
        swiglu_kernel[(tilewright.cdiv(gate.size, 4096),)](gate, up, out, gate.size, BLOCK=4096)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, b = torch.from_numpy(gate), torch.from_numpy(up)
        return lambda: torch.nn.functional.silu(a) * b

    work = f"SwiGLU f32 {shape[0]}×{shape[1]}"
    return compare_with_torch(FAMILY, work, threads, BAR, ours, peer, tolerance=1e-5)


@tilewright.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, HALF: tl.constexpr):
    """Rotate the halves of one head at one position."""
    program = tl.program_id(0)
    i = tl.arange(0, HALF)
    angles = program // heads * HALF + i
    low = program * 2 * HALF + i
    x, y = tl.load(x_ptr + low), tl.load(x_ptr + low + HALF)
    cos, sin = tl.load(cos_ptr + angles), tl.load(sin_ptr + angles)
    tl.store(out_ptr + low, x * cos - y * sin)
    tl.store(out_ptr + low + HALF, y * cos + x * sin)


def rope_row(threads: int) -> Row:
    """Rotary positions of 2048 tokens with 16 heads of 128."""
    length, heads, half = ROWS, 16, 64
    x = array((length, heads, 2 * half))
    angles = np.outer(np.arange(length), 10000.0 ** (-np.arange(half) / half))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def ours() -> np.ndarray:
        out = np.empty_like(x)
        rope_kernel[(length * heads,)](x, cos, sin, out, heads, HALF=half)
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, c, s = (torch.from_numpy(each) for each in (x, cos[:, None], sin[:, None]))

        def rotate() -> object:
            u, v = a.chunk(2, dim=-1)
            return torch.cat((u * c - v * s, v * c + u * s), dim=-1)

        return rotate

    work = f"RoPE f32 {length}×{heads}×{2 * half}"
    return compare_with_torch(FAMILY, work, threads, BAR, ours, peer, tolerance=1e-5)
