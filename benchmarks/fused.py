"""Chains of elementwise ops and a norm as one kernel each, beside torch's ops one after another.

Once more beside what Inductor makes of the chain: one loop of C++, where there is a compiler.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

import tilewright
import tilewright.language as tl
from benchmarks.harness import Row, measure_pairs, show_seconds
from benchmarks.memory_bound import EPSILON, array
from benchmarks.peers import MISSING, compare_with_torch, fresh_like, load_torch
from examples.low_memory_dropout import dropout_kernel

FAMILY = "fused"
THREADS = (1, 2)
BAR, INDUCTOR_BAR = 1.8, 1.0
ROWS, WIDTH = 2048, 768
ROWS_EACH = 64
"""Rows that a program of RMS norm backward takes: so many share one row of sums for the weight."""

Chain = Callable[[ModuleType], tuple[Callable[..., object], tuple[Any, ...]]]
"""torch to its function of tensors, and the tensors."""


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    yield from gelu_norm_rows(threads)
    yield from swiglu_rows(threads)
    yield from rope_rows(threads)
    yield dropout_row(threads)
    yield rms_norm_backward_row(threads)


def compare(
    work: str,
    threads: int,
    ours: Callable[[], np.ndarray],
    chain: Chain,
    tolerance: float,
) -> Iterator[Row]:
    """The row beside torch's ops, and the one beside their graph in C++."""

    def eager(torch: ModuleType) -> Callable[[], object]:
        function, inputs = chain(torch)
        return lambda: function(*inputs)

    def inductor(torch: ModuleType) -> Callable[[], object]:
        function, inputs = chain(torch)
        compiled = torch.compile(function, dynamic=False)
        return lambda: compiled(*inputs)

    yield compare_with_torch(FAMILY, work, threads, BAR, ours, eager, tolerance)
    work += ", beside Inductor's C++"
    torch = load_torch(threads)
    if torch is not None and not has_compiler():
        yield Row(FAMILY, work, threads, None, bar=INDUCTOR_BAR, note="no C++ compiler")
        return
    yield compare_with_torch(FAMILY, work, threads, INDUCTOR_BAR, ours, inductor, tolerance)


def has_compiler() -> bool:
    """Whether Inductor finds what it compiles with."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


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


def gelu_norm_rows(threads: int) -> Iterator[Row]:
    """What stands between the products of a transformer's block."""
    x, residual = (array((ROWS, WIDTH), seed=seed) for seed in (0, 1))
    weight, bias = (array((WIDTH,), seed=seed) for seed in (2, 3))
    block = tilewright.next_power_of_2(WIDTH)

    def ours() -> np.ndarray:
        out = fresh_like(x)
        gelu_norm_kernel[(ROWS,)](
            *(x, residual, weight, bias, out, WIDTH), EPSILON=EPSILON, BLOCK=block
        )
        return out

    def chain(torch: ModuleType) -> tuple[Callable[..., object], tuple[Any, ...]]:
        ops = torch.nn.functional

        def normalized(a: Any, r: Any, w: Any, b: Any) -> Any:
            return ops.layer_norm(ops.gelu(a) + r, (WIDTH,), w, b, EPSILON)

        return normalized, tuple(torch.from_numpy(each) for each in (x, residual, weight, bias))

    work = f"GELU + residual + layer norm f32 {ROWS}×{WIDTH}"
    yield from compare(work, threads, ours, chain, tolerance=1e-4)


