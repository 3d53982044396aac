"""Products of few rows, which read each weight once, beside torch.

Weights are `[inputs, outputs]` or, as torch keeps them, `[outputs, inputs]`; a matrix of 64 MiB
of float32 does not fit in a cache. A product is written as `tl.dot` with a tile of 16 rows, most
of which a mask may hide, and one row of it as the sum that the demo decodes with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import tilewright
import tilewright.language as tl
from benchmarks.attention import element
from benchmarks.harness import Row
from benchmarks.peers import MISSING, compare_tensors, load_torch
from examples.demo.decoding_kernels import linear

FAMILY = "few rows"
THREADS = (1, 2)
BAR = 1.0
INPUTS = OUTPUTS = 4096
COUNTS = (1, 8, 16)
TOLERANCES = {"f32": 1e-4, "bf16": 2e-2}
BLOCKS = {"BLOCK_M": 16, "BLOCK_K": 64, "BLOCK_N": 128}
ROWS = 4
"""Rows of the weights that a program of the sum takes."""


@tilewright.jit
def product(
    x_ptr,
    w_ptr,
    out_ptr,
    rows,
    inputs,
    outputs,
    stride_input,
    stride_output,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """`out = x @ w`; x: `[rows, inputs]`, w: `[inputs, outputs]` by its strides, out in float32."""
    m, n = tl.arange(0, BLOCK_M), tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    inside_m, inside_n = m[:, None] < rows, n[None, :] < outputs
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in range(0, inputs, BLOCK_K):
        k = first + tl.arange(0, BLOCK_K)
        x_mask, w_mask = inside_m & (k[None, :] < inputs), (k[:, None] < inputs) & inside_n
        x = tl.load(x_ptr + m[:, None] * inputs + k[None, :], mask=x_mask, other=0.0)
        place = k[:, None] * stride_input + n[None, :] * stride_output
        w = tl.load(w_ptr + place, mask=w_mask, other=0.0)
        total = tl.dot(x, w, total, input_precision="ieee")
    tl.store(out_ptr + m[:, None] * outputs + n[None, :], total, mask=inside_m & inside_n)


def rows(threads: int) -> Iterator[Row]:
    """Each count of rows, each dtype, both orders of the weights; then sums of one row."""
    for dtype in TOLERANCES:
        for count in COUNTS:
            for is_transposed in (False, True):
                yield product_row(dtype, count, is_transposed, threads)
        yield sum_row(dtype, threads)


def product_row(dtype: str, count: int, is_transposed: bool, threads: int) -> Row:
    """`count` rows by `tl.dot`."""
    order = "[outputs, inputs]" if is_transposed else "[inputs, outputs]"
    work = f"{count}×{INPUTS}×{OUTPUTS} {dtype}, weights {order}"
    torch = load_torch(threads)
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=BAR, note=MISSING)
    x, w = arguments(torch, dtype, count)
    kept = w.t().contiguous() if is_transposed else w
    strides = (1, INPUTS) if is_transposed else (OUTPUTS, 1)

    def ours() -> object:
        out = torch.empty(count, OUTPUTS)
        product[(tilewright.cdiv(OUTPUTS, BLOCKS["BLOCK_N"]),)](
            *(x, kept, out, count, INPUTS, OUTPUTS, *strides), **BLOCKS
        )
        return out

    return compare(
        torch, work, dtype, threads, ours, lambda: x @ (kept.t() if is_transposed else w)
    )


def sum_row(dtype: str, threads: int) -> Row:
    """One row by `tl.sum`: the demo's kernel, x in float32."""
    work = f"1×{INPUTS}×{OUTPUTS} {dtype}, a sum, weights [outputs, inputs]"
    torch = load_torch(threads)
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=BAR, note=MISSING)
    x, w = arguments(torch, dtype, 1)
    kept, wide = w.t().contiguous(), x[0].float()

    def ours() -> object:
        out = torch.empty(OUTPUTS)
        linear[(tilewright.cdiv(OUTPUTS, ROWS),)](
            *(kept, wide, None, out, OUTPUTS, INPUTS), ROWS=ROWS, BLOCK=INPUTS
        )
        return out

    return compare(torch, work, dtype, threads, ours, lambda: kept @ x[0])


def arguments(torch: ModuleType, dtype: str, count: int) -> tuple[Any, Any]:
    """Activations and weights from a normal distribution, scaled to keep their size."""
    torch.manual_seed(0)
    kind = element(torch, dtype)
    x, w = torch.randn(count, INPUTS), torch.randn(INPUTS, OUTPUTS) * INPUTS**-0.5
    return x.to(kind), w.to(kind)


def compare(
    torch: ModuleType,
    work: str,
    dtype: str,
    threads: int,
    ours: Callable[[], object],
    peer: Callable[[], object],
) -> Row:
    """The row of two calls whose results agree but for the rounding of the peer's."""
    row, limit = (FAMILY, work, threads), TOLERANCES[dtype]
    return compare_tensors(torch, row, BAR, limit, ours, peer, is_of_one_dtype=False)
