"""Kernels with tensor descriptors and arguments for them: for the simulator, ptxas, a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

import tilewright
import tilewright.language as tl
from tilewright.ir.op import Array
from tilewright.runtime.tensor_descriptor import TensorDescriptor

DTYPES = ["int8", "float16", "bfloat16", "float32", "int32", "float64", "int64", "float8_e5m2"]


def numbers(shape: Sequence[int], dtype: str = "float32", span: int = 50) -> Array:
    """Whole numbers that every dtype holds exactly."""
    kind = getattr(ml_dtypes, dtype, None) or dtype
    generator = np.random.default_rng(len(shape) + sum(shape))
    return generator.integers(-span, span, tuple(shape)).astype(kind)


def described(array: Array, block: Sequence[int]) -> TensorDescriptor:
    """The descriptor of an array, padded with zeros."""
    return TensorDescriptor.from_tensor(array, tuple(block))


@tilewright.jit
def copy_block(source, target, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([i, j], source.load([i, j]))


@tilewright.jit
def scale_row(source, target, B: tl.constexpr):
    i = tl.program_id(0) * B
    target.store([i], source.load([i]) * 3)


@tilewright.jit
def add_one(source, target, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.program_id(0) * A, tl.program_id(1) * B, tl.program_id(2) * C
    target.store([i, j, k], source.load([i, j, k]) + 1)


@tilewright.jit
def add_five(source, target):
    target.store([0, 1, 0, 1, 0], source.load([0, 0, 1, 0, 0]))


@tilewright.jit
def made_with_nan(x, out, first, B: tl.constexpr):
    start = tl.load(first)
    source = tl.make_tensor_descriptor(x + start, [8, B], [B, 1], [B, B], padding_option="nan")
    target = tl.make_tensor_descriptor(out, [B, B], [B, 1], [B, B])
    target.store([0, 0], source.load([0, 0]))


@tilewright.jit
def shift(source, target, i, j):
    target.store([j, i], source.load([i, j]))


@tilewright.jit
def transpose(source, target, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([j, i], source.load([i, j]).T)


@tilewright.jit
def row_sums(source, out, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM
    acc = tl.zeros((BM,), tl.float32)
    for j in range(0, n, BN):
        acc += tl.sum(source.load([i, j]), axis=1)
    tl.store(out + i + tl.arange(0, BM), acc)


@tilewright.jit
def nested(source, out, n, m, B: tl.constexpr):
    acc = tl.zeros((B, B), tl.float32)
    for i in range(0, n):
        acc += source.load([i, 0])
        for j in range(i, m):
            if (i + j) % 2 == 0:
                acc += source.load([0, j])
            else:
                acc -= source.load([i, j]) * 2
        if i == 1:
            acc += source.load([m, i])
    k = 0
    while k < m:
        acc += source.load([k, k])
        k += 2
    out.store([0, 0], acc)


@tilewright.jit
def persistent(source, target, rows, BM: tl.constexpr, BN: tl.constexpr):
    for i in range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0)):
        x = source.load([i * BM, 0])
        target.store([i * BM, 0], x * 2)
        target.store([i * BM, BN], x + 1)


@tilewright.jit
def matmul(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for l in range(0, k, BK):
        acc = tl.dot(a.load([i, l]), b.load([l, j]), acc)
    c.store([i, j], acc.to(c.dtype))


@tilewright.jit
def matmul_persistent(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    across = tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), tl.cdiv(m, BM) * across, tl.num_programs(0)):
        i, j = tile // across * BM, tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for l in range(0, k, BK):
            acc = tl.dot(a.load([i, l]), b.load([l, j]), acc)
        c.store([i, j], acc.to(c.dtype))


@tilewright.jit
def weighted(a, b, c, out, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM
    acc = tl.zeros((BM, BN), tl.float32)
    for j in range(0, n, BN):
        acc += a.load([i, j]) * b.load([i, j]) + tl.trans(c.load([j, i]))
    out.store([i, 0], acc)


@tilewright.jit
def matmul_transposed(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for l in range(0, k, BK):
        acc = tl.dot(a.load([i, l]), b.load([j, l]).T, acc)
    c.store([i, j], acc.to(c.dtype))


def operands(m: int, n: int, k: int, dtype: str, blocks: tuple[int, int, int]) -> list[object]:
    bm, bn, bk = blocks
    a, b = numbers((m, k), dtype, 4), numbers((k, n), dtype, 4)
    c = np.zeros((m, n), np.float32)
    tensors = [described(a, (bm, bk)), described(b, (bk, bn)), described(c, (bm, bn))]
    return [*tensors, k, *blocks]


def transposed(arguments: list[object]) -> list[object]:
    b = arguments[1]
    assert isinstance(b, TensorDescriptor) and isinstance(b.base, np.ndarray)
    block = tuple(reversed(b.block_shape))
    return [arguments[0], described(b.base.T.copy(), block), *arguments[2:]]


SHAPES = [
    ((64, 64, 64), (64, 64, 32)),
    ((128, 72, 80), (128, 64, 64)),
    ((64, 256, 128), (64, 256, 64)),
]


def reducing(kind: str) -> object:
    """A kernel that combines blocks into one of `target` by `kind`."""

    @tilewright.jit
    def reduce_add(source, target, B: tl.constexpr):
        target.atomic_add([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_min(source, target, B: tl.constexpr):
        target.atomic_min([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_max(source, target, B: tl.constexpr):
        target.atomic_max([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_and(source, target, B: tl.constexpr):
        target.atomic_and([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_or(source, target, B: tl.constexpr):
        target.atomic_or([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_xor(source, target, B: tl.constexpr):
        target.atomic_xor([1, 0], source.load([tl.program_id(0) * B, 0]))

    kernels = (reduce_add, reduce_min, reduce_max, reduce_and, reduce_or, reduce_xor)
    return next(k for k in kernels if k.__name__ == f"reduce_{kind}")


REDUCED = [("add", t) for t in ("int32", "uint32", "float32", "float16", "uint64")] + [
    (kind, t)
    for kind in ("min", "max", "and", "or", "xor")
    for t in ("int32", "uint32", "int64", "uint64")
]


@tilewright.jit
def made_here(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BM, BN])
    target = tl.make_tensor_descriptor(out + 8, [rows - 1, columns // 2], [columns, 1], [BM, BN])
    target.store([0, 0], source.load([BM, 0]))


@tilewright.jit
def made_by_program(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    source = tl.make_tensor_descriptor(
        x + pid * rows * columns, [rows, columns], [columns, 1], [BM, BN]
    )
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BM, BN])
    target.store([pid * BM, 0], source.load([0, 0]))


@tilewright.jit
def grouped(sizes, a, b, c, groups, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of several sizes, one behind the other in three arrays."""
    first_a = 0
    first_b = 0
    first_c = 0
    for g in range(groups):
        m, n, k = tl.load(sizes + 3 * g), tl.load(sizes + 3 * g + 1), tl.load(sizes + 3 * g + 2)
        left = tl.make_tensor_descriptor(a + first_a, [m, k], [k, 1], [BM, BK])
        right = tl.make_tensor_descriptor(b + first_b, [k, n], [n, 1], [BK, BN])
        out = tl.make_tensor_descriptor(c + first_c, [m, n], [n, 1], [BM, BN])
        columns = tl.cdiv(n, BN)
        for t in range(tl.program_id(0), tl.cdiv(m, BM) * columns, tl.num_programs(0)):
            i, j = t // columns * BM, t % columns * BN
            acc = tl.zeros((BM, BN), tl.float32)
            for l in range(0, k, BK):
                acc = tl.dot(left.load([i, l]), right.load([l, j]), acc)
            out.store([i, j], acc)
        first_a += m * k
        first_b += k * n
        first_c += m * n


