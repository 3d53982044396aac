"""The kernels of `families.py`: `(x, out, n)` or `(x, index, out, n)` over arrays of 2048 elements.

Programs write rows of their own: 512 elements from 512 times their number.
"""

from __future__ import annotations

import tilewright
import tilewright.language as tl
from tilewright.language.extra import libdevice

jit = tilewright.jit


@jit
def vector_add(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = at < n
    tl.store(out + at, tl.load(x + at, mask=m) + tl.load(x + 200 + at, mask=m), mask=m)


@jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < 50, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + at, e / tl.sum(e, 0), mask=at < 50)


@jit
def layer_norm(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.program_id(0) * BLOCK
    v = tl.load(x + row + at, mask=at < 60, other=0.0).to(tl.float32)
    mean = tl.sum(v, 0) / 60
    centred = tl.where(at < 60, v - mean, 0.0)
    var = tl.sum(centred * centred, 0) / 60
    tl.store(out + row + at, centred * tl.rsqrt(var + 1e-5), mask=at < 60)


@jit
def column_sums(x, out, n):
    columns = tl.program_id(0) * 16 + tl.arange(0, 16)
    acc = tl.zeros((8, 16), tl.float32)
    for i in range(0, 24, 8):
        rows = i + tl.arange(0, 8)
        m = (rows[:, None] < 20) & (columns[None, :] < 45)
        acc += tl.load(x + rows[:, None] * 64 + columns[None, :], mask=m, other=0.0)
    tl.store(out + columns, tl.sum(acc, 0), mask=columns < 45)


@jit
def matmul(x, out, n):
    rows, columns, steps = tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 16)
    a = x + (tl.program_id(0) * 16 + rows[:, None]) % 13 * 40 + steps[None, :]
    b = x + 600 + steps[:, None] * 32 + columns[None, :] % 29
    acc = tl.zeros((16, 32), tl.float32)
    for k in range(3):
        acc += tl.dot(
            tl.load(a, mask=steps[None, :] < 40 - k * 16, other=0.0),
            tl.load(b, mask=steps[:, None] < 40 - k * 16, other=0.0),
            out_dtype=tl.float32,
        )
        a += 16
        b += 16 * 32
    at = tl.program_id(0) * 512 + rows[:, None] * 32 + columns[None, :]
    tl.store(out + at, acc, mask=(rows[:, None] < 13) & (columns[None, :] < 29))


@jit
def dot(x, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 16)
    at = r[:, None] * 16 + c[None, :]
    a = tl.load(x + tl.program_id(0) * 256 + at)
    b = tl.load(x + 1024 + at)
    tl.store(out + tl.program_id(0) * 512 + at, tl.dot(a, b))


@jit
def dot_with_addend(x, out, n):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a, b, c = tl.load(x + at), tl.load(x + 256 + at), tl.load(x + 512 + at)
    tl.store(
        out + tl.program_id(0) * 512 + at, tl.dot(a, b, c + tl.program_id(0), out_dtype=c.dtype)
    )


@jit
def mid_chain(x, out, n):
    at = tl.arange(0, 64)
    row = (at + tl.program_id(0) * 64)[:, None]
    both = row + tl.arange(0, 4)[None, :]
    tl.store(out + row * 4 + tl.arange(0, 4)[None, :], both)


@jit
def end_chain(x, out, n):
    at = (tl.arange(0, 16) + 5)[:, None] * 3 + (tl.arange(0, 8) + 2)[None, :] * 7
    place = tl.arange(0, 16)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(out + tl.program_id(0) * 512 + place, at.to(tl.int64) * 2)


@jit
def addptr_2d(x, out, n):
    at = tl.arange(0, 4)[:, None] * 50 + tl.arange(0, 64)[None, :]
    place = tl.arange(0, 4)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out + tl.program_id(0) * 512 + place, tl.load(x + at) + tl.load(x + 100 + at))


@jit
def addptr_add_value(x, out, n):
    at = tl.arange(0, 4)[:, None] * 60 + (tl.arange(0, 32) + n)[None, :] + n
    place = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + tl.program_id(0) * 512 + place, tl.load(x + at))


@jit
def addptr_chain(x, out, n):
    at = tl.arange(0, 64)
    a = x + at
    b = a + n
    c = b + tl.program_id(0)
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(a) + tl.load(b) + tl.load(c))


@jit
def addptr_dim1(x, out, n):
    at = tl.arange(0, 64)[None, :]
    acc = tl.zeros((4, 64), out.dtype.element_ty)
    for i in range(4):
        row = i + tl.arange(0, 4)[:, None]
        acc += tl.load(x + at + row * 70)
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 4)[:, None] * 64 + at, acc)


@jit
def for_accumulation(x, out, n):
    at = tl.arange(0, 4)[:, None] * 2 + tl.arange(0, 64)[None, :]
    pointers = x + at
    acc = tl.load(x + 1000 + at)
    for i in range(0, 12, 3):
        acc += tl.load(pointers)
        pointers += i + n
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 4)[:, None] * 64 + tl.arange(0, 64), acc)


@jit
def for_expand_ptr(x, out, n):
    at = tl.arange(0, 16)
    for i in range(0, 4):
        index = (at + i * 5)[:, None] * 16 + (at + i * 3)[None, :]
        place = tl.program_id(0) * 512 + at[:, None] * 16 + at[None, :]
        tl.store(out + place, tl.load(x + index) + i)


