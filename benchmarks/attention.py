"""Attention beside torch's scaled_dot_product_attention: whole sequences, and one step of decoding.

torch tensors are the arguments, since NumPy has no bfloat16. Both sides allocate their result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import tilewright
from benchmarks.harness import Row
from benchmarks.peers import MISSING, compare_tensors, load_torch
from examples.decode_attention import combine_kernel, decode_kernel
from examples.fused_attention import forward_kernel

FAMILY = "attention"
THREADS = (2,)
BAR = 1.1
SHAPES = ((1, 8, 1024, 64), (1, 8, 4096, 128))
BLOCK = 128
"""Queries and keys in a tile: the best of seven on an Emerald Rapids, for both widths of a head."""
TOLERANCES = {"f32": 1e-4, "bf16": 2e-2}

GROUPS, GROUP, KEYS, DIM, DECODE_BLOCK = 8, 4, 8192, 128, 64


def rows(threads: int) -> Iterator[Row]:
    """Each dtype and shape, not causal and causal; then decoding."""
    for dtype in TOLERANCES:
        for shape in SHAPES:
            for causal in (False, True):
                yield attention_row(dtype, shape, causal, threads)
        yield decode_row(dtype, threads)


def attention_row(dtype: str, shape: tuple[int, int, int, int], causal: bool, threads: int) -> Row:
    """Attention of a whole sequence to itself."""
    work = f"attention {dtype} {shape}{' causal' if causal else ''}"
    torch = load_torch(threads)
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=BAR, note=MISSING)
    torch.manual_seed(0)
    q, k, v = (torch.randn(shape).to(element(torch, dtype)) for _ in range(3))
    batch, heads, length, dim = shape
    log_sums = torch.empty(batch * heads, length)
    grid = (tilewright.cdiv(length, BLOCK), batch * heads)

    def ours() -> object:
        out = torch.empty_like(q)
        forward_kernel[grid](
            *(q, k, v, out, log_sums, length, 1 / math.sqrt(dim)),
            CAUSAL=causal,
            HEAD_DIM=dim,
            BLOCK_M=BLOCK,
            BLOCK_N=BLOCK,
        )
        return out

    attend = torch.nn.functional.scaled_dot_product_attention
    return compare(torch, work, dtype, threads, ours, lambda: attend(q, k, v, is_causal=causal))


def decode_row(dtype: str, threads: int) -> Row:
    """One query of each of 32 heads, which share keys and values in fours."""
    work = f"decode {dtype}, {GROUPS * GROUP} heads, {GROUPS}×{KEYS}×{DIM} keys"
    torch = load_torch(threads)
    if torch is None:
        return Row(FAMILY, work, threads, None, bar=BAR, note=MISSING)
    torch.manual_seed(0)
    kind = element(torch, dtype)
    q = torch.randn(1, GROUPS * GROUP, 1, DIM).to(kind)
    k, v = (torch.randn(1, GROUPS, KEYS, DIM).to(kind) for _ in range(2))
    partial, log_sums = torch.empty(1, GROUPS * GROUP, DIM), torch.empty(1, GROUPS * GROUP)

    def ours() -> object:
        out = torch.empty_like(q)
        decode_kernel[(1, GROUPS)](
            *(q, k, v, partial, log_sums, KEYS, KEYS, KEYS, 1 / math.sqrt(DIM)),
            GROUP=GROUP,
            ROWS=GROUP,
            HEAD_DIM=DIM,
            BLOCK_N=DECODE_BLOCK,
        )
        combine_kernel[(GROUPS * GROUP,)](partial, log_sums, out, 1, HEAD_DIM=DIM, SPLITS=1)
        return out

    attend = torch.nn.functional.scaled_dot_product_attention
    return compare(torch, work, dtype, threads, ours, lambda: attend(q, k, v, enable_gqa=True))


def element(torch: ModuleType, dtype: str) -> Any:
    """torch's name of a dtype."""
    return torch.bfloat16 if dtype == "bf16" else torch.float32


def compare(
    torch: ModuleType,
    work: str,
    dtype: str,
    threads: int,
    ours: Callable[[], object],
    peer: Callable[[], object],
) -> Row:
    """The row of two calls whose results agree."""
    row, limit = (FAMILY, work, threads), TOLERANCES[dtype]
    return compare_tensors(torch, row, BAR, limit, ours, peer)
