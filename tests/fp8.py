"""The 8-bit float formats by their definition, code by code: an oracle that shares no code."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Format:
    """An 8-bit float: its bits, and which codes are special.

    `finite` counts the magnitudes that are numbers; the NaN of the FNUZ types is code 0x80.
    """

    exponent_bits: int
    bias: int
    finite: int
    infinity: int | None = None
    has_nan: bool = True
    has_negative_zero: bool = True

    def value(self, code: int) -> float:
        """What a code means."""
        sign, magnitude = -1.0 if code & 0x80 else 1.0, code & 0x7F
        if code == 0x80 and not self.has_negative_zero:
            return np.nan
        if magnitude == self.infinity:
            return sign * np.inf
        if magnitude >= self.finite:
            return np.nan
        mantissa_bits = 7 - self.exponent_bits
        exponent, fraction = divmod(magnitude, 1 << mantissa_bits)
        whole = fraction + (1 << mantissa_bits if exponent else 0)
        return sign * whole * 2.0 ** (max(exponent, 1) - self.bias - mantissa_bits)

    def values(self) -> np.ndarray:
        """The value of every code."""
        return np.array([self.value(code) for code in range(256)])

    def codes(self, numbers: np.ndarray, rounding: str = "rtne") -> np.ndarray:
        """The codes of float64 numbers: rounded once, saturated; -1 for NaN.

        Towards zero an infinity stays where the format has one.
        """
        grid = self.values()[: self.finite]
        size = np.minimum(np.nan_to_num(np.abs(numbers), nan=0.0, posinf=np.inf), grid[-1])
        low = np.searchsorted(grid, size, side="right") - 1
        high = np.minimum(low + 1, self.finite - 1)
        below, above = size - grid[low], grid[high] - size
        up = (above < below) | ((above == below) & (low % 2 == 1))
        codes = low if rounding == "rtz" else np.where(up & (high > low), high, low)
        if rounding == "rtz" and self.infinity is not None:
            codes = np.where(np.isinf(numbers), self.infinity, codes)
        if not self.has_nan:
            codes = np.where(np.isnan(numbers), self.finite - 1, codes)
        keeps_sign = (self.has_negative_zero | (codes > 0)) & ~np.isnan(numbers)
        codes = codes | np.where(np.signbit(numbers) & keeps_sign, 0x80, 0)
        return np.where(np.isnan(numbers) & self.has_nan, -1, codes)

    def same(self, codes: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """Where codes are as expected; any NaN will do for -1."""
        is_nan = np.isnan(self.values())[codes]
        return np.where(expected == -1, is_nan, codes == expected)


FORMATS = {
    "float8e4nv": Format(4, 7, 0x7F),
    "float8e5": Format(5, 15, 0x7C, infinity=0x7C),
    "float8e4b8": Format(4, 8, 0x80, has_negative_zero=False),
    "float8e5b16": Format(5, 16, 0x80, has_negative_zero=False),
    "float8e4b15": Format(4, 15, 0x80, has_nan=False),
}
SOURCES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def every_value(source: str) -> np.ndarray:
    """All 65,536 values of a 16-bit float."""
    return np.arange(1 << 16, dtype=np.uint16).view(SOURCES[source])


def edges(format_: Format, dtype: np.dtype) -> np.ndarray:
    """Where conversions go wrong: every number and midpoint with its neighbours, and beyond."""
    grid = format_.values()[: format_.finite]
    step = grid[-1] - grid[-2]
    beyond = grid[-1] + step * np.array([0.25, 0.5, 0.75, 1.0, 1.5, 4096.0])
    points = np.concatenate([grid, (grid[1:] + grid[:-1]) / 2, beyond]).astype(dtype)
    near = [
        points,
        np.nextafter(points, np.inf, dtype=dtype),
        np.nextafter(points, -1).astype(dtype),
    ]
    info = np.finfo(dtype)
    special = np.array([np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal], dtype)
    positive = np.concatenate([*near, special])
    return np.concatenate([positive, -positive])
