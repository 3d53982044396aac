"""Reductions and scans of what is no tile, and with functions that do not fold one."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tilewright.support.errors import CompileError


@tilewright.jit
def doubled(a, b):
    return a, b


@tilewright.jit
def nothing(a, b):
    pass


@tilewright.jit
def no_tuple(a, b, c, d):
    return a + c


@tilewright.jit
def no_value(a, b):
    return "s"


@tilewright.jit
def folds(out, K: tl.constexpr):
    x = tl.arange(0, 16)
    if K == 0:
        tl.sum((x, x))
    elif K == 1:
        tl.max((x, x), 0)
    elif K == 2:
        tl.argmin((x, x), 0)
    elif K == 3:
        tl.cumsum((x, x))
    elif K == 4:
        tl.xor_sum((x, x))
    elif K == 5:
        tl.reduce_or((x, x), 0)
    elif K == 6:
        tl.softmax((x, x))
    elif K == 7:
        tl.reduce(x, 0, doubled)
    elif K == 8:
        tl.associative_scan(x, 0, doubled)
    elif K == 9:
        tl.reduce((x, x), 0, no_tuple)
    elif K == 10:
        tl.reduce(x, 0, nothing)
    elif K == 11:
        tl.associative_scan(x, 0, no_value)
    elif K == 12:
        tl.reduce((), 0, doubled)
    elif K == 13:
        tl.sum((1, x))
    tl.store(out, 1)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "sum(): `input` is a tuple of 2 tiles"),
        (1, "max(): `input` is a tuple of 2 tiles"),
        (2, "argmin(): `input` is a tuple of 2 tiles"),
        (3, "cumsum(): `input` is a tuple of 2 tiles"),
        (4, "xor_sum(): `input` is a tuple of 2 tiles"),
        (5, "reduce_or(): `input` is a tuple of 2 tiles"),
        (6, "softmax(): `input` is a tuple of 2 tiles"),
        (7, "the combine function returns 2 value(s) where 1 tile(s) are folded"),
        (8, "the combine function returns 2 value(s) where 1 tile(s) are folded"),
        (9, "the combine function returns 1 value(s) where 2 tile(s) are folded"),
        (10, "the combine function returns None"),
        (11, "the combine function returns 's'"),
        (12, "reduce(): `input` is an empty tuple"),
        (13, "sum(): `input` is a tuple that holds 1"),
    ],
)
def test_a_wrong_fold_says_what_it_was_given(number: int, words: str) -> None:
    with pytest.raises(CompileError) as raised:
        folds[(1,)](np.zeros(1, np.int32), number)
    assert f"]: {words}" in str(raised.value)
    assert "test_wrong_folds.py:" in str(raised.value)
