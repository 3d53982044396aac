"""Kernels whose loads the copy engine cannot make: gathered rows, and rows that begin anywhere."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Close, Values, blank, normal, wide
from tests.corpus.partitioned import Partitioned, halves
from tilewright.support.dataclass import replace


@tilewright.jit
def gathered(
    a, rows, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """Rows of A that indices name times B, which comes in boxes."""
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    at = tl.load(rows + i, mask=i < m, other=0)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        kk = start + tl.arange(0, K)
        x = tl.load(a + at[:, None] * k + kk[None, :], mask=(kk < k)[None, :], other=0.0)
        acc = tl.dot(x, right.load([start, tl.program_id(1) * N]), acc)
    tl.store(c + i[:, None] * n + j[None, :], acc, mask=(i < m)[:, None] & (j < n)[None, :])


@tilewright.jit
def gathered_both(
    a, rows, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """The same with B by pointers to rows that begin anywhere, seen transposed."""
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    at = tl.load(rows + i, mask=i < m, other=0)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        kk = start + tl.arange(0, K)
        x = tl.load(a + at[:, None] * k + kk[None, :], mask=(kk < k)[None, :], other=0.0)
        inside = (j < n)[:, None] & (kk < k)[None, :]
        y = tl.load(b + j[:, None] * k + kk[None, :], mask=inside, other=0.0)
        acc = tl.dot(x, y.T, acc)
    tl.store(c + i[:, None] * n + j[None, :], acc, mask=(i < m)[:, None] & (j < n)[None, :])


@tilewright.jit
def paged(
    q, keys, values, table, out, length, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """Attention to keys and values whose rows a table names, tile by tile."""
    i, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    tile = tl.load(q + i[:, None] * D + d[None, :], mask=(i < length)[:, None], other=0.0)
    acc = tl.zeros((M, D), tl.float32)
    total, highest = tl.zeros((M,), tl.float32), tl.full((M,), -1e30, tl.float32)
    for start in range(0, length, N):
        j = start + tl.arange(0, N)
        at = tl.load(table + j, mask=j < length, other=0)
        place = at[:, None] * D + d[None, :]
        k = tl.load(keys + place, mask=(j < length)[:, None], other=0.0)
        scores = tl.where((j < length)[None, :], tl.dot(tile, k.T), -1e30)
        top = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp2(scores - top[:, None])
        scale = tl.exp2(highest - top)
        total = total * scale + tl.sum(p, 1)
        v = tl.load(values + place, mask=(j < length)[:, None], other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * scale[:, None])
        highest = top
    places = out + i[:, None] * D + d[None, :]
    tl.store(places, acc / total[:, None], mask=(i < length)[:, None])


def gathered_case(kernel: object, m: int, n: int, k: int, name: str, **sizes: int) -> Case:
    """A product of halves, all of whose sums are exact; B is [k, n] in boxes, else [n, k]."""
    tile = {"M": 128, "N": 64, "K": 64, **sizes}
    programs = (-(-m // tile["M"]), -(-n // tile["N"]))

    def inputs(rng: np.random.Generator) -> Values:
        a, b = halves(rng, (m + 30, k), (k, n) if kernel is gathered else (n, k))
        rows = rng.integers(0, m + 30, m).astype(np.int32)
        return {"a": a, "rows": rows, "b": b, "c": blank((m, n)), "m": m, "n": n, "k": k, **tile}

    def reference(v: SimpleNamespace) -> None:
        right = wide(v.b) if kernel is gathered else wide(v.b).T
        v.c[:] = wide(v.a)[v.rows] @ right

    return Case(name, kernel, programs, inputs, reference)


def paged_case(length: int, rows: int = 128, keys: int = 64, d: int = 64) -> Case:
    """Attention of one head, whose keys and values lie in any order."""

    def inputs(rng: np.random.Generator) -> Values:
        arrays = {name: normal(rng, (length, d), np.float16) for name in ("q", "keys", "values")}
        table = rng.permutation(length).astype(np.int32)
        sizes = {"length": length, "M": rows, "N": keys, "D": d}
        return {**arrays, "table": table, "out": blank((length, d)), **sizes}

    def reference(v: SimpleNamespace) -> None:
        scores = wide(v.q) @ wide(v.keys)[v.table].T
        weights = np.exp2(scores - scores.max(axis=1, keepdims=True))
        v.out[:] = weights @ wide(v.values)[v.table] / weights.sum(axis=1, keepdims=True)

    name = f"paged-{length}-{keys}x{d}" if (keys, d) != (64, 64) else f"paged-{length}"
    return Case(name, paged, (-(-length // rows),), inputs, reference, Close(2e-2, 2e-2))


_MIXED = "ring a tiles load#1 slots {slots} cp_async; ring b tiles load#2 slots {slots}"
_COPIED = "ring a tiles load#1 slots {slots} cp_async; ring b tiles load#2 slots {slots} cp_async"
_PAGED = (
    "ring q tiles load#0 slots 1 cp_async; ring k tiles load#2 slots {slots} cp_async; "
    "ring v tiles load#3 slots {slots} cp_async"
)
_OVERLAPPED = f"{_PAGED}; loop for#0 dot#0 @0.0 dot#1 @1.1 rest @0.2"
COPIED = [
    Partitioned(gathered_case(gathered, 128, 64, 192, "gathered"), _MIXED),
    Partitioned(gathered_case(gathered, 200, 72, 104, "gathered-odd"), _MIXED),
    Partitioned(gathered_case(gathered_both, 200, 136, 136, "gathered-both"), _COPIED),
    # Rows of 42 halves are known to begin at multiples of 4 bytes, so copies are of 4.
    Partitioned(gathered_case(gathered_both, 200, 72, 42, "narrow", K=32), _COPIED),
    Partitioned(gathered_case(gathered_both, 130, 64, 0, "gathered-no-step"), _COPIED),
    Partitioned(paged_case(200), _PAGED),
    Partitioned(paged_case(17), _PAGED),
    Partitioned(replace(paged_case(330), name="paged-overlapped"), _OVERLAPPED),
]
"""Those whose loads threads copy, alone and beside boxes."""
