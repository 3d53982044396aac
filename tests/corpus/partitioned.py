"""Kernels that run as roles, each with the schedule that makes them: products and attention."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Close, Values, blank, normal, whole, wide


@tilewright.jit
def gemm(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        acc = tl.dot(left.load([row, start]), right.load([start, column]), acc)
    out.store([row, column], acc.to(tl.float16))


@tilewright.jit
def gemm_by_pointers(
    a, b, c, bias, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """B transposed; the result goes out by pointers, with a bias for each column and row sums."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [N, K])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), tl.float32)
    steps = 0
    for start in range(0, k, K):
        x = left.load([row, start])
        y = right.load([column, start])
        acc = tl.dot(x, y.T, acc)
        steps += 1
    i, j = row + tl.arange(0, M), column + tl.arange(0, N)
    more = tl.load(bias + j, mask=j < n, other=0.0)
    acc = tl.maximum(acc + more[None, :], 0.0) + steps
    mask = (i < m)[:, None] & (j < n)[None, :]
    tl.store(c + i[:, None] * n + j[None, :], acc, mask=mask)


@tilewright.jit
def persistent(
    a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr
):  # fmt: skip
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    rows, columns = tl.cdiv(m, M), tl.cdiv(n, N)
    for tile in range(tl.program_id(0), rows * columns, tl.num_programs(0)):
        first = tile // (GROUP * columns) * GROUP
        height = min(rows - first, GROUP)
        place = tile % (GROUP * columns)
        row, column = (first + place % height) * M, place // height * N
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            acc = tl.dot(left.load([row, start]), right.load([start, column]), acc)
        out.store([row, column], acc.to(tl.float16))


