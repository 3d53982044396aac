"""Tiles of pointers that are made of a number, addresses that nothing is read from."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def choose(x, out, K: tl.constexpr):
    i = tl.arange(0, 16)
    if K == 0:
        nowhere = tl.zeros_like(x + i)
    elif K == 1:
        nowhere = tl.full((16,), 0, tl.pointer_type(tl.float32))
    else:
        nowhere = tl.zeros((16,), (x + i).type)
    chosen = tl.where(i < 8, x + i, nowhere)
    tl.store(out + i, tl.load(chosen, mask=chosen.to(tl.int64) != 0, other=-1.0))


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_null_pointer_is_no_place_and_compares_equal_to_zero(
    number: int, interpreted: bool
) -> None:
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    kernel = choose.interpret if interpreted else choose
    kernel[(1,)](x, out, number)
    assert np.array_equal(out, [*range(8), *[-1] * 8])
