"""Elements that lie two to five apart in memory, up to where memory ends, and between others."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.holes import before_a_hole

MANY = 1000
FORMS = [
    *(("float32", step, step % 2) for step in (2, 3, 4, 5)),
    *(("float16", 2, 1), ("float16", 3, 0), ("int8", 2, 0), ("int8", 4, 3), ("bool", 3, 1)),
    ("float64", 2, 1),
]


@tilewright.jit
def pick(x, out, n, first, STEP: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        value = tl.load(x + first + STEP * i, mask=i < n, other=5)
    else:
        value = tl.load(x + first + STEP * i)
    tl.store(out + i, value)


@tilewright.jit
def spread(x, out, n, first, STEP: tl.constexpr, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        tl.store(out + first + STEP * i, tl.load(x + i, mask=i < n), mask=i < n)
    else:
        tl.store(out + first + STEP * i, tl.load(x + i))


@tilewright.jit
def rotate(x, out, rows, half, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    """Neighbours are a pair: (a, b) becomes (-b, a)."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    mask = (r < rows)[:, None] & (c < half)[None, :]
    at = r[:, None] * (2 * half) + 2 * c[None, :]
    tl.store(out + at, -tl.load(x + at + 1, mask=mask), mask=mask)
    tl.store(out + at + 1, tl.load(x + at, mask=mask), mask=mask)


@tilewright.jit
def taps(
    x, weight, out, rows, columns, TAPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """A causal convolution along the rows; the taps of a column lie next to each other."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for tap in tl.static_range(TAPS):
        back = r - tap
        mask = ((back >= 0) & (back < rows))[:, None] & (c < columns)[None, :]
        value = tl.load(x + back[:, None] * columns + c[None, :], mask=mask, other=0)
        total += value * tl.load(weight + c * TAPS + tap, mask=c < columns, other=0)[None, :]
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    tl.store(out + r[:, None] * columns + c[None, :], total, mask=mask)


def numbers(count: int, dtype: str) -> np.ndarray:
    return (np.arange(count) % 101).astype(dtype)


@pytest.mark.parametrize(("dtype", "step", "first"), FORMS)
def test_a_load_takes_every_nth_element_and_nothing_behind(
    dtype: str, step: int, first: int
) -> None:
    for n in (1, 2, 15, 63, 64, 65, MANY):
        x = before_a_hole(numbers(first + step * (n - 1) + 1, dtype))
        out = np.full(1024, 9, dtype)
        pick[(4,)](x, out, n, first, STEP=step, BLOCK=256, MASKED=True)
        np.testing.assert_array_equal(out[:n], x[first::step])
        np.testing.assert_array_equal(out[n:], np.full(1024 - n, 5, dtype))
    x = before_a_hole(numbers(first + step * 1023 + 1, dtype))
    pick[(4,)](x, out, 1024, first, STEP=step, BLOCK=256, MASKED=False)
    np.testing.assert_array_equal(out, x[first::step])


@pytest.mark.parametrize(("dtype", "step", "first"), FORMS)
def test_a_store_leaves_what_lies_between_alone(dtype: str, step: int, first: int) -> None:
    for n in (1, 2, 15, 63, 64, 65, MANY, 1024):
        x = before_a_hole(numbers(1024 if n == 1024 else n, dtype))
        out = before_a_hole(np.full(first + step * (n - 1) + 1, 77, dtype))
        spread[(4,)](x, out, n, first, STEP=step, BLOCK=256, MASKED=n < 1024)
        expected = np.full(out.size, 77, dtype)
        expected[first::step] = x
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("half", [1, 15, 33, 64, 300])
def test_pairs_are_rotated_also_in_place(half: int) -> None:
    rows = 7
    x = before_a_hole(np.random.default_rng(half).standard_normal((rows, 2 * half), np.float32))
    expected = np.stack([-x[:, 1::2], x[:, 0::2]], -1).reshape(rows, -1)
    block = {"WIDTH": 1 << (half - 1).bit_length(), "ROWS": 4}
    out = before_a_hole(np.full(x.shape, 7, np.float32))
    rotate[(2,)](x, out, rows, half, **block)
    np.testing.assert_array_equal(out, expected)
    out = before_a_hole(x)
    for program in range(0, rows, 4):  # in place the second load would read what was stored
        at = slice(program, program + 4)
        expected[at, 1::2] = expected[at, 0::2]
    rotate[(2,)](out, out, rows, half, **block)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("columns", [1, 17, 250])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_taps_a_few_apart_are_those_of_their_column(columns: int, count: int) -> None:
    rng = np.random.default_rng(columns)
    x, weight = rng.standard_normal((45, columns)), rng.standard_normal((columns, count))
    given = before_a_hole(x.astype(np.float32)), before_a_hole(weight.astype(np.float32))
    out = before_a_hole(np.full(x.shape, 7, np.float32))
    taps[(3,)](*given, out, *x.shape, TAPS=count, ROWS=16, COLUMNS=1 << (columns - 1).bit_length())
    expected = sum(np.pad(x, ((tap, 0), (0, 0)))[: len(x)] * weight[:, tap] for tap in range(count))
    np.testing.assert_allclose(out, expected, atol=1e-5)
