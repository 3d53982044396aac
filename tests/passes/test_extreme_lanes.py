"""The greatest and least lane of one vector: NaN is ignored unless there is nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.targets.cpu.host import host_machine


@tilewright.jit
def extremes_of_rows(x, most, least, ROWS: tl.constexpr, N: tl.constexpr):
    """The greatest and the least number of each row of a tile."""
    r, c = tl.arange(0, ROWS), tl.arange(0, N)
    rows = tl.load(x + r[:, None] * N + c[None, :])
    tl.store(most + r, tl.max(rows, axis=1))
    tl.store(least + r, tl.min(rows, axis=1))


def _rows(n: int, rng: np.random.Generator) -> np.ndarray:
    """Each row has numbers, NaN and infinities in other places."""
    choices = np.float32([np.nan, -np.inf, np.inf, -0.0, 0.0, 1.5, -2.5, 1e-40])
    x = rng.choice(choices, (32, n))
    x[0], x[1], x[2] = np.nan, -np.inf, np.inf
    x[3], x[4] = np.nan, np.nan
    x[3, -1], x[4, 0] = -np.inf, np.inf
    x[5:16] = rng.standard_normal((11, n))
    for row in range(6, 16):
        x[row, rng.integers(n, size=row)] = np.nan
    return x


@pytest.mark.parametrize("n", [2, 8, 16, 32, 64, 128])
def test_rows_of_one_vector(n: int, rng: np.random.Generator) -> None:
    x = _rows(n, rng)
    most, least = np.zeros((2, 32), np.float32)
    extremes_of_rows[(1,)](x, most, least, ROWS=32, N=n)
    np.testing.assert_array_equal(most, np.fmax.reduce(x, 1))
    np.testing.assert_array_equal(least, np.fmin.reduce(x, 1))


def test_a_step_is_one_instruction_where_the_machine_has_it() -> None:
    x, sums = np.zeros((32, 64), np.float32), np.zeros((2, 32), np.float32)
    kernel = extremes_of_rows[(1,)](x, sums[0], sums[1], ROWS=32, N=64)
    calls = kernel.asm["llir"].count("call <16 x float> @llvm.x86.avx512.m")
    assert calls == (8 if host_machine().has_feature("avx512f") else 0)
