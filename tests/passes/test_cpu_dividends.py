"""Divisions by constants in lane loops: unsigned where no dividend is negative."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl

Array = np.ndarray
SIZE = 512


@tilewright.jit
def masked(x, o, start, n, D: tl.constexpr, N: tl.constexpr):
    i = start + tl.arange(0, N)
    k = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o + k, tl.load(x + k, mask=k < n, other=0) + i // D * 3 + (i % D ^ 5), mask=k < n)


@tilewright.jit
def unmasked(x, o, start, n, D: tl.constexpr, N: tl.constexpr):
    i = start + tl.arange(0, N)
    k = tl.arange(0, N)
    tl.store(o + k, tl.load(x + k) + i // D * 3 + (i % D ^ 5))


@tilewright.jit
def streamed(x, o, start, n, D: tl.constexpr, N: tl.constexpr):
    k = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o + k, (k + start) // D * 3 + ((k + start) % D ^ 5), mask=k < n)


@tilewright.jit
def rows(x, o, start, n, D: tl.constexpr, N: tl.constexpr):
    row, column = tl.arange(0, 8), tl.arange(0, N // 8)
    k = row[:, None] * (N // 8) + column[None, :]
    i = start + k
    tl.store(o + k, tl.load(x + k, mask=k < n, other=0) + i // D * 3 + (i % D ^ 5), mask=k < n)


@tilewright.jit
def summed(x, o, start, n, D: tl.constexpr, N: tl.constexpr):
    k = tl.arange(0, N)
    i = start + k
    total = tl.sum(tl.where(k < n, i // D * 3 + (i % D ^ 5), 0), axis=0)
    tl.store(o + k, total, mask=k < n)


def expected(start: np.integer, d: int, x: Array) -> Array:
    """What a kernel adds to `x`, divided towards zero after the sum wrapped around."""
    with np.errstate(over="ignore"):
        i = start + np.arange(x.size, dtype=x.dtype)
        quotient = (i.astype(object) // d + ((i < 0) & (i % d != 0)).astype(object)).astype(x.dtype)
        return x + quotient * x.dtype.type(3) + ((i - quotient * x.dtype.type(d)) ^ 5)


STARTS = (0, 3, 12345, -1, -3, -255, -SIZE, -SIZE - 9)


def starts(dtype: type) -> list[int]:
    """From zero, below and across it, and up to where the last sum, one before it or more wrap."""
    last = int(np.iinfo(dtype).max)
    return [*STARTS, *(last - SIZE + near for near in (-1, 0, 1, 2, 17)), last, -last - 1]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("d", [8, 7])
@pytest.mark.parametrize("kernel", [masked, unmasked, streamed, rows, summed])
def test_dividends_that_wrap_or_are_negative_divide_as_they_are(
    kernel: tilewright.JITFunction, d: int, dtype: type, rng: np.random.Generator
) -> None:
    for first in starts(dtype):
        for n in (SIZE, SIZE - 1, 100, 17):
            x = rng.integers(-9, 9, SIZE).astype(dtype)
            start = np.array([first], dtype)[0]
            shown = SIZE if kernel is unmasked else n
            wanted = expected(start, d, np.zeros_like(x) if kernel in (streamed, summed) else x)
            if kernel is summed:
                wanted = np.full(SIZE, wanted[:n].sum(dtype=dtype))
            out = np.full(SIZE, 77, dtype)
            kernel[(1,)](x, out, start, n, D=d, N=SIZE)
            np.testing.assert_array_equal(out[:shown], wanted[:shown], f"{first} {n}")
            assert (out[shown:] == 77).all(), (first, n)


def test_the_loop_of_what_is_not_negative_divides_without_a_sign() -> None:
    x = np.zeros(SIZE, np.int32)
    for kernel in (masked, unmasked):
        nests = str(kernel.warmup(x, x, 0, SIZE, D=8, N=SIZE, grid=(1,)).asm["nests"])
        assert "arith.remui" in nests
        assert "arith.remsi" in nests


@tilewright.jit
def counted(o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, i // 8 + i % 8)


def test_what_is_known_not_to_be_negative_is_not_asked_for() -> None:
    out = np.zeros(SIZE, np.int32)
    kernel = counted.warmup(out, N=SIZE, grid=(1,))
    assert "arith.remsi" not in str(kernel.asm["nests"])
    counted[(1,)](out, N=SIZE)
    np.testing.assert_array_equal(out, np.arange(SIZE) // 8 + np.arange(SIZE) % 8)


@tilewright.jit
def hashed(o, FACTOR: tl.constexpr, D: tl.constexpr, N: tl.constexpr):
    """Products of numbers that count from zero: they wrap around, or not."""
    i = tl.arange(0, N)
    tl.store(o + i, i * FACTOR // D * 3 + (i * FACTOR % D ^ 5))


@tilewright.jit
def scattered(o, STEP: tl.constexpr, D: tl.constexpr, N: tl.constexpr):
    """Blocks so far apart that all but the first few start where the product wrapped around."""
    i = tl.program_id(0) * STEP + tl.arange(0, N)
    k = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(o + k, i // D * 3 + (i % D ^ 5))


def mixed(i: Array, d: int) -> Array:
    """What both kernels store, divided towards zero."""
    quotient = np.abs(i.astype(np.int64)) // d * np.sign(i)
    with np.errstate(over="ignore"):
        return (quotient * 3 + ((i - quotient * d) ^ 5)).astype(np.int32)


@pytest.mark.parametrize("d", [8, 7, 129])
@pytest.mark.parametrize("factor", [9, (1 << 31) // SIZE, (1 << 31) // SIZE + 9, 1103515245, -3])
def test_products_of_what_is_not_negative_may_wrap_around(factor: int, d: int) -> None:
    out = np.zeros(SIZE, np.int32)
    hashed[(1,)](out, FACTOR=factor, D=d, N=SIZE)
    with np.errstate(over="ignore"):
        i = np.arange(SIZE, dtype=np.int32) * np.int32(factor)
    np.testing.assert_array_equal(out, mixed(i, d))


@pytest.mark.parametrize("d", [8, 7, 129])
@pytest.mark.parametrize("step", [SIZE, 1 << 30, (1 << 31) - SIZE // 2])
def test_the_numbers_of_programs_times_a_block_may_wrap_around(step: int, d: int) -> None:
    out = np.zeros(4 * SIZE, np.int32)
    scattered[(4,)](out, STEP=step, D=d, N=SIZE)
    with np.errstate(over="ignore"):
        first = np.arange(4, dtype=np.int32) * np.int32(step)
        i = (first[:, None] + np.arange(SIZE, dtype=np.int32)).reshape(-1)
    np.testing.assert_array_equal(out, mixed(i, d))
