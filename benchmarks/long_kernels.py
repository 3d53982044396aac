"""Kernels as long as those that people have, to watch how long they compile.

Each is of a published family, in our words: a bitonic sort of keys with their indices, the
backward passes of linear attention with decay, a tiled product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import tilewright
import tilewright.language as tl
from tilewright.jit import JITFunction


@tilewright.jit
def pick(bits, is_taken):
    """The one of each pair of neighbours that `is_taken` names, in the place of both."""
    one = tl.sum(bits * is_taken.to(bits.dtype), 1)[:, None, :]
    return tl.broadcast_to(one.to(bits.dtype), bits.shape)


@tilewright.jit
def exchange(keys, at, count, flip, AXIS_LOG2: tl.constexpr, STEP: tl.constexpr):
    """Compare keys that lie 2^STEP apart and exchange them with their indices."""
    OUTER: tl.constexpr = keys.numel >> (STEP + 1)
    pairs: tl.constexpr = [OUTER, 2, 2**STEP]
    is_right = tl.arange(0, 2)[None, :, None]
    bits = keys.to(tl.int32, bitcast=True)
    left = tl.reshape(pick(tl.reshape(bits, pairs), 1 - is_right), keys.shape)
    right = tl.reshape(pick(tl.reshape(bits, pairs), is_right), keys.shape)
    at_left = tl.reshape(pick(tl.reshape(at, pairs), 1 - is_right), keys.shape)
    at_right = tl.reshape(pick(tl.reshape(at, pairs), is_right), keys.shape)
    left_key = left.to(keys.dtype, bitcast=True)
    right_key = right.to(keys.dtype, bitcast=True)
    left_nan = left_key != left_key
    right_nan = right_key != right_key
    swaps = (left_key > right_key) | (left_nan & ~right_nan)
    same = (left_key == right_key) | (left_nan & right_nan)
    swaps = swaps | (same & (at_left > at_right))
    left_inside = at_left < count
    right_inside = at_right < count
    swaps = (right_inside > left_inside) | ((right_inside == left_inside) & swaps)
    swaps = (swaps ^ flip).to(tl.int1)
    bits = bits ^ tl.where(swaps, left ^ right, tl.zeros_like(bits))
    at = at ^ tl.where(swaps, at_left ^ at_right, tl.zeros_like(at))
    return bits.to(keys.dtype, bitcast=True), at


@tilewright.jit
def sort_rows(x, values, indices, rows, columns, ROWS: tl.constexpr, AXIS_LOG2: tl.constexpr):
    """Each row sorted, with where its elements came from: `values, indices: [rows, columns]`."""
    N: tl.constexpr = 2**AXIS_LOG2
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, N)[None, :]
    inside = (row < rows) & (column < columns)
    keys = tl.load(x + row * columns + column, inside, other=0.0)
    at = tl.broadcast_to(column, [ROWS, N])
    for stage in tl.static_range(1, AXIS_LOG2 + 1):
        flip = False
        if stage < AXIS_LOG2:
            blocks: tl.constexpr = [ROWS * 2 ** (AXIS_LOG2 - 1 - stage), 2, 2**stage]
            flip = tl.broadcast_to(tl.arange(0, 2)[None, :, None], blocks)
            flip = tl.reshape(flip, keys.shape)
        for step in tl.static_range(stage):
            keys, at = exchange(keys, at, columns, flip, AXIS_LOG2, stage - 1 - step)
    tl.store(values + row * columns + column, keys, inside)
    tl.store(indices + row * columns + column, at.to(tl.int64), inside)


@tilewright.jit
def matrix(base, stride, rows, columns, i, j, M: tl.constexpr, N: tl.constexpr):
    """The block pointer of tile (i, j) of a row-major matrix."""
    return tl.make_block_ptr(base, (rows, columns), (stride, 1), (i * M, j * N), (M, N), (1, 0))


@tilewright.jit
def decay_states_backward(
    q, k, w, g, do, dh, dv, dv_new, scale, steps, heads,
    K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """Gradients of the states of a gated delta rule, from the last chunk to the first.

    `q, k, w: [steps, heads, K]`, `do, dv, dv_new: [steps, heads, V]`, `g: [steps, heads]`,
    `dh: [chunks, heads, K, V]`.
    """
    block, head = tl.program_id(0), tl.program_id(1)
    chunks = tl.cdiv(steps, BT)
    q += head * K
    k += head * K
    w += head * K
    do += head * V
    dv += head * V
    dv_new += head * V
    dh1 = tl.zeros([64, BV], tl.float32)
    dh2 = tl.zeros([64, BV], tl.float32)
    dh3 = tl.zeros([64, BV], tl.float32)
    dh4 = tl.zeros([64, BV], tl.float32)
    for t in range(chunks - 1, -1, -1):
        state = dh + (t * heads + head) * K * V
        tl.store(
            matrix(state, V, K, V, 0, block, 64, BV),
            dh1.to(dh.dtype.element_ty),
            boundary_check=(0, 1),
        )
        if K > 64:
            tl.store(
                matrix(state, V, K, V, 1, block, 64, BV),
                dh2.to(dh.dtype.element_ty),
                boundary_check=(0, 1),
            )
        if K > 128:
            tl.store(
                matrix(state, V, K, V, 2, block, 64, BV),
                dh3.to(dh.dtype.element_ty),
                boundary_check=(0, 1),
            )
        if K > 192:
            tl.store(
                matrix(state, V, K, V, 3, block, 64, BV),
                dh4.to(dh.dtype.element_ty),
                boundary_check=(0, 1),
            )
        last = min((t + 1) * BT, steps) - 1
        end = tl.load(g + last * heads + head)
        at = t * BT + tl.arange(0, BT)
        gate = tl.load(g + at * heads + head, at < steps, other=0.0)
        end_decay = tl.exp(end)
        decay = tl.exp(gate)
        rest = tl.where(at < steps, tl.exp(end - gate), 0.0)
        b_do = tl.load(matrix(do, heads * V, steps, V, t, block, BT, BV), boundary_check=(0, 1))
        b_k = tl.load(matrix(k, heads * K, steps, K, t, 0, BT, 64), boundary_check=(0, 1))
        b_dv = tl.dot(b_k, dh1.to(b_k.dtype))
        if K > 64:
            b_k = tl.load(matrix(k, heads * K, steps, K, t, 1, BT, 64), boundary_check=(0, 1))
            b_dv += tl.dot(b_k, dh2.to(b_k.dtype))
        if K > 128:
            b_k = tl.load(matrix(k, heads * K, steps, K, t, 2, BT, 64), boundary_check=(0, 1))
            b_dv += tl.dot(b_k, dh3.to(b_k.dtype))
        if K > 192:
            b_k = tl.load(matrix(k, heads * K, steps, K, t, 3, BT, 64), boundary_check=(0, 1))
            b_dv += tl.dot(b_k, dh4.to(b_k.dtype))
        b_dv *= rest[:, None]
        b_dv += tl.load(matrix(dv, heads * V, steps, V, t, block, BT, BV), boundary_check=(0, 1))
        out = matrix(dv_new, heads * V, steps, V, t, block, BT, BV)
        tl.store(out, b_dv.to(dv_new.dtype.element_ty), boundary_check=(0, 1))
        dh1 = state_step(
            dh1, q, k, w, b_do, b_dv, decay, end_decay, scale, t, 0, heads, steps, K, BT
        )
        if K > 64:
            dh2 = state_step(
                dh2, q, k, w, b_do, b_dv, decay, end_decay, scale, t, 1, heads, steps, K, BT
            )
        if K > 128:
            dh3 = state_step(
                dh3, q, k, w, b_do, b_dv, decay, end_decay, scale, t, 2, heads, steps, K, BT
            )
        if K > 192:
            dh4 = state_step(
                dh4, q, k, w, b_do, b_dv, decay, end_decay, scale, t, 3, heads, steps, K, BT
            )


@tilewright.jit
def state_step(
    state, q, k, w, b_do, b_dv, decay, end_decay, scale, t, part, heads, steps,
    K: tl.constexpr, BT: tl.constexpr,
):  # fmt: skip
    """One block of 64 rows of the state's gradient, a chunk earlier."""
    b_q = tl.load(matrix(q, heads * K, steps, K, t, part, BT, 64), boundary_check=(0, 1))
    b_w = tl.load(matrix(w, heads * K, steps, K, t, part, BT, 64), boundary_check=(0, 1))
    b_q = (b_q * decay[:, None] * scale).to(b_q.dtype)
    state *= end_decay
    state += tl.dot(tl.trans(b_q), b_do.to(b_q.dtype))
    state -= tl.dot(tl.trans(b_w), b_dv.to(b_w.dtype))
    return state