@jit
def for_more_init_args(x, out, n):
    at = tl.arange(0, 64)
    a, b = x + at, out + tl.program_id(0) * 512 + at
    one, two = 1, 2
    for i in range(0, 4):
        tl.store(b, tl.load(a) + one)
        a += i + one + two
        b += 64
        one += i
        two = two + one
    tl.store(b, tl.load(a + two))


@jit
def used_after_update(x, out, n):
    at = tl.arange(0, 64)
    a, b = x + at, out + tl.program_id(0) * 512 + at
    for i in range(0, 3):
        a += 3
        tl.store(b, tl.load(a) + tl.load(a + i))
        b += 64
    tl.store(b, tl.load(a))


@jit
def used_before_update(x, out, n):
    at = tl.arange(0, 64)
    a, b = x + at, out + tl.program_id(0) * 512 + at
    for _ in range(0, 3):
        tl.store(b, tl.load(a))
        a += 3 * n
        b += 64
    tl.store(b, tl.load(a - n))


@jit
def loopback(x, out, n):
    at = (n + tl.arange(0, 4))[:, None] + tl.arange(0, 64)[None, :]
    v = tl.load(x + at)
    tl.store(out + tl.program_id(0) * 512 + at, v)


@jit
def mul_const_const(x, out, n):
    at = 5 * 2 + tl.arange(0, 64) * (3 * 4)
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 64), tl.load(x + at))


@jit
def mul_value_const(x, out, n):
    at = n * 3 + tl.program_id(0) * (n // 2) + tl.arange(0, 64) * (n // 30)
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 64), tl.load(x + at))


@jit
def addptr_nested(x, out, n):
    at = tl.arange(0, 4)[:, None] + tl.arange(0, 64)[None, :]
    a = x + at
    v = tl.load(a)
    b = a + at * 3 + tl.program_id(0)
    place = tl.arange(0, 4)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out + tl.program_id(0) * 512 + place, v + tl.load(b))


@jit
def reshape_broadcast(x, out, n):
    at = tl.broadcast_to(tl.reshape(tl.arange(0, 64), (8, 1, 8)), (8, 4, 8))
    place = tl.reshape(tl.arange(0, 256), (8, 4, 8))
    tl.store(out + tl.program_id(0) * 512 + place, tl.load(x + at))


@jit
def scalar_broadcast(x, out, n):
    base = x + tl.program_id(0) * 7
    at = tl.broadcast_to(base, (64, 4)) + tl.arange(0, 64)[:, None] + 64 * tl.arange(0, 4)[None, :]
    place = tl.arange(0, 64)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + tl.program_id(0) * 512 + place, tl.load(at))


@jit
def scalar_for(x, out, n):
    a = x + tl.program_id(0)
    acc = tl.zeros((64,), out.dtype.element_ty)
    for i in range(0, 4):
        acc += tl.load(a + tl.arange(0, 64))
        a += i + 2
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 64), acc)


@jit
def scalar_for_2d(x, out, n):
    a = x + tl.program_id(0)
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    acc = tl.zeros((8, 16), out.dtype.element_ty)
    for i in range(0, 4):
        acc += tl.load(a + at)
        a += i * 5
    tl.store(out + tl.program_id(0) * 512 + at, acc)


@jit
def scalar_loopback(x, out, n):
    tl.store(out + tl.program_id(0) + n, tl.load(x + tl.program_id(0) + n))


@jit
def scalar_nested(x, out, n):
    a = x + n
    b = a + tl.program_id(0)
    c = b + n * 2
    tl.store(out + tl.program_id(0) * 512, tl.load(a) + tl.load(b) + tl.load(c))


@jit
def scalar_splat(x, out, n):
    v = tl.load(x + tl.program_id(0))
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 64), tl.full((64,), 0, v.dtype) + v)


@jit
def scalar_splat_2d(x, out, n):
    v = tl.load(x + n)
    at = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(x + at) + v)


@jit
def mask_ge(x, out, n):
    at = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + at, tl.load(x + at, mask=at >= 70, other=5), mask=(n > at) & (at >= 3))