def grouped_arguments(sizes: Sequence[tuple[int, int, int]]) -> list[object]:
    num_a, num_b, num_c = (
        sum(m * k for m, _, k in sizes), sum(k * n for _, n, k in sizes),
        sum(m * n for m, n, _ in sizes),
    )  # fmt: skip
    a, b = numbers((num_a,), "float16", 4), numbers((num_b,), "float16", 4)
    c = np.zeros(num_c, np.float32)
    return [np.array(sizes, np.int32).ravel(), a, b, c, len(sizes), 64, 32, 32]


@tilewright.jit
def made_of_three(x, out, first, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    start = tl.load(first)
    source = tl.make_tensor_descriptor(x + start, [3, 8, 16], [8 * 16, 16, 1], [A, B, C])
    line = tl.make_tensor_descriptor(out + start, [384 - start], [1], [A * B * C])
    line.store([0], tl.reshape(source.load([1, 0, 0]), (A * B * C,)))
    line.atomic_add([0], tl.full((A * B * C,), 5, tl.int32))


@tilewright.jit
def chosen(x, y, out, flag, B: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [B, B], [B, 1], [B, B])
    if tl.load(flag) != 0:
        desc = tl.make_tensor_descriptor(y, [B, B], [B, 1], [B, B])
    target = tl.make_tensor_descriptor(out, [B, B], [B, 1], [B, B])
    target.store([0, 0], desc.load([0, 0]))


@tilewright.jit
def chosen_rows(source, target, rows, out, N: tl.constexpr):
    chosen = tl.load(rows + tl.arange(0, 8))
    block = source.gather(chosen, 4)
    target.scatter(block, chosen - 1, 0)
    out.store([0, 0], block)


@tilewright.jit
def store_then_load(x, out, n, B: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [n, n], [n, 1], [B, B])
    desc.store([0, 0], desc.load([B, 0]) + 1)
    tl.debug_barrier()
    offsets = tl.arange(0, B)[:, None] * n + tl.arange(0, B)[None, :]
    tl.store(out + offsets, tl.load(x + offsets) * 2)


@tilewright.jit
def overwritten(source, target, n, B: tl.constexpr):
    for i in range(n):
        target.store([0, 0], source.load([i, 0]))


@tilewright.jit
def sum_blocks(a, b, c, out, BM: tl.constexpr, BN: tl.constexpr):
    out.store([0, 0], a.load([0, 0]) + b.load([0, 0]) + c.load([0, 0]))
    out.store([0, BN], a.load([0, BN]))


@tilewright.jit
def attention(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    i = tl.program_id(0) * BM
    x = q.load([i, 0])
    acc = tl.zeros((BM, D), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for j in range(0, n, BN):
        p = tl.dot(x, k.load([j, 0]).T) * 0.01
        p = tl.exp2(p)
        total += tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v.load([j, 0]), acc)
    out.store([i, 0], acc / total[:, None])


def attention_arguments(n: int) -> list[object]:
    q, k, v = (numbers((n, 64), "float16", 3 + i) for i in range(3))
    blocks = ((64, 64), (32, 64), (32, 64), (64, 64))
    arrays = (q, k, v, np.zeros((n, 64), np.float32))
    tensors = [described(a, b) for a, b in zip(arrays, blocks, strict=True)]
    return [*tensors, n, 64, 32, 64]


@tilewright.jit
def sparse(source, target, wanted, n, B: tl.constexpr):
    for i in range(n):
        if tl.load(wanted + i) != 0:
            target.store([i * B, 0], source.load([i * B, 0]) + i)
