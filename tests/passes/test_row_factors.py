"""Rows that a number multiplies where they lie stay untouched where it is 1, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tests.passes.lowered import named, nests

F32 = np.zeros(1, np.float32)


@tilewright.jit
def scaled_sums(a, b, factors, start, out, turns, ROWS: tl.constexpr, N: tl.constexpr):
    """`acc = a @ b + acc * factors[turn]` for each turn, from `start`."""
    r, c = tl.arange(0, ROWS), tl.arange(0, N)
    places = r[:, None] * N + c[None, :]
    k = tl.arange(0, 16)
    left = tl.load(a + r[:, None] * 16 + k[None, :])
    right = tl.load(b + k[:, None] * N + c[None, :])
    acc = tl.load(start + places)
    for turn in range(turns):
        factor = tl.load(factors + turn * ROWS + r)
        acc = tl.dot(left, right, acc * factor[:, None], input_precision="ieee")
    tl.store(out + places, acc)


@tilewright.jit
def scaled_columns(a, b, factors, out, turns, ROWS: tl.constexpr, N: tl.constexpr):
    """The same with a factor for each column, which is another one in each lane."""
    r, c = tl.arange(0, ROWS), tl.arange(0, N)
    places = r[:, None] * N + c[None, :]
    k = tl.arange(0, 16)
    left = tl.load(a + r[:, None] * 16 + k[None, :])
    right = tl.load(b + k[:, None] * N + c[None, :])
    acc = tl.zeros((ROWS, N), tl.float32)
    for turn in range(turns):
        factor = tl.load(factors + turn * N + c)
        acc = tl.dot(left, right, acc * factor[None, :], input_precision="ieee")
    tl.store(out + places, acc)


def _operands(rng: np.random.Generator, rows: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    a = rng.integers(-3, 4, (rows, 16)).astype(np.float32)
    return a, rng.integers(-3, 4, (16, n)).astype(np.float32)


def count_choices(module: ModuleOp) -> int:
    """How many branches a module has but those that pack an operand."""
    choices = named(module, "scf.if")
    return sum(all(inner.name != "cpu.pack" for inner in op.walk()) for op in choices)


def test_a_row_is_scaled_behind_a_comparison() -> None:
    arrays = dict.fromkeys(("a", "b", "factors", "start", "out"), F32)
    module, _ = nests(scaled_sums, **arrays, turns=3, ROWS=16, N=64)
    assert count_choices(module) == 1


def test_what_differs_from_lane_to_lane_is_always_scaled() -> None:
    arrays = dict.fromkeys(("a", "b", "factors", "out"), F32)
    module, _ = nests(scaled_columns, **arrays, turns=3, ROWS=16, N=64)
    assert count_choices(module) == 0


@pytest.mark.parametrize(("rows", "n"), [(16, 16), (32, 64), (64, 128)])
def test_every_kind_of_factor(rows: int, n: int, rng: np.random.Generator) -> None:
    a, b = _operands(rng, rows, n)
    factors = rng.choice(np.float32([1, 1, 1, 2, 0, -1, 0.5]), (5, rows)).astype(np.float32)
    factors[3, 1], factors[3, 2] = np.nan, np.inf
    start = rng.integers(-9, 9, (rows, n)).astype(np.float32)
    start[0, :3] = np.inf, -np.inf, np.nan
    start[1] = -0.0
    out = np.empty_like(start)
    scaled_sums[(1,)](a, b, factors, start, out, 5, ROWS=rows, N=n)
    expected, product = start.astype(np.float64), a.astype(np.float64) @ b
    with np.errstate(invalid="ignore"):
        for factor in factors:
            expected = product + expected * factor[:, None]
    np.testing.assert_array_equal(out, expected.astype(np.float32))