@jit
def not_ptr_arith(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    tl.store(out + tl.program_id(0) * 512 + at, v + tl.load(x + 64 + at) * 2 - v * v)


@jit
def bitcast(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at).to(tl.int32, bitcast=True)
    tl.store(out + tl.program_id(0) * 512 + at, (v ^ 1).to(out.dtype.element_ty, bitcast=True))


@jit
def bitcast_pointer(x, out, n):
    at = tl.arange(0, 64)
    ints, outs = x.to(tl.pointer_type(tl.int32)), out.to(tl.pointer_type(tl.int32))
    v = tl.load(ints + at + tl.program_id(0))
    halves = tl.load(x.to(tl.pointer_type(tl.int16)) + at)
    tl.store(outs + tl.program_id(0) * 512 + at, v + halves.to(tl.int32))


@jit
def block_advance(x, out, n):
    p = tl.make_block_ptr(x, (30, 33), (40, 1), (0, tl.program_id(0) * 8), (8, 8), (1, 0))
    acc = tl.zeros((8, 8), out.dtype.element_ty)
    for _ in range(4):
        acc += tl.load(p, boundary_check=(0, 1), padding_option="zero")
        p = tl.advance(p, (8, 0))
    at = tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(out + tl.program_id(0) * 512 + at, acc)


@jit
def block_complex_offset(x, out, n):
    p = tl.make_block_ptr(x, (32, 32), (32, 1), (n % 7, tl.program_id(0) * 3 + 2), (4, 16), (1, 0))
    q = tl.make_block_ptr(out + 512 * tl.program_id(0), (7, 13), (16, 1), (0, 0), (4, 16), (1, 0))
    tl.store(q, tl.load(p), boundary_check=(0, 1))


@jit
def block_ordering(x, out, n):
    p = tl.make_block_ptr(x, (32, 32), (1, 32), (0, 8), (16, 8), (0, 1))
    q = tl.make_block_ptr(out + 512 * tl.program_id(0), (16, 8), (8, 1), (0, 0), (16, 8), (1, 0))
    tl.store(q, tl.load(p))


@jit
def unary_1d(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at).to(tl.float32)
    r = tl.exp(v) + tl.abs(v) + tl.sqrt(tl.abs(v)) + tl.sin(v) - tl.cos(v) + tl.floor(v) - -v
    tl.store(out + tl.program_id(0) * 512 + at, r + tl.log(tl.abs(v) + 1) + tl.erf(v))


@jit
def binary_1d(x, out, n):
    at = tl.arange(0, 64)
    a, b = tl.load(x + at), tl.load(x + 64 + at)
    tl.store(out + tl.program_id(0) * 512 + at, (a + b) * (a - b) + tl.maximum(a, b))


@jit
def ternary_1d(x, out, n):
    at = tl.arange(0, 64)
    a, b, c = tl.load(x + at), tl.load(x + 64 + at), tl.load(x + 128 + at)
    tl.store(out + tl.program_id(0) * 512 + at, tl.where(a < b, c, a))


@jit
def unary_2d(x, out, n):
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + at).to(tl.float32)
    r = tl.exp2(v) + tl.ceil(v) + tl.rsqrt(tl.abs(v) + 1)
    tl.store(out + tl.program_id(0) * 512 + at, r + tl.log2(tl.abs(v) + 2))


@jit
def binary_2d(x, out, n):
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a, b = tl.load(x + at), tl.load(x + 130 + at)
    tl.store(out + tl.program_id(0) * 512 + at, a * b + tl.minimum(a, b))


@jit
def ternary_2d(x, out, n):
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    a, b, c = tl.load(x + at), tl.load(x + 130 + at), tl.load(x + at // 2)
    tl.store(out + tl.program_id(0) * 512 + at, tl.where((a > b) | (c == a), b, c))


@jit
def extern(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    r = (
        libdevice.atan2(v, libdevice.hypot(v, v) + 1)
        + libdevice.expm1(v)
        + libdevice.tgamma(tl.abs(v) + 1)
    )
    tl.store(out + tl.program_id(0) * 512 + at, r + libdevice.erfcx(v) + libdevice.div_rz(v, v + 9))


@jit
def sum_1d(x, out, n):
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + tl.arange(0, 64) + tl.program_id(0)), 0))


@jit
def minmax(x, out, n):
    at = tl.arange(0, 64)
    a, b = tl.load(x + at), tl.load(x + 64 + at)
    tl.store(out + tl.program_id(0) * 512 + at, tl.maximum(a, b) - tl.minimum(a, b))


@jit
def minmax_reduce(x, out, n):
    v = tl.load(x + tl.arange(0, 128) + tl.program_id(0))
    tl.store(out + tl.program_id(0) * 512, tl.max(v, 0))
    tl.store(out + tl.program_id(0) * 512 + 1, tl.min(v, 0))


@jit
def _and(a, b):
    return a & b


@jit
def _or(a, b):
    return a | b


@jit
def bitwise_reduce(x, out, n):
    v = tl.load(x + tl.arange(0, 32) + tl.program_id(0) * 32)
    tl.store(out + tl.program_id(0) * 512, tl.reduce(v | 6, 0, _and))
    tl.store(out + tl.program_id(0) * 512 + 1, tl.reduce(v, 0, _or))
    tl.store(out + tl.program_id(0) * 512 + 2, tl.xor_sum(v, 0))


@jit
def argminmax(x, out, n):
    v = tl.load(x + tl.arange(0, 64) + tl.program_id(0))
    tl.store(out + tl.program_id(0) * 512, tl.argmax(v, 0))
    tl.store(out + tl.program_id(0) * 512 + 1, tl.argmin(v, 0))


@jit
def argminmax_2d(x, out, n):
    v = tl.load(x + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :])
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 16), tl.argmax(v, 1))
    tl.store(out + tl.program_id(0) * 512 + 64 + tl.arange(0, 32), tl.argmin(v, 0))


@jit
def splat_float(x, out, n):
    at = tl.arange(0, 64)
    tl.store(out + tl.program_id(0) * 512 + at, tl.full((64,), 3.25, tl.float32) + 0.5 * n)


@jit
def reshape(x, out, n):
    v = tl.load(x + tl.arange(0, 128) + tl.program_id(0))
    w = tl.reshape(v, (8, 16)) + tl.arange(0, 8)[:, None].to(v.dtype)
    at = tl.arange(0, 32)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + tl.program_id(0) * 512 + at, tl.reshape(w, (32, 4)))


