"""Kernels as servers of language models run them: experts, sequences of any length, pages.

Where their loops end, and what they load, follows from numbers in memory.
"""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Close, Values, blank, normal, whole, wide
from tests.corpus.partitioned import Partitioned


@tilewright.jit
def experts(
    a, b, c, tokens, expert_of, padded, m, n, k,
    TOP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Rows of tokens times the weights of their expert; weights lie with K adjacent."""
    columns = tl.cdiv(n, N)
    row, column = tl.program_id(0) // columns, tl.program_id(0) % columns * N
    if row * M >= tl.load(padded):
        return
    token = tl.load(tokens + row * M + tl.arange(0, M)).to(tl.int64)
    expert = tl.load(expert_of + row).to(tl.int64)
    j, kk = column + tl.arange(0, N), tl.arange(0, K)
    left = a + token[:, None] // TOP * k + kk[None, :]
    right = b + expert * n * k + kk[:, None] + (j % n)[None, :] * k
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        inside = kk < k - start
        x = tl.load(left, mask=(token < m)[:, None] & inside[None, :], other=0.0)
        y = tl.load(right, mask=inside[:, None], other=0.0)
        acc = tl.dot(x, y, acc)
        left += K
        right += K
    tl.store(c + token[:, None] * n + j[None, :], acc, mask=(token < m)[:, None] & (j < n)[None, :])


@tilewright.jit
def sequences(
    q, keys, values, starts, out, heads,
    CAUSAL: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Attention of sequences that lie one behind another."""
    first = tl.load(starts + tl.program_id(1))
    length = tl.load(starts + tl.program_id(1) + 1) - first
    row = tl.program_id(0) * M
    if row >= length:
        return
    i, d = row + tl.arange(0, M), tl.program_id(2) * D + tl.arange(0, D)
    places = (first + i)[:, None] * heads * D + d[None, :]
    tile = tl.load(q + places, mask=(i < length)[:, None], other=0.0)
    acc = tl.zeros((M, D), tl.float32)
    total, highest = tl.zeros((M,), tl.float32), tl.full((M,), -1e30, tl.float32)
    end = min(row + M, length) if CAUSAL else length
    for start in range(0, end, N):
        j = start + tl.arange(0, N)
        at = (first + j)[:, None] * heads * D + d[None, :]
        k = tl.load(keys + at, mask=(j < length)[:, None], other=0.0)
        seen = (j < length)[None, :]
        if CAUSAL:
            seen = seen & (j[None, :] <= i[:, None])
        scores = tl.where(seen, tl.dot(tile, k.T), -1e30)
        top = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp2(scores - top[:, None])
        scale = tl.exp2(highest - top)
        total = total * scale + tl.sum(p, 1)
        v = tl.load(values + at, mask=(j < length)[:, None], other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * scale[:, None])
        highest = top
    tl.store(out + places, acc / total[:, None], mask=(i < length)[:, None])


@tilewright.jit
def cached(
    q, keys, values, starts, lengths, out, most,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Attention of new tokens, one sequence behind another, to what is cached of each.

    Programs without a token end before they read how much that is.
    """
    first = tl.load(starts + tl.program_id(1))
    count = tl.load(starts + tl.program_id(1) + 1) - first
    row = tl.program_id(0) * M
    if row >= count:
        return
    length = tl.load(lengths + tl.program_id(1))
    if length <= 0:
        return
    i, d = row + tl.arange(0, M), tl.arange(0, D)
    places = (first + i)[:, None] * D + d[None, :]
    tile = tl.load(q + places, mask=(i < count)[:, None], other=0.0)
    acc = tl.zeros((M, D), tl.float32)
    total, highest = tl.zeros((M,), tl.float32), tl.full((M,), -1e30, tl.float32)
    for start in range(0, length, N):
        j = start + tl.arange(0, N)
        at = (tl.program_id(1) * most + j)[:, None] * D + d[None, :]
        k = tl.load(keys + at, mask=(j < length)[:, None], other=0.0)
        scores = tl.where((j < length)[None, :], tl.dot(tile, k.T), -1e30)
        top = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp2(scores - top[:, None])
        scale = tl.exp2(highest - top)
        total = total * scale + tl.sum(p, 1)
        v = tl.load(values + at, mask=(j < length)[:, None], other=0.0)
        acc = tl.dot(p.to(tl.float16), v, acc * scale[:, None])
        highest = top
    tl.store(out + places, acc / total[:, None], mask=(i < count)[:, None])


@tilewright.jit
def blocks_of_pages(
    q, keys, values, table, lengths, out, queries, rows, most,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Attention to pages that a table names, each a block of a tensor."""
    length = tl.load(lengths + tl.program_id(1))
    of_q = tl.make_tensor_descriptor(q, [queries, D], [D, 1], [M, D])
    of_keys = tl.make_tensor_descriptor(keys, [rows, D], [D, 1], [N, D])
    of_values = tl.make_tensor_descriptor(values, [rows, D], [D, 1], [N, D])
    tile = of_q.load([tl.program_id(1) * M, 0])
    acc = tl.zeros((M, D), tl.float32)
    total, highest = tl.zeros((M,), tl.float32), tl.full((M,), -1e30, tl.float32)
    for page in range(0, tl.cdiv(length, N)):
        at = tl.load(table + tl.program_id(1) * most + page) * N
        j = page * N + tl.arange(0, N)
        k = of_keys.load([at, 0])
        scores = tl.where((j < length)[None, :], tl.dot(tile, k.T), -1e30)
        top = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp2(scores - top[:, None])
        scale = tl.exp2(highest - top)
        total = total * scale + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), of_values.load([at, 0]), acc * scale[:, None])
        highest = top
    i, d = tl.program_id(1) * M + tl.arange(0, M), tl.arange(0, D)
    tl.store(out + i[:, None] * D + d[None, :], acc / total[:, None])


