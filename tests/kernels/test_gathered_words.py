"""Elements of one and two bytes at places of any order, behind masks, up to where memory ends."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.holes import before_a_hole

DTYPES = ("int8", "uint8", "bool", "int16", "float16", "bfloat16", "float8_e4m3fn")
BLOCK = 256


@tilewright.jit
def pick(x, places, shown, out, n, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    """`out[i] = x[places[i]]` where that is shown; elsewhere `OTHER`, or what a mask leaves."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i < n) & (tl.load(shown + i, mask=i < n, other=0) > 0)
    at = tl.load(places + i, mask=i < n, other=0)
    if OTHER:
        value = tl.load(x + at, mask=mask, other=1)
    else:
        value = tl.load(x + at, mask=mask)
    tl.store(out + i, value, mask=i < n)


@tilewright.jit
def pick_far(x, places, shown, out, BLOCK: tl.constexpr):
    """The same by a tile of pointers that no base and offsets are known of."""
    i = tl.arange(0, BLOCK)
    at = tl.load(places + i)
    pointers = tl.where(at % 2 == 0, x + at, x + at + 0)
    tl.store(out + i, tl.load(pointers, mask=tl.load(shown + i) > 0, other=0))


def numbers(count: int, dtype: str) -> np.ndarray:
    kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    return (np.arange(count) * 7 % 23 % (2 if dtype == "bool" else 23)).astype(kind)


@pytest.mark.parametrize("is_given", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_shown_is_loaded_and_nothing_behind(dtype: str, is_given: bool) -> None:
    rng = np.random.default_rng(11)
    for count, n in ((1, 17), (2, 64), (3, 255), (17, 1000), (1001, 1000), (4094, 4097)):
        x = before_a_hole(numbers(count, dtype))
        places = rng.integers(0, count, n).astype(np.int32)
        shown = rng.integers(0, 2, n).astype(np.int8)
        places[shown == 0] += 1 << 28
        out = np.zeros(n, x.dtype)
        grid = (tilewright.cdiv(n, BLOCK),)
        pick[grid](x, places, shown, out, n, BLOCK=BLOCK, OTHER=is_given)
        hidden = np.ones(1, x.dtype) if is_given else np.zeros(1, x.dtype)
        expected = np.where(shown != 0, x[places % (1 << 28)], hidden)
        np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
def test_pointers_without_a_base_are_loaded_from(dtype: str) -> None:
    rng = np.random.default_rng(12)
    x = before_a_hole(numbers(333, dtype))
    places = rng.integers(0, 333, BLOCK).astype(np.int32)
    shown = rng.integers(0, 2, BLOCK).astype(np.int8)
    out = np.ones(BLOCK, x.dtype)
    pick_far[(1,)](x, places, shown, out, BLOCK=BLOCK)
    expected = np.where(shown != 0, x[places], np.zeros(1, x.dtype))
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("first", [1, 2, 3])
def test_two_bytes_off_their_alignment_are_whole(first: int) -> None:
    """A word around them that were aligned would end in their middle."""
    rng = np.random.default_rng(13)
    x = before_a_hole(np.arange(first + 2 * 999, dtype=np.uint8))[first:].view(np.int16)
    places = rng.integers(0, 999, 1000).astype(np.int32)
    shown = rng.integers(0, 2, 1000).astype(np.int8)
    out = np.zeros(1000, np.int16)
    pick[(4,)](x, places, shown, out, 1000, BLOCK=BLOCK, OTHER=False)
    np.testing.assert_array_equal(out, np.where(shown != 0, x[places], 0))