@jit
def unsplat(x, out, n):
    one = tl.load(x + n + tl.arange(0, 1) + tl.program_id(0))
    tl.store(out + tl.program_id(0) * 512, one.item() + 1)


@jit
def cumsum(x, out, n):
    at = tl.arange(0, 4)[:, None] * 128 + tl.arange(0, 128)[None, :]
    tl.store(out + tl.program_id(0) * 512 + at, tl.cumsum(tl.load(x + at), 1))


@jit
def cumsum_reverse(x, out, n):
    at = tl.arange(0, 128)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out + tl.program_id(0) * 512 + at, tl.cumsum(tl.load(x + at), 0, reverse=True))


@jit
def early_return(x, out, n):
    if tl.program_id(0) == 1:
        return
    at = tl.arange(0, 64)
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(x + at))
    if tl.program_id(0) * 100 > n:
        tl.store(out + tl.program_id(0) * 512 + 64 + at, tl.load(x + at + 1))
        return
    tl.store(out + tl.program_id(0) * 512 + 128 + at, tl.load(x + at + 2))


@jit
def num_programs(x, out, n):
    i, j, k = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (k * tl.num_programs(1) + j) * tl.num_programs(0) + i
    tl.store(out + at, i + 10 * j + 100 * k + 1000 * tl.num_programs(2))


@jit
def masked_1d(x, out, n):
    at = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=9), mask=at < n + 11)


@jit
def masked_2d(x, out, n):
    r, c = tl.arange(0, 8)[:, None], tl.arange(0, 32)[None, :]
    m = (r < n % 7) & (c + tl.program_id(0) * 8 < 29)
    v = tl.load(x + r * 40 + c, mask=m, other=4)
    tl.store(out + tl.program_id(0) * 512 + r * 32 + c, v, mask=(r < 7) & (c < 30))


@jit
def masked_other(x, out, n):
    at = tl.arange(0, 64)
    other = n.to(tl.float32)
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(x + at, mask=at < 40, other=other))
    tile = tl.load(x + 128 + at)
    tl.store(out + tl.program_id(0) * 512 + 64 + at, tl.load(x + at, mask=at < 33, other=tile))


@jit
def mask_scalar_dim(x, out, n):
    r, c = tl.arange(0, 8)[:, None], tl.arange(0, 32)[None, :]
    live = tl.program_id(0) < 2
    v = tl.load(x + r * 32 + c, mask=(r < 5) & live, other=3)
    tl.store(out + tl.program_id(0) * 512 + r * 32 + c, v, mask=(c < 17) & (n > 100))


@jit
def mask_loop_iter_arg(x, out, n):
    at = tl.arange(0, 32)
    acc = tl.zeros((32,), out.dtype.element_ty)
    for _ in range(6):
        acc += tl.load(x + at, mask=at < n, other=0)
        at += 32
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 32), acc)


@jit
def masked_scalar(x, out, n):
    a = tl.load(x + 5000000, mask=n < 0, other=7)
    b = tl.load(x + tl.program_id(0), mask=n > 0, other=7)
    tl.store(out + tl.program_id(0) * 512, a + b)
    tl.store(out - 9999999, b, mask=n < 0)


@jit
def mask_two_sided(x, out, n):
    at = tl.arange(0, 64) - 10 + tl.program_id(0)
    v = tl.load(x + at, mask=(at >= 0) & (at <= 40), other=2)
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 64), v)


@jit
def mask_tree(x, out, n):
    at = tl.arange(0, 64)
    m = ((at < 50) & (n - 120 > at)) & ((at >= 4) & (at <= 60)) & (at != 20)
    w = (at > 3) & (at <= 47) & ~(at >= n - 105)
    v = tl.load(x + at, mask=m, other=1)
    tl.store(out + tl.program_id(0) * 512 + at, v + tl.load(x + at, mask=w, other=1))


@jit
def nested_loops(x, out, n):
    at = tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    a, b = x + at, out + tl.program_id(0) * 512 + at
    for _ in range(2):
        first = tl.load(a)
        for _ in range(3):
            a += 16
            tl.store(b, tl.load(a) + first)
            b += 16
        b += 16
    tl.store(b, tl.load(a))


@jit
def four_loops(x, out, n):
    at = tl.arange(0, 16)
    a, b = x + at, out + tl.program_id(0) * 512 + at
    for i in range(2):
        a += 1
        for j in range(2):
            b += 16
            a += j
            for k in range(2):
                a += 2
                v = tl.load(a)
                for m in range(2):
                    a += 3 * m
                    v += tl.load(a) * i
                tl.store(b, v)
                b += 16 + k


@jit
def sum_axis0(x, out, n):
    v = tl.load(x + tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 16), tl.sum(v, 0))


@jit
def sum_axis1(x, out, n):
    v = tl.load(x + tl.arange(0, 32)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 32), tl.sum(v, 1))


@jit
def sum_middle(x, out, n):
    at = (
        tl.arange(0, 4)[:, None, None] * 64
        + tl.arange(0, 8)[None, :, None] * 8
        + tl.arange(0, 8)[None, None, :]
    )
    place = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(out + tl.program_id(0) * 512 + place, tl.sum(tl.load(x + at), 1))


