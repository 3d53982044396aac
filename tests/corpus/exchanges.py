"""Folds over a few elements that are spread over them again, as the steps of a bitonic sort."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from benchmarks.long_kernels import sort_rows
from tests.corpus.case import EXACT, Case, Close, Values, blank, normal, whole


@tilewright.jit
def exchange_neighbours(x, out, N: tl.constexpr, W: tl.constexpr):
    """Every element less the largest and least of its group, plus where the largest is."""
    at = tl.program_id(0) * N * W + tl.arange(0, N * W)
    groups = tl.reshape(tl.load(x + at) * 3 + 1, (N, W))
    most = tl.broadcast_to(tl.max(groups, 1)[:, None], (N, W))
    least = tl.broadcast_to(tl.min(groups, 1)[:, None], (N, W))
    place = tl.broadcast_to(tl.argmax(groups, 1)[:, None], (N, W))
    result = groups * 2 - most - least + place.to(groups.dtype)
    tl.store(out + at, tl.reshape(result, (N * W,)))


@tilewright.jit
def butterfly(x, out, n, LOG2: tl.constexpr):
    """x[i] + x[i xor 2^k], step after step, each of which takes the one before."""
    N: tl.constexpr = 2**LOG2
    at = tl.program_id(0) * N + tl.arange(0, N)
    v = tl.load(x + at, at < n, other=0)
    for k in tl.static_range(LOG2):
        pairs: tl.constexpr = (N >> (k + 1), 2, 2**k)
        p = tl.reshape(v, pairs)
        v = tl.reshape(tl.broadcast_to(tl.sum(p, 1)[:, None, :], pairs) * 3 - p, (N,))
    tl.store(out + at, v, at < n)


@tilewright.jit
def spread_in_loop(x, out, times, N: tl.constexpr):
    """Pairs in a loop whose tile is carried, and updated where it stands."""
    at = tl.program_id(0) * 2 * N + tl.arange(0, N)[:, None] * 2 + tl.arange(0, 2)[None, :]
    v = tl.load(x + at)
    for k in range(times):
        v = tl.broadcast_to(tl.sum(v * (k + 1), 1)[:, None], (N, 2)) - v
    tl.store(out + at, v)


@tilewright.jit
def _best(a, i, b, j):
    takes = (b > a) | ((b == a) & (j < i))
    return tl.where(takes, b, a), tl.where(takes, j, i)


@tilewright.jit
def spread_pairs_of_results(x, out, where, N: tl.constexpr, W: tl.constexpr):
    """A fold of two results, of which only one is spread."""
    at = tl.program_id(0) * N * W + tl.arange(0, N)[:, None] * W + tl.arange(0, W)[None, :]
    v = tl.load(x + at) ^ 5
    best, place = tl.reduce((v, tl.broadcast_to(tl.arange(0, W)[None, :], (N, W))), 1, _best)
    tl.store(out + at, tl.broadcast_to(best[:, None], (N, W)) - v)
    tl.store(where + tl.program_id(0) * N + tl.arange(0, N), place)


def _neighbours(a: SimpleNamespace) -> None:
    g = (a.x * 3 + 1).reshape(-1, a.W)
    ends = g.max(1, keepdims=True) + g.min(1, keepdims=True)
    a.out[:] = (g * 2 - ends + g.argmax(1)[:, None].astype(g.dtype)).reshape(-1)


def _butterfly(a: SimpleNamespace) -> None:
    size = 2**a.LOG2
    v = np.zeros(-(-a.n // size) * size, a.x.dtype)
    v[: a.n] = a.x[: a.n]
    v = v.reshape(-1, size)
    for k in range(a.LOG2):
        other = v[:, np.arange(size) ^ (1 << k)]
        v = ((v + other) * 3 - v).astype(v.dtype)
    a.out[: a.n] = v.reshape(-1)[: a.n]


def _in_loop(a: SimpleNamespace) -> None:
    v = a.x.reshape(-1, 2)
    for k in range(a.times):
        v = (v * (k + 1)).sum(1, keepdims=True, dtype=v.dtype) - v
    a.out[:] = v.reshape(-1)


def _two_results(a: SimpleNamespace) -> None:
    v = (a.x ^ 5).reshape(-1, a.W)
    a.out[:] = (v.max(1, keepdims=True) - v).reshape(-1)
    a.where[:] = v.argmax(1)


def _sorted(a: SimpleNamespace) -> None:
    order = np.argsort(a.x, axis=1, kind="stable")
    a.values[:] = np.take_along_axis(a.x, order, 1)
    a.indices[:] = order


def _rows(rng: np.random.Generator) -> np.ndarray:
    x = normal(rng, (5, 13)).round(0)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


def _sort_case(rows: int) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {"x": _rows(rng), "values": blank((5, 13)), "indices": blank((5, 13), np.int64),
                "rows": 5, "columns": 13, "ROWS": rows, "AXIS_LOG2": 4}  # fmt: skip

    return Case(f"sort-with-indices-{rows}", sort_rows, (-(-5 // rows),), inputs, _sorted)


def _neighbours_case(width: int, dtype: type[np.generic]) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        x = whole(rng, 3 * 32 * width, np.int32, -40, 40).astype(dtype)
        return {"x": x, "out": blank(x.shape, dtype), "N": 32, "W": width}

    name = f"exchange-neighbours-{width}-{np.dtype(dtype)}"
    return Case(name, exchange_neighbours, (3,), inputs, _neighbours)


def _butterfly_case(log2: int, dtype: type[np.generic]) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        x = whole(rng, 100, np.int32, -40, 40).astype(dtype)
        return {"x": x, "out": blank(100, dtype), "n": 100, "LOG2": log2}

    tolerance = EXACT if np.issubdtype(dtype, np.integer) else Close(1e-5)
    name = f"butterfly-{log2}-{np.dtype(dtype)}"
    return Case(name, butterfly, (-(-100 // 2**log2),), inputs, _butterfly, tolerance)


CASES = [
    *map(_sort_case, (1, 2)),
    *(_neighbours_case(w, d) for w in (2, 4, 8) for d in (np.int32, np.float32)),
    *(_butterfly_case(n, d) for n in (1, 5) for d in (np.int32, np.int16, np.float32)),
    *(
        Case(
            f"spread-in-loop-{times}", spread_in_loop, (2,),
            lambda rng, times=times: {
                "x": whole(rng, 128, np.int32), "out": blank(128, np.int32), "times": times,
                "N": 32,
            },
            _in_loop,
        )
        for times in (0, 1, 3)
    ),
    *(
        Case(
            f"spread-pairs-of-results-{width}", spread_pairs_of_results, (2,),
            lambda rng, width=width: {
                "x": whole(rng, 64 * width, np.int32, -9, 9),
                "out": blank(64 * width, np.int32), "where": blank(64, np.int32),
                "N": 32, "W": width,
            },
            _two_results,
        )
        for width in (2, 4)
    ),
]  # fmt: skip
