"""Views and rearrangements: every shape op, in 1-D to 4-D, on integers that must not change."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Reference, Values, blank, normal, whole

PROGRAMS = 5


@tilewright.jit
def transpose(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    mask = (i < rows)[:, None] & (j < columns)[None, :]
    a = tl.load(x + i[:, None] * columns + j[None, :], mask=mask, other=0)
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(a), mask=tl.trans(mask))


@tilewright.jit
def transpose_through_values(x, out, M: tl.constexpr, N: tl.constexpr):
    o = tl.program_id(0) * M * N
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    a = tl.load(x + o + i * N + j)
    b = a.T + (tl.arange(0, N)[:, None] - tl.arange(0, M)[None, :])
    tl.store(out + o + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], b)


@tilewright.jit
def permute(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    o = tl.program_id(0) * A * B * C
    i = tl.arange(0, A)[:, None, None]
    j = tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    a = tl.load(x + o + (i * B + j) * C + k)
    b = tl.permute(a, (2, 0, 1))
    k, i, j = (
        tl.arange(0, C)[:, None, None],
        tl.arange(0, A)[None, :, None],
        tl.arange(0, B)[None, None, :],
    )
    tl.store(out + o + (k * A + i) * B + j, b)


@tilewright.jit
def reshape(x, out, BLOCK: tl.constexpr, M: tl.constexpr):
    o = tl.program_id(0) * BLOCK
    a = tl.load(x + o + tl.arange(0, BLOCK))
    b = tl.reshape(a, (M, BLOCK // M))
    c = tl.sum(b, axis=0)
    tl.store(out + tl.program_id(0) * (BLOCK // M) + tl.arange(0, BLOCK // M), c)


@tilewright.jit
def reshape_chain(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + o).reshape(4, BLOCK // 4)
    b = tl.trans(a).reshape(BLOCK // 8, 8)
    tl.store(out + o, tl.ravel(b * 2 + 1))


@tilewright.jit
def broadcasts(x, y, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.arange(0, N)
    a = tl.expand_dims(tl.load(x + i), 1)
    b = tl.expand_dims(tl.load(y + j), 0)
    c = tl.broadcast_to(a, (M, N)) * b + tl.full((M, N), 3, tl.int32)
    p, q = tl.broadcast(a, c)
    tl.store(out + i[:, None] * N + j[None, :], p - q)


@tilewright.jit
def join_and_split(x, y, out, low, high, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + o), tl.load(y + o)
    both = tl.join(a, b)
    pair = tl.program_id(0) * 2 * BLOCK
    pair += tl.arange(0, BLOCK)[:, None] * 2 + tl.arange(0, 2)[None, :]
    tl.store(out + pair, both)
    p, q = tl.split(both * 3)
    tl.store(low + o, p)
    tl.store(high + o, q)


@tilewright.jit
def split_of_reshape(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    even, odd = tl.split(tl.load(x + o).reshape(BLOCK // 2, 2))
    h = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK // 2)
    tl.store(out + h, even - odd)


@tilewright.jit
def interleave(x, y, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.interleave(tl.load(x + o), tl.load(y + o))
    tl.store(out + tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK), c)


@tilewright.jit
def concatenate(x, y, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.cat(tl.load(x + o), tl.load(y + o))
    tl.store(out + tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK), c)


@tilewright.jit
def flips(x, out, M: tl.constexpr, N: tl.constexpr):
    o = tl.program_id(0) * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + o)
    tl.store(out + o, tl.flip(a, 0) - tl.flip(a, 1))


@tilewright.jit
def one_element_tiles(x, out, n, ONE: tl.constexpr):
    p = tl.program_id(0)
    a = tl.load(x + p + tl.arange(0, ONE))
    b = tl.load(x + p)
    tl.store(out + p + tl.arange(0, ONE), a * 2 + b)


@tilewright.jit
def four_dimensions(x, out, A: tl.constexpr, B: tl.constexpr):
    o = tl.program_id(0) * A * B * A * B + tl.arange(0, A * B * A * B)
    a = tl.load(x + o).reshape(A, B, A, B)
    b = tl.permute(a, (2, 1, 0, 3))
    tl.store(out + o, b.reshape(A * B * A * B))


@tilewright.jit
def constants(out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    o = tl.program_id(0) * BLOCK + i
    a = tl.zeros((BLOCK,), tl.int32) + tl.full((BLOCK,), -7, tl.int32)
    tl.store(out + o, tl.where(i % 3 == 0, a, i - tl.arange(5, 5 + BLOCK)))


def _case(
    kernel: object, reference: Reference, shape: tuple[int, ...], *outs: tuple[str, object],
    names: str = "x", **constants: int,
) -> Case:  # fmt: skip
    def inputs(rng: np.random.Generator) -> Values:
        arrays: Values = {n: whole(rng, (PROGRAMS, *shape), np.int32) for n in names}
        for name, out_shape in outs:
            arrays[name] = blank(out_shape, np.int32)
        return {**arrays, **constants}

    name = kernel.fn.__name__.replace("_", "-")
    return Case(name, kernel, (PROGRAMS,), inputs, reference)


def _transpose_case(m: int, n: int, dtype: DTypeLike) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {
            "x": normal(rng, (m, n), dtype), "out": blank((n, m), dtype), "rows": m, "columns": n,
            "M": 16, "N": 32,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = a.x.T

    grid = (-(-m // 16), -(-n // 32))
    return Case(f"transpose-{m}x{n}-{np.dtype(dtype).name}", transpose, grid, inputs, reference)


def _through_values(a: SimpleNamespace) -> None:
    n, m = np.indices((16, 8))
    a.out[:] = a.x.transpose(0, 2, 1) + (n - m)


def _permute(a: SimpleNamespace) -> None:
    a.out[:] = a.x.transpose(0, 3, 1, 2)


def _reshape(a: SimpleNamespace) -> None:
    a.out[:] = a.x.reshape(PROGRAMS, 8, 16).sum(axis=1, dtype=np.int32)


def _reshape_chain(a: SimpleNamespace) -> None:
    a.out[:] = a.x.reshape(PROGRAMS, 4, 32).transpose(0, 2, 1).reshape(PROGRAMS, 128) * 2 + 1


def _broadcasts(a: SimpleNamespace) -> None:
    x = a.x.reshape(-1)[: PROGRAMS * 16, None]
    y = a.y.reshape(-1)[None, :16]
    a.out[:] = x - (x * y + 3)


def _join_and_split(a: SimpleNamespace) -> None:
    a.out[:] = np.stack([a.x, a.y], axis=-1)
    a.low[:], a.high[:] = a.x * 3, a.y * 3


def _split_of_reshape(a: SimpleNamespace) -> None:
    a.out[:] = a.x[:, ::2] - a.x[:, 1::2]


def _interleave(a: SimpleNamespace) -> None:
    a.out[:] = np.stack([a.x, a.y], axis=-1).reshape(PROGRAMS, 128)


def _concatenate(a: SimpleNamespace) -> None:
    a.out[:] = np.concatenate([a.x, a.y], axis=1)


def _flips(a: SimpleNamespace) -> None:
    a.out[:] = np.flip(a.x, 1) - np.flip(a.x, 2)


def _one_element(a: SimpleNamespace) -> None:
    a.out.reshape(-1)[:PROGRAMS] = a.x.reshape(-1)[:PROGRAMS] * 3


def _four_dimensions(a: SimpleNamespace) -> None:
    a.out[:] = a.x.reshape(-1, 4, 8, 4, 8).transpose(0, 3, 2, 1, 4).reshape(PROGRAMS, -1)


def _constants(a: SimpleNamespace) -> None:
    i = np.arange(64)
    a.out[:] = np.where(i % 3 == 0, -7, -5)


P = PROGRAMS
CASES = [
    _transpose_case(37, 53, np.float32),
    _transpose_case(64, 64, np.float16),
    _transpose_case(1, 70, np.float64),
    _case(transpose_through_values, _through_values, (8, 16), ("out", (P, 16, 8)), M=8, N=16),
    _case(permute, _permute, (4, 8, 16), ("out", (P, 16, 4, 8)), A=4, B=8, C=16),
    _case(reshape, _reshape, (128,), ("out", (P, 16)), BLOCK=128, M=8),
    _case(reshape_chain, _reshape_chain, (128,), ("out", (P, 128)), BLOCK=128),
    _case(broadcasts, _broadcasts, (16,), ("out", (P * 16, 16)), names="xy", M=16, N=16),
    _case(
        join_and_split, _join_and_split, (32,), ("out", (P, 32, 2)), ("low", (P, 32)),
        ("high", (P, 32)), names="xy", BLOCK=32,
    ),
    _case(split_of_reshape, _split_of_reshape, (64,), ("out", (P, 32)), BLOCK=64),
    _case(interleave, _interleave, (64,), ("out", (P, 128)), names="xy", BLOCK=64),
    _case(concatenate, _concatenate, (64,), ("out", (P, 128)), names="xy", BLOCK=64),
    _case(flips, _flips, (8, 16), ("out", (P, 8, 16)), M=8, N=16),
    _case(one_element_tiles, _one_element, (1,), ("out", (P, 1)), n=3, ONE=1),
    _case(four_dimensions, _four_dimensions, (1024,), ("out", (P, 1024)), A=4, B=8),
    _case(constants, _constants, (1,), ("out", (P, 64)), names="", BLOCK=64),
]  # fmt: skip
