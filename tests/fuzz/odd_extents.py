"""Random kernels whose tiles have multiples of 16 rows and columns, which groups of warps share.

Products by pointers and by descriptors with what authors do to their sums, chains of two products
as in attention, and gradients that replicas show each other. All numbers are whole and small, so no
order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from tilewright.ir.op import Array

HEAD = """import tilewright
import tilewright.language as tl


@tilewright.jit
def add(a, b):
    return a + b


@tilewright.jit
def kernel(x, y, z, out, other, n, m, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, kk = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    is_row, is_column = (i < n)[:, None], (j < m)[None, :]
"""
_POINTERS = """acc = tl.zeros((M, N), tl.float32)
for start in range(0, k, K):
    a = tl.load(x + i[:, None] * k + (start + kk)[None, :],
                mask=is_row & (start + kk < k)[None, :], other=0.0)
    b = tl.load(y + (start + kk)[:, None] * m + j[None, :],
                mask=(start + kk < k)[:, None] & is_column, other=0.0)
    acc = tl.dot(a, b, acc)
"""
_TRANSPOSED = """acc = tl.zeros((M, N), tl.float32)
right = tl.make_tensor_descriptor(z, [m, k], [k, 1], [N, K])
left = tl.make_tensor_descriptor(x, [n, k], [k, 1], [M, K])
for start in range(0, k, K):
    acc = tl.dot(left.load([tl.program_id(0) * M, start]), right.load([0, start]).T, acc)
"""
_DESCRIPTORS = """acc = tl.zeros((M, N), tl.float32)
left = tl.make_tensor_descriptor(x, [n, k], [k, 1], [M, K])
right = tl.make_tensor_descriptor(y, [k, m], [m, 1], [K, N])
for start in range(0, k, K):
    acc = tl.dot(left.load([tl.program_id(0) * M, start]), right.load([start, 0]), acc)
"""
# Keys are the columns of the first product and summed over by the second one; K is the head.
_CHAIN = """acc = tl.zeros((M, K), tl.float32)
total, top = tl.zeros((M,), tl.float32), tl.zeros((M,), tl.float32)
qs = tl.make_tensor_descriptor(x, [n, k], [k, 1], [M, K])
keys = tl.make_tensor_descriptor(z, [m, k], [k, 1], [N, K])
q = qs.load([tl.program_id(0) * M, 0])
for start in range(0, m, N):
    b = keys.load([start, 0])
    w = tl.dot(q, b.T) % 3
    total += tl.sum(w, 1)
    top = tl.maximum(top, tl.max(w, 1))
    acc = tl.dot(w.to(tl.float16), b, acc)
acc += total[:, None] - top[:, None]
"""
# Rows are keys, columns the queries of a step; `other` is what all programs add to.
_GRADIENTS = """acc = tl.zeros((M, K), tl.float32)
keys = tl.make_tensor_descriptor(x, [n, k], [k, 1], [M, K])
queries = tl.make_tensor_descriptor(z, [m, k], [k, 1], [N, K])
sums = tl.make_tensor_descriptor(other, [m, k], [k, 1], [N, K])
own = keys.load([tl.program_id(0) * M, 0])
for start in range(0, m, N):
    q = queries.load([start, 0])
    ds = (tl.dot(own, q.T) % 3).to(tl.float16)
    dq = tl.dot(own.T, ds).T
    acc = tl.dot(ds, q, acc)
    sums.atomic_add([start, 0], dq)
"""
_LOOPS = {
    "pointers": _POINTERS,
    "transposed": _TRANSPOSED,
    "descriptors": _DESCRIPTORS,
    "chain": _CHAIN,
    "gradients": _GRADIENTS,
}
_BY_HEAD = ("chain", "gradients")
_VALUES = (
    "acc",
    "acc % 4",
    "tl.maximum(acc, -1.0) % 3",
    "acc - tl.max(acc, 1)[:, None]",
    "acc + tl.sum(acc, 1)[:, None] % 5",
    "tl.cumsum(acc, 1) % 7",
    "tl.associative_scan(acc % 2, 1, add)",
    "acc + tl.argmax(acc, 1, tie_break_left=True)[:, None]",
    "tl.where(acc > acc.T.T * 0.5, acc, 2.0)",
)
_STORES = {
    "pointers": "tl.store(out + i[:, None] * {w} + {c}[None, :], value, mask=is_row & {m})\n",
    "columns": "tl.store(out + {c}[:, None] * n + i[None, :], value.T, mask=(is_row & {m}).T)\n",
    "descriptors": "tl.make_tensor_descriptor(out, [n, {w}], [{w}, 1], [M, {e}])"
    ".store([tl.program_id(0) * M, 0], value.to(tl.{dtype}))\n",
}


@dataclass(frozen=True)
class OddExtents:
    """A kernel's text, a launch's sizes, its tiles and its options."""

    seed: int
    text: str
    sizes: dict[str, int]
    tile: dict[str, int]
    width: int
    dtype: str
    out: str
    grid: tuple[int, ...]
    options: dict[str, object]

    def arguments(self) -> dict[str, object]:
        """Fresh arguments, the same every time, without options."""
        rng, sizes = np.random.default_rng(self.seed), self.sizes
        n, m, k = (sizes[name] for name in ("n", "m", "k"))

        def numbers(*shape: int) -> Array:
            return rng.integers(-2, 3, shape).astype(self.dtype)

        given = {"x": numbers(n, k), "y": numbers(k, m), "z": numbers(m, k)}
        given["out"] = np.full((n, self.width), 7, self.out)
        given["other"] = np.zeros((m, k), np.float32)
        return {**given, **sizes, **self.tile}


def generate_odd_extents(seed: int) -> OddExtents:
    """The program of a seed."""
    rng = random.Random(seed)
    kind = rng.choice(tuple(_LOOPS))
    groups = rng.choice((1, 2, 2, 3))
    extents = (16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 240)
    tile = {"M": 64 * groups, "N": rng.choice(extents), "K": rng.choice(extents[:8])}
    if kind in _BY_HEAD:
        tile["K"] = rng.choice((64, 128, 64 * groups if kind == "gradients" else 96))
    n = rng.choice((8, 64, tile["M"] - 8, tile["M"], tile["M"] + 24, 2 * tile["M"]))
    m = rng.choice((tile["N"], tile["N"] - 8, 8))
    k = rng.choice((tile["K"], 2 * tile["K"], 3 * tile["K"], tile["K"] + 8, 8))
    if kind in _BY_HEAD:
        m, k = rng.choice((1, 2, 3)) * tile["N"] + rng.choice((0, 0, 8)), tile["K"]
    width, extent = (k, "K") if kind in _BY_HEAD else (m, "N")
    out = rng.choice(("float16", "float32"))
    words = {"w": "k", "c": "kk", "m": "(kk < k)[None, :]", "e": extent, "dtype": out}
    if extent == "N":
        words |= {"w": "m", "c": "j", "m": "is_column"}
    store = _STORES[rng.choice(tuple(_STORES))].format(**words)
    body = _LOOPS[kind] + f"value = {rng.choice(_VALUES)}\n" + store
    # Chains round what they multiply once more to halves; other products are of any numbers.
    dtype = "float16" if kind in _BY_HEAD else rng.choice(("float16", "float16", "float32", "int8"))
    if dtype == "int8":
        # Rows of a descriptor are a multiple of 16 bytes.
        m, k = -(-m // 16) * 16, -(-k // 16) * 16
        width = m
        body = body.replace("tl.zeros((M, N), tl.float32)", "tl.zeros((M, N), tl.int32)")
        body = body.replace("other=0.0", "other=0")
        body = body.replace("value = ", "acc = acc.to(tl.float32)\nvalue = ")
    options = _options(rng, groups, kind)
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    sizes = {"n": n, "m": m, "k": k}
    programs, cluster = -(-n // tile["M"]), 2 if "cluster_dims" in options else 1
    grid = (-(-programs // cluster) * cluster,)
    return OddExtents(seed, HEAD + indented, sizes, tile, width, dtype, out, grid, options)


def _options(rng: random.Random, groups: int, kind: str) -> dict[str, object]:
    options: dict[str, object] = {"num_consumer_groups": groups}
    if rng.random() < 0.3:
        options["num_buffers_warp_spec"] = rng.randint(1, 3)
    if kind == "chain" and rng.random() < 0.6:
        options["loop_schedule"] = rng.choice(("FA_firstDot", "FA_secondDot", "straight"))
    if kind not in _BY_HEAD and rng.random() < 0.2:
        options["cluster_dims"] = (2, 1, 1)
    return options