def experts_case(
    m: int, n: int, k: int, count: int, top: int, name: str, columns: int = 64
) -> Case:
    """Rows of `m` tokens, `top` experts each, padded to tiles with a number that is no row."""
    rows = 128
    most = -(-m * top // rows) + count

    def inputs(rng: np.random.Generator) -> Values:
        chosen = np.stack([rng.permutation(count)[:top] for _ in range(m)]).reshape(-1)
        tokens, expert_of = np.full(most * rows, m * top, np.int32), np.zeros(most, np.int32)
        tiles = 0
        for expert in range(count):
            own = np.flatnonzero(chosen == expert)
            tokens[tiles * rows : tiles * rows + own.size] = own
            end = tiles + -(-own.size // rows)
            expert_of[tiles:end], tiles = expert, end
        return {
            "a": _halves(rng, (m, k)),
            "b": _halves(rng, (count, n, k)),
            "c": blank((m * top, n)),
            "tokens": tokens,
            "expert_of": expert_of,
            "padded": np.array([tiles * rows], np.int32),
            **{"m": m * top, "n": n, "k": k},
            **{"TOP": top, "M": rows, "N": columns, "K": 64},
        }

    def reference(v: SimpleNamespace) -> None:
        for tile, expert in enumerate(v.expert_of[: v.padded[0] // rows]):
            own = v.tokens[tile * rows : (tile + 1) * rows]
            own = own[own < v.m]
            v.c[own] = wide(v.a)[own // top] @ wide(v.b)[expert].T

    return Case(name, experts, (most * -(-n // columns),), inputs, reference)


def sequences_case(
    lengths: tuple[int, ...], heads: int, keys: int, d: int, name: str, *, causal: bool
) -> Case:
    """Sequences of some lengths, of which one may be 0."""
    starts = np.cumsum((0, *lengths)).astype(np.int32)

    def inputs(rng: np.random.Generator) -> Values:
        shape = (int(starts[-1]), heads, d)
        arrays = {of: normal(rng, shape, np.float16) for of in ("q", "keys", "values")}
        sizes = {"heads": heads, "CAUSAL": causal, "M": 128, "N": keys, "D": d}
        return {**arrays, "starts": starts, "out": blank(shape), **sizes}

    def reference(v: SimpleNamespace) -> None:
        for first, end in pairwise(starts):
            for head in range(heads):
                q, k, values = (wide(x)[first:end, head] for x in (v.q, v.keys, v.values))
                v.out[first:end, head] = _attended(q @ k.T, values, causal=causal)

    tiles = max(1, -(-max(lengths) // 128))
    grid = (tiles, len(lengths), heads)
    return Case(name, sequences, grid, inputs, reference, Close(2e-2, 2e-2))


def cached_case(
    tokens: tuple[int, ...], lengths: tuple[int, ...], keys: int, d: int, name: str
) -> Case:
    """New tokens of each sequence and the length of its cache, either of which may be 0."""
    starts, most = np.cumsum((0, *tokens)).astype(np.int32), max(lengths)

    def inputs(rng: np.random.Generator) -> Values:
        new, old = (int(starts[-1]), d), (len(lengths) * most, d)
        shapes = {"q": new, "keys": old, "values": old}
        arrays = {of: normal(rng, shape, np.float16) for of, shape in shapes.items()}
        numbers = {"starts": starts, "lengths": np.array(lengths, np.int32)}
        sizes = {"most": most, "M": 128, "N": keys, "D": d}
        return {**arrays, **numbers, "out": blank(new), **sizes}

    def reference(v: SimpleNamespace) -> None:
        for at, (first, end) in enumerate(pairwise(starts)):
            own = slice(at * most, at * most + lengths[at])
            if lengths[at]:
                scores = wide(v.q)[first:end] @ wide(v.keys)[own].T
                v.out[first:end] = _attended(scores, wide(v.values)[own], causal=False)

    grid = (max(1, -(-max(tokens) // 128)), len(lengths))
    return Case(name, cached, grid, inputs, reference, Close(2e-2, 2e-2))


def blocks_of_pages_case(lengths: tuple[int, ...], keys: int, d: int, name: str) -> Case:
    """One tile of queries a sequence; lengths of 1 and more."""
    most = max(-(-length // keys) for length in lengths)
    rows = len(lengths) * most * keys

    def inputs(rng: np.random.Generator) -> Values:
        arrays = {of: normal(rng, (rows, d), np.float16) for of in ("keys", "values")}
        return {
            "q": normal(rng, (len(lengths) * 128, d), np.float16),
            **arrays,
            "table": rng.permutation(len(lengths) * most).astype(np.int32),
            "lengths": np.array(lengths, np.int32),
            "out": blank((len(lengths) * 128, d)),
            **{
                "queries": len(lengths) * 128,
                "rows": rows,
                "most": most,
                "M": 128,
                "N": keys,
                "D": d,
            },
        }

    def reference(v: SimpleNamespace) -> None:
        table = v.table.reshape(len(lengths), most)
        for at, length in enumerate(lengths):
            places = (table[at][:, None] * keys + np.arange(keys)).reshape(-1)[:length]
            own = slice(at * 128, (at + 1) * 128)
            scores = wide(v.q)[own] @ wide(v.keys)[places].T
            v.out[own] = _attended(scores, wide(v.values)[places], causal=False)

    grid = (1, len(lengths))
    return Case(name, blocks_of_pages, grid, inputs, reference, Close(2e-2, 2e-2))


def _halves(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return whole(rng, shape, np.int32, low=-3, high=4).astype(np.float16)


def _attended(scores: np.ndarray, values: np.ndarray, *, causal: bool) -> np.ndarray:
    """Values weighted by the powers of two of their scores."""
    if causal:
        seen = np.tri(*scores.shape, dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    weights = np.exp2(scores - scores.max(axis=1, keepdims=True, initial=-1e30))
    return weights @ values / weights.sum(axis=1, keepdims=True)


_SEQUENCES = (
    "ring q tiles load#0 slots 1 cp_async; ring k tiles load#1 slots {slots} cp_async; "
    "ring v tiles load#2 slots {slots} cp_async"
)
_PAGES = (
    "ring q tiles load#0 slots 1 tma; ring k tiles load#1 slots {slots} tma; "
    "ring v tiles load#2 slots {slots} tma"
)
SERVED = [
    Partitioned(sequences_case((130, 0, 17), 2, 64, 64, "sequences", causal=False), _SEQUENCES),
    Partitioned(sequences_case((200, 65), 1, 64, 64, "sequences-causal", causal=True), _SEQUENCES),
    Partitioned(cached_case((130, 0, 17, 9), (70, 5, 130, 0), 64, 64, "cached"), _SEQUENCES),
    Partitioned(blocks_of_pages_case((100, 1, 65), 32, 64, "blocks-of-pages"), _PAGES),
]
"""Those whose rings a schedule names."""
EXPERTS = [
    experts_case(150, 72, 136, 3, 2, "experts"),
    experts_case(40, 136, 200, 4, 1, "experts-few-tokens", 128),
]
"""Those whose weights are turned on the way to their ring."""
