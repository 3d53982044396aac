"""Booleans in memory: bytes that lie as those of other types do, in whatever order they are met."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl

SIZE = 1000


@tilewright.jit
def negated(x, y, n, IS_REVERSED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    j = n - 1 - i if IS_REVERSED else i
    value = tl.load(x + j, mask=i < n, other=0)
    tl.store(y + i, value == 0, mask=i < n)


@pytest.mark.parametrize("shift", [-5, 0, 1, 3, 17, 64, 100, 1500])
@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8])
def test_what_is_read_is_what_was_there(
    rng: np.random.Generator, dtype: type[np.generic], is_reversed: bool, shift: int
) -> None:
    memory = rng.integers(0, 2, 4000).astype(np.bool_)
    x, y = memory[500 : 500 + SIZE].view(dtype), memory[500 + shift : 500 + shift + SIZE]
    expected = (x[::-1] if is_reversed else x) == 0
    negated[(1,)](x, y, SIZE, is_reversed, 1024)
    assert (y == expected).all()


def test_neighbours_are_read_and_written_as_neighbours() -> None:
    x, y = np.zeros(1024, np.bool_), np.zeros(1024, np.bool_)
    nests = negated.warmup(x, y, SIZE, False, 1024, grid=(1,)).asm["nests"]
    assert "cpu.store" in nests
    assert "pointers" not in nests