@tilewright.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """`silu(gate) * up`."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    gate = tl.load(gate_ptr + i, mask=mask)
    tl.store(out_ptr + i, gate * tl.sigmoid(gate) * tl.load(up_ptr + i, mask=mask), mask=mask)


def swiglu_rows(threads: int) -> Iterator[Row]:
    """The gate of a feed-forward layer; an odd number of columns."""
    shape = (ROWS, 2730)
    gate, up = (array(shape, seed=seed) for seed in (0, 1))

    def ours() -> np.ndarray:
        out = fresh_like(gate)
        swiglu_kernel[(tilewright.cdiv(gate.size, 4096),)](gate, up, out, gate.size, BLOCK=4096)
        return out

    def chain(torch: ModuleType) -> tuple[Callable[..., object], tuple[Any, ...]]:
        def gated(a: Any, b: Any) -> Any:
            return torch.nn.functional.silu(a) * b

        return gated, (torch.from_numpy(gate), torch.from_numpy(up))

    work = f"SwiGLU f32 {shape[0]}×{shape[1]}"
    yield from compare(work, threads, ours, chain, tolerance=1e-5)


@tilewright.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, heads, HALF: tl.constexpr):
    """Rotate the halves of every head at one position."""
    position = tl.program_id(0)
    i = tl.arange(0, HALF)
    cos, sin = tl.load(cos_ptr + position * HALF + i), tl.load(sin_ptr + position * HALF + i)
    for head in range(heads):
        low = (position * heads + head) * 2 * HALF + i
        x, y = tl.load(x_ptr + low), tl.load(x_ptr + low + HALF)
        tl.store(out_ptr + low, x * cos - y * sin)
        tl.store(out_ptr + low + HALF, y * cos + x * sin)


def rope_rows(threads: int) -> Iterator[Row]:
    """Rotary positions of 2048 tokens with 16 heads of 128."""
    length, heads, half = ROWS, 16, 64
    x = array((length, heads, 2 * half))
    angles = np.outer(np.arange(length), 10000.0 ** (-np.arange(half) / half))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def ours() -> np.ndarray:
        out = fresh_like(x)
        rope_kernel[(length,)](x, cos, sin, out, heads, HALF=half)
        return out

    def chain(torch: ModuleType) -> tuple[Callable[..., object], tuple[Any, ...]]:
        def rotate(a: Any, c: Any, s: Any) -> Any:
            u, v = a.chunk(2, dim=-1)
            return torch.cat((u * c - v * s, v * c + u * s), dim=-1)

        return rotate, tuple(torch.from_numpy(each) for each in (x, cos[:, None], sin[:, None]))

    work = f"RoPE f32 {length}×{heads}×{2 * half}"
    yield from compare(work, threads, ours, chain, tolerance=1e-5)


def dropout_row(threads: int) -> Row:
    """A tenth of the elements zero; which ones, each side draws by itself."""
    x, block, probability = array((ROWS, WIDTH)), 4096, 0.1

    def ours() -> np.ndarray:
        out = fresh_like(x)
        dropout_kernel[(tilewright.cdiv(x.size, block),)](
            x, out, x.size, probability, 1, BLOCK=block
        )
        return out

    work = f"dropout f32 {ROWS}×{WIDTH}"
    torch = load_torch(threads)
    kept = ours() != 0
    assert abs(kept.mean() - (1 - probability)) < 0.01
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=BAR, note=MISSING)
    tensor = torch.from_numpy(x)
    with torch.inference_mode():
        pairs = measure_pairs(ours, lambda: torch.nn.functional.dropout(tensor, probability))
    return Row(
        *(FAMILY, work, threads, pairs.ratio),
        bar=BAR,
        ours=show_seconds(pairs.ours_seconds),
        peer=f"torch {show_seconds(pairs.peer_seconds)}",
        note=pairs.note,
    )


@tilewright.jit
def rms_norm_backward_kernel(
    x_ptr, weight_ptr, grad_out_ptr, grad_x_ptr, sums_ptr, rows, width,
    EPSILON: tl.constexpr, BLOCK: tl.constexpr, ROWS_EACH: tl.constexpr,
):  # fmt: skip
    """The gradient of some rows, and their sum of `grad_out * x / rms` for the weight's."""
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    first = tl.program_id(0) * ROWS_EACH
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(first, tl.minimum(first + ROWS_EACH, rows)):
        x = tl.load(x_ptr + row * width + columns, mask=mask, other=0.0)
        grad_out = tl.load(grad_out_ptr + row * width + columns, mask=mask, other=0.0)
        rrms = tl.rsqrt(tl.sum(x * x, axis=0) / width + EPSILON)
        weighted = grad_out * weight
        along = tl.sum(weighted * x, axis=0) / width * rrms * rrms
        tl.store(grad_x_ptr + row * width + columns, (weighted - x * along) * rrms, mask=mask)
        sums += grad_out * x * rrms
    tl.store(sums_ptr + tl.program_id(0) * width + columns, sums, mask=mask)


@tilewright.jit
def column_sum_kernel(sums_ptr, out_ptr, count, width, BLOCK: tl.constexpr):
    """The sum of `count` rows."""
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < width
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(count):
        total += tl.load(sums_ptr + row * width + columns, mask=mask, other=0.0)
    tl.store(out_ptr + columns, total, mask=mask)


def rms_norm_backward_row(threads: int) -> Row:
    """The gradients of the input and of the weight, by two launches."""
    x, grad_out = (array((ROWS, WIDTH), seed=seed) for seed in (0, 1))
    weight = array((WIDTH,), seed=2)
    programs = tilewright.cdiv(ROWS, ROWS_EACH)
    grad_weight = np.empty_like(weight)

    def ours() -> np.ndarray:
        grad_x, sums = fresh_like(x), np.empty((programs, WIDTH), np.float32)
        rms_norm_backward_kernel[(programs,)](
            *(x, weight, grad_out, grad_x, sums, ROWS, WIDTH),
            EPSILON=EPSILON,
            BLOCK=tilewright.next_power_of_2(WIDTH),
            ROWS_EACH=ROWS_EACH,
        )
        column_sum_kernel[(tilewright.cdiv(WIDTH, 256),)](
            sums, grad_weight, programs, WIDTH, BLOCK=256
        )
        return grad_x

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, w = (torch.from_numpy(each).requires_grad_() for each in (x, weight))
        g = torch.from_numpy(grad_out)
        y = torch.nn.functional.rms_norm(a, (WIDTH,), w, EPSILON)

        def backward() -> object:
            with torch.inference_mode(False):
                return torch.autograd.grad(y, (a, w), g, retain_graph=True)[0]

        ours()
        exact = torch.autograd.grad(y, w, g, retain_graph=True)[0]
        np.testing.assert_allclose(grad_weight, exact, rtol=1e-3, atol=1e-2)
        return backward

    work = f"RMS norm backward f32 {ROWS}×{WIDTH}"
    return compare_with_torch(FAMILY, work, threads, BAR, ours, peer, tolerance=1e-4)
