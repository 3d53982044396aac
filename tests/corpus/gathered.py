"""Kernels whose replicas need all of a tile that they share: attention's backward, and a chain."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Close, Values, blank, normal, whole, wide
from tests.corpus.partitioned import Partitioned


@tilewright.jit
def gradients(
    q, k, v, g, sums, deltas, dq, dk, dv, length, all_rows, D: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values; `dq` is added to. Blocks may cross heads."""
    tl.assume(length >= 0)
    base = tl.program_id(1) * length
    queries = tl.make_tensor_descriptor(q, [all_rows, D], [D, 1], [M, D])
    keys = tl.make_tensor_descriptor(k, [all_rows, D], [D, 1], [N, D])
    values = tl.make_tensor_descriptor(v, [all_rows, D], [D, 1], [N, D])
    grads = tl.make_tensor_descriptor(g, [all_rows, D], [D, 1], [M, D])
    out_q = tl.make_tensor_descriptor(dq, [all_rows, D], [D, 1], [M, D])
    first = tl.program_id(0) * N
    key, value = keys.load([base + first, 0]), values.load([base + first, 0])
    grad_k = tl.zeros((N, D), tl.float32)
    grad_v = tl.zeros((N, D), tl.float32)
    at_key = first + tl.arange(0, N)
    start = first // M * M if CAUSAL else 0
    for at in range(start, length, M):
        query = queries.load([base + at, 0])
        grad = grads.load([base + at, 0])
        scores = tl.dot(key, query.T)
        grad_weights = tl.dot(value, grad.T)
        rows = at + tl.arange(0, M)
        total = tl.load(sums + base + rows, mask=rows < length, other=float("inf"))
        delta = tl.load(deltas + base + rows, mask=rows < length, other=0.0)
        if CAUSAL:
            scores = tl.where(rows[None, :] >= at_key[:, None], scores, -1.0e30)
        weights = tl.exp2(scores - total[None, :])
        weights = tl.where(at_key[:, None] < length, weights, 0.0)
        grad_scores = (weights * (grad_weights - delta[None, :])).to(tl.float16)
        grad_v = tl.dot(weights.to(tl.float16), grad, grad_v)
        if D >= 128:
            grad_q = tl.dot(key.T, grad_scores).T
        else:
            grad_q = tl.dot(grad_scores.T, key)
        grad_k = tl.dot(grad_scores, query, grad_k)
        out_q.atomic_add([base + at, 0], grad_q)
    places = (base + at_key)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(dk + places, grad_k, mask=(at_key < length)[:, None])
    tl.store(dv + places, grad_v, mask=(at_key < length)[:, None])


