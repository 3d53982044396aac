"""Block pointers and tensor descriptors, made in the kernel and by the host."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Close, Values, blank, normal, whole, wide
from tilewright.runtime.tensor_descriptor import TensorDescriptor

ROWS, COLUMNS = 37, 52


@tilewright.jit
def block_copy(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_block_ptr(
        base=x, shape=(rows, columns), strides=(columns, 1),
        offsets=(tl.program_id(0) * M, tl.program_id(1) * N), block_shape=(M, N), order=(1, 0),
    )  # fmt: skip
    target = tl.make_block_ptr(
        base=out, shape=(rows, columns), strides=(columns, 1),
        offsets=(tl.program_id(0) * M, tl.program_id(1) * N), block_shape=(M, N), order=(1, 0),
    )  # fmt: skip
    a = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, a + 1, boundary_check=(0, 1))


@tilewright.jit
def block_transpose(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_block_ptr(
        x, (columns, rows), (1, columns), (tl.program_id(0) * M, tl.program_id(1) * N), (M, N),
        (0, 1),
    )  # fmt: skip
    target = tl.make_block_ptr(
        out, (columns, rows), (rows, 1), (tl.program_id(0) * M, tl.program_id(1) * N), (M, N),
        (1, 0),
    )  # fmt: skip
    tl.store(target, tl.load(source, boundary_check=(0, 1)), boundary_check=(0, 1))


@tilewright.jit
def block_row_sums(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    block = tl.make_block_ptr(
        x, (rows, columns), (columns, 1), (tl.program_id(0) * M, 0), (M, N), (1, 0)
    )
    total = tl.zeros((M,), tl.float32)
    for _ in range(0, columns, N):
        a = tl.load(block, boundary_check=(0, 1), padding_option="zero")
        total += tl.sum(a, axis=1)
        block = tl.advance(block, (0, N))
    i = tl.program_id(0) * M + tl.arange(0, M)
    tl.store(out + i, total, mask=i < rows)


@tilewright.jit
def block_nan_padding(x, out, n, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * BLOCK - 3,), (BLOCK,), (0,))
    a = tl.load(block, boundary_check=(0,), padding_option="nan")
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), a)


@tilewright.jit
def block_matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    x = tl.make_block_ptr(a, (m, k), (k, 1), (tl.program_id(0) * M, 0), (M, K), (1, 0))
    y = tl.make_block_ptr(b, (k, n), (n, 1), (0, tl.program_id(1) * N), (K, N), (1, 0))
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        p = tl.load(x, boundary_check=(0, 1), padding_option="zero")
        q = tl.load(y, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(p, q, acc, input_precision="ieee")
        x = tl.advance(x, (0, K))
        y = tl.advance(y, (K, 0))
    z = tl.make_block_ptr(
        c, (m, n), (n, 1), (tl.program_id(0) * M, tl.program_id(1) * N), (M, N), (1, 0)
    )
    tl.store(z, acc, boundary_check=(0, 1))


@tilewright.jit
def descriptor_copy(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [M, N])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [M, N])
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    target.store([i, j], source.load([i, j]) * 2)


@tilewright.jit
def descriptor_of_three(x, out, d, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(
        x, [d, rows, columns], [rows * columns, columns, 1], [1, M, N]
    )
    a = source.load([tl.program_id(0), tl.program_id(1) * M, 0]).reshape(M, N)
    i = tl.program_id(1) * M + tl.arange(0, M)
    s = tl.sum(a, axis=1)
    tl.store(out + tl.program_id(0) * rows + i, s, mask=i < rows)


@tilewright.jit
def host_descriptors(source, target, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    a = source.load([i, j])
    target.store([i, j], a - 1)


@tilewright.jit
def descriptor_adds(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [M, N])
    target = tl.make_tensor_descriptor(out, [M, columns], [columns, 1], [M, N])
    a = source.load([tl.program_id(0) * M, tl.program_id(1) * N])
    target.atomic_add([0, tl.program_id(1) * N], a)


@tilewright.jit
def descriptor_matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Operands in halves, so that a machine with matrix units takes them from shared memory."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [N, K])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    i, j = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), tl.float32)
    for at in range(0, k, K):
        acc = tl.dot(left.load([i, at]), right.load([j, at]).T, acc)
    out.store([i, j], acc)


@tilewright.jit
def descriptor_paths(x, out, rows, columns, count, B: tl.constexpr):
    """Loads in nested loops and on both sides of a branch."""
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [B, B])
    acc = tl.zeros((B, B), tl.int32)
    for i in range(count):
        acc += source.load([i, 0])
        for j in range(i):
            if (i + j) % 2 == 0:
                acc += source.load([j, i])
            else:
                acc -= source.load([i, j]) * 2
    target = tl.make_tensor_descriptor(out, [B, B], [B, 1], [B, B])
    target.store([0, 0], acc)


@tilewright.jit
def descriptor_groups(x, out, starts, rows, M: tl.constexpr, N: tl.constexpr):
    """Descriptors that follow from what a program reads."""
    for g in range(tl.program_id(0), 4, tl.num_programs(0)):
        start = tl.load(starts + g)
        source = tl.make_tensor_descriptor(x + start * N, [rows - start, N], [N, 1], [M, N])
        target = tl.make_tensor_descriptor(out + g * M * N, [M, N], [N, 1], [M, N])
        target.store([0, 0], source.load([1, 0]))


def _two(kernel: object, reference: object, dtype: DTypeLike = np.int32,
         is_transposed: bool = False, tile: tuple[int, int] = (16, 16)) -> Case:  # fmt: skip
    m, n = tile
    size = (COLUMNS, ROWS) if is_transposed else (ROWS, COLUMNS)

    def inputs(rng: np.random.Generator) -> Values:
        x = whole(rng, (ROWS, COLUMNS), dtype, -1000, 1000)
        return {
            "x": x, "out": blank(size, dtype), "rows": ROWS, "columns": COLUMNS, "M": m, "N": n
        }  # fmt: skip

    grid = (-(-size[0] // m), -(-size[1] // n))
    return Case(kernel.fn.__name__.replace("_", "-"), kernel, grid, inputs, reference)


def _plus_one(a: SimpleNamespace) -> None:
    a.out[:] = a.x + 1


def _transposed(a: SimpleNamespace) -> None:
    a.out[:] = a.x.T


def _row_sums(a: SimpleNamespace) -> None:
    a.out[:] = wide(a.x).sum(axis=1)


def _nan_padding(a: SimpleNamespace) -> None:
    padded = np.full(5 * 32 + 3, np.nan, np.float32)
    padded[3 : 3 + a.n] = a.x
    a.out[:] = padded[: 5 * 32]


def _matmul(a: SimpleNamespace) -> None:
    a.c[:] = wide(a.a) @ wide(a.b)


def _doubled(a: SimpleNamespace) -> None:
    a.out[:] = a.x * 2


def _sums_of_three(a: SimpleNamespace) -> None:
    a.out[:] = a.x.sum(axis=2, dtype=np.int32)


def _host(a: SimpleNamespace) -> None:
    a.target.base[:] = a.source.base - 1


def _host_inputs(rng: np.random.Generator) -> Values:
    x, y = whole(rng, (ROWS, COLUMNS), np.int32, -1000, 1000), blank((ROWS, COLUMNS), np.int32)
    return {
        "source": TensorDescriptor.from_tensor(x, [16, 32]),
        "target": TensorDescriptor.from_tensor(y, [16, 32]), "M": 16, "N": 32,
    }  # fmt: skip


def _adds(a: SimpleNamespace) -> None:
    padded = np.zeros((48, COLUMNS), np.int32)
    padded[:ROWS] = a.x
    a.out[:] += padded.reshape(3, 16, COLUMNS).sum(axis=0, dtype=np.int32)


def _matmul_transposed(a: SimpleNamespace) -> None:
    a.c[:] = wide(a.a) @ wide(a.b).T


def _paths(a: SimpleNamespace) -> None:
    padded = np.zeros((a.rows + a.B + 8, a.columns + a.B + 8), np.int32)
    padded[: a.rows, : a.columns] = a.x

    def block(i: int, j: int) -> np.ndarray:
        return padded[i : i + a.B, j : j + a.B]

    total = np.zeros_like(a.out)
    for i in range(a.count):
        total += block(i, 0)
        for j in range(i):
            total += block(j, i) if (i + j) % 2 == 0 else -2 * block(i, j)
    a.out[:] = total


def _groups(a: SimpleNamespace) -> None:
    padded = np.zeros((a.rows + 1 + a.M, a.N), np.int32)
    padded[: a.rows] = a.x
    for g, start in enumerate(a.starts):
        a.out[g * a.M : (g + 1) * a.M] = padded[start + 1 : start + 1 + a.M]


CASES = [
    _two(block_copy, _plus_one),
    _two(block_transpose, _transposed, is_transposed=True),
    Case(
        "block-row-sums", block_row_sums, (3,),
        lambda rng: {
            "x": normal(rng, (ROWS, COLUMNS)), "out": blank(ROWS), "rows": ROWS,
            "columns": COLUMNS, "M": 16, "N": 16,
        },
        _row_sums, Close(1e-5, 1e-5),
    ),
    Case(
        "block-nan-padding", block_nan_padding, (5,),
        lambda rng: {"x": normal(rng, 130), "out": blank(160), "n": 130, "BLOCK": 32},
        _nan_padding,
    ),
    Case(
        "block-matmul", block_matmul, (2, 2),
        lambda rng: {
            "a": normal(rng, (37, 45)), "b": normal(rng, (45, 29)), "c": blank((37, 29)), "m": 37,
            "n": 29, "k": 45, "M": 32, "N": 16, "K": 16,
        },
        _matmul, Close(1e-5, 1e-4),
    ),
    _two(descriptor_copy, _doubled),
    Case(
        "descriptor-of-three", descriptor_of_three, (3, 2),
        lambda rng: {
            "x": whole(rng, (3, 21, 24), np.int32, -99, 99), "out": blank((3, 21), np.int32),
            "d": 3, "rows": 21, "columns": 24, "M": 16, "N": 32,
        },
        _sums_of_three,
    ),
    Case("host-descriptors", host_descriptors, (3, 2), _host_inputs, _host),
    Case(
        "descriptor-adds", descriptor_adds, (3, 4),
        lambda rng: {
            "x": whole(rng, (ROWS, COLUMNS), np.int32, -99, 99),
            "out": blank((16, COLUMNS), np.int32), "rows": ROWS, "columns": COLUMNS, "M": 16,
            "N": 16,
        },
        _adds,
    ),
    Case(
        "descriptor-matmul", descriptor_matmul, (2, 2),
        lambda rng: {
            "a": whole(rng, (72, 88), np.int32, -3, 4).astype(np.float16),
            "b": whole(rng, (40, 88), np.int32, -3, 4).astype(np.float16),
            "c": blank((72, 40)), "m": 72, "n": 40, "k": 88, "M": 64, "N": 32, "K": 32,
        },
        _matmul_transposed,
    ),
    Case(
        "descriptor-paths", descriptor_paths, (1,),
        lambda rng: {
            "x": whole(rng, (20, 24), np.int32, -99, 99), "out": blank((16, 16), np.int32),
            "rows": 20, "columns": 24, "count": 4, "B": 16,
        },
        _paths,
    ),
    Case(
        "descriptor-groups", descriptor_groups, (3,),
        lambda rng: {
            "x": whole(rng, (40, 16), np.int32, -99, 99), "out": blank((32, 16), np.int32),
            "starts": np.array([4, 0, 35, 20], np.int32), "rows": 40, "M": 8, "N": 16,
        },
        _groups,
    ),
]  # fmt: skip
