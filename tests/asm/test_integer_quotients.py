"""`//` and `%` by one number of the run, on the CPU: the integers, whatever is divided by what."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl

LANES = 256
DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
# Chosen, not measured: the last magnitudes that are divided as doubles, and the first that are not.
EDGES_OF_SHORT = [(1 << 49) + near for near in (-2, -1, 0, 1)]


@tilewright.jit
def by_one(x, d, quotients, remainders, N: tl.constexpr):
    """Quotients and remainders of a tile by one number."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    tile, divisor = tl.load(x + i), tl.load(d)
    tl.store(quotients + i, tile // divisor)
    tl.store(remainders + i, tile % divisor)


def divisors(dtype: type, rng: np.random.Generator) -> list[int]:
    """All of 8 bits; else the extremes, powers of two and their neighbours, and any."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if dtype in (np.int8, np.uint8):
        return list(range(low, high + 1))
    powers = [(1 << n) + near for n in range(64) for near in (-1, 0, 1)]
    drawn = [int(each) for each in 2 ** rng.uniform(1, 64, 30)]
    near = [n for n in (*powers, *drawn, 3, 7, 10, 49, 1000) if n <= high]
    return [low, low + 1, high, *near, *(-n for n in near if low < 0)]


def dividends(dtype: type, d: int, rng: np.random.Generator) -> np.ndarray:
    """Multiples of a divisor and their neighbours, first short ones; the extremes, and any."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    x: list[int] = []
    for bound in (min(high, (1 << 49) - 1), high):
        most = bound // max(1, abs(d))
        drawn = (rng.random(16) * most).astype(object)
        factors = [0, 1, 2, most, most - 1, *(int(each) for each in drawn)]
        near = [n * abs(d) + step for n in factors for step in (-1, 0, 1)]
        x += [sign * n for n in near for sign in (1, -1) if max(low, -bound) <= sign * n <= bound]
    x += [low, low + 1, high, high - 1, *(n for n in EDGES_OF_SHORT if n <= high)]
    rest = rng.integers(low, high, LANES, dtype=dtype, endpoint=True)
    return np.concatenate([np.array(x, dtype), rest])[:LANES]


def truncated(x: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Quotients towards zero and what is left; a divisor of 0 counts as 1."""
    by, mask = d or 1, (1 << 8 * x.itemsize) - 1
    signed = [abs(n) // abs(by) * (1 if (n < 0) == (by < 0) else -1) for n in x.tolist()]
    rests = [n - q * by for n, q in zip(x.tolist(), signed, strict=True)]
    kinds = np.dtype(f"u{x.itemsize}")
    quotients, remainders = (
        np.array([n & mask for n in each], kinds).view(x.dtype) for each in (signed, rests)
    )
    return quotients, remainders


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_by_one_number_are_exact(dtype: type, rng: np.random.Generator) -> None:
    for d in divisors(dtype, rng):
        x = dividends(dtype, d, rng)
        found = np.zeros((2, LANES), dtype)
        by_one[(1,)](x, np.array([d], dtype), *found, N=LANES)
        for actual, expected in zip(found, truncated(x, d), strict=True):
            wrong = actual != expected
            assert not wrong.any(), (d, x[wrong][:3], actual[wrong][:3], expected[wrong][:3])


@tilewright.jit
def by_constant(x, quotients, remainders, D: tl.constexpr, N: tl.constexpr):
    """Quotients and remainders of a tile by a constant."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    tile = tl.load(x + i)
    tl.store(quotients + i, tile // D)
    tl.store(remainders + i, tile % D)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_by_a_constant_are_exact(dtype: type, rng: np.random.Generator) -> None:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    constants = [1, 2, 3, 7, 8, 49, 100, high, high - 1]
    if low < 0:
        constants += [-1, -2, -7, -8, low, low + 1]
    for d in constants:
        x = dividends(dtype, d, rng)
        found = np.zeros((2, LANES), dtype)
        by_constant[(1,)](x, *found, D=d, N=LANES)
        for actual, expected in zip(found, truncated(x, d), strict=True):
            wrong = actual != expected
            assert not wrong.any(), (d, x[wrong][:3], actual[wrong][:3], expected[wrong][:3])


@pytest.mark.parametrize("d", [8, 49, -7])
def test_a_quotient_by_a_constant_takes_no_floats(d: int) -> None:
    x = np.zeros(LANES, np.int32)
    text = str(by_constant.warmup(x, x, x, D=d, N=LANES, grid=(1,)).asm["llir"])
    assert "sdiv <" in text
    assert "double" not in text