def gradients_case(length: int, depth: int, is_causal: bool, heads: int = 1) -> Case:
    """Heads of any length; blocks of 128 keys, and of queries as the depth has it."""
    keys = 128
    queries = 64 if depth >= 128 else 128

    def inputs(rng: np.random.Generator) -> Values:
        shape = (heads, length, depth)
        arrays = {name: normal(rng, shape, np.float16) * np.float16(0.25) for name in "qkvg"}
        made = SimpleNamespace(**{name: wide(array) for name, array in arrays.items()})
        weights, sums = _weights(made, is_causal)
        deltas = ((made.g @ made.v.transpose(0, 2, 1)) * weights).sum(axis=2)
        outs = {"dq": np.zeros(shape, np.float32)}
        outs |= {name: blank(shape) for name in ("dk", "dv")}
        rows = {"sums": sums.astype(np.float32), "deltas": deltas.astype(np.float32)}
        sizes = {"length": length, "all_rows": heads * length, "D": depth, "M": queries}
        sizes |= {"N": keys, "CAUSAL": is_causal}
        return {**arrays, **rows, **outs, **sizes}

    def reference(a: SimpleNamespace) -> None:
        made = SimpleNamespace(**{name: wide(getattr(a, name)) for name in "qkvg"})
        weights, _ = _weights(made, is_causal)
        above = weights * (made.g @ made.v.transpose(0, 2, 1) - wide(a.deltas)[..., None])
        a.dq[:] = above @ made.k
        a.dk[:] = above.transpose(0, 2, 1) @ made.q
        a.dv[:] = weights.transpose(0, 2, 1) @ made.g

    name = f"gradients-{length}-{depth}{'-causal' if is_causal else ''}"
    grid = (-(-length // keys), heads)
    return Case(name, gradients, grid, inputs, reference, Close(2e-2, 4e-2))


def _weights(a: SimpleNamespace, is_causal: bool) -> tuple[np.ndarray, np.ndarray]:
    """The weights of each query, and log2 of the sum that they were divided by."""
    scores = a.q @ a.k.transpose(0, 2, 1)
    length = scores.shape[1]
    if is_causal:
        scores = np.where(np.tri(length, dtype=np.bool_), scores, -np.inf)
    top = scores.max(axis=2, keepdims=True)
    powers = np.exp2(scores - top)
    totals = powers.sum(axis=2, keepdims=True)
    return powers / totals, (top + np.log2(totals))[..., 0]


@tilewright.jit
def chain(
    a, b, c, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TWICE: tl.constexpr
):  # fmt: skip
    """Sums of `c.T @ (a @ b)`, whose rows are summed up by products of all replicas."""
    left = tl.make_tensor_descriptor(a, [M, n], [n, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [n, N], [N, 1], [K, N])
    more = tl.make_tensor_descriptor(c, [M, M], [M, 1], [M, M])
    weights = more.load([0, 0])
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, n, K):
        middle = tl.dot(left.load([0, k]), right.load([k, 0])).to(tl.float16)
        total = tl.dot(weights.T, middle, total)
        if TWICE and k % (2 * K) == 0:
            total = tl.dot(weights, middle, total)
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + place, total)


def chain_case(steps: int, is_twice: bool, rows: int = 128) -> Case:
    """Integers small enough to be exact."""
    columns, depth = 64, 64
    n = depth * steps

    def inputs(rng: np.random.Generator) -> Values:
        shapes = {"a": (rows, n), "b": (n, columns), "c": (rows, rows)}
        low = {"low": -1, "high": 2}
        arrays = {
            name: whole(rng, shape, np.int32, **low).astype(np.float16)
            for name, shape in shapes.items()
        }
        sizes = {"n": n, "M": rows, "N": columns, "K": depth, "TWICE": is_twice}
        return {**arrays, "out": blank((rows, columns)), **sizes}

    def reference(v: SimpleNamespace) -> None:
        total = np.zeros((rows, columns))
        for step, k in enumerate(range(0, n, depth)):
            middle = wide(v.a)[:, k : k + depth] @ wide(v.b)[k : k + depth]
            total += wide(v.c).T @ middle
            if is_twice and step % 2 == 0:
                total += wide(v.c) @ middle
        v.out[:] = total

    return Case(f"chain-{steps}{'-twice' if is_twice else ''}", chain, (1,), inputs, reference)


_RINGS = (
    "ring k tiles load#0 slots 1; ring v tiles load#1 slots 1; "
    "ring q tiles load#2 slots {slots}; ring g tiles load#3 slots {slots}"
)
GRADIENTS = [
    Partitioned(gradients_case(192, 128, False), _RINGS),
    Partitioned(gradients_case(136, 128, True, heads=2), _RINGS),
    Partitioned(gradients_case(200, 64, False), _RINGS),
    Partitioned(gradients_case(256, 64, True), _RINGS),
]
_CHAIN = "ring c tiles load#0 slots 1; ring ab tiles load#1 load#2 slots {slots}"
CHAINS = [
    Partitioned(chain_case(3, False), _CHAIN),
    Partitioned(chain_case(4, True), _CHAIN),
]
GATHERED = [*GRADIENTS, *CHAINS]
