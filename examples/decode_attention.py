"""One step of decoding: each head's newest query attends to all keys that the cache holds.

    out[h] = softmax(scale * q[h] @ k[h // group].T) @ v[h // group]

Several heads of queries share one head of keys and values (grouped-query attention), so a
program takes all queries of a group and reads keys and values once. A long cache is split among
programs, each of which leaves its weighted sum and the log2 of its sum of weights; a second
kernel combines them (Dao et al., "Flash-Decoding", 2023).

Run as `python -m examples.decode_attention`.
"""

from __future__ import annotations

import math

import numpy as np

import tilewright
import tilewright.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@tilewright.jit
def decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    partial_ptr,
    log_sums_ptr,
    length,
    capacity,
    keys_per_split,
    scale,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """The attention of one group's queries to `keys_per_split` of its keys.

    `q: [heads, HEAD_DIM]`, `k`, `v: [heads / GROUP, capacity, HEAD_DIM]`, of which the first
    `length` keys count, `partial: [splits, heads, HEAD_DIM]`, `log_sums: [splits, heads]`.
    `ROWS`: the next power of two of `GROUP`; the rows beyond it hold zeros and go nowhere.
    """
    split = tl.program_id(0)
    group = tl.program_id(1)
    rows = tl.arange(0, ROWS)
    is_head = rows < GROUP
    heads = group * GROUP + rows
    dims = tl.arange(0, HEAD_DIM)
    queries = q_ptr + heads[:, None] * HEAD_DIM + dims[None, :]
    q = tl.load(queries, mask=is_head[:, None], other=0.0)
    # 64-bit: a cache may hold more than int32 offsets reach.
    start = group.to(tl.int64) * capacity * HEAD_DIM
    first = split * keys_per_split
    last = tl.minimum(first + keys_per_split, length)
    acc = tl.zeros((ROWS, HEAD_DIM), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    highest = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    for block in range(first, last, BLOCK_N):
        keys = block + tl.arange(0, BLOCK_N)
        inside = keys < last
        offsets = start + keys[:, None] * HEAD_DIM + dims[None, :]
        k = tl.load(k_ptr + offsets, mask=inside[:, None], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2_E)
        scores = tl.where(inside[None, :], scores, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1))
        rescale = tl.exp2(highest - new_highest)
        weights = tl.exp2(scores - new_highest[:, None])
        total = total * rescale + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + offsets, mask=inside[:, None], other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
        highest = new_highest
    row = split * tl.num_programs(1) * GROUP + heads
    out = partial_ptr + row[:, None] * HEAD_DIM + dims[None, :]
    tl.store(out, acc / total[:, None], mask=is_head[:, None])
    tl.store(log_sums_ptr + row, highest + tl.log2(total), mask=is_head)


@tilewright.jit
def combine_kernel(
    partial_ptr, log_sums_ptr, out_ptr, splits, HEAD_DIM: tl.constexpr, SPLITS: tl.constexpr
):
    """The mean of one head's partial results, weighted by their sums; `splits <= SPLITS`."""
    head = tl.program_id(0)
    heads = tl.num_programs(0)
    dims = tl.arange(0, HEAD_DIM)
    number = tl.arange(0, SPLITS)
    inside = number < splits
    log_sums = tl.load(log_sums_ptr + number * heads + head, mask=inside, other=float("-inf"))
    weights = tl.exp2(log_sums - tl.max(log_sums, axis=0))
    weights = weights / tl.sum(weights, axis=0)
    offsets = (number[:, None] * heads + head) * HEAD_DIM + dims[None, :]
    partial = tl.load(partial_ptr + offsets, mask=inside[:, None], other=0.0)
    out = tl.sum(partial * weights[:, None], axis=0)
    tl.store(out_ptr + head * HEAD_DIM + dims, out)


def decode(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    length: int,
    max_splits: int = 1,
    block_n: int = 128,
) -> np.ndarray:
    """The attention of `q: [heads, dim]` to the first `length` keys, in q's dtype.

    `k`, `v: [groups, capacity, dim]`, contiguous; heads a multiple of groups, `length` at least
    one. Keys are split among at most `max_splits` programs a group: one where there are as many
    groups as cores.
    """
    heads, dim = q.shape
    groups, capacity, _ = k.shape
    # Whole blocks to each split, and at least one key to the last.
    blocks = tilewright.cdiv(length, block_n)
    keys_per_split = tilewright.cdiv(blocks, max_splits) * block_n
    splits = tilewright.cdiv(length, keys_per_split)
    partial = np.empty((splits, heads, dim), dtype=np.float32)
    log_sums = np.empty((splits, heads), dtype=np.float32)
    decode_kernel[(splits, groups)](
        *(q, k, v, partial, log_sums, length, capacity, keys_per_split, 1 / math.sqrt(dim)),
        GROUP=heads // groups,
        ROWS=tilewright.next_power_of_2(heads // groups),
        HEAD_DIM=dim,
        BLOCK_N=block_n,
    )
    out = np.empty_like(q)
    combine_kernel[(heads,)](
        partial, log_sums, out, splits, HEAD_DIM=dim, SPLITS=tilewright.next_power_of_2(splits)
    )
    return out


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, length: int) -> np.ndarray:
    """The result in float64, with all scores in memory."""
    group = q.shape[0] // k.shape[0]
    k, v = (np.repeat(each[:, :length].astype(np.float64), group, axis=0) for each in (k, v))
    scores = np.einsum("hd,hnd->hn", q.astype(np.float64), k) / math.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.einsum("hn,hnd->hd", weights / weights.sum(axis=1, keepdims=True), v)


def main() -> None:
    """Attend to a cache that is not full, by one program a group and by several."""
    rng = np.random.default_rng(0)
    q = rng.standard_normal((6, 64), dtype=np.float32)
    k, v = rng.standard_normal((2, 2, 1100, 64), dtype=np.float32)
    expected = reference(q, k, v, 1003)
    for max_splits in (1, 4):
        out = decode(q, k, v, 1003, max_splits)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
    print("decode_attention: the result is right, by one program a group and by several")


if __name__ == "__main__":
    main()
