"""Products whose sizes and places are data, and products whose edges wrap around."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Values, blank, whole, wide
from tilewright.jit import JITFunction

SHAPES = ((200, 72, 104), (64, 64, 64), (17, 40, 200), (128, 136, 0), (130, 8, 72))
"""M, N and K of each product of a group; rows are multiples of 16 bytes."""


@tilewright.jit
def grouped(
    a_all, b_all, c_all, starts, sizes, count, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """Programs share the tiles of all products; where those lie and their sizes are loaded."""
    tile, first = tl.program_id(0), 0
    for number in range(count):
        m = tl.load(sizes + number * 3)
        n = tl.load(sizes + number * 3 + 1)
        k = tl.load(sizes + number * 3 + 2)
        a = a_all + tl.load(starts + number * 3)
        b = b_all + tl.load(starts + number * 3 + 1)
        c = c_all + tl.load(starts + number * 3 + 2)
        columns = tl.cdiv(n, N)
        end = first + tl.cdiv(m, M) * columns
        while tile < end:
            i = (tile - first) // columns * M + tl.arange(0, M)
            j = (tile - first) % columns * N + tl.arange(0, N)
            acc = tl.zeros((M, N), tl.float32)
            for start in range(0, k, K):
                kk = start + tl.arange(0, K)
                left = (i < m)[:, None] & (kk < k)[None, :]
                right = (kk < k)[:, None] & (j < n)[None, :]
                x = tl.load(a + i[:, None] * k + kk[None, :], mask=left, other=0.0)
                y = tl.load(b + kk[:, None] * n + j[None, :], mask=right, other=0.0)
                acc = tl.dot(x, y, acc)
            inside = (i < m)[:, None] & (j < n)[None, :]
            tl.store(c + i[:, None] * n + j[None, :], acc, mask=inside)
            tile += tl.num_programs(0)
        first = end


@tilewright.jit
def grouped_by_descriptors(
    a_all, b_all, c_all, starts, sizes, count, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """The same with descriptors that each program makes of what it loads."""
    tile, first = tl.program_id(0), 0
    for number in range(count):
        m = tl.load(sizes + number * 3)
        n = tl.load(sizes + number * 3 + 1)
        k = tl.load(sizes + number * 3 + 2)
        a = a_all + tl.load(starts + number * 3)
        b = b_all + tl.load(starts + number * 3 + 1)
        c = c_all + tl.load(starts + number * 3 + 2)
        left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
        right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
        out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
        columns = tl.cdiv(n, N)
        end = first + tl.cdiv(m, M) * columns
        while tile < end:
            row, column = (tile - first) // columns * M, (tile - first) % columns * N
            acc = tl.zeros((M, N), tl.float32)
            for start in range(0, k, K):
                acc = tl.dot(left.load([row, start]), right.load([start, column]), acc)
            out.store([row, column], acc)
            tile += tl.num_programs(0)
        first = end


@tilewright.jit
def wrapped(
    a, b, c, m, n, k, sam, sak, sbk, sbn, scm, scn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """One tile a program, in groups of rows; rows of A and columns of B wrap at the edge."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(m, M), tl.cdiv(n, N)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    place = pid % (GROUP * columns)
    row, column = first + place % height, place // height
    i = (row * M + tl.arange(0, M)) % m
    j = (column * N + tl.arange(0, N)) % n
    kk = tl.arange(0, K)
    x = a + (i[:, None] * sam + kk[None, :] * sak)
    y = b + (kk[:, None] * sbk + j[None, :] * sbn)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        p = tl.load(x, mask=kk[None, :] < k - step * K, other=0.0)
        q = tl.load(y, mask=kk[:, None] < k - step * K, other=0.0)
        acc = tl.dot(p, q, acc)
        x += K * sak
        y += K * sbk
    i = row * M + tl.arange(0, M)
    j = column * N + tl.arange(0, N)
    inside = (i < m)[:, None] & (j < n)[None, :]
    tl.store(c + i[:, None] * scm + j[None, :] * scn, acc, mask=inside)


def _halves(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return whole(rng, shape, np.int32, -3, 4).astype(np.float16)


def _starts() -> list[tuple[int, int, int]]:
    """Where each product's A, B and C start in one array of all of them, and where those end."""
    found = [(0, 0, 0)]
    for m, n, k in SHAPES:
        a, b, c = found[-1]
        found.append((a + m * k, b + k * n, c + m * n))
    return found


def grouped_case(kernel: JITFunction, programs: int, **sizes: int) -> Case:
    """All products of `SHAPES` by so many programs."""
    tile = {"M": 64, "N": 32, "K": 32, **sizes}

    starts = np.array(_starts(), np.int64)

    def inputs(rng: np.random.Generator) -> Values:
        arrays = {"a_all": _halves(rng, starts[-1, 0]), "b_all": _halves(rng, starts[-1, 1])}
        out = {"c_all": blank(int(starts[-1, 2])), "starts": starts[:-1].copy()}
        return {**arrays, **out, "sizes": np.array(SHAPES, np.int32), "count": len(SHAPES), **tile}

    def reference(v: SimpleNamespace) -> None:
        for (m, n, k), (a, b, c) in zip(SHAPES, starts, strict=False):
            left, right = v.a_all[a : a + m * k], v.b_all[b : b + k * n]
            product = wide(left.reshape(m, k)) @ wide(right.reshape(k, n))
            v.c_all[c : c + m * n] = product.reshape(-1)

    return Case(f"{kernel.__name__}-{programs}", kernel, (programs,), inputs, reference)


def wrapped_case(m: int, n: int, k: int, is_transposed: bool = False, **sizes: int) -> Case:
    """A product of halves of any size."""
    tile = {"M": 128, "N": 64, "K": 32, "GROUP": 2, **sizes}

    def inputs(rng: np.random.Generator) -> Values:
        b = _halves(rng, n, k) if is_transposed else _halves(rng, k, n)
        strides = {"sam": k, "sak": 1, "sbk": 1 if is_transposed else n}
        strides |= {"sbn": k if is_transposed else 1, "scm": n, "scn": 1}
        arrays = {"a": _halves(rng, m, k), "b": b, "c": blank((m, n))}
        return {**arrays, "m": m, "n": n, "k": k, **strides, **tile}

    def reference(v: SimpleNamespace) -> None:
        v.c[:] = wide(v.a) @ wide(v.b.T if is_transposed else v.b)

    name = f"wrapped-{m}-{n}-{k}{'-transposed' if is_transposed else ''}"
    grid = (-(-m // tile["M"]) * -(-n // tile["N"]),)
    return Case(name, wrapped, grid, inputs, reference)


GROUPED = [grouped_case(grouped, 3), grouped_case(grouped_by_descriptors, 5)]
WRAPPED = [
    wrapped_case(200, 72, 104),
    wrapped_case(129, 41, 67),
    wrapped_case(256, 128, 96, is_transposed=True),
]
CASES = [*GROUPED, *WRAPPED]