@jit
def max_axis1(x, out, n):
    v = tl.load(x + tl.arange(0, 32)[:, None] * 64 + tl.arange(0, 64)[None, :])
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 32), tl.max(v, 1))


@jit
def scalar_store_loop(x, out, n):
    for i in range(5):
        tl.store(out + tl.program_id(0) * 512 + i * 2, i)


@jit
def scalar_store_iterargs(x, out, n):
    p = out + tl.program_id(0) * 512
    for i in range(5):
        p += i
        tl.store(p, tl.load(x + i))


@jit
def scalar_store_nested(x, out, n):
    p = out + tl.program_id(0) * 512
    for i in range(4):
        for j in range(3):
            tl.store(p, i * j)
            p += 2
        p += i


@jit
def scalar_store(x, out, n):
    tl.store(out + tl.program_id(0) * 512 + n, tl.load(x + n) * 2)


@jit
def sign_extend(x, out, n):
    at = tl.arange(0, 64) - 32
    wide = at.to(tl.int64) * 2
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 64), tl.load(x + 64 + wide))


@jit
def indices_nested(x, out, n):
    at = tl.arange(0, 16)
    to = tl.program_id(0) * 512 + tl.arange(0, 16)
    for i in range(2):
        for _ in range(3):
            tl.store(out + to, tl.load(x + at))
            at += 16
            to += 16
        at += 7 + i
    tl.store(out + to, at)


@jit
def indices_masks(x, out, n):
    at = tl.arange(0, 32)
    to = tl.program_id(0) * 512 + tl.arange(0, 32)
    for _ in range(6):
        v = tl.load(x + at, mask=at < n, other=1)
        tl.store(out + to, v, mask=to < 1400)
        at += 29
        to += 32


@jit
def wrap_columns(x, out, n):
    r, c = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    v = tl.load(x + r * 40 + (c + tl.program_id(0) * 9 + 20) % 29)
    tl.store(out + tl.program_id(0) * 512 + r * 16 + c, v)


@jit
def wrap_rows(x, out, n):
    r, c = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    v = tl.load(x + ((r + tl.program_id(0) * 5) % 6) * n + c)
    tl.store(out + tl.program_id(0) * 512 + r * 16 + c, v)


@jit
def wrap_both(x, out, n):
    r, c = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    v = tl.load(x + ((r + tl.program_id(0) * 5) % 6) * 50 + (c + 40) % 45)
    tl.store(out + tl.program_id(0) * 512 + r * 16 + c, v)


@jit
def wrap_1d(x, out, n):
    at = (tl.arange(0, 64) + tl.program_id(0) * 50) % n
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 64), tl.load(x + at))


@jit
def wrap_offset(x, out, n):
    r, c = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    v = tl.load(x + (r % 3 + 2) * 64 + (c + 30) % n + 5 * r)
    tl.store(out + tl.program_id(0) * 512 + r * 16 + c, v)


@jit
def wrap_loop(x, out, n):
    r, c = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    p = x + ((r + tl.program_id(0) * 3) % 5) * 64 + c
    acc = tl.zeros((8, 16), out.dtype.element_ty)
    for k in range(3):
        acc += tl.load(p, mask=c < 41 - k * 16, other=0)
        p += 16
    tl.store(out + tl.program_id(0) * 512 + r * 16 + c, acc)


@jit
def join(x, out, n):
    at = tl.arange(0, 64)
    both = tl.join(tl.load(x + at), tl.load(x + 64 + at))
    place = at[:, None] * 2 + tl.arange(0, 2)[None, :]
    tl.store(out + tl.program_id(0) * 512 + place, both)


@jit
def split(x, out, n):
    at = tl.arange(0, 64)
    a, b = tl.split(tl.load(x + at[:, None] * 2 + tl.arange(0, 2)[None, :]))
    tl.store(out + tl.program_id(0) * 512 + at, a + b)
    tl.store(out + tl.program_id(0) * 512 + 64 + at, a - b)


@jit
def transpose(x, out, n):
    r, c = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    v = tl.trans(tl.load(x + r * 16 + c) * 2)
    at = tl.arange(0, 16)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(out + tl.program_id(0) * 512 + at, v)


@jit
def permute(x, out, n):
    at = tl.reshape(tl.arange(0, 256), (4, 8, 8))
    v = tl.permute(tl.load(x + at), (2, 0, 1))
    tl.store(out + tl.program_id(0) * 512 + tl.reshape(tl.arange(0, 256), (8, 4, 8)), v)


@jit
def cat(x, out, n):
    at = tl.arange(0, 64)
    both = tl.cat(tl.load(x + at), tl.load(x + 99 + at), can_reorder=True)
    tl.store(out + tl.program_id(0) * 512, tl.sum(both, 0))


@jit
def conditional_pointer(x, out, n):
    if tl.program_id(0) == 1:
        p = x + 10
    else:
        p = out + 1600
    at = tl.arange(0, 64)
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(p + at))


@jit
def conditional_in_loop(x, out, n):
    at = tl.arange(0, 32)
    p = x
    acc = tl.zeros((32,), out.dtype.element_ty)
    for i in range(4):
        acc += tl.load(p + at)
        if i == tl.program_id(0):
            p = x + 500
        else:
            p += 3
    tl.store(out + tl.program_id(0) * 512 + at, acc)


