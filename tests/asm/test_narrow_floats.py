"""Integers become floats of 16 and 8 bits rounded once, as exact arithmetic rounds them."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl

KEPT_BITS = {"float16": 11, "bfloat16": 8}


@tilewright.jit
def convert_kernel(x, out, n, BLOCK: tl.constexpr):
    """out = x as its element type."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0)
    tl.store(out + i, value.to(out.dtype.element_ty), mask=i < n)


@tilewright.jit
def convert_scalar_kernel(x, out):
    """One number a program."""
    i = tl.program_id(0)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


def rounded(number: int, bits: int) -> float:
    """`number` with so many significant bits, ties to even, in exact arithmetic."""
    drop = max(abs(number).bit_length() - bits, 0)
    return float(round(Fraction(number, 1 << drop)) << drop)


def tricky(dtype: str, rng: np.random.Generator) -> np.ndarray:
    """Integers at ties of 8, 11 and 24 bits and beside them, the ends, and random ones."""
    info = np.iinfo(dtype)
    numbers = {info.min, info.max, 0, 1, 65519, 65520, 65521}
    for exponent in range(33):
        for bits in (8, 11, 24):
            tie = (1 << exponent) | (1 << max(exponent - bits, 0))
            odd = tie | (1 << max(exponent - bits + 1, 0))
            numbers |= {value + more for value in (tie, odd) for more in (-257, -1, 0, 1, 255)}
    signed = [*numbers, *(-number for number in numbers)]
    inside = [number for number in signed if info.min <= number <= info.max]
    return np.array([*inside, *rng.integers(info.min, info.max, 5000, endpoint=True)], dtype)


@pytest.mark.parametrize("target", KEPT_BITS)
@pytest.mark.parametrize("source", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_round_once(source: str, target: str, rng: np.random.Generator) -> None:
    kind = np.dtype(getattr(ml_dtypes, target, target))
    x = tricky(source, rng)
    exact = np.array([rounded(int(n), KEPT_BITS[target]) for n in x])
    with np.errstate(over="ignore"):
        expected = exact.astype(kind)
    for count in (x.size, 17):
        out = np.zeros(count, kind)
        convert_kernel[(tilewright.cdiv(count, 256),)](x, out, count, BLOCK=256)
        np.testing.assert_array_equal(out.view(np.uint16), expected[:count].view(np.uint16))
    out = np.zeros(100, kind)
    convert_scalar_kernel[(100,)](x[:100], out)
    np.testing.assert_array_equal(out.view(np.uint16), expected[:100].view(np.uint16))
