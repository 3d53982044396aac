"""Functions of scalars on arrays, for intrinsics and inline assembly alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tilewright.interp.simt.arithmetic import signed
from tilewright.interp.simt.rounding import directed
from tilewright.ir.op import Array

ROUND_TO_INT: dict[str, Callable[..., Array]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
}


def widened(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of float64 as one of any float type, rounded once at the end."""

    def call(*arguments: Array) -> Array:
        dtype = arguments[0].dtype
        return function(*(a.astype(np.float64) for a in arguments)).astype(dtype)

    return call


def minimum_number(a: Array, b: Array) -> Array:
    """The smaller number; a NaN loses against a number, and −0 is below +0."""
    result = np.where(a.astype(np.float64) < b.astype(np.float64), a, b)
    result = np.where((a == b) & np.signbit(a), a, result)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, result)).astype(a.dtype)


def maximum_number(a: Array, b: Array) -> Array:
    """The larger number; a NaN loses against a number, and +0 is above −0."""
    return np.negative(minimum_number(np.negative(a), np.negative(b)))


def minimum(a: Array, b: Array) -> Array:
    """The smaller number; a NaN wins."""
    return np.where(np.isnan(a) | np.isnan(b), a + b, minimum_number(a, b)).astype(a.dtype)


def maximum(a: Array, b: Array) -> Array:
    """The larger number; a NaN wins."""
    return np.negative(minimum(np.negative(a), np.negative(b)))


def leading_zeros(a: Array, bits: int) -> Array:
    """The number of zero bits above the highest one bit, `bits` for zero."""
    smeared = a.copy()
    shift = 1
    while shift < bits:
        smeared |= smeared >> a.dtype.type(shift)
        shift *= 2
    return (bits - np.bitwise_count(smeared)).astype(a.dtype)


def reverse_bits(a: Array, bits: int) -> Array:
    """The bits of each element in reverse order."""
    result = np.zeros_like(a)
    one = a.dtype.type(1)
    for place in range(bits):
        bit = (a >> a.dtype.type(place)) & one
        result |= bit << a.dtype.type(bits - 1 - place)
    return result


def saturate(a: Array) -> Array:
    """Into [0, 1], NaN to 0."""
    return np.where(np.isnan(a), a.dtype.type(0), np.clip(a, a.dtype.type(0), a.dtype.type(1)))


def float_to_int(a: Array, bits: int, *, is_signed: bool, mode: str) -> Array:
    """A float as an integer, saturated; NaN becomes 0 (64 bits: the smallest number)."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    wide = ROUND_TO_INT[mode](a.astype(np.float64))
    carrier = np.int64 if is_signed else np.uint64
    inside = np.clip(np.nan_to_num(wide, nan=0.0), low, high).astype(carrier)
    result = np.where(wide >= float(high), carrier(high), inside)
    return (
        result.astype(f"u{bits // 8}")
        if not is_signed
        else result.astype(f"i{bits // 8}").view(f"u{bits // 8}")
    )


def int_to_float(a: Array, dtype: np.dtype, *, is_signed: bool, mode: str) -> Array:
    """An integer as a float, rounded in a direction."""
    exact = signed(a) if is_signed else a
    nearest = exact.astype(dtype)
    if mode == "rn":
        return nearest
    whole = np.array([int(x) for x in nearest.astype(np.float64)], object)
    error = np.sign((exact.astype(object) - whole).astype(np.float64))
    return directed(nearest, error, mode)


def high_product(a: Array, b: Array, *, is_signed: bool) -> Array:
    """The upper half of the double-width product."""
    bits = a.dtype.itemsize * 8
    if bits < 64:
        wide = (
            (signed(a).astype(np.int64), signed(b).astype(np.int64))
            if is_signed
            else (
                a.astype(np.uint64),
                b.astype(np.uint64),
            )
        )
        return (wide[0] * wide[1] >> bits).astype(a.dtype)
    x, y = (signed(v).astype(object) if is_signed else v.astype(object) for v in (a, b))
    return ((x * y >> bits) % (1 << bits)).astype(a.dtype)


def permute_bytes(a: Array, b: Array, selector: Array) -> Array:
    """PTX's `prmt` in its default mode: four bytes chosen from the eight of a and b."""
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    result = np.zeros_like(a)
    for place in range(4):
        control = selector >> np.uint32(4 * place) & np.uint32(0xF)
        byte = (both >> (control & np.uint32(7)).astype(np.uint64) * np.uint64(8)).astype(np.uint32)
        byte &= np.uint32(0xFF)
        sign = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        byte = np.where(control & np.uint32(8), sign, byte)
        result |= byte << np.uint32(8 * place)
    return result