@jit
def where_on_pointers(x, out, n):
    at = tl.arange(0, 64)
    p = tl.where(at % 3 == 0, x + at, out + 1600 + at)
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(p, mask=at < 50, other=6))


@jit
def int_pointer(x, out, n):
    at = tl.arange(0, 64)
    number = x.to(tl.int64, bitcast=True) + 0 * n
    p = number.to(tl.pointer_type(out.dtype.element_ty), bitcast=True)
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(p + at, mask=at < 60, other=1))


@jit
def while_pointer(x, out, n):
    at = tl.arange(0, 16)
    p, q = x + at, out + tl.program_id(0) * 512 + at
    left = tl.program_id(0) * 2 + 1
    while left > 0:
        tl.store(q, tl.load(p) + left)
        p += left
        q += 16
        left -= 1


@jit
def for_iv(x, out, n):
    total = 0
    for i in range(n, 3, -7):
        total += i
    for i in range(3, tl.program_id(0)):
        total += 1000 * i
    tl.store(out + tl.program_id(0) * 512, total)


@jit
def swap(x, out, n):
    at = tl.arange(0, 64) + tl.program_id(0) * 64
    a, b = tl.load(x + at), tl.load(out + at)
    tl.store(x + at, b)
    tl.store(out + at, a)


@jit
def atomic_add(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    tl.atomic_add(out + at % 7, v, mask=at < 50)
    tl.atomic_max(out + 100 + at % 5, v)
    tl.atomic_min(out + 200 + at, v)
    tl.atomic_xor(out + 300 + at, v)


@jit
def atomic_cas(x, out, n):
    old = tl.atomic_cas(out + tl.program_id(0), 77, 5)
    again = tl.atomic_cas(out + tl.program_id(0), 77, 6)
    tl.store(out + 100 + tl.program_id(0), old * 1000 + again)


@jit
def histogram(x, out, n):
    v = tl.abs(tl.load(x + tl.arange(0, 64) + tl.program_id(0) * 64))
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 32), tl.histogram(v, 32))


@jit
def sort(x, out, n):
    at = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
    v = tl.load(x + at + tl.program_id(0))
    tl.store(out + tl.program_id(0) * 512 + at, tl.sort(v))
    tl.store(out + tl.program_id(0) * 512 + 128 + at, tl.sort(v, descending=True))


@jit
def _scaled(v, by):
    return v * by + 1


@jit
def calls(x, out, n):
    at = tl.arange(0, 64)
    tl.store(out + tl.program_id(0) * 512 + at, _scaled(_scaled(tl.load(x + at), 3), 2))


@jit
def batched(x, out, n):
    a = tl.load(x + tl.reshape(tl.arange(0, 512), (2, 16, 16)))
    b = tl.load(x + 512 + tl.reshape(tl.arange(0, 512), (2, 16, 16)))
    place = tl.program_id(0) * 512 + tl.reshape(tl.arange(0, 512), (2, 16, 16))
    tl.store(out + place, tl.dot(a, b, out_dtype=a.dtype))


@jit
def einsum(x, out, n):
    m, d, p = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 16)
    for h in range(2):
        a = tl.load(x + h * 16 + m[:, None] * 32 + d[None, :])
        b = tl.load(x + 700 + (h * 16 + m)[:, None] * 16 + p[None, :])
        place = tl.program_id(0) * 512 + (h * 16 + m[:, None]) * 16 + p[None, :]
        tl.store(out + place, tl.dot(a, b, out_dtype=a.dtype))


