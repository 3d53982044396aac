"""Nests end where the masks of all that they write do, and write all that those show."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import OpResult

import tilewright
import tilewright.language as tl
from tests.passes.lowered import named, nests
from tilewright.jit import JITFunction

F32 = np.zeros(1, np.float32)
LAST = 2**31 - 1


@tilewright.jit
def kept(x, out, n, R: tl.constexpr, C: tl.constexpr):
    """A carried tile that rows below n of each step are added to."""
    here = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    acc = tl.full([R, C], 1, tl.float32)
    for first in range(0, n, R):
        r = first + tl.arange(0, R)[:, None]
        acc = tl.where(r < n, acc + tl.load(x + first * C + here), acc)
    tl.store(out + here, acc)


@tilewright.jit
def replaced(x, out, n, R: tl.constexpr, C: tl.constexpr):
    """The same, but rows from n on become 2."""
    here = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    acc = tl.full([R, C], 1, tl.float32)
    for first in range(0, n, R):
        r = first + tl.arange(0, R)[:, None]
        acc = tl.where(r < n, acc + tl.load(x + first * C + here), 2)
    tl.store(out + here, acc)


@tilewright.jit
def turned_round(x, out, n, R: tl.constexpr, C: tl.constexpr):
    """The same, but rows below n stay as they are."""
    here = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    acc = tl.full([R, C], 1, tl.float32)
    for first in range(0, n, R):
        r = first + tl.arange(0, R)[:, None]
        acc = tl.where(r < n, acc, acc + tl.load(x + first * C + here))
    tl.store(out + here, acc)


@tilewright.jit
def to_the_end(x, out, first_row, n, first_column, w, R: tl.constexpr, C: tl.constexpr):
    """Elements of rows and columns that may count up to the end of int32, and wrap around."""
    r, c = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    seen = (first_row + r < n) & (first_column + c < w)
    tl.store(out + r * C + c, tl.load(x + r * C + c) + 1, seen)


def loop_of_rows_is_short(kernel: JITFunction) -> bool:
    """Whether a loop of the nest that updates the carried tile ends at a number of the run."""
    module, _ = nests(kernel, x=F32, out=F32, n=5, R=8, C=32)
    (steps,) = (op for op in named(module, "scf.for") if not _is_in_nest(op))
    loops = [op for op in steps.walk() if op.name == "scf.for" and op is not steps]
    return any(not _is_constant(loop.operands[1]) for loop in loops)


def _is_in_nest(op: object) -> bool:
    parent = getattr(op, "parent_op", lambda: None)()
    return parent is not None and (parent.name == "cpu.nest" or _is_in_nest(parent))


def _is_constant(value: object) -> bool:
    if not isinstance(value, OpResult) or value.op.name != "arith.constant":
        return False
    return isinstance(value.op.properties["value"], IntegerAttr)


def test_rows_that_stay_as_they_are_are_left_out() -> None:
    assert loop_of_rows_is_short(kept)


@pytest.mark.parametrize("kernel", [replaced, turned_round])
def test_rows_that_change_are_not(kernel: JITFunction) -> None:
    assert not loop_of_rows_is_short(kernel)


@pytest.mark.parametrize("kernel", [kept, replaced, turned_round])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 23])
def test_rows_of_the_last_step(kernel: JITFunction, n: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (24, 32)).astype(np.float32)
    expected = np.ones((8, 32), np.float32)
    for first in range(0, n, 8):
        below = (first + np.arange(8) < n)[:, None]
        added = expected + x[first : first + 8]
        expected = {
            kept: np.where(below, added, expected),
            replaced: np.where(below, added, 2),
            turned_round: np.where(below, expected, added),
        }[kernel]
    out = np.zeros((8, 32), np.float32)
    kernel[(1,)](x, out, n, 8, 32)
    np.testing.assert_array_equal(out, expected)


ENDS = [(0, 5), (LAST - 3, LAST - 1), (LAST - 20, LAST), (LAST, -LAST), (-5, -2)]


@pytest.mark.parametrize("rows", ENDS)
@pytest.mark.parametrize("columns", ENDS)
def test_masks_hold_again_where_indices_wrap(
    rows: tuple[int, int], columns: tuple[int, int]
) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (16, 64)).astype(np.float32)
    seen = np.ones((16, 64), bool)
    for (first, end), axis, size in ((rows, 1, 16), (columns, 0, 64)):
        index = (first + np.arange(size) + 2**31) % 2**32 - 2**31
        seen &= np.expand_dims(index < end, axis)
    out = np.zeros((16, 64), np.float32)
    to_the_end[(1,)](x, out, *rows, *columns, 16, 64)
    np.testing.assert_array_equal(out, np.where(seen, x + 1, 0))
