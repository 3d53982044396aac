"""Attention forward beside torch's scaled_dot_product_attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

import tilewright
from benchmarks.harness import Row
from benchmarks.peers import compare_with_torch
from examples.fused_attention import forward_kernel

FAMILY = "attention"
THREADS = (2,)
BATCH, HEADS, LENGTH, DIM = 1, 8, 1024, 64
BLOCK_M, BLOCK_N = 64, 64


def rows(threads: int) -> Iterator[Row]:
    """Not causal and causal."""
    for causal in (False, True):
        yield attention_row(causal, threads)


def attention_row(causal: bool, threads: int) -> Row:
    """Attention; torch allocates its result, so ours is allocated in each call too."""
    shape = (3, BATCH, HEADS, LENGTH, DIM)
    q, k, v = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    log_sums = np.empty((BATCH * HEADS, LENGTH), dtype=np.float32)
    grid = (tilewright.cdiv(LENGTH, BLOCK_M), BATCH * HEADS)
    scale = 1 / math.sqrt(DIM)

    def ours() -> np.ndarray:
        out = np.empty_like(q)
        forward_kernel[grid](
            *(q, k, v, out, log_sums, LENGTH, scale),
            CAUSAL=causal,
            HEAD_DIM=DIM,
            BLOCK_M=BLOCK_M,
            BLOCK_N=BLOCK_N,
        )
        return out

    def peer(torch: ModuleType) -> Callable[[], object]:
        a, b, c = (torch.from_numpy(each) for each in (q, k, v))
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda: attend(a, b, c, is_causal=causal)

    work = f"attention f32 {(BATCH, HEADS, LENGTH, DIM)}{' causal' if causal else ''}"
    return compare_with_torch(FAMILY, work, threads, 1.0, ours, peer, tolerance=1e-4)
