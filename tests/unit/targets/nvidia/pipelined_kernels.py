"""Kernels with loops whose loads may run ahead."""

from __future__ import annotations

import numpy as np

import tilewright
import tilewright.language as tl


@tilewright.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a @ b, one block a program, ragged at every edge."""
    om = tl.program_id(0) * BM + tl.arange(0, BM)
    on = tl.program_id(1) * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    at_a = a + om[:, None] * K + ok[None, :]
    at_b = b + ok[:, None] * N + on[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(at_a, mask=(om[:, None] < M) & (ok[None, :] < K - k * BK), other=0.0)
        y = tl.load(at_b, mask=(ok[:, None] < K - k * BK) & (on[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
        at_a += BK
        at_b += BK * N
    out = c + om[:, None] * N + on[None, :]
    tl.store(out, total, mask=(om[:, None] < M) & (on[None, :] < N))


@tilewright.jit
def matmul_transposed(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a @ b.T, addresses from the counter, no masks."""
    om, on, ok = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + om[:, None] * K + k + ok[None, :])
        y = tl.load(b + on[:, None] * K + k + ok[None, :])
        total = tl.dot(x, y.T, total)
    tl.store(c + om[:, None] * BN + on[None, :], total)


@tilewright.jit
def two_loops(a, b, c, K, S: tl.constexpr):
    """Two loops of products one after the other, the second over twice as many steps."""
    i = tl.arange(0, S)
    total = tl.zeros((S, S), tl.float32)
    for k in range(0, K, S):
        x = tl.load(a + i[:, None] * K + k + i[None, :])
        y = tl.load(b + (k + i)[:, None] * S + i[None, :])
        total = tl.dot(x, y, total)
    total = total * 0.5
    for k in range(0, 2 * K, S):
        at = k % K
        x = tl.load(a + i[:, None] * K + at + i[None, :])
        y = tl.load(b + (at + i)[:, None] * S + i[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + i[:, None] * S + i[None, :], total)


@tilewright.jit
def persistent_matmul(a, b, c, K, TILES, S: tl.constexpr):
    """A loop of products in a loop over tiles: TILES blocks of S columns."""
    i = tl.arange(0, S)
    for tile in range(tl.program_id(0), TILES, tl.num_programs(0)):
        total = tl.zeros((S, S), tl.float32)
        for k in range(0, K, S):
            x = tl.load(a + i[:, None] * K + k + i[None, :])
            y = tl.load(b + (k + i)[:, None] * (TILES * S) + tile * S + i[None, :])
            total = tl.dot(x, y, total)
        tl.store(c + i[:, None] * (TILES * S) + tile * S + i[None, :], total)


@tilewright.jit
def conditional_matmul(a, b, c, K, FROM, S: tl.constexpr):
    """An `if` in the loop, and carried values beside the product."""
    i = tl.arange(0, S)
    total = tl.zeros((S, S), tl.float32)
    most = tl.full((S,), -1.0, tl.float32)
    steps = 0
    for k in range(0, K, S):
        x = tl.load(a + i[:, None] * K + k + i[None, :])
        y = tl.load(b + (k + i)[:, None] * S + i[None, :])
        part = tl.dot(x, y)
        if k >= FROM:
            total = total * 0.5 + part
            steps += 1
        most = tl.maximum(most, tl.max(part, 1))
    total += steps + most[:, None]
    tl.store(c + i[:, None] * S + i[None, :], total)


@tilewright.jit
def attention(q, k, v, out, N, CAUSAL: tl.constexpr, S: tl.constexpr, D: tl.constexpr):
    """Softmax(q kᵀ) v of S queries over N keys, ragged."""
    i, d = tl.arange(0, S), tl.arange(0, D)
    first = tl.program_id(0) * S
    x = tl.load(q + (first + i)[:, None] * D + d[None, :])
    total = tl.zeros((S, D), tl.float32)
    most = tl.full((S,), -1e30, tl.float32)
    weight = tl.zeros((S,), tl.float32)
    end = first + S if CAUSAL else N
    for start in range(0, end, S):
        at = start + i
        keys = tl.load(k + at[:, None] * D + d[None, :], mask=at[:, None] < N, other=0.0)
        scores = tl.dot(x, keys.T)
        seen = at[None, :] < N
        if CAUSAL:
            seen = seen & (at[None, :] <= (first + i)[:, None])
        scores = tl.where(seen, scores, -1e30)
        new = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        scale = tl.exp(most - new)
        weight = weight * scale + tl.sum(p, 1)
        values = tl.load(v + at[:, None] * D + d[None, :], mask=at[:, None] < N, other=0.0)
        total = tl.dot(p.to(tl.float16), values, total * scale[:, None])
        most = new
    tl.store(out + (first + i)[:, None] * D + d[None, :], total / weight[:, None])


@tilewright.jit
def softmax(x, out, ROWS, COLUMNS, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    """Rows one after the other, the loads of the next ones ahead."""
    at = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), ROWS, tl.num_programs(0), num_stages=STAGES):
        values = tl.load(x + row * COLUMNS + at, mask=at < COLUMNS, other=-float("inf"))
        shifted = tl.exp(values - tl.max(values, 0))
        tl.store(out + row * COLUMNS + at, shifted / tl.sum(shifted, 0), mask=at < COLUMNS)


