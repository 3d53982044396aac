"""exp of 2048 elements in the cache: rate beside NumPy, and its error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import tilewright
import tilewright.language as tl
from benchmarks.harness import Row, measure_pairs

FAMILY = "exp"
THREADS = (1,)
SIZE = 2048
ROUNDS = 64


@tilewright.jit
def exp_kernel(x_ptr, out_ptr, rounds, SIZE: tl.constexpr):
    """exp of `rounds` tiles, taken in turn from two of them: one program.

    The rounds are in the kernel so that the launch does not count; two inputs in turn, so that
    no compiler could compute the result once.
    """
    columns = tl.arange(0, SIZE)
    for turn in range(rounds):
        offsets = turn % 2 * SIZE + columns
        tl.store(out_ptr + offsets, tl.exp(tl.load(x_ptr + offsets)))


def rows(threads: int) -> Iterator[Row]:
    """The rate and the error."""
    x = np.random.default_rng(0).standard_normal((2, SIZE), dtype=np.float32)
    out = np.empty_like(x)
    peer_tiles = list(zip(x, np.empty_like(x), strict=True)) * (ROUNDS // 2)

    def ours() -> None:
        exp_kernel[(1,)](x, out, ROUNDS, SIZE=SIZE)

    def peer() -> None:
        for tile, result in peer_tiles:
            np.exp(tile, out=result)

    pairs = measure_pairs(ours, peer)
    ours_rate, peer_rate = (
        SIZE * ROUNDS / seconds / 1e9 for seconds in (pairs.ours_seconds, pairs.peer_seconds)
    )
    yield Row(
        *(FAMILY, f"exp f32 of {SIZE}", threads, pairs.ratio),
        bar=2.0,
        ours=f"{ours_rate:.2f} G/s",
        peer=f"NumPy {peer_rate:.2f} G/s",
        note=pairs.note,
    )
    yield Row(FAMILY, "largest error of exp f32", threads, largest_error(), "ulp", 1.0)


def largest_error() -> float:
    """In units in the last place, over 2^20 arguments whose result is a normal number."""
    rng = np.random.default_rng(1)
    error = 0.0
    for _ in range(256):
        x = rng.uniform(-87.0, 88.0, (2, SIZE)).astype(np.float32)
        out = np.empty_like(x)
        exp_kernel[(1,)](x, out, 2, SIZE=SIZE)
        exact = np.exp(x.astype(np.float64))
        ulps = np.abs(out - exact) / np.spacing(exact.astype(np.float32)).astype(np.float64)
        error = max(error, float(ulps.max()))
    return error
