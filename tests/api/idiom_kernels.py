"""Kernels as programs for Triton have them: what CPU and GPU tests of idioms launch.

`triton` must be on the path: `tests/api/alias.py` puts it there, `tilewright run` too.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def softmax_kernel(
    out, x, x_stride, out_stride, rows, columns, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = tl.arange(0, BLOCK)
        values = tl.load(x + row * x_stride + at, mask=at < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out + row * out_stride + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def attend(
    acc, total, top, q, k_desc, v_desc, first, start, scale,
    BM: tl.constexpr, BN: tl.constexpr, PHASE: tl.constexpr,
    rows: tl.constexpr, columns: tl.constexpr, LENGTH: tl.constexpr,
):  # fmt: skip
    if PHASE == 1:
        low, high = 0, start * BM
    elif PHASE == 2:
        low, high = start * BM, (start + 1) * BM
        low = tl.multiple_of(low, BM)
    else:
        low, high = 0, LENGTH
    place = first + low
    for at in tl.range(low, high, BN):
        at = tl.multiple_of(at, BN)
        scores = tl.dot(q, k_desc.load([place, 0]).T)
        if PHASE == 2:
            mask = rows[:, None] >= (at + columns[None, :])
            scores = scores * scale + tl.where(mask, 0, -1.0e6)
            higher = tl.maximum(top, tl.max(scores, 1))
            scores -= higher[:, None]
        else:
            higher = tl.maximum(top, tl.max(scores, 1) * scale)
            scores = scores * scale - higher[:, None]
        p = tl.math.exp2(scores)
        alpha = tl.math.exp2(top - higher)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v_desc.dtype), v_desc.load([place, 0]), acc)
        total = total * alpha + tl.sum(p, 1)
        top = higher
        place += BN
    return acc, total, top


@triton.jit
def as_descriptor(given, shape, strides, block_shape):
    if isinstance(given, tl.tensor_descriptor):
        return given
    else:
        return tl.make_tensor_descriptor(given, shape, strides, block_shape)


@triton.jit
def attention_kernel(
    scale, M, Z, H, desc_q, desc_k, desc_v, desc_o, LENGTH,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, STAGE: tl.constexpr,
):  # fmt: skip
    start = tl.program_id(0)
    head = tl.program_id(1)
    rows_of_all = Z * H * LENGTH
    desc_q = as_descriptor(desc_q, [rows_of_all, D], [D, 1], [BM, D])
    desc_k = as_descriptor(desc_k, [rows_of_all, D], [D, 1], [BN, D])
    desc_v = as_descriptor(desc_v, [rows_of_all, D], [D, 1], [BN, D])
    desc_o = as_descriptor(desc_o, [rows_of_all, D], [D, 1], [BM, D])
    first = (head // H) * (LENGTH * H) + head % H * LENGTH
    rows = start * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    top = tl.zeros([BM], dtype=tl.float32) - float("inf")
    total = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    scale *= 1.44269504
    q = desc_q.load([first + start * BM, 0])
    if STAGE & 1:
        acc, total, top = attend(
            acc, total, top, q, desc_k, desc_v, first, start, scale,
            BM, BN, 4 - STAGE, rows, columns, LENGTH,
        )  # fmt: skip
    if STAGE & 2:
        acc, total, top = attend(
            acc, total, top, q, desc_k, desc_v, first, start, scale,
            BM, BN, 2, rows, columns, LENGTH,
        )  # fmt: skip
    tl.store(M + head * LENGTH + rows, top + tl.math.log2(total))
    acc = acc / total[:, None]
    desc_o.store([first + start * BM, 0], acc.to(desc_o.dtype))


def describe_launch(grid, kernel, args):
    """What a profiler is told of a launch."""
    M, N, K = args["M"], args["N"], args["K"]
    return {"name": f"{kernel.name} [M={M}, N={N}, K={K}]", "flops16": 2.0 * M * N * K}


@triton.jit
def tile_of(tile, num_in_group, num_m, GROUP: tl.constexpr):
    first = tile // num_in_group * GROUP
    size = min(num_m - first, GROUP)
    return first + (tile % size), (tile % num_in_group) // size


@triton.jit(launch_metadata=describe_launch)
def persistent_product(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    NUM_SMS: tl.constexpr, FLATTEN: tl.constexpr, IS_SPLIT: tl.constexpr,
):  # fmt: skip
    dtype = tl.float16
    a_desc = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_desc = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c_desc = tl.make_tensor_descriptor(
        c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN // 2 if IS_SPLIT else BN]
    )
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    start = tl.program_id(axis=0)
    for tile in tl.range(start, num_m * num_n, NUM_SMS, flatten=FLATTEN, warp_specialize=False):
        m, n = tile_of(tile, GROUP * num_n, num_m, GROUP)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a_desc.load([m * BM, k * BK]), b_desc.load([n * BN, k * BK]).T, acc)
        if IS_SPLIT:
            acc = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
            left, right = tl.split(acc)
            c_desc.store([m * BM, n * BN], left.to(dtype))
            c_desc.store([m * BM, n * BN + BN // 2], right.to(dtype))
        else:
            c_desc.store([m * BM, n * BN], acc.to(dtype))


@triton.jit
def grouped_product(
    a_ptrs, b_ptrs, c_ptrs, sizes, strides, num_groups,
    NUM_SM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    end = 0
    for g in range(num_groups):
        gm = tl.load(sizes + g * 3)
        gn = tl.load(sizes + g * 3 + 1)
        gk = tl.load(sizes + g * 3 + 2)
        num_n = tl.cdiv(gn, BN)
        num_tiles = tl.cdiv(gm, BM) * num_n
        while tile >= end and tile < end + num_tiles:
            lda = tl.load(strides + g * 3)
            ldb = tl.load(strides + g * 3 + 1)
            ldc = tl.load(strides + g * 3 + 2)
            a_ptr = tl.load(a_ptrs + g).to(tl.pointer_type(tl.float16))
            b_ptr = tl.load(b_ptrs + g).to(tl.pointer_type(tl.float16))
            c_ptr = tl.load(c_ptrs + g).to(tl.pointer_type(tl.float16))
            m = (tile - end) // num_n * BM + tl.arange(0, BM)
            n = (tile - end) % num_n * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            a_at = a_ptr + m[:, None] * lda + k[None, :]
            b_at = b_ptr + k[:, None] * ldb + n[None, :]
            acc = tl.zeros((BM, BN), dtype=tl.float32)
            for step in range(0, tl.cdiv(gk, BK)):
                tl.multiple_of(a_at, [16, 16])
                tl.multiple_of(b_at, [16, 16])
                inside = step * BK + k < gk
                x = tl.load(a_at, mask=(m < gm)[:, None] & inside[None, :], other=0.0)
                y = tl.load(b_at, mask=inside[:, None] & (n < gn)[None, :], other=0.0)
                acc += tl.dot(x, y)
                a_at += BK
                b_at += BK * ldb
            is_in = (m < gm)[:, None] & (n < gn)[None, :]
            tl.store(c_ptr + ldc * m[:, None] + n[None, :], acc.to(tl.float16), mask=is_in)
            tile += NUM_SM
        end = end + num_tiles


@triton.jit
def extern_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.asin(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def dependent_kernel(x, out, n, BLOCK: tl.constexpr, USE_GDC: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    if USE_GDC:
        tl.extra.cuda.gdc_wait()
    value = tl.load(x + at, mask=at < n)
    if USE_GDC:
        tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + at, value + 1, mask=at < n)
