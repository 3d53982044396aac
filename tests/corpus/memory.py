"""Pointer tricks: strides of every sign, wrapping, pointers and indices from memory, aliasing.

Within a program a load completes before a later store: the kernels that read and write one
buffer at shifted places have one right answer, that of whole tiles.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import (
    BF16,
    Addresses,
    Array,
    Case,
    Reference,
    Values,
    blank,
    data,
    normal,
    whole,
)  # fmt: skip

N = 1003


@tilewright.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@tilewright.jit
def masked_other(x, out, n, low, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=(i < n) & (i >= low) & (i % 5 != 2), other=-3)
    tl.store(out + i, a, mask=i < n)


@tilewright.jit
def masked_by_data(x, flags, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(flags + i, mask=i < n, other=0) != 0
    tl.store(out + i, tl.load(x + i, mask=chosen, other=0.0), mask=chosen)


@tilewright.jit
def scalar_masks(x, out, n):
    p = tl.program_id(0)
    a = tl.load(x + p, mask=p < n, other=9)
    tl.store(out + p, a, mask=p % 2 == 0)


@tilewright.jit
def reversed_copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (n - 1) - i, mask=i < n), mask=i < n)


@tilewright.jit
def strided_copy(x, out, n, stride, out_stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i * out_stride, tl.load(x + i * stride, mask=i < n), mask=i < n)


@tilewright.jit
def two_strides(x, out, rows, columns, s0, s1, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.arange(0, N)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    a = tl.load(x + i[:, None] * s0 + j[None, :] * s1, mask=mask)
    tl.store(out + i[:, None] * columns + j[None, :], a, mask=mask)


@tilewright.jit
def wrapped(x, out, n, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + (i * 3 + 5) % size), mask=i < n)


@tilewright.jit
def wrapped_rows(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.load(x + (i % rows)[:, None] * columns + j[None, :])
    tl.store(out + i[:, None] * N + j[None, :], a)


@tilewright.jit
def row_under_mask(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)
    mask = (i < rows) & (j < columns)[None, :]
    a = tl.load(x + j, mask=mask, other=-1)  # one row of pointers, a mask of many
    tl.store(out + i * N + j[None, :], a)


@tilewright.jit
def divided_index(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i // factor, mask=i < n) + tl.load(x + i % factor, mask=i < n)
    tl.store(out + i, a, mask=i < n)


@tilewright.jit
def embedding(ids, table, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    token = tl.load(ids + row)
    a = tl.load(table + token * width + j, mask=j < width)
    tl.store(out + row * width + j, a, mask=j < width)


@tilewright.jit
def gather_rows(ids, table, out, n, width, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.arange(0, N)
    tokens = tl.load(ids + i, mask=i < n, other=0)
    mask = (i < n)[:, None] & (j < width)[None, :]
    a = tl.load(table + tokens[:, None] * width + j[None, :], mask=mask)
    tl.store(out + i[:, None] * width + j[None, :], a, mask=mask)


@tilewright.jit
def scatter(ids, x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(ids + i, mask=i < n, other=0)
    tl.store(out + place, tl.load(x + i, mask=i < n), mask=i < n)


@tilewright.jit
def loaded_pointers(pointers, x, y, z, out, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    source = tl.load(pointers + p).to(x.dtype)
    i = tl.arange(0, BLOCK)
    tl.store(out + p * n + i, tl.load(source + i, mask=i < n), mask=i < n)


@tilewright.jit
def linked_list(following, values, out, steps):
    p = tl.program_id(0)
    node = p
    total = 0
    for _ in range(steps):
        total += tl.load(values + node)
        node = tl.load(following + node)
    tl.store(out + p, total)


@tilewright.jit
def scalar_and_block_pointers(x, out, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    first = x + p * BLOCK
    a = tl.load(first) + tl.load(first + BLOCK - 1)
    b = tl.load(first + tl.arange(0, BLOCK))
    tl.store(out + p * BLOCK + tl.arange(0, BLOCK), b * a)


@tilewright.jit
def large_offsets(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    big = tl.full((BLOCK,), 1 << 33, tl.int64)
    tl.store(out + i, tl.load((x + big) + (i - big), mask=i < n), mask=i < n)


@tilewright.jit
def unsigned_offsets(x, out, n, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.uint32)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@tilewright.jit
def shift_down(x, n, BLOCK: tl.constexpr):
    p = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    a = tl.load(x + p + i + 1, mask=i < n - 1)
    tl.store(x + p + i, a, mask=i < n - 1)


@tilewright.jit
def shift_up(x, n, BLOCK: tl.constexpr):
    p = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    a = tl.load(x + p + i, mask=i < n - 1)
    tl.store(x + p + i + 1, a, mask=i < n - 1)


@tilewright.jit
def shift_by_argument(x, y, n, source, target, BLOCK: tl.constexpr):
    p = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    mask = i < n - 40
    a = tl.load(x + p + i + source, mask=mask, other=0)
    b = tl.load(y + p + i + 3, mask=mask, other=0)
    tl.store(y + p + i + target, a + b * 2, mask=mask)


@tilewright.jit
def narrow_offsets(x, start, out, BLOCK: tl.constexpr):
    """Bytes that count, wrap and then move a pointer; the same numbers, widened."""
    p = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    index = (i * 2).to(start.dtype.element_ty) + tl.load(start + p) + 3
    tl.store(out + p * BLOCK + i, tl.load(x + 400 + index) * 1000 + index.to(tl.int32))


@tilewright.jit
def transpose_by_columns(x, SIZE: tl.constexpr):
    """A matrix transposed in place by a store that is contiguous along the first dimension."""
    base = x + tl.program_id(0) * SIZE * SIZE
    r, c = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(base + r + c * SIZE, tl.load(base + r * SIZE + c))


@tilewright.jit
def reverse_in_place(x, BLOCK: tl.constexpr):
    p = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    tl.store(x + p + i, tl.load(x + p + (BLOCK - 1) - i))


@tilewright.jit
def transpose_in_place(x, SIZE: tl.constexpr):
    p = x + tl.program_id(0) * SIZE * SIZE
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    tl.store(p + i * SIZE + j, tl.load(p + j * SIZE + i))


@tilewright.jit
def rotate_rows(x, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    p = x + tl.program_id(0) * ROWS * BLOCK
    i = tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    a = tl.load(p + ((i + 1) % ROWS) * BLOCK + j)
    tl.store(p + i * BLOCK + j, a)


@tilewright.jit
def update_in_place(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(x + i, a * a - 1, mask=i < n)


@tilewright.jit
def sort_of_swap(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(x + i, b, mask=i < n)
    tl.store(y + i, a, mask=i < n)


@tilewright.jit
def store_then_load(x, out, BLOCK: tl.constexpr):
    p = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    a = tl.load(x + p + i)
    tl.store(x + p + (BLOCK - 1) - i, a * 2)
    b = tl.load(x + p + i)
    tl.store(out + p + i, a + b)


@tilewright.jit
def store_load_store(x, out, stride, BLOCK: tl.constexpr):
    p = tl.program_id(0) * stride
    i = tl.arange(0, BLOCK)
    tl.store(x + p + i + 16, i)
    a = tl.load(x + p + i + 4)
    tl.store(x + p + i + 4, i + 1000)
    tl.store(out + tl.program_id(0) * BLOCK + i, a)


@tilewright.jit
def two_stores_to_one_place(out, BLOCK: tl.constexpr):
    p = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    tl.store(out + p + i, i)
    tl.store(out + p + (i ^ 1), i + 100, mask=i % 4 < 2)


@tilewright.jit
def prefix_through_memory(x, n, stride, BLOCK: tl.constexpr):
    p = tl.program_id(0) * stride
    i = tl.arange(0, BLOCK)
    for k in range(1, n):
        before = tl.load(x + p + (k - 1) * BLOCK + i)
        here = tl.load(x + p + k * BLOCK + i)
        tl.store(x + p + k * BLOCK + i, before + here)


@tilewright.jit
def running_window(x, n, stride, BLOCK: tl.constexpr):
    p = tl.program_id(0) * stride
    i = tl.arange(0, BLOCK)
    for k in range(n):
        a = tl.load(x + p + k + i)
        tl.store(x + p + k + 1 + i, a + 1)


@tilewright.jit
def reduce_then_overwrite(x, n, BLOCK: tl.constexpr):
    p = tl.program_id(0) * n
    i = tl.arange(0, BLOCK)
    a = tl.load(x + p + i, mask=i < n, other=0)
    s = tl.sum(a, axis=0)
    tl.store(x + p + i, s - a, mask=i < n)


@tilewright.jit
def bool_memory(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, a ^ (i % 3 == 0), mask=i < n)


@tilewright.jit
def hinted(x, out, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.assume(stride > 0)
    i = tl.max_contiguous(tl.multiple_of(i, BLOCK), BLOCK)
    a = tl.load(x + i, mask=i < n, cache_modifier=".cg", eviction_policy="evict_first")
    tl.store(out + i, a + stride, mask=i < n)


def _copy_case(dtype: DTypeLike) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {"x": data(rng, N, dtype), "out": blank(N, dtype), "n": N, "BLOCK": 256}

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = a.x

    return Case(f"copy-{np.dtype(dtype).name}", copy, (4,), inputs, reference)


def _case(
    kernel: object, programs: int, inputs: object, reference: Reference, suffix: str = ""
) -> Case:
    return Case(
        kernel.fn.__name__.replace("_", "-") + suffix, kernel, (programs,), inputs, reference
    )


def _masked_other(a: SimpleNamespace) -> None:
    i = np.arange(N)
    a.out[:] = np.where((i >= a.low) & (i % 5 != 2), a.x, -3)


def _by_data(a: SimpleNamespace) -> None:
    a.out[a.flags != 0] = a.x[a.flags != 0]


def _scalar_masks(a: SimpleNamespace) -> None:
    p = np.arange(20)
    a.out[p % 2 == 0] = np.where(p < a.n, a.x, 9)[p % 2 == 0]


def _reversed(a: SimpleNamespace) -> None:
    a.out[:] = a.x[::-1]


def _strided(a: SimpleNamespace) -> None:
    i = np.arange(a.n)
    a.out[i * a.out_stride] = a.x[i * a.stride]


def _two_strides(a: SimpleNamespace) -> None:
    i, j = np.indices((a.rows, a.columns))
    a.out[:] = a.x.reshape(-1)[i * a.s0 + j * a.s1]


def _backwards_inputs(rng: np.random.Generator) -> Values:
    return {
        "x": normal(rng, 700)[::-2], "out": blank(300), "n": 300, "stride": -2, "out_stride": 1,
        "BLOCK": 128,
    }  # fmt: skip


def _backwards(a: SimpleNamespace) -> None:
    a.out[:] = a.x[:300]


def _wrapped(a: SimpleNamespace) -> None:
    a.out[:] = a.x[(np.arange(N) * 3 + 5) % a.size]


def _wrapped_rows(a: SimpleNamespace) -> None:
    a.out[:] = a.x[np.arange(48) % a.rows]


def _row_under_mask(a: SimpleNamespace) -> None:
    i, j = np.indices(a.out.shape)
    a.out[:] = np.where((i < a.rows) & (j < a.columns), a.x[np.minimum(j, a.columns - 1)], -1)


def _divided(a: SimpleNamespace) -> None:
    i = np.arange(a.n)
    a.out[:] = a.x[i // a.factor] + a.x[i % a.factor]


def _embedding(a: SimpleNamespace) -> None:
    a.out[:] = a.table[a.ids]


def _scatter(a: SimpleNamespace) -> None:
    a.out[a.ids] = a.x


def _loaded_pointers(a: SimpleNamespace) -> None:
    for p, (name, offset) in enumerate(a.pointers.of):
        a.out[p] = getattr(a, name)[offset : offset + a.n]


def _linked_list(a: SimpleNamespace) -> None:
    for p in range(a.out.size):
        node, total = p, 0
        for _ in range(a.steps):
            total += int(a.values[node])
            node = int(a.following[node])
        a.out[p] = total


def _scalar_and_block(a: SimpleNamespace) -> None:
    a.out[:] = a.x * (a.x[:, :1] + a.x[:, -1:])


def _identity(a: SimpleNamespace) -> None:
    a.out[:] = a.x


def _shift_down(a: SimpleNamespace) -> None:
    a.x[:, :-1] = a.x[:, 1:].copy()


def _shift_up(a: SimpleNamespace) -> None:
    a.x[:, 1:] = a.x[:, :-1].copy()


def _overlapping(source: int, target: int, lead: int, dtype: DTypeLike = np.int32) -> Case:
    """x and y are views of one buffer, `lead` elements apart."""
    width, programs = 300, 7

    def inputs(rng: np.random.Generator) -> Values:
        buffer = data(rng, programs * width + 64, dtype)
        if np.dtype(dtype).kind == "i":
            buffer //= 4
        return {
            "x": buffer[max(0, lead) :], "y": buffer[max(0, -lead) :], "n": width,
            "source": source, "target": target, "BLOCK": 512,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        for p in range(programs):
            i = p * width + np.arange(width - 40)
            a.y[i + target] = a.x[i + source] + a.y[i + 3] * 2

    name = f"overlap-{source}-{target}-{lead}-{np.dtype(dtype).name}"
    return Case(name, shift_by_argument, (programs,), inputs, reference)


def _reverse_in_place(a: SimpleNamespace) -> None:
    a.x[:] = a.x[:, ::-1].copy()


def _transpose_in_place(a: SimpleNamespace) -> None:
    a.x[:] = a.x.transpose(0, 2, 1).copy()


def _narrow_offsets(a: SimpleNamespace) -> None:
    steps = (np.arange(a.out.shape[1]) * 2).astype(a.start.dtype)
    with np.errstate(over="ignore"):
        index = steps + a.start[:, None] + a.start.dtype.type(3)
    a.out[:] = a.x[400 + index.astype(np.int32)] * 1000 + index.astype(np.int32)


def _rotate_rows(a: SimpleNamespace) -> None:
    a.x[:] = np.roll(a.x, -1, axis=1)


def _update(a: SimpleNamespace) -> None:
    a.x[:] = a.x * a.x - 1


def _swap(a: SimpleNamespace) -> None:
    a.x[:], a.y[:] = a.y.copy(), a.x.copy()


def _store_then_load(a: SimpleNamespace) -> None:
    before = a.x.copy()
    a.x[:] = before[:, ::-1] * 2
    a.out[:] = before + a.x


def _store_load_store(a: SimpleNamespace) -> None:
    a.x[:, 16:] = np.arange(64)
    a.out[:] = a.x[:, 4:68]
    a.x[:, 4:68] = np.arange(64) + 1000


def _two_stores(a: SimpleNamespace) -> None:
    i = np.arange(64)
    row = i.copy()
    chosen = i[i % 4 < 2]
    row[chosen ^ 1] = chosen + 100
    a.out[:] = row


def _prefix(a: SimpleNamespace) -> None:
    a.x[:] = np.cumsum(a.x, axis=1, dtype=np.int32)


def _window(a: SimpleNamespace) -> None:
    for row in a.x:
        for k in range(a.n):
            row[k + 1 : k + 1 + a.BLOCK] = row[k : k + a.BLOCK] + 1


def _reduce_then_overwrite(a: SimpleNamespace) -> None:
    a.x[:] = a.x.sum(axis=1, keepdims=True, dtype=np.int32) - a.x


def _bool_memory(a: SimpleNamespace) -> None:
    a.out[:] = a.x ^ (np.arange(N) % 3 == 0)


def _hinted(a: SimpleNamespace) -> None:
    a.out[:] = a.x + a.stride


def _one(dtype: DTypeLike = np.int32, block: int = 128, **more: object) -> object:
    def inputs(rng: np.random.Generator) -> Values:
        return {"x": data(rng, N, dtype), "out": blank(N, dtype), "n": N, "BLOCK": block, **more}

    return inputs


def _only_x(shape: tuple[int, ...], dtype: DTypeLike = np.int32, **more: object) -> object:
    def inputs(rng: np.random.Generator) -> Values:
        x = normal(rng, shape) if dtype == np.float32 else whole(rng, shape, dtype, -1000, 1000)
        return {"x": x, **more}

    return inputs


def _permutation(rng: np.random.Generator, size: int) -> Array:
    return rng.permutation(size).astype(np.int32)


CASES = [
    *(_copy_case(d) for d in (np.int8, np.uint16, np.float32, np.float64, np.bool_, BF16)),
    _case(masked_other, 8, _one(low=77), _masked_other),
    _case(
        masked_by_data, 8,
        lambda rng: {
            "x": normal(rng, N), "flags": whole(rng, N, np.int8, 0, 2), "out": blank(N), "n": N,
            "BLOCK": 128,
        },
        _by_data,
    ),
    _case(
        scalar_masks, 20,
        lambda rng: {"x": whole(rng, 20), "out": blank(20, np.int32), "n": 13}, _scalar_masks,
    ),
    _case(reversed_copy, 8, _one(), _reversed),
    _case(
        strided_copy, 3,
        lambda rng: {
            "x": normal(rng, 900), "out": blank(700), "n": 300, "stride": 3, "out_stride": 2,
            "BLOCK": 128,
        },
        _strided,
    ),
    _case(strided_copy, 3, _backwards_inputs, _backwards, "-backwards"),
    *(
        _case(
            two_strides, 3,
            lambda rng, s0=s0, s1=s1: {
                "x": whole(rng, (41, 53)), "out": blank((41, 40), np.int32), "rows": 41,
                "columns": 40, "s0": s0, "s1": s1, "M": 16, "N": 64,
            },
            _two_strides, f"-{s0}-{s1}",
        )
        for s0, s1 in ((53, 1), (1, 41), (40, 2), (0, 1), (53, 0), (3, 3))
    ),
    _case(wrapped, 8, _one(size=97), _wrapped),
    _case(
        wrapped_rows, 3,
        lambda rng: {
            "x": whole(rng, (37, 32)), "out": blank((48, 32), np.int32), "rows": 37,
            "columns": 32, "M": 16, "N": 32,
        },
        _wrapped_rows,
    ),
    _case(
        row_under_mask, 1,
        lambda rng: {
            "x": whole(rng, 27), "out": blank((16, 32), np.int32), "rows": 11, "columns": 27,
            "M": 16, "N": 32,
        },
        _row_under_mask,
    ),
    _case(
        divided_index, 8,
        lambda rng: {
            "x": whole(rng, 400, np.int32, -100, 100), "out": blank(N, np.int32), "n": N,
            "factor": 7, "BLOCK": 128,
        },
        _divided,
    ),
    _case(
        embedding, 29,
        lambda rng: {
            "ids": whole(rng, 29, np.int32, 0, 50), "table": normal(rng, (50, 45)),
            "out": blank((29, 45)), "width": 45, "BLOCK": 64,
        },
        _embedding,
    ),
    _case(
        gather_rows, 4,
        lambda rng: {
            "ids": whole(rng, 29, np.int64, 0, 50), "table": normal(rng, (50, 45)),
            "out": blank((29, 45)), "n": 29, "width": 45, "M": 8, "N": 64,
        },
        _embedding,
    ),
    _case(
        scatter, 8,
        lambda rng: {
            "ids": _permutation(rng, N), "x": normal(rng, N), "out": blank(N), "n": N,
            "BLOCK": 128,
        },
        _scatter,
    ),
    _case(
        loaded_pointers, 5,
        lambda rng: {
            "pointers": Addresses((("x", 0), ("z", 3), ("y", 1), ("x", 7), ("y", 0))),
            **{name: normal(rng, 90) for name in "xyz"}, "out": blank((5, 50)), "n": 50,
            "BLOCK": 64,
        },
        _loaded_pointers,
    ),
    _case(
        linked_list, 40,
        lambda rng: {
            "following": _permutation(rng, 40), "values": whole(rng, 40, np.int32, -99, 99),
            "out": blank(40, np.int32), "steps": 17,
        },
        _linked_list,
    ),
    _case(
        scalar_and_block_pointers, 6,
        lambda rng: {"x": normal(rng, (6, 32)), "out": blank((6, 32)), "BLOCK": 32},
        _scalar_and_block,
    ),
    _case(large_offsets, 8, _one(), _identity),
    _case(unsigned_offsets, 8, _one(), _identity),
    _case(shift_down, 6, _only_x((6, 301), n=301, BLOCK=512), _shift_down),
    _case(shift_up, 6, _only_x((6, 301), n=301, BLOCK=512), _shift_up),
    _case(shift_up, 6, _only_x((6, 301), np.float32, n=301, BLOCK=512), _shift_up, "-float32"),
    *(
        _overlapping(source, target, lead)
        for source, target, lead in (
            (0, 1, 0), (1, 0, 0), (0, 8, 0), (16, 0, 0), (0, 0, 1), (0, 0, -1), (5, 0, 7),
            (0, 31, -3), (0, 0, 0),
        )
    ),
    _overlapping(0, 1, 0, np.int8),
    _overlapping(2, 0, -5, np.float64),
    _case(reverse_in_place, 5, _only_x((5, 256), BLOCK=256), _reverse_in_place),
    _case(transpose_in_place, 4, _only_x((4, 32, 32), np.float32, SIZE=32), _transpose_in_place),
    _case(
        transpose_by_columns, 4, _only_x((4, 32, 32), np.float32, SIZE=32), _transpose_in_place,
    ),
    _case(
        transpose_by_columns, 4, _only_x((4, 16, 16), np.int16, SIZE=16), _transpose_in_place,
        "-int16",
    ),
    *(
        _case(
            narrow_offsets, 5,
            lambda rng, dtype=dtype: {
                "x": whole(rng, 1024, np.int32, -999, 999), "start": whole(rng, 5, dtype, 0, 127),
                "out": blank((5, 256), np.int32), "BLOCK": 256,
            },
            _narrow_offsets, f"-{np.dtype(dtype).name}",
        )
        for dtype in (np.int8, np.uint8)
    ),
    _case(rotate_rows, 4, _only_x((4, 8, 64), ROWS=8, BLOCK=64), _rotate_rows),
    _case(update_in_place, 8, _only_x((N,), n=N, BLOCK=128), _update),
    _case(
        sort_of_swap, 8,
        lambda rng: {"x": normal(rng, N), "y": normal(rng, N), "n": N, "BLOCK": 128}, _swap,
    ),
    _case(
        store_then_load, 5,
        lambda rng: {
            "x": whole(rng, (5, 128), np.int32, -99, 99), "out": blank((5, 128), np.int32),
            "BLOCK": 128,
        },
        _store_then_load,
    ),
    _case(
        store_load_store,
        4,
        lambda rng: {
            "x": whole(rng, (4, 80)),
            "out": blank((4, 64), np.int32),
            "stride": 80,
            "BLOCK": 64,
        },
        _store_load_store,
    ),
    _case(
        two_stores_to_one_place, 4, lambda rng: {"out": blank((4, 64), np.int32), "BLOCK": 64},
        _two_stores,
    ),
    _case(prefix_through_memory, 4, _only_x((4, 9, 32), n=9, stride=288, BLOCK=32), _prefix),
    _case(running_window, 4, _only_x((4, 100), n=20, stride=100, BLOCK=64), _window),
    _case(reduce_then_overwrite, 6, _only_x((6, 77), n=77, BLOCK=128), _reduce_then_overwrite),
    _case(bool_memory, 8, _one(np.bool_), _bool_memory),
    _case(hinted, 8, _one(stride=5), _hinted),
]  # fmt: skip
