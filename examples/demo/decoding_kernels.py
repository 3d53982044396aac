"""The kernels of one decoding step of a language model: one token, one row of activations.

Activations are float32. Weights are `[outputs, inputs]` in float32 or bfloat16, and are widened
where they are multiplied, so a step reads each weight once and computes in float32.
"""

from __future__ import annotations

import tilewright
import tilewright.language as tl


@tilewright.jit
def embed_token(table_ptr, token, out_ptr, width, BLOCK: tl.constexpr):
    """`out = table[token]`; one program."""
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    row = tl.load(table_ptr + token.to(tl.int64) * width + columns, mask=mask)
    tl.store(out_ptr + columns, row.to(tl.float32), mask=mask)


@tilewright.jit
def rms_norm(x_ptr, gain_ptr, out_ptr, width, EPSILON: tl.constexpr, BLOCK: tl.constexpr):
    """`out = x / sqrt(mean(x²) + EPSILON) * gain`; one program a row."""
    first = tl.program_id(0) * width
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + first + columns, mask=mask, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / width + EPSILON)
    y = x * scale * tl.load(gain_ptr + columns, mask=mask)
    tl.store(out_ptr + first + columns, y, mask=mask)


@tilewright.jit
def products(weight_ptr, x_ptr, first, outputs, width, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows `first` to `first + ROWS` of `weight @ x`; called by other kernels."""
    rows = first + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    mask = (rows[:, None] < outputs) & inside[None, :]
    offsets = rows.to(tl.int64)[:, None] * width + columns[None, :]
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0)
    x = tl.load(x_ptr + columns, mask=inside, other=0.0)
    return tl.sum(weight.to(tl.float32) * x[None, :], axis=1)


@tilewright.jit
def linear(
    weight_ptr,
    x_ptr,
    residual_ptr,
    out_ptr,
    outputs,
    width,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """`out = weight @ x`, plus a residual unless that is None; a program computes `ROWS` rows."""
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    y = products(weight_ptr, x_ptr, first, outputs, width, ROWS, BLOCK)
    if residual_ptr is not None:
        y += tl.load(residual_ptr + rows, mask=rows < outputs, other=0.0)
    tl.store(out_ptr + rows, y, mask=rows < outputs)


@tilewright.jit
def gated_linear(
    gate_ptr, up_ptr, x_ptr, out_ptr, outputs, width, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """SwiGLU: `out = silu(gate @ x) * (up @ x)`; a program computes `ROWS` rows."""
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    gate = products(gate_ptr, x_ptr, first, outputs, width, ROWS, BLOCK)
    up = products(up_ptr, x_ptr, first, outputs, width, ROWS, BLOCK)
    tl.store(out_ptr + rows, gate * tl.sigmoid(gate) * up, mask=rows < outputs)


@tilewright.jit
def rotate_and_store(
    qkv_ptr,
    cosines_ptr,
    sines_ptr,
    q_ptr,
    k_ptr,
    v_ptr,
    first_position,
    capacity,
    HEADS: tl.constexpr,
    GROUPS: tl.constexpr,
    HALF: tl.constexpr,
):
    """Rotate the queries and the keys of positions; keep keys and values in the cache.

    `qkv: [positions, HEADS + 2 * GROUPS, 2 * HALF]`, one program a head and position.
    `q: [HEADS, positions, 2 * HALF]`. `k`, `v: [GROUPS, capacity, 2 * HALF]`.
    `cosines`, `sines: [capacity, HALF]`.
    """
    head, number = tl.program_id(0), tl.program_id(1)
    position = first_position + number
    i = tl.arange(0, HALF)
    row = qkv_ptr + (number * (HEADS + 2 * GROUPS) + head) * 2 * HALF + i
    low, high = tl.load(row), tl.load(row + HALF)
    cosine = tl.load(cosines_ptr + position * HALF + i)
    sine = tl.load(sines_ptr + position * HALF + i)
    turned_low, turned_high = low * cosine - high * sine, high * cosine + low * sine
    if head < HEADS:
        place = q_ptr + (head * tl.num_programs(1) + number) * 2 * HALF + i
        tl.store(place, turned_low)
        tl.store(place + HALF, turned_high)
    elif head < HEADS + GROUPS:
        place = k_ptr + ((head - HEADS) * capacity + position) * 2 * HALF + i
        tl.store(place, turned_low)
        tl.store(place + HALF, turned_high)
    else:
        place = v_ptr + ((head - HEADS - GROUPS) * capacity + position) * 2 * HALF + i
        tl.store(place, low)
        tl.store(place + HALF, high)