@tilewright.jit
def decay_chunk_backward(
    q, k, v, w, g, h, do, dh, dv, dq, dk, dw, dg, scale, steps, heads,
    K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """Gradients of queries, keys, weights and gates within a chunk of a gated delta rule.

    `q, k, w, dq, dk, dw: [steps, heads, K]`, `v, do, dv: [steps, heads, V]`,
    `g: [steps, heads]`, `h, dh: [chunks, heads, K, V]`, `dg: [K / BK, steps, heads]`.
    """
    part, t, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    state = (t * heads + head) * K * V
    b_dq = tl.zeros([BT, BK], tl.float32)
    b_dk = tl.zeros([BT, BK], tl.float32)
    b_dw = tl.zeros([BT, BK], tl.float32)
    b_ds = tl.zeros([BT, BT], tl.float32)
    end_slope = tl.zeros([1], tl.float32)
    for block in range(tl.cdiv(V, BV)):
        b_v = tl.load(
            matrix(v + head * V, heads * V, steps, V, t, block, BT, BV), boundary_check=(0, 1)
        )
        b_do = tl.load(
            matrix(do + head * V, heads * V, steps, V, t, block, BT, BV), boundary_check=(0, 1)
        )
        b_dv = tl.load(
            matrix(dv + head * V, heads * V, steps, V, t, block, BT, BV), boundary_check=(0, 1)
        )
        b_h = tl.load(matrix(h + state, V, K, V, part, block, BK, BV), boundary_check=(0, 1))
        b_dh = tl.load(matrix(dh + state, V, K, V, part, block, BK, BV), boundary_check=(0, 1))
        end_slope += tl.sum(b_h.to(tl.float32) * b_dh.to(tl.float32))
        b_ds += tl.dot(b_do, tl.trans(b_v))
        b_dq += tl.dot(b_do, tl.trans(b_h).to(b_do.dtype))
        b_dk += tl.dot(b_v, tl.trans(b_dh).to(b_v.dtype))
        b_dw += tl.dot(b_dv.to(b_v.dtype), tl.trans(b_h).to(b_v.dtype))
    p_dw = matrix(dw + head * K, heads * K, steps, K, t, part, BT, BK)
    tl.store(p_dw, -b_dw.to(dw.dtype.element_ty), boundary_check=(0, 1))
    b_q = tl.load(matrix(q + head * K, heads * K, steps, K, t, part, BT, BK), boundary_check=(0, 1))
    b_k = tl.load(matrix(k + head * K, heads * K, steps, K, t, part, BT, BK), boundary_check=(0, 1))
    at = t * BT + tl.arange(0, BT)
    inside = at < steps
    causal = (at[:, None] >= at[None, :]) & (inside[:, None] & inside[None, :])
    gate = tl.load(g + at * heads + head, inside, other=0.0)
    end = tl.load(g + (min(t * BT + BT, steps) - 1) * heads + head)
    end_slope *= tl.exp(end)
    b_dq = b_dq * tl.exp(gate)[:, None] * scale
    slope = tl.sum(b_dq * b_q, 1)
    b_dk = b_dk * tl.where(inside, tl.exp(end - gate), 0.0)[:, None]
    slope -= tl.sum(b_k * b_dk, 1)
    end_slope += tl.sum(b_dk * b_k)
    b_ds = tl.where(causal, b_ds * tl.exp(gate[:, None] - gate[None, :]), 0.0) * scale
    squares = b_ds * tl.dot(b_q, tl.trans(b_k))
    slope += tl.sum(squares, 1)
    slope -= tl.sum(squares, 0)
    b_ds = b_ds.to(b_k.dtype)
    b_dq += tl.dot(b_ds, b_k)
    b_dk += tl.dot(tl.trans(b_ds), b_q)
    slope = tl.where(at < min(t * BT + BT, steps) - 1, slope, slope + tl.sum(end_slope))
    p_dq = matrix(dq + head * K, heads * K, steps, K, t, part, BT, BK)
    p_dk = matrix(dk + head * K, heads * K, steps, K, t, part, BT, BK)
    tl.store(p_dq, b_dq.to(dq.dtype.element_ty), boundary_check=(0, 1))
    tl.store(p_dk, b_dk.to(dk.dtype.element_ty), boundary_check=(0, 1))
    tl.store(dg + (part * steps + at) * heads + head, slope, inside)


@tilewright.jit
def decay_pairs_backward(
    k, v, beta, g, inverse, dw, du, dk, dv, dbeta, dg, steps, heads,
    K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Gradients through the inverse of I + tril(beta k kᵀ) of a chunk, with decay.

    `k, dw, dk: [steps, heads, K]`, `v, du, dv: [steps, heads, V]`,
    `beta, g, dbeta, dg: [steps, heads]`, `inverse: [steps, heads, BT]`. Sub-chunks of BC rows
    are paired in loops that are unrolled.
    """
    t, head = tl.program_id(0), tl.program_id(1)
    at = t * BT + tl.arange(0, BT)
    inside = at < steps
    b_beta = tl.load(beta + at * heads + head, inside, other=0.0)
    gate = tl.load(g + at * heads + head, inside, other=0.0)
    decay = tl.exp(gate)
    b_inverse = tl.load(
        matrix(inverse + head * BT, heads * BT, steps, BT, t, 0, BT, BT), boundary_check=(0, 1)
    )
    b_inverse = tl.trans(b_inverse)
    b_dbeta = tl.zeros([BT], tl.float32)
    b_dg = tl.zeros([BT], tl.float32)
    b_da = tl.zeros([BT, BT], tl.float32)
    for part in tl.static_range(K // BK):
        b_k = tl.load(
            matrix(k + head * K, heads * K, steps, K, t, part, BT, BK), boundary_check=(0, 1)
        )
        b_dw = tl.load(
            matrix(dw + head * K, heads * K, steps, K, t, part, BT, BK), boundary_check=(0, 1)
        )
        b_kb = (b_k * (b_beta * decay)[:, None]).to(b_k.dtype)
        b_da += tl.dot(b_dw, tl.trans(b_kb))
        b_dkb = tl.dot(b_inverse, b_dw)
        b_dk = b_dkb * (b_beta * decay)[:, None]
        b_dbeta += tl.sum(b_dkb * b_k * decay[:, None], 1)
        b_dg += tl.sum(b_dkb * b_k * (b_beta * decay)[:, None], 1)
        p_dk = matrix(dk + head * K, heads * K, steps, K, t, part, BT, BK)
        tl.store(p_dk, b_dk.to(dk.dtype.element_ty), boundary_check=(0, 1))
    for part in tl.static_range(V // BK):
        b_v = tl.load(
            matrix(v + head * V, heads * V, steps, V, t, part, BT, BK), boundary_check=(0, 1)
        )
        b_du = tl.load(
            matrix(du + head * V, heads * V, steps, V, t, part, BT, BK), boundary_check=(0, 1)
        )
        b_vb = (b_v * b_beta[:, None]).to(b_v.dtype)
        b_da += tl.dot(b_du, tl.trans(b_vb))
        b_dvb = tl.dot(b_inverse, b_du)
        b_dbeta += tl.sum(b_dvb * b_v, 1)
        p_dv = matrix(dv + head * V, heads * V, steps, V, t, part, BT, BK)
        tl.store(p_dv, (b_dvb * b_beta[:, None]).to(dv.dtype.element_ty), boundary_check=(0, 1))
    below = (at[:, None] > at[None, :]) & (inside[:, None] & inside[None, :])
    b_da = tl.where(below, b_da, 0.0).to(k.dtype.element_ty)
    b_da = tl.dot(b_da, b_inverse).to(k.dtype.element_ty)
    b_da = tl.dot(b_inverse, b_da)
    b_da = tl.where(below, -b_da * tl.exp(gate[:, None] - gate[None, :]), 0.0)
    products = tl.zeros([BT, BT], tl.float32)
    b_da = b_da.to(k.dtype.element_ty)
    for part in tl.static_range(K // BK):
        p_dk = matrix(dk + head * K, heads * K, steps, K, t, part, BT, BK)
        b_k = tl.load(
            matrix(k + head * K, heads * K, steps, K, t, part, BT, BK), boundary_check=(0, 1)
        )
        b_dk = tl.load(p_dk, boundary_check=(0, 1)).to(tl.float32)
        b_kb = (b_k * b_beta[:, None]).to(b_k.dtype)
        products += tl.dot(b_kb, tl.trans(b_k))
        b_dkb = tl.dot(b_da, b_k)
        b_dbeta += tl.sum(b_dkb * b_k, 1)
        b_dk += tl.dot(tl.trans(b_da), b_kb) + b_dkb * b_beta[:, None]
        tl.store(p_dk, b_dk.to(dk.dtype.element_ty), boundary_check=(0, 1))
    products *= b_da
    b_dg += tl.sum(products, 1) - tl.sum(products, 0)
    sub = tl.arange(0, BC)
    for i in tl.static_range(BT // BC):
        for j in tl.static_range(i + 1):
            rows = t * BT + i * BC + sub
            columns = t * BT + j * BC + sub
            p_i = matrix(k + head * K, heads * K, steps, K, t * (BT // BC) + i, 0, BC, BK)
            p_j = matrix(k + head * K, heads * K, steps, K, t * (BT // BC) + j, 0, BC, BK)
            k_i = tl.load(p_i, boundary_check=(0, 1))
            k_j = tl.load(p_j, boundary_check=(0, 1))
            score = tl.dot(k_i, tl.trans(k_j))
            if i == j:
                score = tl.where(rows[:, None] > columns[None, :], score, 0.0)
            gate_i = tl.load(g + rows * heads + head, rows < steps, other=0.0)
            gate_j = tl.load(g + columns * heads + head, columns < steps, other=0.0)
            score *= tl.exp(gate_i[:, None] - gate_j[None, :])
            tl.atomic_add(dg + rows * heads + head, tl.sum(score, 1), rows < steps)
    tl.store(dbeta + at * heads + head, b_dbeta, inside)
    tl.atomic_add(dg + at * heads + head, b_dg, inside)


@tilewright.jit
def queries_part(
    dq, q, k, v, do, g, dg, scale, i, steps, heads, head,
    K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr,
):  # fmt: skip
    """Gradients of one tile of queries: tiles of keys before it, then those on the diagonal."""
    b_do = tl.load(matrix(do + head * V, heads * V, steps, V, i, 0, BT, V), boundary_check=(0, 1))
    b_dq = tl.zeros([BT, K], tl.float32)
    rows = i * BT + tl.arange(0, BT)
    gate = tl.load(g + rows * heads + head, rows < steps, other=0.0)
    first = tl.load(g + i * BT * heads + head)
    for s in range(0, i * BT // BS):
        b_k = tl.load(matrix(k + head * K, heads * K, steps, K, s, 0, BS, K), boundary_check=(0, 1))
        b_v = tl.load(matrix(v + head * V, heads * V, steps, V, s, 0, BS, V), boundary_check=(0, 1))
        columns = s * BS + tl.arange(0, BS)
        gate_s = tl.load(g + columns * heads + head, columns < steps, other=0.0)
        end = tl.load(g + (min(s * BS + BS, steps) - 1) * heads + head)
        before = tl.load(g + max(s * BS - 1, 0) * heads + head)
        b_ds = tl.dot(b_do, tl.trans(b_v)) * tl.exp(end - gate_s)[None, :]
        if s > 0:
            b_dq *= tl.exp(end - before)
        b_dq += tl.dot(b_ds.to(b_v.dtype), b_k)
    b_dq *= tl.exp(gate - first)[:, None] * scale
    for s in range(i * BT // BS, tl.cdiv(min(i * BT + BT, steps), BS)):
        b_k = tl.load(matrix(k + head * K, heads * K, steps, K, s, 0, BS, K), boundary_check=(0, 1))
        b_v = tl.load(matrix(v + head * V, heads * V, steps, V, s, 0, BS, V), boundary_check=(0, 1))
        columns = s * BS + tl.arange(0, BS)
        gate_s = tl.load(g + columns * heads + head, columns < steps, other=0.0)
        causal = rows[:, None] >= columns[None, :]
        b_ds = tl.dot(b_do, tl.trans(b_v)) * scale
        b_ds = tl.where(causal, b_ds * tl.exp(gate[:, None] - gate_s[None, :]), 0.0)
        b_dq += tl.dot(b_ds.to(b_k.dtype), b_k)
    b_q = tl.load(matrix(q + head * K, heads * K, steps, K, i, 0, BT, K), boundary_check=(0, 1))
    tl.store(dg + rows * heads + head, tl.sum(b_dq * b_q, 1), rows < steps)
    p_dq = matrix(dq + head * K, heads * K, steps, K, i, 0, BT, K)
    tl.store(p_dq, b_dq.to(dq.dtype.element_ty), boundary_check=(0, 1))


@tilewright.jit
def keys_part(
    dk, dv, q, k, v, do, g, dg, scale, i, steps, heads, head,
    K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr,
):  # fmt: skip
    """Gradients of one tile of keys and values: tiles of queries after it, and the diagonal."""
    b_k = tl.load(matrix(k + head * K, heads * K, steps, K, i, 0, BT, K), boundary_check=(0, 1))
    b_v = tl.load(matrix(v + head * V, heads * V, steps, V, i, 0, BT, V), boundary_check=(0, 1))
    b_dk = tl.zeros([BT, K], tl.float32)
    b_dv = tl.zeros([BT, V], tl.float32)
    rows = i * BT + tl.arange(0, BT)
    gate = tl.load(g + rows * heads + head, rows < steps, other=0.0)
    end = tl.load(g + (min(i * BT + BT, steps) - 1) * heads + head)
    for s in range(tl.cdiv(steps, BS) - 1, tl.cdiv(i * BT + BT, BS) - 1, -1):
        b_q = tl.load(matrix(q + head * K, heads * K, steps, K, s, 0, BS, K), boundary_check=(0, 1))
        b_do = tl.load(
            matrix(do + head * V, heads * V, steps, V, s, 0, BS, V), boundary_check=(0, 1)
        )
        columns = s * BS + tl.arange(0, BS)
        gate_s = tl.load(g + columns * heads + head, columns < steps, other=0.0)
        before = tl.load(g + (s * BS - 1) * heads + head)
        last = tl.load(g + (min(s * BS + BS, steps) - 1) * heads + head)
        b_dk *= tl.exp(last - before)
        b_dv *= tl.exp(last - before)
        rise = tl.where(columns < steps, tl.exp(gate_s - before), 0.0)
        b_ds = tl.dot(b_v, tl.trans(b_do)) * rise[None, :]
        b_dk += tl.dot(b_ds.to(b_q.dtype), b_q)
        b_s = tl.dot(b_k, tl.trans(b_q)) * rise[None, :]
        b_dv += tl.dot(b_s.to(b_do.dtype), b_do)
    b_dk *= tl.exp(end - gate)[:, None] * scale
    b_dv *= tl.exp(end - gate)[:, None] * scale
    for s in range(i * BT // BS, tl.cdiv(min(i * BT + BT, steps), BS)):
        b_q = tl.load(matrix(q + head * K, heads * K, steps, K, s, 0, BS, K), boundary_check=(0, 1))
        b_do = tl.load(
            matrix(do + head * V, heads * V, steps, V, s, 0, BS, V), boundary_check=(0, 1)
        )
        columns = s * BS + tl.arange(0, BS)
        gate_s = tl.load(g + columns * heads + head, columns < steps, other=0.0)
        causal = (rows[:, None] <= columns[None, :]) & (columns < steps)[None, :]
        rise = tl.where(causal, tl.exp(gate_s[None, :] - gate[:, None]), 0.0)
        b_ds = tl.dot(b_v, tl.trans(b_do)) * rise * scale
        b_dk += tl.dot(b_ds.to(b_q.dtype), b_q)
        b_s = tl.dot(b_k, tl.trans(b_q)) * rise * scale
        b_dv += tl.dot(b_s.to(b_do.dtype), b_do)
    old = tl.load(dg + rows * heads + head, rows < steps, other=0.0)
    tl.store(dg + rows * heads + head, old - tl.sum(b_dk * b_k, 1), rows < steps)
    p_dk = matrix(dk + head * K, heads * K, steps, K, i, 0, BT, K)
    p_dv = matrix(dv + head * V, heads * V, steps, V, i, 0, BT, V)
    tl.store(p_dk, b_dk.to(dk.dtype.element_ty), boundary_check=(0, 1))
    tl.store(p_dv, b_dv.to(dv.dtype.element_ty), boundary_check=(0, 1))


@tilewright.jit
def parallel_decay_backward(
    q, k, v, g, do, dq, dk, dv, dg, scale, steps, heads,
    K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr,
):  # fmt: skip
    """Gradients of attention with decay and no softmax, one tile of positions a program.

    `q, k, dq, dk: [steps, heads, K]`, `v, do, dv: [steps, heads, V]`, `g, dg: [steps, heads]`.
    """
    i, head = tl.program_id(0), tl.program_id(1)
    queries_part(dq, q, k, v, do, g, dg, scale, i, steps, heads, head, K, V, BT, BS)
    tl.debug_barrier()
    keys_part(dk, dv, q, k, v, do, g, dg, scale, i, steps, heads, head, K, V, BT, BS)


@tilewright.jit
def tiled_product(
    a, b, c, M, N, K, sa, sb, sc,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """c = a @ b in tiles, tiles of neighbouring rows one after the other."""
    program = tl.program_id(0)
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = program // (GROUP * across) * GROUP
    rows = min(down - first, GROUP)
    i = first + program % (GROUP * across) % rows
    j = program % (GROUP * across) // rows
    at_m = (i * BM + tl.arange(0, BM)) % M
    at_n = (j * BN + tl.arange(0, BN)) % N
    at_k = tl.arange(0, BK)
    pa = a + at_m[:, None] * sa + at_k[None, :]
    pb = b + at_k[:, None] * sb + at_n[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        left = tl.load(pa, mask=at_k[None, :] < K - step * BK, other=0.0)
        right = tl.load(pb, mask=at_k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(left, right, total)
        pa += BK
        pb += BK * sb
    out_m = i * BM + tl.arange(0, BM)
    out_n = j * BN + tl.arange(0, BN)
    inside = (out_m[:, None] < M) & (out_n[None, :] < N)
    tl.store(c + out_m[:, None] * sc + out_n[None, :], total.to(c.dtype.element_ty), inside)


@dataclass(frozen=True)
class LongKernel:
    """A kernel with what its arguments are: the dtypes of its arrays, numbers, constants."""

    kernel: JITFunction
    arrays: Mapping[str, type[np.generic]]
    constants: Mapping[str, int]

    def arguments(self) -> dict[str, object]:
        """Arguments that it is compiled for: numbers are 16 times something odd."""
        names = [parameter.name for parameter in self.kernel.source.parameters]
        numbers = {name: 0.5 if name == "scale" else 48 for name in names}
        arrays = {name: np.zeros(8, dtype) for name, dtype in self.arrays.items()}
        return {**numbers, **arrays, **self.constants}


def _of(dtype: type[np.generic], names: str) -> dict[str, type[np.generic]]:
    return dict.fromkeys(names.split(), dtype)


_CHUNK = {"K": 128, "V": 128, "BT": 64}
LONG_KERNELS: dict[str, LongKernel] = {
    "sort of 1x128 with indices": LongKernel(
        sort_rows,
        {"x": np.float32, "values": np.float32, "indices": np.int64},
        {"ROWS": 1, "AXIS_LOG2": 7},
    ),
    "sort of 8x128 with indices": LongKernel(
        sort_rows,
        {"x": np.float32, "values": np.float32, "indices": np.int64},
        {"ROWS": 8, "AXIS_LOG2": 7},
    ),
    "gated delta rule backward, states": LongKernel(
        decay_states_backward,
        _of(np.float16, "q k w do dh dv dv_new") | _of(np.float32, "g"),
        {"K": 256, "V": 256, "BT": 64, "BV": 32},
    ),
    "gated delta rule backward, chunks": LongKernel(
        decay_chunk_backward,
        _of(np.float16, "q k v w h do dh dv dq dk dw") | _of(np.float32, "g dg"),
        {**_CHUNK, "BK": 64, "BV": 64},
    ),
    "gated delta rule backward, pairs": LongKernel(
        decay_pairs_backward,
        _of(np.float16, "k v inverse dw du dk dv") | _of(np.float32, "beta g dbeta dg"),
        {**_CHUNK, "BC": 16, "BK": 64},
    ),
    "parallel attention with decay, backward": LongKernel(
        parallel_decay_backward,
        _of(np.float16, "q k v do dq dk dv") | _of(np.float32, "g dg"),
        {"K": 64, "V": 64, "BT": 128, "BS": 64},
    ),
    "product of 128x256x64 tiles": LongKernel(
        tiled_product,
        _of(np.float16, "a b c"),
        {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8},
    ),
}
"""The kernels that are watched, by what they are."""
