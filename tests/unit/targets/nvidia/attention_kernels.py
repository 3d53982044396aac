"""Attention in the forms that people write: for the simulator, for ptxas, and for a GPU.

A head is `n` rows of `D` numbers; heads lie one behind the other. `BY` says what brings a block:
descriptors that the host made (`host`), that the kernel makes (`made`), or pointers (`pointers`).
`STAGE` 1 attends to everything; 3 is causal: one phase before the diagonal, one on it.
"""

from __future__ import annotations

import tilewright
import tilewright.language as tl


@tilewright.jit
def view(x, rows, BY: tl.constexpr, R: tl.constexpr, D: tl.constexpr):
    """What blocks of R rows are taken from."""
    if BY == "made":
        return tl.make_tensor_descriptor(x, [rows, D], [D, 1], [R, D])
    else:
        return x


@tilewright.jit
def block_at(x, row, BY: tl.constexpr, R: tl.constexpr, D: tl.constexpr):
    """R rows from `row` on."""
    if BY == "pointers":
        return tl.load(x + (row + tl.arange(0, R))[:, None] * D + tl.arange(0, D)[None, :])
    else:
        return x.load([row, 0])


@tilewright.jit
def put(x, row, block, BY: tl.constexpr, R: tl.constexpr, D: tl.constexpr):
    """Writes R rows from `row` on."""
    if BY == "pointers":
        tl.store(x + (row + tl.arange(0, R))[:, None] * D + tl.arange(0, D)[None, :], block)
    else:
        x.store([row, 0], block)


@tilewright.jit
def phase(
    acc, total, top, q, k, v, head, first, n, scale, P: tl.constexpr, BY: tl.constexpr,
    PHASE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """One phase of the online softmax: 1 before the diagonal, 2 on it, 3 everything."""
    if PHASE == 1:
        lo, hi = 0, first
    elif PHASE == 2:
        lo, hi = first, first + BM
        lo = tl.multiple_of(lo, BM)
    else:
        lo, hi = 0, n
    rows = first + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    for start in tl.range(lo, hi, BN):
        start = tl.multiple_of(start, BN)
        s = tl.dot(q, block_at(k, head + start, BY, BN, D).T) * scale
        if PHASE == 2:
            s = tl.where(rows[:, None] >= start + columns[None, :], s, -1.0e6)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(top - new)
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(P), block_at(v, head + start, BY, BN, D), acc)
        top = new
    return acc, total, top


@tilewright.jit
def forward(
    q, k, v, out, lse, rows, n, scale, P: tl.constexpr, BY: tl.constexpr, STAGE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """softmax(q k^T) v of a block of rows, and the log2 of each row's sum."""
    q, out = view(q, rows, BY, BM, D), view(out, rows, BY, BM, D)
    k, v = view(k, rows, BY, BN, D), view(v, rows, BY, BN, D)
    first, head = tl.program_id(0) * BM, tl.program_id(1) * n
    top = tl.zeros((BM,), tl.float32) - float("inf")
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    x = block_at(q, head + first, BY, BM, D)
    if STAGE & 1:
        acc, total, top = phase(
            acc, total, top, x, k, v, head, first, n, scale, P, BY, 4 - STAGE, BM, BN, D
        )
    if STAGE & 2:
        acc, total, top = phase(
            acc, total, top, x, k, v, head, first, n, scale, P, BY, 2, BM, BN, D
        )
    tl.store(lse + head + first + tl.arange(0, BM), top + tl.log2(total))
    put(out, head + first, (acc / total[:, None]).to(P), BY, BM, D)


@tilewright.jit
def of_keys(
    dk, dv, k, v, q, do, lse, delta, head, first, lo, hi, scale, P: tl.constexpr, BY: tl.constexpr,
    MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """What rows `lo` to `hi` add to the gradients of a block of keys and values."""
    keys = first + tl.arange(0, BN)
    for start in range(lo, hi, BM):
        x = block_at(q, head + start, BY, BM, D)
        rows = start + tl.arange(0, BM)
        p = tl.exp2(tl.dot(k, x.T) * scale - tl.load(lse + head + rows)[None, :])
        if MASK:
            p = tl.where(rows[None, :] >= keys[:, None], p, 0.0)
        y = block_at(do, head + start, BY, BM, D)
        dv += tl.dot(p.to(P), y)
        ds = p * (tl.dot(v, y.T) - tl.load(delta + head + rows)[None, :])
        dk += tl.dot(ds.to(P), x)
    return dk, dv


@tilewright.jit
def of_rows(
    dq, q, do, lse, delta, k, v, head, first, lo, hi, scale, P: tl.constexpr, BY: tl.constexpr,
    MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """What keys `lo` to `hi` add to the gradient of a block of rows."""
    rows = first + tl.arange(0, BM)
    for start in range(lo, hi, BN):
        x = block_at(k, head + start, BY, BN, D)
        p = tl.exp2(tl.dot(q, x.T) * scale - lse[:, None])
        if MASK:
            p = tl.where(rows[:, None] >= start + tl.arange(0, BN)[None, :], p, 0.0)
        y = block_at(v, head + start, BY, BN, D)
        ds = p * (tl.dot(do, y.T) - delta[:, None])
        dq += tl.dot(ds.to(P), x)
    return dq


@tilewright.jit
def backward(
    q, k, v, do, dq, dk, dv, lse, delta, rows, n, scale, P: tl.constexpr, BY: tl.constexpr,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The gradients, up to `scale` and log2(e): of BM keys from all rows, of BM rows from all keys.

    The block that a program keeps has BM rows; it walks over the others by BN.
    """
    first, head = tl.program_id(0) * BM, tl.program_id(1) * n
    own_k = block_at(view(k, rows, BY, BM, D), head + first, BY, BM, D)
    own_v = block_at(view(v, rows, BY, BM, D), head + first, BY, BM, D)
    moving_q, moving_do = view(q, rows, BY, BN, D), view(do, rows, BY, BN, D)
    a = tl.zeros((BM, D), tl.float32)
    b = tl.zeros((BM, D), tl.float32)
    after = 0
    if CAUSAL:
        after = first + BM
        a, b = of_keys(
            a, b, own_k, own_v, moving_q, moving_do, lse, delta, head, first, first, after, scale,
            P, BY, True, BN, BM, D,
        )  # fmt: skip
    a, b = of_keys(
        a, b, own_k, own_v, moving_q, moving_do, lse, delta, head, first, after, n, scale,
        P, BY, False, BN, BM, D,
    )  # fmt: skip
    put(view(dk, rows, BY, BM, D), head + first, a, BY, BM, D)
    put(view(dv, rows, BY, BM, D), head + first, b, BY, BM, D)

    own_q = block_at(view(q, rows, BY, BM, D), head + first, BY, BM, D)
    own_do = block_at(view(do, rows, BY, BM, D), head + first, BY, BM, D)
    moving_k, moving_v = view(k, rows, BY, BN, D), view(v, rows, BY, BN, D)
    mine = head + first + tl.arange(0, BM)
    top, d = tl.load(lse + mine), tl.load(delta + mine)
    c = tl.zeros((BM, D), tl.float32)
    before = n
    if CAUSAL:
        before = first
        c = of_rows(
            c, own_q, own_do, top, d, moving_k, moving_v, head, first, first, first + BM, scale,
            P, BY, True, BM, BN, D,
        )  # fmt: skip
    c = of_rows(
        c, own_q, own_do, top, d, moving_k, moving_v, head, first, 0, before, scale,
        P, BY, False, BM, BN, D,
    )  # fmt: skip
    put(view(dq, rows, BY, BM, D), head + first, c, BY, BM, D)