@jit
def nans(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    v = tl.where(at % 5 == 0, float("nan"), v)
    w = tl.load(x + 64 + at)
    a = tl.maximum(v, w, propagate_nan=tl.PropagateNan.ALL)
    b = tl.minimum(v, w, propagate_nan=tl.PropagateNan.NONE)
    tl.store(out + tl.program_id(0) * 512 + at, a)
    tl.store(out + tl.program_id(0) * 512 + 64 + at, b)
    tl.store(out + tl.program_id(0) * 512 + 128, tl.max(v, 0))


@jit
def clamp(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    tl.store(out + tl.program_id(0) * 512 + at, tl.clamp(v, -0.5, 0.75))


@jit
def precise(x, out, n):
    at = tl.arange(0, 64)
    v, w = tl.abs(tl.load(x + at)), tl.load(x + 64 + at)
    tl.store(out + tl.program_id(0) * 512 + at, tl.sqrt_rn(v) + tl.div_rn(v, w))


@jit
def shifts(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at)
    tl.store(out + tl.program_id(0) * 512 + at, (v << 2) ^ (v >> 1) ^ (v << tl.program_id(0)))


@jit
def floordiv(x, out, n):
    at = tl.arange(0, 64)
    v, w = tl.load(x + at), tl.load(x + 64 + at)
    by = tl.where(w == 0, 3, w)
    tl.store(out + tl.program_id(0) * 512 + at, v // by + v % by)


@jit
def umulhi(x, out, n):
    at = tl.arange(0, 64)
    v = tl.load(x + at) * 987654321
    tl.store(out + tl.program_id(0) * 512 + at, tl.umulhi(v, v + 12345678))


# By indices: `index` is a permutation of 64, `n` is 11.


@jit
def gather_rows(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 16)[None, :]
    i = tl.load(index + tl.program_id(0) * 16 + r)
    tl.store(out + tl.program_id(0) * 512 + r[:, None] * 16 + c, tl.load(x + i[:, None] * 30 + c))


@jit
def gather_rows_masked(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 16)[None, :]
    i = tl.load(index + tl.program_id(0) * 16 + r, mask=r < n, other=0)
    m = (r < n)[:, None] & (c < 13)
    v = tl.load(x + i[:, None] * 30 + c, mask=m, other=8)
    tl.store(out + tl.program_id(0) * 512 + r[:, None] * 16 + c, v, mask=c < 14)


@jit
def gather_rows_loop(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 8)[None, :]
    i = tl.load(index + tl.program_id(0) * 16 + r)
    p = x + i[:, None] * 30 + c
    acc = tl.zeros((16, 8), out.dtype.element_ty)
    for k in range(3):
        acc += tl.load(p, mask=c < 20 - 8 * k, other=0)
        p += 8
    tl.store(out + tl.program_id(0) * 512 + r[:, None] * 8 + c, acc)


@jit
def gather_rows_if(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 16)[None, :]
    i = tl.load(index + tl.program_id(0) * 16 + r)
    if tl.program_id(0) == 0:
        v = tl.load(x + i[:, None] * 30 + c)
    else:
        v = tl.load(x + 3 + i[:, None] * 29 + c) * 2
    tl.store(out + tl.program_id(0) * 512 + r[:, None] * 16 + c, v)


@jit
def gather_3d(x, index, out, n):
    i = tl.load(index + tl.arange(0, 8))[None, :, None]
    a, c = tl.arange(0, 4)[:, None, None], tl.arange(0, 4)[None, None, :]
    v = tl.load(x + a * 4 + i * 20 + c)
    place = a * 32 + tl.arange(0, 8)[None, :, None] * 4 + c
    tl.store(out + tl.program_id(0) * 512 + place, v)


@jit
def gather_mod(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 16)
    i = tl.load(index + r) % n
    v = tl.load(x + i[:, None] * 40 + ((c + 9) % 13)[None, :])
    tl.store(out + tl.program_id(0) * 512 + r[:, None] * 16 + c[None, :], v)


@jit
def gather_columns(x, index, out, n):
    r, c = tl.arange(0, 16)[:, None], tl.arange(0, 16)
    i = tl.load(index + c)
    v = tl.load(x + r * 64 + i[None, :], mask=r < n, other=2)
    tl.store(out + tl.program_id(0) * 512 + r * 16 + c[None, :], v)


@jit
def scatter_rows(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 8)[None, :]
    i = tl.load(index + tl.program_id(0) * 16 + r)
    tl.store(out + i[:, None] * 30 + c, tl.load(x + r[:, None] * 8 + c), mask=c < 7)


@jit
def descriptor_rows(x, index, out, n):
    source = tl.make_tensor_descriptor(x, [64, 32], [32, 1], [1, 16])
    target = tl.make_tensor_descriptor(out, [40, 32], [32, 1], [1, 16])
    rows = tl.load(index + tl.program_id(0) * 16 + tl.arange(0, 16)).to(tl.int32)
    target.scatter(source.gather(rows, 20) + 1, rows + n, 4)


@jit
def scatter_mod(x, index, out, n):
    r, c = tl.arange(0, 8), tl.arange(0, 8)[None, :]
    i = (tl.load(index + r) + r * 64) % 500 // 100 * 8 + r
    tl.store(out + tl.program_id(0) * 512 + i[:, None] * 8 + c, tl.load(x + r[:, None] * 8 + c))


@jit
def scatter_masked(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 8)
    i = tl.load(index + tl.program_id(0) * 16 + r)
    m = (i % 2 == 0)[:, None] & (c != 3)[None, :]
    tl.store(out + i[:, None] * 30 + c[None, :], tl.load(x + r[:, None] * 8 + c[None, :]), mask=m)


@jit
def select_mod_offset(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 16)[None, :]
    i = (tl.load(index + r) + 5) % n + tl.program_id(0)
    v = tl.load(x + (i * 50)[:, None] + c)
    tl.store(out + tl.program_id(0) * 512 + r[:, None] * 16 + c, v)


@jit
def mask_rows_2d(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 16)[None, :]
    live = tl.load(index + r) % 3 != 0
    v = tl.load(x + r[:, None] * 16 + c, mask=live[:, None] & (c < 12), other=4)
    tl.store(out + tl.program_id(0) * 512 + r[:, None] * 16 + c, v, mask=live[:, None])


@jit
def mask_rows_3d(x, index, out, n):
    live = (tl.load(index + tl.arange(0, 8)) < 30)[None, :, None]
    at = tl.reshape(tl.arange(0, 256), (4, 8, 8))
    c = tl.arange(0, 8)[None, None, :]
    v = tl.load(x + at, mask=live & (c < 5), other=4)
    tl.store(out + tl.program_id(0) * 512 + at, v, mask=live)


@jit
def gather_nested(x, index, out, n):
    at = tl.arange(0, 32)
    first = tl.load(index + at)
    second = tl.load(index + first)
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(x + second * 7 + first))


@jit
def gather_flat(x, index, out, n):
    at = tl.arange(0, 64)
    i = tl.load(index + at, mask=at < 60, other=0)
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(x + i // 2 + at % 3, mask=at < 50, other=3))


@jit
def gather_mixed(x, index, out, n):
    at = tl.arange(0, 32)
    i = tl.load(index + at)
    plain = tl.load(x + at + tl.program_id(0))
    tl.store(out + tl.program_id(0) * 512 + at, plain + tl.load(x + i * 30 + i // 7))


@jit
def gather_pointer_loop(x, index, out, n):
    at = tl.arange(0, 32)
    p = x + tl.load(index + at)
    acc = tl.zeros((32,), out.dtype.element_ty)
    for i in range(4):
        acc += tl.load(p)
        p += i * at
    tl.store(out + tl.program_id(0) * 512 + at, acc)


@jit
def embedding_sum(x, index, out, n):
    c = tl.arange(0, 16)
    acc = tl.zeros((16,), out.dtype.element_ty)
    for k in range(n):
        acc += tl.load(x + tl.load(index + k) * 16 + c)
    tl.store(out + tl.program_id(0) * 512 + c, acc)


@jit
def addptr_sub(x, out, n):
    at = (n - tl.program_id(0) - 4) + tl.arange(0, 64) * 3 - 100
    tl.store(out + tl.program_id(0) * 512 + tl.arange(0, 64), tl.load(x + 300 - at - 1 + at * 2))


@jit
def transposed_pointers(x, out, n):
    c = tl.arange(0, 32)[None, :]
    p, m = x + tl.arange(0, 16)[:, None] * 32 + c, (c < n - 130).broadcast_to(16, 32)
    v = tl.load(tl.trans(p), mask=tl.trans(m), other=3)
    tl.store(out + tl.program_id(0) * 512 + tl.reshape(tl.arange(0, 512), (32, 16)), v)


@jit
def reshaped_pointers(x, out, n):
    p = tl.reshape(x + tl.program_id(0) + tl.arange(0, 256), (8, 32))
    at = tl.arange(0, 8)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + tl.program_id(0) * 512 + at, tl.load(p))


@jit
def sibling_loops(x, out, n):
    a, o = x + tl.arange(0, 32), out + tl.program_id(0) * 512 + tl.arange(0, 32)
    for _ in range(3):
        tl.store(o, tl.load(a))
        a += 32
        o += 32
    for _ in range(2):
        tl.store(o, tl.load(a) + tl.load(a - 64))
        a += 16
        o += 32
    tl.store(o, tl.load(a))


@jit
def compared_either_side(x, out, n):
    at, o = tl.arange(0, 64), out + tl.program_id(0) * 512 + tl.arange(0, 64)
    tl.store(o, tl.load(x + at, mask=at < n - 110, other=1))
    tl.store(o + 64, tl.load(x + at, mask=at <= n - 110, other=1))
    tl.store(o + 128, tl.load(x + at, mask=at > n - 110, other=1))
    tl.store(o + 192, tl.load(x + at, mask=at >= n - 110, other=1))
    tl.store(o + 256, tl.load(x + at, mask=n - 110 > at, other=1), mask=n - 120 >= at)
    tl.store(o + 320, tl.load(x + at, mask=n - 110 < at, other=1), mask=n - 120 <= at)


@jit
def descriptors(x, out, n):
    source = tl.make_tensor_descriptor(x, [n // 5, 32], [32, 1], [16, 16])
    target = tl.make_tensor_descriptor(out, [40, 32], [32, 1], [16, 16])
    for i in range(2):
        v = source.load([20 + 10 * i, 16 - 16 * i])
        target.store([tl.program_id(0) * 16, 16 * i], v + v)


@jit
def descriptor_adds(x, out, n):
    source = tl.make_tensor_descriptor(x, [n // 5, 32], [32, 1], [16, 16])
    target = tl.make_tensor_descriptor(out, [10, 32], [32, 1], [16, 16])
    target.atomic_add([0, 16], source.load([tl.program_id(0) * 8, 8]))


@jit
def sum_long(x, out, n):
    v = tl.load(x + tl.arange(0, 2048), mask=tl.arange(0, 2048) < 10 * n, other=0)
    tl.store(out + tl.program_id(0) * 512, tl.sum(v, axis=0))


@jit
def rows_chosen(x, index, out, n):
    r, c = tl.arange(0, 16), tl.arange(0, 16)
    live, odd = tl.load(index + r) % 3 != 0, tl.load(index + 16 + c) % 2 == 1
    at = r[:, None] * 16 + c[None, :]
    v = tl.load(x + at, mask=live[:, None] & (r < n)[:, None], other=4)
    tl.store(out + tl.program_id(0) * 512 + at, v)
    w = tl.load(x + at, mask=odd[None, :] & ~(c >= n)[None, :], other=2)
    tl.store(out + tl.program_id(0) * 512 + 256 + at, w, mask=odd[None, :])


@jit
def rows_looked_up_and_chosen(x, index, out, n):
    r, c = tl.load(index + tl.arange(0, 16)), tl.arange(0, 16)
    live = tl.load(index + tl.arange(0, 16)) < 32
    v = tl.load(x + r[:, None] * 16 + c[None, :], mask=live[:, None] & (c < n)[None, :], other=9)
    place = out + tl.program_id(0) * 1024
    tl.store(place + r[:, None] * 16 + c[None, :], v, mask=live[:, None])
