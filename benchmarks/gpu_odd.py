"""Masked products by pointers whose sizes no block divides, beside cuBLAS and Triton.

Rows of 3000 and 5000 elements are a multiple of 16 bytes, those of 4098 of 4 bytes, and every
second row of 4097 begins between two words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from types import ModuleType
from typing import Any

import torch
from benchmarks import gpu_peers
from benchmarks.gpu_schedules import working
from benchmarks.gpu_timing import Run, close_to, compared, fastest, measure
from benchmarks.harness import Row

FAMILY = "gpu odd products"
# Sizes, and the least ratio to cuBLAS.
PRODUCTS = (
    ((4000, 5000, 3000), 0.85),
    ((4097, 4097, 4097), 0.6),
    ((4098, 4098, 4098), None),
)
BLOCKS = ((128, 256, 64), (128, 128, 64), (64, 128, 64))
Options = Mapping[str, Any]
STAGES = tuple({"num_warps": warps, "num_stages": n} for warps in (4, 8) for n in (3, 4))
OURS = ({"num_warps": 4}, {"num_warps": 8}, STAGES[-1])


def rows() -> Iterator[Row]:
    """B as stored and transposed, and halves."""
    for is_transposed in (False, True):
        for size, bar in PRODUCTS:
            yield from _rows(size, torch.bfloat16, is_transposed, bar)
    size, bar = PRODUCTS[1]
    yield from _rows(size, torch.float16, False, bar)


def _rows(
    size: tuple[int, int, int], dtype: torch.dtype, is_transposed: bool, bar: float | None
) -> Iterator[Row]:
    m, n, k = size
    a = torch.randn(m, k, device="cuda").to(dtype)
    b = torch.randn((n, k) if is_transposed else (k, n), device="cuda").to(dtype)
    b = b.T if is_transposed else b
    c, out = (torch.empty(m, n, device="cuda", dtype=dtype) for _ in range(2))

    def run_with(module: ModuleType, blocks: tuple[int, int, int], options: Options) -> Run:
        tile = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), blocks, strict=True))
        kernel = module.masked_product[(-(-m // blocks[0]) * -(-n // blocks[1]),)]
        arguments = (a, b, c, m, n, k, *a.stride(), *b.stride(), n)
        return lambda: kernel(*arguments, GROUP_M=8, **tile, **options)

    def best(module: ModuleType, choices: tuple[Options, ...]) -> Run:
        runs = [run_with(module, *choice) for choice in product(BLOCKS, choices)]
        return fastest(working(runs))

    ours, theirs = best(gpu_peers.ours(), OURS), best(gpu_peers.theirs(), STAGES)
    ours()
    close_to(c, torch.matmul(a, b, out=out), 4e-3)
    times = measure(ours, theirs, lambda: torch.matmul(a, b, out=out))
    name = f"{str(dtype).removeprefix('torch.')} {m}x{n}x{k}"
    name += ", B transposed" * is_transposed
    amount = 2 * m * n * k / 1e12, "TFLOP/s"
    yield compared(FAMILY, f"{name}, beside cuBLAS", times[0], times[2], bar, *amount, "cuBLAS")
    yield compared(FAMILY, name, times[0], times[1], 1.0, *amount)
