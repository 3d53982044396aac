"""Remainders of vectors of floats have the bits of C's fmod."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def remainder_kernel(x, y, out, n, BLOCK: tl.constexpr):
    """out = x % y with the sign of x."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    rest = tl.load(x + i, mask=mask, other=1) % tl.load(y + i, mask=mask, other=1)
    tl.store(out + i, rest, mask=mask)


def remainders(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What the kernel makes of two arrays."""
    out = np.zeros_like(x)
    remainder_kernel[(tilewright.cdiv(x.size, 1024),)](x, y, out, x.size, BLOCK=1024)
    return out


def check(x: np.ndarray, y: np.ndarray) -> None:
    """Compare bits; any NaN is as good as another."""
    with np.errstate(invalid="ignore"):
        expected = np.fmod(x, y)
    found, bits = remainders(x, y), f"u{x.itemsize}"
    same = (found.view(bits) == expected.view(bits)) | (np.isnan(found) & np.isnan(expected))
    assert same.all(), (x[~same][:3], y[~same][:3], found[~same][:3], expected[~same][:3])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_remainders_of_any_bits_are_exact(dtype: str, rng: np.random.Generator) -> None:
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    limit = np.iinfo(word).max
    x, y = rng.integers(0, limit, (2, 50_001), dtype=word, endpoint=True).view(dtype)
    check(x, y)
    check(rng.standard_normal(50_001).astype(dtype), rng.standard_normal(50_001).astype(dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_remainders_of_special_values(dtype: str) -> None:
    limits = np.finfo(dtype)
    values = [0.0, 1.0, 2.0, 0.7, np.inf, np.nan, limits.max, limits.tiny]
    values += [limits.smallest_subnormal, limits.eps, 3 * limits.smallest_subnormal]
    signed = np.array([*values, *(-np.array(values))], dtype)
    x, y = np.meshgrid(signed, signed)
    check(x.ravel(), y.ravel())
