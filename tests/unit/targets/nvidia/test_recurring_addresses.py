"""Elements of a tile that are one in memory: all threads read before one of them writes."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import EXACT, Case
from tests.corpus.threads import lower_for_gpu, run_threads


@tilewright.jit
def remainders(x, PERIOD: tl.constexpr, B: tl.constexpr):
    p = x + tl.program_id(0) * B + tl.arange(0, B) % PERIOD
    tl.store(p, tl.load(p) * 3 + 1)


@tilewright.jit
def overlapping_rows(x, STEP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    p = x + tl.arange(0, M)[:, None] * STEP + tl.arange(0, N)[None, :]
    for _ in range(2):
        tl.store(p, tl.load(p) * 3 + 1)


@tilewright.jit
def apart(x, n, B: tl.constexpr):
    p = x + tl.program_id(0) * B + tl.arange(0, B)
    tl.store(p, tl.load(p, mask=tl.arange(0, B) < n) * 3 + 1)


def case(kernel, grid: int, **constants: int) -> Case:
    def inputs(rng: np.random.Generator) -> dict[str, object]:
        return {"x": rng.integers(-99, 99, 4096).astype(np.int32), **constants}

    return Case("recurring", kernel, (grid,), inputs, lambda _: None, EXACT)


def num_barriers(made: Case) -> int:
    return lower_for_gpu(made).text.count("llvm.nvvm.barrier")


@pytest.mark.parametrize("period", [1, 7, 32, 100])
def test_recurring_elements_are_all_read_before_one_is_written(period: int) -> None:
    made = case(remainders, 4, PERIOD=period, B=256)
    expected = made.values()["x"].copy()
    for program in range(4):
        expected[program * 256 : program * 256 + min(period, 256)] *= 3
        expected[program * 256 : program * 256 + min(period, 256)] += 1
    np.testing.assert_array_equal(run_threads(made)["x"], expected)
    assert num_barriers(made) > 0


@pytest.mark.parametrize("step", [0, 1, 31])
def test_rows_that_overlap_are_read_before_they_are_written(step: int) -> None:
    made = case(overlapping_rows, 1, STEP=step, M=8, N=64)
    expected = made.values()["x"].copy()
    touched = step * 7 + 64
    for _ in range(2):
        expected[:touched] = expected[:touched] * 3 + 1
    np.testing.assert_array_equal(run_threads(made)["x"], expected)
    assert num_barriers(made) > 0


def test_elements_of_their_own_need_no_barrier() -> None:
    assert num_barriers(case(apart, 4, n=100, B=256)) == 0
    assert num_barriers(case(overlapping_rows, 1, STEP=64, M=8, N=64)) == 0