@tilewright.jit
def gathered_sum(x, where, out, N, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    """Blocks of x in an order that is loaded, and a divisor that is only right in the loop."""
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in tl.range(0, N, num_stages=STAGES):
        block = tl.load(where + step)
        shift = 64 // (N - step)
        total += tl.load(x + block * BLOCK + at) * 0.5 + shift
    tl.store(out + at, total)


def halves(seed: int, *shape: int) -> np.ndarray:
    """Random float16."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@tilewright.jit
def described_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a @ b through descriptors, ragged at every edge."""
    at_a = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    at_b = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        total = tl.dot(at_a.load([m, k * BK]), at_b.load([k * BK, n]), total)
    om, on = m + tl.arange(0, BM)[:, None], n + tl.arange(0, BN)[None, :]
    tl.store(c + om * N + on, total, mask=(om < M) & (on < N))


@tilewright.jit
def described_tiles(a, b, c, K, END, TILES, FROM, S: tl.constexpr):
    """Loops of products through descriptors under a branch, in a loop over tiles."""
    at_a = tl.make_tensor_descriptor(a, [S, K], [K, 1], [S, S])
    at_b = tl.make_tensor_descriptor(b, [K, TILES * S], [TILES * S, 1], [S, S])
    i = tl.arange(0, S)
    for tile in range(tl.program_id(0), TILES, tl.num_programs(0)):
        total = tl.zeros((S, S), tl.float32)
        if tile >= FROM:
            for k in range(0, END, S):
                total = tl.dot(at_a.load([0, k]), at_b.load([k, tile * S]), total)
            for k in range(0, END // 2, S):
                total = tl.dot(at_a.load([0, k]), at_b.load([k, tile * S]), total)
        tl.store(c + i[:, None] * (TILES * S) + tile * S + i[None, :], total)


@tilewright.jit
def described_attention(q, k, v, out, N, S: tl.constexpr, D: tl.constexpr):
    """Softmax(q kᵀ) v of S queries over N keys through descriptors."""
    at_q = tl.make_tensor_descriptor(q, [4 * S, D], [D, 1], [S, D])
    at_k = tl.make_tensor_descriptor(k, [N, D], [D, 1], [S, D])
    at_v = tl.make_tensor_descriptor(v, [N, D], [D, 1], [S, D])
    i, d = tl.arange(0, S), tl.arange(0, D)
    first = tl.program_id(0) * S
    x = at_q.load([first, 0])
    total = tl.zeros((S, D), tl.float32)
    most = tl.full((S,), -1e30, tl.float32)
    weight = tl.zeros((S,), tl.float32)
    for start in range(0, N, S):
        scores = tl.dot(x, at_k.load([start, 0]).T)
        scores = tl.where((start + i)[None, :] < N, scores, -1e30)
        new = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        scale = tl.exp(most - new)
        weight = weight * scale + tl.sum(p, 1)
        total = tl.dot(p.to(tl.float16), at_v.load([start, 0]), total * scale[:, None])
        most = new
    tl.store(out + (first + i)[:, None] * D + d[None, :], total / weight[:, None])


@tilewright.jit
def divided_rows(x, out, N, STAGES: tl.constexpr, BLOCK: tl.constexpr):
    """Addresses with divisions of tiles, by constants and by what is zero beyond the loop."""
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in tl.range(0, N, num_stages=STAGES):
        moved = (at // 16) * 16 + (at + step) % 16
        rest = N - step + at * 0
        total += tl.load(x + moved + BLOCK * (step // rest), mask=at % 7 != step, other=1.0)
    tl.store(out + at, total)


@tilewright.jit
def gathered_rows(a, table, out, steps, S: tl.constexpr, STAGES: tl.constexpr):
    """The sum of rows of `a` that a table names, where a second table names them differently."""
    i = tl.arange(0, S)
    total = tl.zeros((S, S), tl.float32)
    for k in tl.range(0, steps, num_stages=STAGES):
        rows = tl.load(table + k * S + i)
        other = tl.load(table + rows, mask=rows > k, other=k)
        total += tl.load(a + other[:, None] * S + i[None, :], mask=(rows != 2)[:, None], other=0.5)
        total += rows[None, :]
    tl.store(out + i[:, None] * S + i[None, :], total)


@tilewright.jit
def rewritten_table(a, b, table, out, steps, S: tl.constexpr):
    """Products of the tiles of `a` that a table names, which each step writes for the next."""
    i = tl.arange(0, S)
    at = i[:, None] * S + i[None, :]
    total = tl.zeros((S, S), tl.float32)
    for k in range(0, steps):
        tile = tl.load(table + k)
        x = tl.load(a + tile * S * S + at)
        total = tl.dot(x, tl.load(b + at), total)
        tl.store(table + k + 1, (tile + 1) % 3)
    tl.store(out + at, total)


@tilewright.jit
def short_rows(a, out, steps, B: tl.constexpr, STAGES: tl.constexpr):
    """The sum of short rows of a tensor that a descriptor names."""
    rows = tl.make_tensor_descriptor(a, [900], [1], [B])
    total = tl.zeros((B,), tl.float32)
    for k in tl.range(0, steps, num_stages=STAGES):
        total += rows.load([k * 32])
    tl.store(out + tl.arange(0, B), total)
