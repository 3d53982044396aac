"""Matrix products and attention on the tensor cores, before pipelining, beside Triton and torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
from benchmarks.harness import Row

FAMILY = "gpu matrix"
SIZE = 8192
PRODUCTS = (
    {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 8},
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 4},
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8},
)
BATCH, HEADS, LENGTH, HEAD_DIM = 4, 32, 4096, 128
ATTENTIONS = (
    {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 4},
    {"BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8},
    {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8},
)
LOG2_E = 1.4426950408889634
Options = Mapping[str, int]


def rows() -> Iterator[Row]:
    """Products of two dtypes, attention with and without a causal mask."""
    for dtype in (torch.float16, torch.bfloat16):
        yield from product_rows(dtype)
    for is_causal in (False, True):
        yield from attention_rows(is_causal)


def product_rows(dtype: torch.dtype) -> Iterator[Row]:
    """Each compiler with the fastest of its blocks; cuBLAS through torch."""
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=dtype) for _ in range(2))
    c = torch.empty_like(a)

    def run_with(kernel, options: Options) -> Run:
        grid = (SIZE // options["BLOCK_M"] * (SIZE // options["BLOCK_N"]),)
        arguments = (a, b, c, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE)
        return lambda: kernel[grid](*arguments, GROUP_M=8, num_stages=1, **options)

    ours, theirs = (
        fastest([run_with(module.matmul, options) for options in PRODUCTS])
        for module in (gpu_peers.ours(), gpu_peers.theirs())
    )
    ours()
    close_to(c, a @ b, 1e-3 if dtype == torch.float16 else 4e-3)
    times = measure(ours, theirs, lambda: torch.matmul(a, b, out=c))
    flops = 2 * SIZE**3 / 1e12
    work = f"matmul {str(dtype).removeprefix('torch.')} {SIZE}³, num_stages=1"
    yield compared(FAMILY, work, times[0], times[1], 1.0, flops, "TFLOP/s")
    yield compared(
        FAMILY, f"{work}, beside cuBLAS", times[0], times[2], None, flops, "TFLOP/s", "cuBLAS"
    )


def attention_rows(is_causal: bool) -> Iterator[Row]:
    """Each compiler with the fastest of its blocks; torch's own attention."""
    shape = (BATCH, HEADS, LENGTH, HEAD_DIM)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.float16) for _ in range(3))
    out = torch.empty_like(q)

    def run_with(kernel, options: Options) -> Run:
        grid = (LENGTH // options["BLOCK_M"], BATCH * HEADS)
        arguments = (q, k, v, out, LENGTH, LOG2_E / HEAD_DIM**0.5)
        fixed = {"CAUSAL": is_causal, "HEAD_DIM": HEAD_DIM, "num_stages": 1}
        return lambda: kernel[grid](*arguments, **fixed, **options)

    ours, theirs = (
        fastest([run_with(module.attention, options) for options in ATTENTIONS])
        for module in (gpu_peers.ours(), gpu_peers.theirs())
    )
    torch_attention = torch.nn.functional.scaled_dot_product_attention
    ours()
    close_to(out, torch_attention(q, k, v, is_causal=is_causal), 2e-3)
    times = measure(ours, theirs, lambda: torch_attention(q, k, v, is_causal=is_causal))
    flops = 4 * BATCH * HEADS * LENGTH**2 * HEAD_DIM / 1e12 * (0.5 if is_causal else 1)
    work = f"attention fp16 {shape}{' causal' if is_causal else ''}, num_stages=1"
    yield compared(FAMILY, work, times[0], times[1], 1.0, flops, "TFLOP/s")
    yield compared(
        FAMILY, f"{work}, beside torch", times[0], times[2], None, flops, "TFLOP/s", "torch"
    )
