"""The first launch of a tuned kernel with an empty cache, on sizes that fit no tile.

Rows are unaligned and every edge is masked, as in the programs that people tune: 20 configurations
compile and run before the first result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import numpy as np

import tilewright
import tilewright.language as tl
from benchmarks.harness import Row, empty_caches

Work = Callable[[], None]
FAMILY = "tuning"
THREADS = (2,)
PRODUCTS = tuple(
    tilewright.Config({"BM": m, "BN": n, "BK": k}, num_warps=4)
    for m, n, k in (
        *((32, 32, 32), (32, 64, 32), (64, 32, 32), (64, 64, 32), (64, 64, 64)),
        *((32, 128, 32), (128, 32, 32), (64, 128, 32), (128, 64, 32), (128, 128, 32)),
        *((16, 64, 64), (16, 128, 64), (64, 16, 64), (32, 64, 128), (64, 64, 128)),
        *((128, 128, 64), (64, 256, 32), (256, 64, 32), (128, 256, 32), (32, 256, 64)),
    )
)
ROWS = tuple(
    tilewright.Config({"ROWS": rows, "BLOCK": block}, num_warps=4)
    for rows in (1, 2, 4, 8, 16)
    for block in (128, 256, 512, 1024)
)


@tilewright.autotune(PRODUCTS, key=["M", "N", "K"])
@tilewright.jit
def product(
    a, b, c, M, N, K, sa, sb, sc,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """c = a @ b, masked at every edge."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(0, K, BK):
        k = step + tl.arange(0, BK)
        left = tl.load(a + i[:, None] * sa + k[None, :], (i < M)[:, None] & (k < K), other=0.0)
        right = tl.load(b + k[:, None] * sb + j, (k < K)[:, None] & (j < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + i[:, None] * sc + j, total, (i < M)[:, None] & (j < N))


@tilewright.autotune(ROWS, key=["rows", "columns"])
@tilewright.jit
def normalize(x, out, rows, columns, stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Each row less its mean, over its standard deviation, a block of columns after the other."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    squares = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        mask = (i < rows)[:, None] & (j < columns)
        v = tl.load(x + i[:, None] * stride + j, mask, other=0.0)
        total += v
        squares += v * v
    mean = tl.sum(total, 1) / columns
    scale = tl.rsqrt(tl.sum(squares, 1) / columns - mean * mean + 1e-5)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        mask = (i < rows)[:, None] & (j < columns)
        v = tl.load(x + i[:, None] * stride + j, mask, other=0.0)
        tl.store(out + i[:, None] * stride + j, (v - mean[:, None]) * scale[:, None], mask)


def rows(threads: int) -> Iterator[Row]:
    """Every row of this family."""
    for work, prepare in (
        ("a product of 517x291 by 291x333 f32", _product),
        ("a row normalization of 1003x1537 f32", _normalize),
    ):
        launch, check = prepare()
        with empty_caches("TILEWRIGHT_CACHE_DIR"):
            started = tilewright.compile_statistics().compile_seconds
            seconds = _timed(launch)
            compiling = tilewright.compile_statistics().compile_seconds - started
            again = min(_timed(launch) for _ in range(5))
        check()
        load = os.getloadavg()[0]
        note = (
            f"compiling {compiling:.3g} s; a tuned launch {again * 1e3:.3g} ms; "
            f"load of the machine {load:.1f}"
        )
        yield Row(
            FAMILY, f"first launch, 20 configurations of {work}", threads, seconds, "s", note=note
        )


def _timed(launch: Work) -> float:
    started = time.perf_counter()
    launch()
    return time.perf_counter() - started


def _odd(rows: int, columns: int) -> np.ndarray:
    """A matrix whose rows begin at odd elements: every row but one is unaligned."""
    cells = np.random.default_rng(0).standard_normal(rows * (columns + 2) + 1, np.float32)
    return cells[1:].reshape(rows, columns + 2)[:, :columns]


def _product() -> tuple[Work, Work]:
    a, b, c = _odd(517, 291), _odd(291, 333), _odd(517, 333)

    def launch() -> None:
        tiles = product[lambda meta: (-(-517 // meta["BM"]), -(-333 // meta["BN"]))]
        tiles(a, b, c, 517, 333, 291, 293, 335, 335)

    def check() -> None:
        assert np.abs(c - a @ b).max() < 1e-3

    return launch, check


def _normalize() -> tuple[Work, Work]:
    x, out = _odd(1003, 1537), _odd(1003, 1537)

    def launch() -> None:
        normalize[lambda meta: (-(-1003 // meta["ROWS"]),)](x, out, 1003, 1537, 1539)

    def check() -> None:
        expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        assert np.abs(out - expected).max() < 1e-3

    return launch, check
