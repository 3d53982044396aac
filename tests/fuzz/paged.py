"""Random attentions over pages: descriptors that a program makes of a page, or rows by a table.

Two products a page, the second of what is computed of the first, as in attention; all numbers are
whole and small, so no order of summing shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

import tilewright
import tilewright.language as tl
from tilewright.ir.op import Array

PAGES = 8


@tilewright.jit
def made(
    q, k_all, v_all, table, out, n, count, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """The addresses of pages lie in arrays; a page has `n` rows."""
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    x = tl.load(q + i[:, None] * D + j[None, :])
    acc = tl.zeros((M, D), tl.float32)
    highest = tl.zeros((M,), tl.float32)
    for at in range(count):
        page = tl.load(table + at)
        k = tl.load(k_all + page).to(tl.pointer_type(tl.float16))
        v = tl.load(v_all + page).to(tl.pointer_type(tl.float16))
        keys = tl.make_tensor_descriptor(k, [n, D], [D, 1], [N, D])
        values = tl.make_tensor_descriptor(v, [n, D], [D, 1], [N, D])
        scores = tl.dot(x, keys.load([0, 0]).T)
        highest = tl.maximum(highest, tl.max(scores, axis=1) % 16)
        weights = (scores + highest[:, None]) % 4
        acc = tl.dot(weights.to(tl.float16), values.load([0, 0]), acc % 64)
    tl.store(out + i[:, None] * D + j[None, :], acc)


@tilewright.jit
def looked_up(
    q, k_all, v_all, table, out, n, count, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):  # fmt: skip
    """All pages are one tensor, in which a table says where each begins."""
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    queries = tl.make_tensor_descriptor(q, [2 * M, D], [D, 1], [M, D])
    keys = tl.make_tensor_descriptor(k_all, [n, D], [D, 1], [N, D])
    values = tl.make_tensor_descriptor(v_all, [n, D], [D, 1], [N, D])
    x = queries.load([tl.program_id(0) * M, 0])
    acc = tl.zeros((M, D), tl.float32)
    highest = tl.zeros((M,), tl.float32)
    for at in range(count):
        row = tl.load(table + at) * N
        scores = tl.dot(x, keys.load([row, 0]).T)
        highest = tl.maximum(highest, tl.max(scores, axis=1) % 16)
        weights = (scores + highest[:, None]) % 4
        acc = tl.dot(weights.to(tl.float16), values.load([row, 0]), acc % 64)
    tl.store(out + i[:, None] * D + j[None, :], acc)


@dataclass(frozen=True)
class Paged:
    """A kernel, the rows of a page that count, the pages that are read, and a launch's options."""

    seed: int
    kernel: tilewright.JITFunction
    rows: int
    order: tuple[int, ...]
    options: dict[str, int]

    def arguments(self) -> tuple[list[object], Array, list[Array]]:
        """Those of a launch, the output among them, and what addresses lead to."""
        rng = np.random.default_rng(self.seed)
        m, n, d = (self.options[name] for name in "MND")

        def halves(*shape: int) -> Array:
            return rng.integers(-2, 3, shape).astype(np.float16)

        q, k, v = halves(2 * m, d), halves(PAGES, n, d), halves(PAGES, n, d)
        table = np.array([*self.order, 0], np.int32)
        out = np.full((2 * m, d), np.nan, np.float32)
        if self.kernel is looked_up:
            rows = PAGES * n - (n - self.rows)
            return [q, k, v, table, out, rows, len(self.order)], out, []
        pages = [np.array([x.ctypes.data for x in part], np.int64) for part in (k, v)]
        return [q, *pages, table, out, self.rows, len(self.order)], out, [k, v]


def generate_paged(seed: int) -> Paged:
    """The launch of a seed."""
    rng = random.Random(seed)
    rows, groups = rng.choice(((64, 0), (64, 1), (128, 0), (128, 1), (128, 2), (128, 2)))
    options = {"M": rows, "N": rng.choice((16, 32, 64)), "D": rng.choice((32, 64))}
    options |= {"num_consumer_groups": groups} if groups else {"num_stages": rng.randint(1, 4)}
    if groups and rng.random() < 0.5:
        options["num_buffers_warp_spec"] = rng.randint(1, 3)
    count = rng.choice((0, 1, 2, 3, 5, 9))
    order = tuple(rng.randrange(PAGES) for _ in range(count))
    inside = rng.choice((options["N"], options["N"], 1, options["N"] - 3))
    return Paged(seed, rng.choice((made, looked_up)), inside, order, options)
