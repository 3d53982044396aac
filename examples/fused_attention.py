"""Attention that never stores the matrix of scores, forward and backward, causal or not.

    out = softmax(scale * q @ k.T) @ v        for each head

A program keeps a tile of queries and walks along the keys. The softmax is *online*: a running
maximum and a running sum per query; when the maximum grows, what was summed so far is scaled
down. The backward pass computes the scores again from q, k and one number per query that the
forward pass keeps (Dao et al., "FlashAttention", 2022).

Run as `python -m examples.fused_attention`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import tilewright
import tilewright.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@tilewright.jit
def attend(
    acc,
    total,
    highest,
    q,
    k_ptr,
    v_ptr,
    first,
    last,
    queries,
    length,
    scale,
    CAUSAL: tl.constexpr,
    MASKED: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Let `q` attend to the keys `first` to `last`; returns acc, total and highest anew.

    `q`, `acc: [BLOCK_M, HEAD_DIM]`; `total`, `highest: [BLOCK_M]`. Scores are scaled in float32,
    whatever `q` is, and in the exponent, where it costs nothing beside the subtraction.
    """
    dims = tl.arange(0, HEAD_DIM)
    for start in range(first, last, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        offsets = keys[:, None] * HEAD_DIM + dims[None, :]
        if MASKED:
            k = tl.load(k_ptr + offsets, mask=keys[:, None] < length, other=0.0)
        else:
            k = tl.load(k_ptr + offsets)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        if MASKED:
            allowed = keys[None, :] < length
            if CAUSAL:
                allowed = allowed & (keys[None, :] <= queries[:, None])
            scores = tl.where(allowed, scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1) * scale)
        rescale = tl.exp2(highest - new_highest)
        weights = tl.exp2(scores * scale - new_highest[:, None])
        total = total * rescale + tl.sum(weights, axis=1)
        if MASKED:
            v = tl.load(v_ptr + offsets, mask=keys[:, None] < length, other=0.0)
        else:
            v = tl.load(v_ptr + offsets)
        acc = tl.dot(weights.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
        highest = new_highest
    return acc, total, highest


@tilewright.jit
def forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    log_sums_ptr,
    length,
    scale,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """The attention of `BLOCK_M` queries of one head.

    `q`, `k`, `v`, `out: [heads, length, HEAD_DIM]`, contiguous. `log_sums: [heads, length]`
    receives log2 of the sum of each query's weights, for the backward pass.
    """
    first_query = tl.program_id(0) * BLOCK_M
    # 64-bit: heads * length * HEAD_DIM may exceed what int32 offsets reach.
    head = tl.program_id(1).to(tl.int64)
    start = head * length * HEAD_DIM
    queries = first_query + tl.arange(0, BLOCK_M)
    inside = queries[:, None] < length
    offsets = start + queries[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    q = tl.load(q_ptr + offsets, mask=inside, other=0.0)
    # exp(x) = exp2(x * log2(e)), and exp2 is what hardware has.
    log2_scale = scale * LOG2_E
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    highest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    # Most tiles of keys need no mask: all keys exist and all queries may see them. The loop is
    # therefore compiled twice, without mask and with it.
    if CAUSAL:
        last = tl.minimum(first_query + BLOCK_M, length)
        unmasked = first_query // BLOCK_N * BLOCK_N
    else:
        last = length
        unmasked = length // BLOCK_N * BLOCK_N
    acc, total, highest = attend(
        *(acc, total, highest, q, k_ptr + start, v_ptr + start, 0, unmasked, queries, length),
        *(log2_scale, CAUSAL, False, HEAD_DIM, BLOCK_N),
    )
    acc, total, highest = attend(
        *(acc, total, highest, q, k_ptr + start, v_ptr + start, unmasked, last, queries, length),
        *(log2_scale, CAUSAL, True, HEAD_DIM, BLOCK_N),
    )
    tl.store(out_ptr + offsets, acc / total[:, None], mask=inside)
    log_sums = highest + tl.log2(total)
    tl.store(log_sums_ptr + head * length + queries, log_sums, mask=queries < length)


@tilewright.jit
def delta_kernel(
    out_ptr, grad_out_ptr, delta_ptr, rows, HEAD_DIM: tl.constexpr, ROWS: tl.constexpr
):
    """`delta = sum(out * grad_out)` for each row: the term that softmax's gradient subtracts."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offsets = row.to(tl.int64)[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    mask = row[:, None] < rows
    out = tl.load(out_ptr + offsets, mask=mask, other=0.0)
    grad_out = tl.load(grad_out_ptr + offsets, mask=mask, other=0.0)
    tl.store(delta_ptr + row, tl.sum(out * grad_out, axis=1), mask=row < rows)


@tilewright.jit
def grad_kv_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    grad_out_ptr,
    log_sums_ptr,
    delta_ptr,
    grad_k_ptr,
    grad_v_ptr,
    length,
    scale,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """The gradients of `BLOCK_N` keys and values of one head: a walk along the queries."""
    first_key = tl.program_id(0) * BLOCK_N
    head = tl.program_id(1).to(tl.int64)
    start = head * length * HEAD_DIM
    dims = tl.arange(0, HEAD_DIM)
    keys = first_key + tl.arange(0, BLOCK_N)
    key_inside = keys[:, None] < length
    key_offsets = start + keys[:, None] * HEAD_DIM + dims[None, :]
    k = tl.load(k_ptr + key_offsets, mask=key_inside, other=0.0)
    v = tl.load(v_ptr + key_offsets, mask=key_inside, other=0.0)
    grad_k = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
    grad_v = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
    first_query = first_key // BLOCK_M * BLOCK_M if CAUSAL else 0
    for query in range(first_query, length, BLOCK_M):
        queries = query + tl.arange(0, BLOCK_M)
        inside = queries[:, None] < length
        offsets = start + queries[:, None] * HEAD_DIM + dims[None, :]
        q = tl.load(q_ptr + offsets, mask=inside, other=0.0)
        grad_out = tl.load(grad_out_ptr + offsets, mask=inside, other=0.0)
        rows = head * length + queries
        log_sums = tl.load(log_sums_ptr + rows, mask=queries < length, other=0.0)
        delta = tl.load(delta_ptr + rows, mask=queries < length, other=0.0)
        # Keys lie along the rows here, so that no matrix of scores has to be transposed.
        scores = tl.dot(k, tl.trans(q), input_precision="ieee") * (scale * LOG2_E)
        allowed = key_inside & (queries[None, :] < length)
        if CAUSAL:
            allowed = allowed & (keys[:, None] <= queries[None, :])
        weights = tl.where(allowed, tl.exp2(scores - log_sums[None, :]), 0.0)
        grad_v = tl.dot(weights, grad_out, grad_v, input_precision="ieee")
        grad_weights = tl.dot(v, tl.trans(grad_out), input_precision="ieee")
        grad_scores = weights * (grad_weights - delta[None, :])
        grad_k = tl.dot(grad_scores, q, grad_k, input_precision="ieee")
    tl.store(grad_k_ptr + key_offsets, grad_k * scale, mask=key_inside)
    tl.store(grad_v_ptr + key_offsets, grad_v, mask=key_inside)


@tilewright.jit
def grad_q_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    grad_out_ptr,
    log_sums_ptr,
    delta_ptr,
    grad_q_ptr,
    length,
    scale,
    CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """The gradient of `BLOCK_M` queries of one head: a walk along the keys."""
    first_query = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64)
    start = head * length * HEAD_DIM
    dims = tl.arange(0, HEAD_DIM)
    queries = first_query + tl.arange(0, BLOCK_M)
    inside = queries[:, None] < length
    offsets = start + queries[:, None] * HEAD_DIM + dims[None, :]
    q = tl.load(q_ptr + offsets, mask=inside, other=0.0)
    grad_out = tl.load(grad_out_ptr + offsets, mask=inside, other=0.0)
    rows = head * length + queries
    log_sums = tl.load(log_sums_ptr + rows, mask=queries < length, other=0.0)
    delta = tl.load(delta_ptr + rows, mask=queries < length, other=0.0)
    grad_q = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    last = tl.minimum(first_query + BLOCK_M, length) if CAUSAL else length
    for key in range(0, last, BLOCK_N):
        keys = key + tl.arange(0, BLOCK_N)
        key_inside = keys[:, None] < length
        key_offsets = start + keys[:, None] * HEAD_DIM + dims[None, :]
        k = tl.load(k_ptr + key_offsets, mask=key_inside, other=0.0)
        v = tl.load(v_ptr + key_offsets, mask=key_inside, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2_E)
        allowed = inside & (keys[None, :] < length)
        if CAUSAL:
            allowed = allowed & (keys[None, :] <= queries[:, None])
        weights = tl.where(allowed, tl.exp2(scores - log_sums[:, None]), 0.0)
        grad_weights = tl.dot(grad_out, tl.trans(v), input_precision="ieee")
        grad_scores = weights * (grad_weights - delta[:, None])
        grad_q = tl.dot(grad_scores, k, grad_q, input_precision="ieee")
    tl.store(grad_q_ptr + offsets, grad_q * scale, mask=inside)


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs of the forward pass."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    out: np.ndarray
    log_sums: np.ndarray
    causal: bool
    blocks: tuple[int, int]


def forward(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    causal: bool,
    blocks: tuple[int, int] = (64, 32),
) -> tuple[np.ndarray, Saved]:
    """The attention of `q`, `k`, `v: [heads, length, dim]`, contiguous, float32 or bfloat16.

    `blocks` are the numbers of queries and keys in a tile.
    """
    heads, length, dim = q.shape
    out = np.empty_like(q)
    log_sums = np.empty((heads, length), dtype=np.float32)
    forward_kernel[(tilewright.cdiv(length, blocks[0]), heads)](
        *(q, k, v, out, log_sums, length, 1 / math.sqrt(dim)),
        CAUSAL=causal,
        HEAD_DIM=dim,
        BLOCK_M=blocks[0],
        BLOCK_N=blocks[1],
    )
    return out, Saved(q, k, v, out, log_sums, causal, blocks)


def backward(grad_out: np.ndarray, saved: Saved) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The gradients of q, k and v."""
    heads, length, dim = grad_out.shape
    delta = np.empty_like(saved.log_sums)
    rows = heads * length
    delta_kernel[(tilewright.cdiv(rows, 64),)](
        saved.out, grad_out, delta, rows, HEAD_DIM=dim, ROWS=64
    )
    grad_q, grad_k, grad_v = (np.empty_like(saved.q) for _ in range(3))
    inputs = (saved.q, saved.k, saved.v, grad_out, saved.log_sums, delta)
    scale = 1 / math.sqrt(dim)
    block_m, block_n = saved.blocks
    constants = {"CAUSAL": saved.causal, "HEAD_DIM": dim, "BLOCK_M": block_m, "BLOCK_N": block_n}
    grad_kv_kernel[(tilewright.cdiv(length, block_n), heads)](
        *inputs, grad_k, grad_v, length, scale, **constants
    )
    grad_q_kernel[(tilewright.cdiv(length, block_m), heads)](
        *inputs, grad_q, length, scale, **constants
    )
    return grad_q, grad_k, grad_v


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, grad_out: np.ndarray, causal: bool
) -> tuple[np.ndarray, ...]:
    """The result and the gradients of q, k and v in float64, with all scores in memory."""
    q, k, v, grad_out = (each.astype(np.float64) for each in (q, k, v, grad_out))
    scale = 1 / math.sqrt(q.shape[-1])
    scores = scale * q @ k.transpose(0, 2, 1)
    if causal:
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    grad_weights = grad_out @ v.transpose(0, 2, 1)
    delta = (weights * grad_weights).sum(axis=-1, keepdims=True)
    grad_scores = weights * (grad_weights - delta)
    grad_q, grad_k = scale * grad_scores @ k, scale * grad_scores.transpose(0, 2, 1) @ q
    return weights @ v, grad_q, grad_k, weights.transpose(0, 2, 1) @ grad_out


def main() -> None:
    """Attend, causally and not, over a length that is no multiple of a tile; check gradients."""
    rng = np.random.default_rng(0)
    q, k, v, grad_out = rng.standard_normal((4, 3, 147, 64), dtype=np.float32)
    for causal in (False, True):
        out, saved = forward(q, k, v, causal)
        results = (out, *backward(grad_out, saved))
        expected = reference(q, k, v, grad_out, causal)
        for result, exact in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, exact, rtol=1e-4, atol=2e-5)
    print("fused_attention: the result and the gradients of q, k and v are right, causal and not")


if __name__ == "__main__":
    main()
