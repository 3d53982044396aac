"""Kernels of plain pointers whose loads a copy engine can make."""

from __future__ import annotations

import tilewright
import tilewright.language as tl


@tilewright.jit
def product(
    a, b, c, M, N, K, a_row, a_column, b_row, b_column, c_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Tiles in groups of rows; rows and columns that wrap, pointers that move."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    tile_m = first + pid % (GROUP * columns) % size
    tile_n = pid % (GROUP * columns) // size
    at_m = (tile_m * BM + tl.arange(0, BM)) % M
    at_n = (tile_n * BN + tl.arange(0, BN)) % N
    at_k = tl.arange(0, BK)
    from_a = a + at_m[:, None] * a_row + at_k[None, :] * a_column
    from_b = b + at_k[:, None] * b_row + at_n[None, :] * b_column
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(from_a, mask=at_k[None, :] < K - k * BK, other=0.0)
        y = tl.load(from_b, mask=at_k[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        from_a += BK * a_column
        from_b += BK * b_row
    to_m = tile_m * BM + tl.arange(0, BM)
    to_n = tile_n * BN + tl.arange(0, BN)
    mask = (to_m[:, None] < M) & (to_n[None, :] < N)
    tl.store(c + to_m[:, None] * c_row + to_n[None, :], acc.to(tl.float16), mask=mask)


@tilewright.jit
def biased(
    a, b, c, bias, M, N, K, a_row, a_column, b_row, b_column, c_row,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """A product with a number for each of its columns added; `GROUP` is not used."""
    pid = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    to_m = pid // columns * BM + tl.arange(0, BM)
    to_n = pid % columns * BN + tl.arange(0, BN)
    at_k = tl.arange(0, BK)
    from_a = a + (to_m % M)[:, None] * a_row + at_k[None, :] * a_column
    from_b = b + at_k[:, None] * b_row + (to_n % N)[None, :] * b_column
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(from_a, mask=at_k[None, :] < K - k * BK, other=0.0)
        y = tl.load(from_b, mask=at_k[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        from_a += BK * a_column
        from_b += BK * b_row
    total = acc + tl.load(bias + to_n, mask=to_n < N, other=0.0)[None, :]
    mask = (to_m[:, None] < M) & (to_n[None, :] < N)
    tl.store(c + to_m[:, None] * c_row + to_n[None, :], total.to(tl.float16), mask=mask)


@tilewright.jit
def half_described(
    a, b, c, M, N, K, c_row,
    LOADS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Blocks are loaded and pointers stored through (`LOADS`), or the other way; no `GROUP`."""
    pid = tl.program_id(0)
    columns = tl.cdiv(N, BN)
    row, column = pid // columns * BM, pid % columns * BN
    at_m, at_n, at_k = row + tl.arange(0, BM), column + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    if LOADS:
        left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
        right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
        for k in range(0, K, BK):
            acc = tl.dot(left.load([row, k]), right.load([k, column]), acc)
        mask = (at_m < M)[:, None] & (at_n < N)[None, :]
        tl.store(c + at_m[:, None] * c_row + at_n[None, :], acc.to(tl.float16), mask=mask)
    else:
        out = tl.make_tensor_descriptor(c, [M, N], [c_row, 1], [BM, BN])
        for k in range(0, K, BK):
            x_mask = (at_m < M)[:, None] & (at_k < K - k)[None, :]
            y_mask = (at_k < K - k)[:, None] & (at_n < N)[None, :]
            x = tl.load(a + at_m[:, None] * K + (k + at_k)[None, :], mask=x_mask, other=0.0)
            y = tl.load(b + (k + at_k)[:, None] * N + at_n[None, :], mask=y_mask, other=0.0)
            acc = tl.dot(x, y, acc)
        out.store([row, column], acc.to(tl.float16))


@tilewright.jit
def attention(
    q, k, v, out, of_batch, of_head, of_row, heads, length, scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Rows of one head of one batch, whose strides the launch gives."""
    head = tl.program_id(1)
    start = head // heads * of_batch.to(tl.int64) + head % heads * of_head.to(tl.int64)
    rows, keys = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    columns = tl.arange(0, D)
    inside = rows[:, None] < length
    from_k = k + start + keys[None, :] * of_row + columns[:, None]
    from_v = v + start + keys[:, None] * of_row + columns[None, :]
    at = start + rows[:, None] * of_row + columns[None, :]
    queries = tl.load(q + at, mask=inside, other=0.0)
    most, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for first in range(0, length, BN):
        if MASKED:
            x = tl.load(from_k, mask=first + keys[None, :] < length, other=0.0)
            y = tl.load(from_v, mask=first + keys[:, None] < length, other=0.0)
        else:
            x, y = tl.load(from_k), tl.load(from_v)
        scores = tl.dot(queries, x) * scale
        scores = tl.where(first + keys[None, :] < length, scores, -1e30)
        now = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp2(scores - now[:, None])
        total = total * tl.exp2(most - now) + tl.sum(weights, 1)
        acc = tl.dot(weights.to(tl.float16), y, acc * tl.exp2(most - now)[:, None])
        most = now
        from_k += BN * of_row
        from_v += BN * of_row
    tl.store(out + at, (acc / total[:, None]).to(tl.float16), mask=inside)


@tilewright.jit
def updated(a, b, K, BLOCK: tl.constexpr, SAME: tl.constexpr):
    """Products of what the kernel writes itself, or of what it does not."""
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K):
        x = tl.load(a + k * BLOCK * BLOCK + at)
        acc = tl.dot(x, x, acc)
        tl.store((a if SAME else b) + (k + 1) * BLOCK * BLOCK + at, acc.to(tl.float16))


@tilewright.jit
def crossed(a, b, c, K, a_row, BLOCK: tl.constexpr):
    """Tiles without masks, some of which begin in one row and end in the next."""
    i = tl.arange(0, BLOCK)
    b_at = b + i[:, None] * BLOCK + i[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K):
        x = tl.load(a + (tl.program_id(0) * BLOCK + i)[:, None] * a_row + k * BLOCK + i[None, :])
        acc = tl.dot(x, tl.load(b_at), acc)
        b_at += BLOCK * BLOCK
    to = tl.program_id(0) * BLOCK + i
    tl.store(c + to[:, None] * BLOCK + i[None, :], acc)
