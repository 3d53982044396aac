"""The kernels that read a prompt: a row of activations for each token, many at once.

Activations are float32, and are rounded to the dtype of the weights, `[outputs, inputs]`, where
they are multiplied. Sums are float32.
"""

from __future__ import annotations

import tilewright
import tilewright.language as tl
from examples.fused_attention import LOG2_E, attend


@tilewright.jit
def embed_tokens(table_ptr, tokens_ptr, out_ptr, width, BLOCK: tl.constexpr):
    """`out = table[tokens]`; one program a token."""
    row = tl.program_id(0)
    token = tl.load(tokens_ptr + row).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(table_ptr + token * width + columns, mask=mask)
    tl.store(out_ptr + row * width + columns, x.to(tl.float32), mask=mask)


@tilewright.jit
def row_products(
    x_ptr, weight_ptr, rows, outputs, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """`x[rows] @ weight[outputs].T` in float32; called by other kernels."""
    steps = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + rows[:, None] * K + steps[None, :]
    weight_ptrs = weight_ptr + outputs[None, :] * K + steps[:, None]
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        inside = steps < K - k
        x = tl.load(x_ptrs, mask=(rows[:, None] < M) & inside[None, :], other=0.0)
        weight = tl.load(weight_ptrs, mask=inside[:, None] & (outputs[None, :] < N), other=0.0)
        acc = tl.dot(x.to(weight.dtype), weight, acc, input_precision="ieee")
        x_ptrs += BLOCK_K
        weight_ptrs += BLOCK_K
    return acc


@tilewright.jit
def linear_rows(
    x_ptr, weight_ptr, residual_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """`out = x @ weight.T`, plus a residual unless that is None; `x: [M, K]`, `out: [M, N]`."""
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    outputs = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    y = row_products(x_ptr, weight_ptr, rows, outputs, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
    places = rows[:, None] * N + outputs[None, :]
    mask = (rows[:, None] < M) & (outputs[None, :] < N)
    if residual_ptr is not None:
        y += tl.load(residual_ptr + places, mask=mask, other=0.0)
    tl.store(out_ptr + places, y, mask=mask)


@tilewright.jit
def gated_rows(
    x_ptr, gate_ptr, up_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """SwiGLU: `out = silu(x @ gate.T) * (x @ up.T)`; `x: [M, K]`, `out: [M, N]`."""
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    outputs = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = row_products(x_ptr, gate_ptr, rows, outputs, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
    up = row_products(x_ptr, up_ptr, rows, outputs, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K)
    places = rows[:, None] * N + outputs[None, :]
    mask = (rows[:, None] < M) & (outputs[None, :] < N)
    tl.store(out_ptr + places, gate * tl.sigmoid(gate) * up, mask=mask)


@tilewright.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, length, capacity, scale,
    GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Causal attention of `BLOCK_M` queries of one head, `GROUP` of which share keys and values.

    `q: [heads, length, HEAD_DIM]`. `k`, `v: [heads / GROUP, capacity, HEAD_DIM]`.
    `out: [length, heads, HEAD_DIM]`.
    """
    first, head = tl.program_id(0) * BLOCK_M, tl.program_id(1)
    queries, dims = first + tl.arange(0, BLOCK_M), tl.arange(0, HEAD_DIM)
    inside = queries[:, None] < length
    q_places = (head * length + queries[:, None]) * HEAD_DIM + dims[None, :]
    q = tl.load(q_ptr + q_places, mask=inside, other=0.0)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    highest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    start = head // GROUP * capacity * HEAD_DIM
    last = tl.minimum(first + BLOCK_M, length)
    unmasked = first // BLOCK_N * BLOCK_N
    log2_scale = scale * LOG2_E
    acc, total, highest = attend(
        *(acc, total, highest, q, k_ptr + start, v_ptr + start, 0, unmasked, queries, length),
        *(log2_scale, True, False, HEAD_DIM, BLOCK_N),
    )
    acc, total, highest = attend(
        *(acc, total, highest, q, k_ptr + start, v_ptr + start, unmasked, last, queries, length),
        *(log2_scale, True, True, HEAD_DIM, BLOCK_N),
    )
    places = (queries[:, None] * tl.num_programs(1) + head) * HEAD_DIM + dims[None, :]
    tl.store(out_ptr + places, acc / total[:, None], mask=inside)
