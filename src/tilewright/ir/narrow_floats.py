"""Floats of 8 and 16 bits as NumPy holds them: dtypes, exact widening, rounding.

Two rules that `ml_dtypes` does not have. The 8-bit formats *saturate*: what is too large, an
infinity included, becomes the largest number of its sign, and only NaN becomes NaN. And
`float8e4b15` (the type that Triton spells `f8E4M3B11FNUZ`) is a format of its own: exponents of
bias 15, 0x7f is 1.875, negative zero is a zero, and there is neither infinity nor NaN. NumPy
holds it as one raw byte, which refuses arithmetic, so that a conversion that is forgotten fails.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
from xdsl.ir import Attribute

from tilewright.ir import types as ir
from tilewright.ir.op import Array

E4B15 = np.dtype("V1")
"""`float8e4b15`: the codes of `float8_e4m3b11fnuz` mean 2^4 times as much, but for 0x80."""

DTYPES: dict[Attribute, np.dtype] = {
    ir.f16: np.dtype(np.float16),
    ir.bf16: np.dtype(ml_dtypes.bfloat16),
    ir.f8e4m3fn: np.dtype(ml_dtypes.float8_e4m3fn),
    ir.f8e5m2: np.dtype(ml_dtypes.float8_e5m2),
    ir.f8e4m3fnuz: np.dtype(ml_dtypes.float8_e4m3fnuz),
    ir.f8e5m2fnuz: np.dtype(ml_dtypes.float8_e5m2fnuz),
    ir.f8e4m3b11fnuz: E4B15,
}
NARROW_FLOATS = frozenset(DTYPES.values())
"""Float dtypes whose arithmetic is done in float32 and rounded once per op."""

_B11 = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
_E4B15_SCALE = np.float32(16)
_LARGEST: dict[np.dtype, float] = {
    dtype: float(ml_dtypes.finfo(dtype).max) for dtype in NARROW_FLOATS - {E4B15}
} | {E4B15: 1.875}


def largest(dtype: np.dtype) -> float:
    """The greatest finite value of a float dtype."""
    return _LARGEST[dtype] if dtype in _LARGEST else float(np.finfo(dtype).max)


def is_saturating(dtype: np.dtype) -> bool:
    """Whether conversions to `dtype` give its largest number in place of an infinity."""
    return dtype in NARROW_FLOATS and dtype.itemsize == 1


def widened(array: Array) -> Array:
    """`array` as float32 if it is a narrow float (exact), else itself."""
    if array.dtype not in NARROW_FLOATS:
        return array
    return _from_e4b15(array) if array.dtype == E4B15 else array.astype(np.float32)


def nearest(values: Array, dtype: np.dtype) -> Array:
    """float32 or float64 `values` as floats of `dtype`, to nearest even by NumPy's own steps.

    float64 may round twice on its way to a narrow dtype.
    """
    if not is_saturating(dtype):
        return values.astype(dtype)
    limit = _LARGEST[dtype]
    clipped = np.clip(values, -limit, limit)  # a NaN stays
    return _to_e4b15(clipped) if dtype == E4B15 else clipped.astype(dtype)


def _from_e4b15(array: Array) -> Array:
    codes = np.asarray(array).view(np.uint8)
    magnitude = (codes & np.uint8(0x7F)).view(_B11).astype(np.float32) / _E4B15_SCALE
    return np.where(codes & 0x80, -magnitude, magnitude)


def _to_e4b15(values: Array) -> Array:
    """Values within range; the format has no NaN, whose place the largest number takes."""
    size = np.abs(values)
    size = np.where(np.isnan(size), _LARGEST[E4B15], size).astype(values.dtype)
    codes = np.asarray((size * _E4B15_SCALE.astype(values.dtype)).astype(_B11)).view(np.uint8)
    is_negative = np.signbit(values) & ~np.isnan(values)
    sign = np.where(is_negative, np.uint8(0x80), np.uint8(0))
    return np.asarray(codes | sign).view(E4B15)
