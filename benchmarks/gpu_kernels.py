"""The kernels of the GPU benchmarks, in the words that Triton and Tilewright share.

`benchmarks.gpu` loads this file twice: once with the real `triton`, once with ours under that
name, so both compile the same source.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """out = x + y."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax(x_ptr, out_ptr, stride, width, BLOCK: tl.constexpr):
    """Softmax of one row of `width` elements."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + columns, weights / tl.sum(weights, axis=0), mask=mask)


@triton.jit
def softmax_rows(
    x_ptr, out_ptr, stride, height, width, BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Softmax of every `num_programs`-th row, while the next rows are on their way."""
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    for row in tl.range(tl.program_id(0), height, tl.num_programs(0), num_stages=STAGES):
        start = row.to(tl.int64) * stride
        x = tl.load(x_ptr + start + columns, mask=mask, other=-float("inf"))
        weights = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + start + columns, weights / tl.sum(weights, axis=0), mask=mask)


@triton.jit
def layer_norm_rows(
    x_ptr, out_ptr, weight_ptr, bias_ptr, stride, height, width, eps,
    BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Every `num_programs`-th row, normalised, scaled and shifted; the next ones on their way."""
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=mask).to(tl.float32)
    for row in tl.range(tl.program_id(0), height, tl.num_programs(0), num_stages=STAGES):
        start = row.to(tl.int64) * stride
        x = tl.load(x_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0) / width
        centred = tl.where(mask, x - mean, 0.0)
        rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / width + eps)
        tl.store(out_ptr + start + columns, centred * rstd * weight + bias, mask=mask)


@triton.jit
def scaled_sum(x_ptr, y_ptr, out_ptr, size, scale, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """out = x * scale + y; each program takes every `num_programs`-th block."""
    at = tl.arange(0, BLOCK)
    first, step = tl.program_id(0), tl.num_programs(0)
    for block in tl.range(first, tl.cdiv(size, BLOCK), step, num_stages=STAGES):
        offsets = block * BLOCK + at
        mask = offsets < size
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x * scale + y, mask=mask)


@triton.jit
def layer_norm(
    x_ptr, out_ptr, weight_ptr, bias_ptr, mean_ptr, rstd_ptr, stride, width, eps,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """One row, normalised, scaled and shifted; mean and 1 / deviation are kept."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / width
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / width + eps)
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=mask).to(tl.float32)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    tl.store(out_ptr + row * stride + columns, centred * rstd * weight + bias, mask=mask)


@triton.jit
def layer_norm_backward(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, stride, width, rows,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """dx of every `num_programs`-th row, and this program's part of dw and db."""
    first = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < width
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), dtype=tl.float32)
    db = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(first, rows, tl.num_programs(0)):
        start = row.to(tl.int64) * stride
        x = tl.load(x_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        normalised = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        scaled = weight * dy
        along = tl.sum(normalised * scaled, axis=0) / width
        mean = tl.sum(scaled, axis=0) / width
        tl.store(dx_ptr + start + columns, (scaled - (normalised * along + mean)) * rstd, mask=mask)
        dw += dy * normalised
        db += dy
    tl.store(dw_ptr + first * width + columns, dw, mask=mask)
    tl.store(db_ptr + first * width + columns, db, mask=mask)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """c = a @ b by tiles; M, N and K are multiples of the blocks."""
    program = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    group_size = GROUP_M * num_n
    first_m = program // group_size * GROUP_M
    rows_in_group = min(num_m - first_m, GROUP_M)
    tile_m = first_m + program % group_size % rows_in_group
    tile_n = program % group_size // rows_in_group
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + steps[None, :]
    b_ptrs = b_ptr + steps[:, None] * stride_bk + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty))


