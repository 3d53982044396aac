"""`/` on the CPU is rounded once, whatever is divided by, as NumPy rounds it."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def quotients(x, y, rows, by_scalar, by_constant, by_row, by_tile, N: tl.constexpr):
    i, row = tl.arange(0, N), tl.arange(0, 8)
    tile, others = tl.load(x + i), tl.load(y + i)
    tl.store(by_scalar + i, tile / tl.load(y))
    tl.store(by_constant + i, tile / 127.0)
    tl.store(by_tile + i, tile / others)
    of_rows = row[:, None] * (N // 8) + tl.arange(0, N // 8)[None, :]
    tl.store(by_row + of_rows, tl.load(x + of_rows) / tl.load(rows + row)[:, None])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_quotient_is_rounded_once(dtype: type, rng: np.random.Generator) -> None:
    n = 1024
    x, y = (rng.standard_normal(n).astype(dtype) for _ in range(2))
    rows = rng.standard_normal(8).astype(dtype)
    found = [np.zeros(n, dtype) for _ in range(4)]
    quotients[(1,)](x, y, rows, *found, N=n)
    by_row = (x.reshape(8, -1) / rows[:, None]).ravel()
    for actual, expected in zip(found, (x / y[0], x / dtype(127), by_row, x / y), strict=True):
        np.testing.assert_array_equal(actual, expected)


@tilewright.jit
def by_one(x, d, out, N: tl.constexpr):
    """Quotients of a tile by one number."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) / tl.load(d))


EDGES = [0.0, -0.0, 1.0, 3.0, np.inf, -np.inf, np.nan, 1e-45, 1.1754944e-38, 3.4028235e38]


def divisors(rng: np.random.Generator) -> np.ndarray:
    """Ordinary ones, those whose reciprocals are hard to round, and every extreme."""
    ones = np.float32(2) - np.float32(2) ** -23
    hard = [1 + 2.0**-23, ones, ones / 2, 1.5, 1 / 3, 127, 2.0**20, 2.0**-20, 2.0**20.1, 2.0**-21]
    exponents = rng.integers(-30, 30, 30)
    drawn = rng.uniform(-2, 2, 30) * 2.0**exponents
    return np.array([*hard, *EDGES, *drawn]).astype(np.float32)


def test_a_quotient_by_one_number_has_the_bits_of_a_division(rng: np.random.Generator) -> None:
    n = 1 << 14
    exponents = np.repeat(rng.integers(-126, 127, n // 64), 64)
    far = rng.uniform(1, 2, n) * 2.0**exponents
    near = rng.uniform(0, 1, n)
    lattice = 1 + np.arange(n) * 2.0**-23
    mixed = np.where(rng.random(n) < 0.01, rng.choice(EDGES, n), near)
    any_bits = rng.integers(0, 1 << 32, n, np.uint32).view(np.float32)
    x = np.concatenate([far, near, lattice, 2 - lattice / 2, mixed]).astype(np.float32)
    x = np.concatenate([x, any_bits, -x])
    out = np.empty_like(x)
    for d in divisors(rng):
        by_one[(x.size // 1024,)](x, np.array([d]), out, N=1024)
        with np.errstate(all="ignore"):
            expected = x / d
        same = (out.view(np.uint32) == expected.view(np.uint32)) | (
            np.isnan(out) & np.isnan(expected)
        )
        assert same.all(), (d, x[~same][:3], out[~same][:3], expected[~same][:3])
