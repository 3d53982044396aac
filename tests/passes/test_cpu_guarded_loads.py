"""A row that is read again after one number was stored holds what it held before."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import count, named, nests

F32 = np.zeros(1, np.float32)


@tilewright.jit
def centered(x, sums, squares, out, width, BLOCK: tl.constexpr):
    """A row less its mean; the sum and the sum of squares are stored in between."""
    i = tl.arange(0, BLOCK)
    mask = i < width
    row = tl.load(x + i, mask=mask, other=0.0)
    total = tl.sum(row, axis=0)
    tl.store(sums, total)
    squared = tl.sum(row * row, axis=0)
    tl.store(squares, squared)
    tl.store(out + i, row - total / width, mask=mask)


@tilewright.jit
def centered_rows(x, sums, rows, BLOCK: tl.constexpr):
    """The same in place for one row after the other; the sum may go into a row."""
    i = tl.arange(0, BLOCK)
    for number in range(rows):
        row = tl.load(x + number * BLOCK + i)
        total = tl.sum(row, axis=0)
        tl.store(sums + number, total)
        tl.store(x + number * BLOCK + i, row + total)


@tilewright.jit
def turned_after(x, number, out, BLOCK: tl.constexpr):
    """A row stored from its end to its start after one number was stored."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i)
    tl.store(number, 7.0)
    tl.store(out + i, tl.flip(row))


@tilewright.jit
def swapped_first(x, out, lock, BLOCK: tl.constexpr):
    """A row that is read again after an atomic, past which no read goes."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i)
    tl.atomic_xchg(lock, tl.sum(row, axis=0).to(tl.int32))
    tl.store(out + i, row)


def test_a_row_is_not_kept_for_a_store_that_may_hit_it() -> None:
    module, report = nests(centered, x=F32, sums=F32, squares=F32, out=F32, width=1000, BLOCK=1024)
    assert len(report.nests) == 3
    assert all("tt.load" not in nest.fused for nest in report.nests)
    # Each store has its test; the last nest reads through a choice between row and copy.
    assert count(module, "scf.if") >= 2
    assert any(op.parent_op() is not None for op in named(module, "arith.select"))


def test_a_row_is_kept_for_an_atomic() -> None:
    module, _ = nests(swapped_first, x=F32, out=F32, lock=np.zeros(1, np.int32), BLOCK=1024)
    assert count(module, "cpu.alloc") == 1


@pytest.mark.parametrize("width", [17, 1000, 1024])
@pytest.mark.parametrize("first", [-1, 0, 3, 16, 999, 1023, 1024, 5000])
@pytest.mark.parametrize("second", [-8, 3, 500, 4000])
def test_numbers_stored_into_the_row_are_not_seen_in_it(
    width: int, first: int, second: int, rng: np.random.Generator
) -> None:
    memory, start = rng.integers(-8, 8, 1 << 13).astype(np.float32), 16
    row = memory[start : start + width].copy()
    expected, out = memory.copy(), np.zeros(width, np.float32)
    expected[start + first] = row.sum()
    # The sum of squares takes the row as it was loaded, before the first number came.
    expected[start + second] = (row * row).sum()
    views = memory[start:], memory[start + first :], memory[start + second :]
    centered[(1,)](*views, out, width, BLOCK=1024)
    np.testing.assert_array_equal(memory, expected)
    np.testing.assert_array_equal(out, row - row.sum() / np.float32(width))


@pytest.mark.parametrize("place", [-5, 0, 1, 255, 256, 300, 2000])
def test_rows_in_place_in_a_loop_keep_what_they_were_loaded_with(
    place: int, rng: np.random.Generator
) -> None:
    memory, start = rng.integers(-8, 8, 4096).astype(np.float32), 8
    expected = memory.copy()
    for number in range(4):
        here = slice(start + number * 256, start + (number + 1) * 256)
        row = expected[here].copy()
        expected[start + place + number] = row.sum()
        expected[here] = row + row.sum()
    centered_rows[(1,)](memory[start:], memory[start + place :], 4, BLOCK=256)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("place", [-1, 0, 5, 1023, 1024])
def test_a_row_is_turned_round_as_it_was(place: int, rng: np.random.Generator) -> None:
    memory, start = rng.standard_normal(2048, dtype=np.float32), 16
    out, expected = np.zeros(1024, np.float32), memory[start : start + 1024][::-1].copy()
    turned_after[(1,)](memory[start:], memory[start + place :], out, BLOCK=1024)
    np.testing.assert_array_equal(out, expected)
    assert memory[start + place] == 7
