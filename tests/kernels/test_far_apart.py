"""Pointers so far apart that no memory holds them: a mask hides all but what there is."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def first_row(x, out, n, STEP: tl.constexpr):
    r, c = tl.arange(0, 32)[:, None].to(tl.int64), tl.arange(0, 64)[None, :]
    place = r * STEP
    value = tl.load(x + place + c, mask=(place >= 0) & (place < n), other=7)
    tl.store(out + r * 64 + c, value)


@pytest.mark.parametrize("step", [2**40, 2**58, 2**62, 2**63 - 1, -(2**63)])
def test_what_a_mask_hides_may_be_anywhere(step: int) -> None:
    x, out = np.arange(64), np.zeros((32, 64), np.int64)
    # Products wrap at 64 bits, and what wraps to 0 is the first row again.
    wraps = (np.arange(32, dtype=object) * step % 2**64 == 0)[:, None]
    first_row[(1,)](x, out, 1, step)
    np.testing.assert_array_equal(out, np.where(wraps, x, 7))


def test_what_overlaps_is_read_before_it_is_stored() -> None:
    memory = np.arange(32 * 64 + 64)
    x = memory[64:128].copy()
    first_row[(1,)](memory[64:128], memory[: 32 * 64].reshape(32, 64), 1, 2**58)
    expected = np.full((32, 64), 7)
    expected[[0]] = x
    # 2^58 times 8 bytes wrap for no row but the first.
    np.testing.assert_array_equal(memory[: 32 * 64].reshape(32, 64), expected)