@tilewright.jit
def under_conditions(a, b, c, m, n, k, every, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Some steps are left out, some take a second product, and a tuple is carried."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    state = (tl.zeros((M, N), tl.float32), 0, 1)
    for start in range(0, k, K):
        acc, count, sign = state
        if count % every != 1:
            x = left.load([row, start])
            acc = tl.dot(x, right.load([start, column]), acc)
            sign = sign + 1
        else:
            acc = acc * 0.5
        state = (acc, count + 1, sign)
    if every > 2:
        x = left.load([row, 0])
        acc = tl.dot(x, right.load([0, column]), state[0])
    else:
        acc = state[0]
    out.store([row, column], (acc + state[2]).to(tl.float16))


@tilewright.jit
def two_outputs(
    a, b, c, more, m, n, k, every, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    """A persistent loop that stores one block of each tile, and of some another one."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    other = tl.make_tensor_descriptor(more, [m, n], [n, 1], [M, N])
    rows, columns = tl.cdiv(m, M), tl.cdiv(n, N)
    for tile in range(tl.program_id(0), rows * columns, tl.num_programs(0)):
        row, column = tile // columns * M, tile % columns * N
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, k, K):
            acc = tl.dot(left.load([row, start]), right.load([start, column]), acc)
        if tile % every == 0:
            other.store([row, column], acc * 2.0)
        out.store([row, column], acc.to(tl.float16))


@tilewright.jit
def attend(acc, total, highest, q, keys, values, first, last, row, queries, length,
           MASKED: tl.constexpr, CAUSAL: tl.constexpr, N: tl.constexpr):  # fmt: skip
    for start in range(first, last, N):
        k = keys.load([row + start, 0])
        scores = tl.dot(q, k.T)
        if MASKED:
            at = start + tl.arange(0, N)
            allowed = at[None, :] < length
            if CAUSAL:
                allowed = allowed & (at[None, :] <= queries[:, None])
            scores = tl.where(allowed, scores, -1.0e30)
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        scale = tl.exp2(highest - higher)
        weights = tl.exp2(scores - higher[:, None])
        total = total * scale + tl.sum(weights, axis=1)
        v = values.load([row + start, 0])
        acc = tl.dot(weights.to(tl.float16), v, acc * scale[:, None])
        highest = higher
    return acc, total, highest


@tilewright.jit
def attention(q, k, v, out, sums, length, all_rows, M: tl.constexpr, N: tl.constexpr,
              D: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Each head apart, `[heads, length, D]`; two loops, without the mask and with it."""
    tl.assume(length >= 0)
    row = tl.program_id(1) * length
    queries = tl.make_tensor_descriptor(q, [all_rows, D], [D, 1], [M, D])
    keys = tl.make_tensor_descriptor(k, [all_rows, D], [D, 1], [N, D])
    values = tl.make_tensor_descriptor(v, [all_rows, D], [D, 1], [N, D])
    first = tl.program_id(0) * M
    at = first + tl.arange(0, M)
    tile = queries.load([row + first, 0])
    acc = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    highest = tl.full((M,), -1.0e30, tl.float32)
    last = min(first + M, length) if CAUSAL else length
    whole_keys = first // N * N if CAUSAL else length // N * N
    acc, total, highest = attend(acc, total, highest, tile, keys, values, 0, whole_keys, row, at,
                                 length, False, CAUSAL, N)  # fmt: skip
    acc, total, highest = attend(acc, total, highest, tile, keys, values, whole_keys, last, row,
                                 at, length, True, CAUSAL, N)  # fmt: skip
    inside = at < length
    places = (row + at)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(out + places, acc / total[:, None], mask=inside[:, None])
    tl.store(sums + row + at, highest + tl.log2(total), mask=inside)


@dataclass(frozen=True)
class Partitioned:
    """A case, and the text of its schedule with `{x}` where the role of products is said."""

    case: Case
    schedule: str

    def text(self, replicas: int, split: str = "m", slots: int = 2) -> str:
        """The schedule for so many replicas."""
        math = f"math x{replicas} split {split}" if replicas > 1 else "math"
        return f"roles load | {math}; " + self.schedule.format(slots=slots)

    @property
    def name(self) -> str:
        """The name of the case."""
        return self.case.name


_SMALL = {"low": -3, "high": 4}
AB = "ring ab tiles load#0 load#1 slots {slots}"


def halves(rng: np.random.Generator, *shapes: tuple[int, int]) -> list[np.ndarray]:
    """Whole numbers from -3 to 3 as float16: their products and sums are exact."""
    return [whole(rng, shape, np.int32, **_SMALL).astype(np.float16) for shape in shapes]


def gemm_case(kernel: object, m: int, n: int, k: int, name: str, **sizes: int) -> Case:
    """A product of halves, all of whose sums are exact."""
    tile = {"M": 128, "N": 64, "K": 64, **sizes}
    programs = (-(-m // tile["M"]), -(-n // tile["N"]))
    grid = (min(3, programs[0] * programs[1]),) if kernel is persistent else programs

    def inputs(rng: np.random.Generator) -> Values:
        a, b = halves(rng, (m, k), (k, n))
        return {"a": a, "b": b, "c": blank((m, n), np.float16), "m": m, "n": n, "k": k, **tile}

    def reference(v: SimpleNamespace) -> None:
        v.c[:] = wide(v.a) @ wide(v.b)

    return Case(name, kernel, grid, inputs, reference)


def two_outputs_case(m: int, n: int, k: int, every: int) -> Case:
    """Products of halves, every so many of them stored twice, in float32 as well."""
    sizes = {"M": 128, "N": 64, "K": 64}

    def inputs(rng: np.random.Generator) -> Values:
        a, b = halves(rng, (m, k), (k, n))
        outs = {"c": blank((m, n), np.float16), "more": np.full((m, n), 7, np.float32)}
        return {"a": a, "b": b, **outs, "m": m, "n": n, "k": k, "every": every, **sizes}

    def reference(v: SimpleNamespace) -> None:
        v.c[:] = wide(v.a) @ wide(v.b)
        columns = -(-v.n // 64)
        for tile in range(0, -(-v.m // 128) * columns, v.every):
            row, column = tile // columns * 128, tile % columns * 64
            block = np.s_[row : row + 128, column : column + 64]
            v.more[block] = 2 * (wide(v.a) @ wide(v.b))[block]

    return Case(f"gemm-two-outputs-{every}", two_outputs, (3,), inputs, reference)


def pointer_case(m: int, n: int, k: int, columns: int = 64, depth: int = 64) -> Case:
    """A product of halves with B transposed, whose result goes out by pointers."""

    def inputs(rng: np.random.Generator) -> Values:
        a, b = halves(rng, (m, k), (n, k))
        bias = whole(rng, n, np.int32, **_SMALL).astype(np.float32)
        sizes = {"m": m, "n": n, "k": k, "M": 128, "N": columns, "K": depth}
        return {"a": a, "b": b, "c": blank((m, n)), "bias": bias, **sizes}

    def reference(v: SimpleNamespace) -> None:
        v.c[:] = np.maximum(wide(v.a) @ wide(v.b).T + v.bias, 0) + -(-v.k // depth)

    grid = (-(-m // 128), -(-n // columns))
    return Case(f"gemm-pointers-{m}-{n}-{k}", gemm_by_pointers, grid, inputs, reference)


def _condition_case(m: int, n: int, k: int, every: int) -> Case:
    case = gemm_case(under_conditions, m, n, k, f"gemm-if-{k}-{every}")

    def inputs(rng: np.random.Generator) -> Values:
        return {**case.inputs(rng), "every": every}

    def reference(v: SimpleNamespace) -> None:
        acc, sign = np.zeros((v.m, v.n)), 1
        for count, start in enumerate(range(0, v.k, 64)):
            if count % every != 1:
                acc += wide(v.a)[:, start : start + 64] @ wide(v.b)[start : start + 64]
                sign += 1
            else:
                acc *= 0.5
        if every > 2:
            acc += wide(v.a)[:, :64] @ wide(v.b)[:64]
        v.c[:] = acc + sign

    return Case(case.name, under_conditions, case.grid, inputs, reference)


def attention_case(
    length: int, is_causal: bool, rows: int = 128, keys: int = 64, **options: object
) -> Case:
    """Attention of two heads in blocks of rows and keys, which need not divide the length."""
    heads, d = 2, 64

    def inputs(rng: np.random.Generator) -> Values:
        arrays = {name: normal(rng, (heads, length, d), np.float16) for name in "qkv"}
        outs = {"out": blank((heads, length, d)), "sums": blank((heads, length))}
        sizes = {"length": length, "all_rows": heads * length}
        return {**arrays, **outs, **sizes, "M": rows, "N": keys, "D": d, "CAUSAL": is_causal}

    def reference(a: SimpleNamespace) -> None:
        s = wide(a.q) @ wide(a.k).transpose(0, 2, 1)
        if is_causal:
            s = np.where(np.tril(np.ones((length, length), np.bool_)), s, -np.inf)
        top = s.max(axis=2, keepdims=True)
        weights = np.exp2(s - top)
        a.out[:] = weights @ wide(a.v) / weights.sum(axis=2, keepdims=True)
        a.sums[:] = (top + np.log2(weights.sum(axis=2, keepdims=True)))[..., 0]

    name = f"attention-{length}{'-causal' if is_causal else ''}"
    grid = (-(-length // rows), heads)
    return Case(name, attention, grid, inputs, reference, Close(2e-2, 2e-2), options=options)


RINGS = (
    "ring q tiles load#0 slots 1; ring k tiles load#1 load#3 slots {slots}; "
    "ring v tiles load#2 load#4 slots {slots}"
)
GEMMS = [
    Partitioned(gemm_case(gemm, 128, 64, 192, "gemm"), AB),
    Partitioned(gemm_case(gemm, 200, 72, 104, "gemm-odd"), AB),
    Partitioned(gemm_case(gemm, 128, 64, 0, "gemm-no-step"), AB),
    Partitioned(gemm_case(persistent, 300, 200, 136, "gemm-persistent", GROUP=2), AB),
    Partitioned(gemm_case(persistent, 300, 200, 0, "gemm-persistent-no-step", GROUP=2), AB),
    Partitioned(pointer_case(200, 72, 136), AB),
    Partitioned(_condition_case(128, 64, 64 * 5, 2), AB + " ring more tiles load#2 load#3 slots 1"),
    Partitioned(_condition_case(128, 64, 64 * 4, 3), AB.replace("#1", "#1 load#2 load#3")),
]
ATTENTIONS = [
    Partitioned(attention_case(192, False), RINGS),
    Partitioned(attention_case(200, False), RINGS),
    Partitioned(attention_case(320, True), RINGS),
]
PARTITIONED = [*GEMMS, *ATTENTIONS]
