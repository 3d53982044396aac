"""Random loops give the same bits at every depth of their pipeline, and no race."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.loading import module_at
from tests.fuzz.pipelined import S, programs
from tilewright import JITFunction

FEW, MANY = range(24), range(1000, 1500)


def load(seeds: range, folder: Path) -> list[JITFunction]:
    """The programs of some seeds, compiled by Python from a file."""
    text, names = programs(seeds)
    path = folder / f"pipelined_{seeds.start}.py"
    path.write_text(text)
    module = module_at(path)
    return [getattr(module, name) for name in names]


def check(kernel: JITFunction, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((8 * S + 1, S)).astype(np.float16) for _ in range(2))
    c = rng.standard_normal((8 * S, S)).astype(np.float32)
    trips, depth = int(rng.integers(1, 7)), int(rng.integers(2, 6))
    warps = int(rng.choice((1, 4)))
    outs = [np.full((S, S), np.nan, np.float32) for _ in range(2)]
    start = rng.integers(0, 8 * S, 8 * S).astype(np.int32)
    tables, adds = [start.copy() for _ in range(2)], [c.copy() for _ in range(2)]
    for out, table, add, stages in zip(outs, tables, adds, (1, depth), strict=True):
        kernel.simulate[(1,)](a, b, add, table, out, trips, STAGES=stages, num_warps=warps)
    for one, other in (outs, tables, adds):
        assert np.array_equal(one, other, equal_nan=True), f"{kernel.__name__}, {depth} stages"


@pytest.mark.parametrize("index", FEW)
def test_a_random_loop_at_two_depths(index: int, tmp_path: Path) -> None:
    (kernel,) = load(range(index, index + 1), tmp_path)
    check(kernel, index)


@pytest.mark.slow
def test_many_random_loops_at_two_depths(tmp_path: Path) -> None:
    for seed, kernel in zip(MANY, load(MANY, tmp_path), strict=True):
        check(kernel, seed)