@triton.jit
def masked_product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """c = a @ b by pointers, of any sizes, in any order of the dimensions."""
    num_m, num_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = tl.program_id(0) // (GROUP_M * num_n) * GROUP_M
    rows_in_group = min(num_m - first_m, GROUP_M)
    place = tl.program_id(0) % (GROUP_M * num_n)
    rows = (first_m + place % rows_in_group) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = place // rows_in_group * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + steps[None, :] * stride_ak
    b_ptrs = b_ptr + steps[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        is_inside = start + steps < K
        a = tl.load(a_ptrs, mask=(rows < M)[:, None] & is_inside[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=is_inside[:, None] & (columns < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :]
    is_stored = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=is_stored)


@triton.jit
def product_tile(
    a_ptr, b_ptr, c_ptr, M, N, K, tile,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """One tile of c = a @ b by pointers, of any sizes; tiles are numbered in groups of rows."""
    num_m, num_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = tile // (GROUP_M * num_n) * GROUP_M
    rows_in_group = min(num_m - first_m, GROUP_M)
    place = tile % (GROUP_M * num_n)
    rows = (first_m + place % rows_in_group) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = place // rows_in_group * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        steps = start + tl.arange(0, BLOCK_K)
        a_mask = (rows < M)[:, None] & (steps < K)[None, :]
        b_mask = (steps < K)[:, None] & (columns < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * K + steps[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + steps[:, None] * N + columns[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
    is_stored = (rows < M)[:, None] & (columns < N)[None, :]
    c_ptrs = c_ptr + rows[:, None] * N + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=is_stored)


@triton.jit
def walked_product(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    WALK: tl.constexpr,
):  # fmt: skip
    """c = a @ b by programs that take one tile after the other, in the order that `WALK` says."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    first, apart = tl.program_id(0), tl.num_programs(0)
    if WALK == "strided":
        for tile in tl.range(first, tiles, apart):
            product_tile(a_ptr, b_ptr, c_ptr, M, N, K, tile, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)
    elif WALK == "chunked":
        each = tl.cdiv(tiles, apart)
        for tile in tl.range(first * each, min(first * each + each, tiles)):
            product_tile(a_ptr, b_ptr, c_ptr, M, N, K, tile, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)
    elif WALK == "counted":
        for step in tl.range(0, tl.cdiv(tiles - first, apart)):
            tile = first + step * apart
            product_tile(a_ptr, b_ptr, c_ptr, M, N, K, tile, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)
    elif WALK == "carried":
        steps, tile = tiles // apart, first
        if first < tiles % apart:
            steps += 1
        for _ in tl.range(0, steps):
            product_tile(a_ptr, b_ptr, c_ptr, M, N, K, tile, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)
            tile += apart
    else:
        tile = first
        while tile < tiles:
            product_tile(a_ptr, b_ptr, c_ptr, M, N, K, tile, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)
            tile += apart


@triton.jit
def flattened_product(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """c = a @ b by one loop over the steps of all of a program's tiles."""
    num_m, num_n, depth = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), tl.cdiv(K, BLOCK_K)
    first, apart = tl.program_id(0), tl.num_programs(0)
    tiles_here = num_m * num_n // apart
    if first < num_m * num_n % apart:
        tiles_here += 1
    tile, step = first - apart, -1
    rows, columns = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, depth * tiles_here):
        step = tl.where(step == depth - 1, 0, step + 1)
        if step == 0:
            tile += apart
            first_m = tile // (GROUP_M * num_n) * GROUP_M
            rows_in_group = min(num_m - first_m, GROUP_M)
            place = tile % (GROUP_M * num_n)
            rows = (first_m + place % rows_in_group) * BLOCK_M + tl.arange(0, BLOCK_M)
            columns = place // rows_in_group * BLOCK_N + tl.arange(0, BLOCK_N)
        steps = step * BLOCK_K + tl.arange(0, BLOCK_K)
        a_mask = (rows < M)[:, None] & (steps < K)[None, :]
        b_mask = (steps < K)[:, None] & (columns < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * K + steps[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + steps[:, None] * N + columns[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc)
        if step == depth - 1:
            c_ptrs = c_ptr + rows[:, None] * N + columns[None, :]
            is_stored = (rows < M)[:, None] & (columns < N)[None, :]
            tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=is_stored)
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """out = softmax(scale * q @ k.T) @ v of `BLOCK_M` queries of one head, online.

    `length` is a multiple of both blocks; `scale` includes log2(e).
    """
    first = tl.program_id(0) * BLOCK_M
    start = tl.program_id(1).to(tl.int64) * length * HEAD_DIM
    queries = first + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + start + queries[:, None] * HEAD_DIM + dims[None, :])
    k_ptrs = k_ptr + start + keys[None, :] * HEAD_DIM + dims[:, None]
    v_ptrs = v_ptr + start + keys[:, None] * HEAD_DIM + dims[None, :]
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    highest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    last = length
    if CAUSAL:
        last = first + BLOCK_M
    for step in range(0, last, BLOCK_N):
        scores = tl.dot(q, tl.load(k_ptrs))
        if CAUSAL:
            scores = tl.where(queries[:, None] >= step + keys[None, :], scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = tl.dot(weights.to(tl.float16), tl.load(v_ptrs), acc * rescale[:, None])
        highest = new_highest
        k_ptrs += BLOCK_N * HEAD_DIM
        v_ptrs += BLOCK_N * HEAD_DIM
    out = start + queries[:, None] * HEAD_DIM + dims[None, :]
    tl.store(out_ptr + out, (acc / total[:, None]).to(tl.float16))


@triton.jit
def five_arguments(x_ptr, y_ptr, out_ptr, size, scale):
    """What a launch of five arguments costs when nothing is done."""
    if tl.program_id(0) > size:
        tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr) * scale)


@triton.jit
def matmul_tiles(
    a_desc, b_desc, c_desc, of_rows_ptr, of_columns_ptr, M, N, K, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    B_TRANSPOSED: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """c = a @ b of descriptors, any sizes; each program takes every `num_programs`-th tile.

    Where `B_TRANSPOSED`, `b` is stored [N, K]. Where `SCALED`, rows and columns of `c` are
    multiplied by numbers of their own.
    """
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    for tile in range(tl.program_id(0), num_m * num_n, tl.num_programs(0)):
        first_m = tile // (GROUP_M * num_n) * GROUP_M
        rows_in_group = min(num_m - first_m, GROUP_M)
        place = tile % (GROUP_M * num_n)
        row = (first_m + place % rows_in_group) * BLOCK_M
        column = place // rows_in_group * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            if B_TRANSPOSED:
                b = b_desc.load([column, start]).T
            else:
                b = b_desc.load([start, column])
            acc = tl.dot(a_desc.load([row, start]), b, acc)
        if SCALED:
            rows, columns = row + tl.arange(0, BLOCK_M), column + tl.arange(0, BLOCK_N)
            of_rows = tl.load(of_rows_ptr + rows, mask=rows < M, other=0.0)
            of_columns = tl.load(of_columns_ptr + columns, mask=columns < N, other=0.0)
            acc = acc * of_rows[:, None] * of_columns[None, :]
        c_desc.store([row, column], acc.to(c_desc.dtype))


@triton.jit
def attend_to(
    acc, total, highest, q, k_desc, v_desc, row, first, last, queries, scale,
    MASKED: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One stretch of keys for a block of queries; where `MASKED`, keys behind a query are left."""
    for start in range(first, last, BLOCK_N):
        scores = tl.dot(q, k_desc.load([row + start, 0]).T)
        if MASKED:
            keys = start + tl.arange(0, BLOCK_N)
            scores = tl.where(queries[:, None] >= keys[None, :], scores, -1.0e30)
        new_highest = tl.maximum(highest, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        v = v_desc.load([row + start, 0])
        acc = tl.dot(weights.to(tl.bfloat16), v, acc * rescale[:, None])
        highest = new_highest
    return acc, total, highest


@triton.jit
def block_of(LAST_FIRST: tl.constexpr):
    """The program's block of queries; those that see most keys first, if LAST_FIRST."""
    block = tl.program_id(0)
    if LAST_FIRST:
        block = tl.num_programs(0) - 1 - block
    return block


@triton.jit
def attention_tiles(
    q_desc, k_desc, v_desc, out_desc, length, scale, CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Attention of descriptors `[batch * heads * length, HEAD_DIM]`; `scale` includes log2(e).

    `length` is a multiple of both blocks.
    """
    tl.assume(length >= 0)
    # Measured at a head of 128: short programs end a launch better than long ones.
    first = block_of(CAUSAL and HEAD_DIM == 128) * BLOCK_M
    row = tl.program_id(1) * length
    queries = first + tl.arange(0, BLOCK_M)
    q = q_desc.load([row + first, 0])
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    highest = tl.full((BLOCK_M,), -1.0e30, dtype=tl.float32)
    before = length
    if CAUSAL:
        before = first
    acc, total, highest = attend_to(
        acc, total, highest, q, k_desc, v_desc, row, 0, before, queries, scale, False, BLOCK_N
    )
    if CAUSAL:
        acc, total, highest = attend_to(
            acc, total, highest, q, k_desc, v_desc, row, first, first + BLOCK_M, queries, scale,
            True, BLOCK_N,
        )  # fmt: skip
    out_desc.store([row + first, 0], (acc * (1 / total)[:, None]).to(tl.bfloat16))


@triton.jit
def attention_in_turn(
    q_desc, k_desc, v_desc, out_desc, length, heads, scale, HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Causal `attention_tiles`; each program takes every `num_programs`-th block of queries.

    The blocks of `GROUP` heads come with the most keys first, so that all programs get as many of
    each length; their keys and values stay in L2. `heads` is a multiple of `GROUP`.
    """
    blocks = length // BLOCK_M
    for tile in range(tl.program_id(0), blocks * heads, tl.num_programs(0)):
        place = tile % (GROUP * blocks)
        first = (blocks - 1 - place // GROUP) * BLOCK_M
        row = (tile // (GROUP * blocks) * GROUP + place % GROUP) * length
        tl.assume(first >= 0)
        tl.assume(row >= 0)
        queries = first + tl.arange(0, BLOCK_M)
        q = q_desc.load([row + first, 0])
        acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
        highest = tl.full((BLOCK_M,), -1.0e30, dtype=tl.float32)
        acc, total, highest = attend_to(
            acc, total, highest, q, k_desc, v_desc, row, 0, first + BLOCK_M, queries, scale, True,
            BLOCK_N,
        )  # fmt: skip
        out_desc.store([row + first, 0], (acc * (1 / total)[:, None]).to(tl.bfloat16))


@triton.jit
def attention_rows(
    q_desc, k_desc, v_desc, out_ptr, length, scale, CAUSAL: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Attention of any length; `BLOCK_M` may be 192 where three groups of warps share the rows."""
    # Measured at a head of 128: short programs end a launch better than long ones.
    first = block_of(CAUSAL and HEAD_DIM == 128) * BLOCK_M
    row = tl.program_id(1) * length
    queries = first + tl.arange(0, BLOCK_M)
    q = q_desc.load([row + first, 0])
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    highest = tl.full((BLOCK_M,), -1.0e30, dtype=tl.float32)
    whole = length // BLOCK_N * BLOCK_N
    last = length
    limits = tl.full((BLOCK_M,), length - 1, dtype=tl.int32)
    if CAUSAL:
        whole = first // BLOCK_N * BLOCK_N
        last = min(first + BLOCK_M, length)
        limits = queries
    acc, total, highest = attend_to(
        acc, total, highest, q, k_desc, v_desc, row, 0, whole, limits, scale, False, BLOCK_N
    )
    acc, total, highest = attend_to(
        acc, total, highest, q, k_desc, v_desc, row, whole, last, limits, scale, True, BLOCK_N
    )
    places = (row + queries)[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
    out = (acc * (1 / total)[:, None]).to(tl.bfloat16)
    tl.store(out_ptr + places, out, mask=(queries < length)[:, None])


@triton.jit
def prepare_gradients(
    out_ptr, grad_ptr, sums_ptr, delta_ptr, own_sums_ptr, acc_ptr, length, padded,
    HEAD_DIM: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """delta = sum(out * grad) of each row, and zeros where gradients of queries are summed up.

    Sums and delta have `padded` rows for each head: those behind its `length` weigh nothing.
    """
    head, rows = tl.program_id(1).to(tl.int64), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, HEAD_DIM)[None, :]
    is_query = rows < length
    places = (head * length + rows)[:, None] * HEAD_DIM + columns
    out = tl.load(out_ptr + places, mask=is_query[:, None], other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + places, mask=is_query[:, None], other=0.0).to(tl.float32)
    sums = tl.load(sums_ptr + head * length + rows, mask=is_query, other=float("inf"))
    own, is_row = head * padded + rows, rows < padded
    tl.store(delta_ptr + own, tl.sum(out * grad, axis=1), mask=is_row)
    tl.store(own_sums_ptr + own, sums, mask=is_row)
    zeros = tl.zeros((ROWS, HEAD_DIM), tl.float32)
    tl.store(acc_ptr + places, zeros, mask=is_query[:, None])


@triton.jit
def attention_gradients(
    q_desc, k_desc, v_desc, grad_desc, sums_desc, delta_desc, acc_desc, dk_desc, dv_desc,
    length, padded, scale, scale_log2, CAUSAL: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Gradients of a block of keys and values, and what they add to those of the queries.

    Descriptors of q, its gradient and `acc` (float32) `[batch * heads, length, HEAD_DIM]`, of k, v
    and theirs `[batch * heads * length, HEAD_DIM]`; `sums` are log2 of the sum of each query's
    weights, and `delta` is as long, both with `padded` rows a head, a multiple of `BLOCK_M`.
    `length` is a multiple of `BLOCK_N`. The products are written in the order in which they start:
    the first two beside each other, then what needs them.
    """
    first, head = tl.program_id(0) * BLOCK_N, tl.program_id(1)
    row, own = head * length, head * padded
    k = k_desc.load([row + first, 0])
    v = v_desc.load([row + first, 0])
    dk = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, HEAD_DIM), dtype=tl.float32)
    keys = first + tl.arange(0, BLOCK_N)
    start = 0
    if CAUSAL:
        start = first // BLOCK_M * BLOCK_M
    for at in range(start, length, BLOCK_M):
        q = q_desc.load([head, at, 0]).reshape(BLOCK_M, HEAD_DIM)
        sums = sums_desc.load([own + at])
        grad = grad_desc.load([head, at, 0]).reshape(BLOCK_M, HEAD_DIM)
        delta = delta_desc.load([own + at])
        # Keys lie along the rows, so that two more products take their left side from registers.
        scores = tl.dot(k, q.T)
        dw = tl.dot(v, grad.T)
        if CAUSAL:
            queries = at + tl.arange(0, BLOCK_M)
            scores = tl.where(queries[None, :] >= keys[:, None], scores, -1.0e30)
        weights = tl.exp2(scores * scale_log2 - sums[None, :])
        ds = (weights * (dw - delta[None, :])).to(tl.bfloat16)
        dv = tl.dot(weights.to(tl.bfloat16), grad, dv)
        # Its rows are shared by groups of warps: columns of the head, or queries if it is short.
        if HEAD_DIM >= 128:
            dq = tl.dot(k.T, ds).T
        else:
            dq = tl.dot(ds.T, k)
        dk = tl.dot(ds, q, dk)
        acc_desc.atomic_add([head, at, 0], dq.reshape(1, BLOCK_M, HEAD_DIM))
    dk_desc.store([row + first, 0], (dk * scale).to(tl.bfloat16))
    dv_desc.store([row + first, 0], dv.to(tl.bfloat16))


@triton.jit
def finish_gradients(acc_ptr, dq_ptr, scale, size, BLOCK: tl.constexpr):
    """dq = acc * scale, in bfloat16."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < size
    acc = tl.load(acc_ptr + offsets, mask=mask)
    tl.store(dq_ptr + offsets, (acc * scale).to(tl.bfloat16), mask=mask)


@triton.jit
def grouped_descriptors(
    a_all, b_all, c_all, sizes, rows, count,
    PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """c = a @ b.T of each product of a group, by descriptors that the program makes."""
    tile, first = tl.program_id(0), 0
    for g in range(count):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        columns = tl.cdiv(n, BLOCK_N)
        end = first + tl.cdiv(m, BLOCK_M) * columns
        if tile >= first and tile < end:
            a = tl.load(a_all + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_all + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_all + g).to(tl.pointer_type(tl.float16))
            row_a, row_b, row_c = (
                tl.load(rows + g * 3), tl.load(rows + g * 3 + 1), tl.load(rows + g * 3 + 2)
            )  # fmt: skip
            left = tl.make_tensor_descriptor(a, [m, k], [row_a, 1], [BLOCK_M, BLOCK_K])
            right = tl.make_tensor_descriptor(b, [n, k], [row_b, 1], [BLOCK_N, BLOCK_K])
            out = tl.make_tensor_descriptor(c, [m, n], [row_c, 1], [BLOCK_M, BLOCK_N])
            while tile >= first and tile < end:
                i = (tile - first) // columns * BLOCK_M
                j = (tile - first) % columns * BLOCK_N
                acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
                for start in range(0, k, BLOCK_K):
                    acc = tl.dot(left.load([i, start]), right.load([j, start]).T, acc)
                out.store([i, j], acc.to(tl.float16))
                tile += PROGRAMS
        first = end


@triton.jit
def grouped_pointers(
    a_all, b_all, c_all, sizes, rows, count,
    PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """The same by pointers, of whole blocks."""
    tile, first = tl.program_id(0), 0
    for g in range(count):
        m = tl.load(sizes + g * 3)
        n = tl.load(sizes + g * 3 + 1)
        k = tl.load(sizes + g * 3 + 2)
        columns = tl.cdiv(n, BLOCK_N)
        end = first + tl.cdiv(m, BLOCK_M) * columns
        while tile >= first and tile < end:
            a = tl.load(a_all + g).to(tl.pointer_type(tl.float16))
            b = tl.load(b_all + g).to(tl.pointer_type(tl.float16))
            c = tl.load(c_all + g).to(tl.pointer_type(tl.float16))
            i = (tile - first) // columns * BLOCK_M + tl.arange(0, BLOCK_M)
            j = (tile - first) % columns * BLOCK_N + tl.arange(0, BLOCK_N)
            depth = tl.arange(0, BLOCK_K)
            x = a + i[:, None] * tl.load(rows + g * 3) + depth[None, :]
            y = b + j[None, :] * tl.load(rows + g * 3 + 1) + depth[:, None]
            acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for _ in range(0, tl.cdiv(k, BLOCK_K)):
                tl.multiple_of(x, [16, 16])
                tl.multiple_of(y, [16, 16])
                acc = tl.dot(tl.load(x), tl.load(y), acc)
                x += BLOCK_K
                y += BLOCK_K
            at = c + i[:, None] * tl.load(rows + g * 3 + 2) + j[None, :]
            tl.store(at, acc.to(tl.float16))
            tile += PROGRAMS
        first = end


@triton.jit
def gathered_product(
    a_ptr, rows_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """c = a[rows] @ b of whole blocks, as an expert of a mixture multiplies its tokens."""
    num_m, num_n = M // BLOCK_M, N // BLOCK_N
    first_m = tl.program_id(0) // (GROUP_M * num_n) * GROUP_M
    rows_in_group = min(num_m - first_m, GROUP_M)
    place = tl.program_id(0) % (GROUP_M * num_n)
    i = (first_m + place % rows_in_group) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = place // rows_in_group * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a = a_ptr + tl.load(rows_ptr + i)[:, None] * K + depth[None, :]
    b = b_ptr + depth[:, None] * N + j[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BLOCK_K
        b += BLOCK_K * N
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def paged_attention(
    q_ptr, k_ptr, v_ptr, table_ptr, out_ptr, LENGTH, scale,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """Attention whose keys and values lie in pages of a pool, [page, PAGE, HEAD_DIM]."""
    d = tl.arange(0, HEAD_DIM)
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    head = tl.program_id(1) * LENGTH
    pages = table_ptr + tl.program_id(1) * (LENGTH // PAGE)
    q = tl.load(q_ptr + (head + i)[:, None] * HEAD_DIM + d[None, :])
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    highest = tl.full((BLOCK_M,), -1.0e30, dtype=tl.float32)
    for start in range(0, LENGTH, BLOCK_N):
        j = start + tl.arange(0, BLOCK_N)
        key = tl.load(pages + j // PAGE) * PAGE + j % PAGE
        place = key[:, None] * HEAD_DIM + d[None, :]
        scores = tl.dot(q, tl.load(k_ptr + place).T)
        new_highest = tl.maximum(highest, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + place)
        acc = tl.dot(weights.to(tl.bfloat16), v, acc * rescale[:, None])
        highest = new_highest
    out = out_ptr + (head + i)[:, None] * HEAD_DIM + d[None, :]
    tl.store(out, (acc / total[:, None]).to(tl.bfloat16))


@triton.jit
def expert_product(
    a_ptr, b_ptr, c_ptr, tokens_ptr, experts_ptr, padded_ptr, NUM, N, K,
    TOP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):  # fmt: skip
    """Tokens times the weights [expert, N, K] of their expert; rows past NUM are padding."""
    padded = tl.load(padded_ptr)
    num_m, num_n = tl.cdiv(padded, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_m = tl.program_id(0) // (GROUP_M * num_n) * GROUP_M
    rows_in_group = min(num_m - first_m, GROUP_M)
    place = tl.program_id(0) % (GROUP_M * num_n)
    tile = first_m + place % rows_in_group
    if tile * BLOCK_M >= padded:
        return
    token = tl.load(tokens_ptr + tile * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    expert = tl.load(experts_ptr + tile).to(tl.int64)
    column = place // rows_in_group * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a = a_ptr + token[:, None] // TOP * K + depth[None, :]
    b = b_ptr + expert * N * K + depth[:, None] + (column % N)[None, :] * K
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    is_token = (token < NUM)[:, None]
    for k in range(0, K, BLOCK_K):
        x = tl.load(a, mask=is_token & (depth < K - k)[None, :], other=0.0)
        acc = tl.dot(x, tl.load(b, mask=(depth < K - k)[:, None], other=0.0), acc)
        a += BLOCK_K
        b += BLOCK_K
    c = c_ptr + token[:, None] * N + column[None, :]
    tl.store(c, acc.to(c_ptr.dtype.element_ty), mask=is_token & (column < N)[None, :])


@triton.jit
def sequence_attention(
    q_ptr, k_ptr, v_ptr, starts_ptr, out_ptr, HEADS, scale,
    HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Causal attention of sequences one behind another, [token, head, HEAD_DIM]."""
    first = tl.load(starts_ptr + tl.program_id(2))
    length = tl.load(starts_ptr + tl.program_id(2) + 1) - first
    row = tl.program_id(0) * BLOCK_M
    if row >= length:
        return
    i, d = row + tl.arange(0, BLOCK_M), tl.program_id(1) * HEAD_DIM + tl.arange(0, HEAD_DIM)
    rows = (first + i)[:, None] * HEADS * HEAD_DIM + d[None, :]
    q = tl.load(q_ptr + rows, mask=(i < length)[:, None], other=0.0)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    highest = tl.full((BLOCK_M,), -1.0e30, dtype=tl.float32)
    for start in range(0, min(row + BLOCK_M, length), BLOCK_N):
        j = start + tl.arange(0, BLOCK_N)
        place = (first + j)[:, None] * HEADS * HEAD_DIM + d[None, :]
        k = tl.load(k_ptr + place, mask=(j < length)[:, None], other=0.0)
        scores = tl.where(j[None, :] <= i[:, None], tl.dot(q, k.T), -1.0e30)
        new_highest = tl.maximum(highest, tl.max(scores, axis=1) * scale)
        weights = tl.exp2(scores * scale - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        total = total * rescale + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + place, mask=(j < length)[:, None], other=0.0)
        acc = tl.dot(weights.to(tl.bfloat16), v, acc * rescale[:, None])
        highest = new_highest
    tl.store(out_ptr + rows, (acc / total[:, None]).to(tl.bfloat16), mask=(i < length)[:, None])


@triton.jit
def product_of_bytes(
    a_ptr, b_ptr, scales_ptr, c_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EACH_STEP: tl.constexpr,
):  # fmt: skip
    """c = a @ b, b of int8, scaled by column: once, or each `BLOCK_K` rows of b by their own."""
    columns = tl.cdiv(n, BLOCK_N)
    rows = tl.program_id(0) // columns * BLOCK_M + tl.arange(0, BLOCK_M)
    across = tl.program_id(0) % columns * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * n + across[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        a = tl.load(a_ptrs, mask=rows[:, None] < m, other=0.0)
        b = tl.load(b_ptrs)
        if EACH_STEP:
            scale = tl.load(scales_ptr + step * n + across)
            total = tl.dot(a, (b * scale[None, :]).to(a.dtype), total)
        else:
            total = tl.dot(a, b.to(a.dtype), total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * n
    if not EACH_STEP:
        total *= tl.load(scales_ptr + across)[None, :]
    places = c_ptr + rows[:, None] * n + across[None, :]
    tl.store(places, total.to(c_ptr.dtype.element_ty), mask=rows[:, None] < m)


@triton.jit
def product_of_nibbles(
    a_ptr, b_ptr, scales_ptr, zeros_ptr, c_ptr, m, n, k, GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """c = a @ ((b - zeros) * scales), eight weights of 4 bits a word, a row of scales a group."""
    columns = tl.cdiv(n, BLOCK_N)
    rows = tl.program_id(0) // columns * BLOCK_M + tl.arange(0, BLOCK_M)
    across = tl.program_id(0) % columns * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + (depth // 8)[:, None] * n + across[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        group = step * BLOCK_K // GROUP
        a = tl.load(a_ptrs, mask=rows[:, None] < m, other=0.0)
        scale = tl.load(scales_ptr + group * n + across)
        zeros = tl.load(zeros_ptr + group * (n // 8) + across // 8)
        zero = (zeros >> (across % 8 * 4)) & 15
        b = (tl.load(b_ptrs) >> (depth % 8 * 4)[:, None]) & 15
        weights = (b - zero[None, :]) * scale[None, :]
        total = tl.dot(a, weights.to(a.dtype), total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K // 8 * n
    places = c_ptr + rows[:, None] * n + across[None, :]
    tl.store(places, total.to(c_ptr.dtype.element_ty), mask=rows[:, None] < m)
