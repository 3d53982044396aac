"""Type promotion: the dtype in which a binary operation computes.

Source: observed behaviour of Triton 3.9 (docs/language.md, promotion table).
"""

from __future__ import annotations

from tilewright.language.core import (
    bfloat16,
    dtype,
    float16,
    float32,
    float64,
    int1,
    int32,
    int64,
    uint32,
    uint64,
)
from tilewright.support.errors import DtypeMismatch, LiteralOutOfRange


def promote_integers(lhs: dtype, rhs: dtype) -> dtype:
    """The wider type; unsigned wins when at least as wide as the signed one."""
    if lhs.is_int_signed() == rhs.is_int_signed():
        return lhs if lhs.primitive_bitwidth >= rhs.primitive_bitwidth else rhs
    unsigned, signed = (lhs, rhs) if lhs.is_int_unsigned() else (rhs, lhs)
    return unsigned if unsigned.primitive_bitwidth >= signed.primitive_bitwidth else signed


def promote_floats(lhs: dtype, rhs: dtype, is_division: bool) -> dtype:
    """The float type of an operation with at least one float operand."""
    pair = (lhs, rhs)
    if float64 in pair:
        return float64
    if is_division or float32 in pair:
        return float32
    if float16 in pair:
        return float16
    if bfloat16 in pair:
        return bfloat16 if lhs == rhs else float32
    if not (lhs.is_fp8() and rhs.is_fp8()):
        raise DtypeMismatch(
            f"{lhs} and {rhs} have no common type", hint="cast one side with .to(dtype)"
        )
    return lhs if lhs == rhs else float16


def promote(lhs: dtype, rhs: dtype, is_division: bool = False) -> dtype:
    """The dtype in which tensors of `lhs` and `rhs` meet (`is_division`: `/` and `%`)."""
    if lhs.is_floating() or rhs.is_floating():
        return promote_floats(lhs, rhs, is_division)
    if not (lhs.is_int() and rhs.is_int()):
        raise DtypeMismatch(
            f"{lhs} and {rhs} have no common type",
            known_as=f"invalid operands of type {lhs.name} and {rhs.name}",
        )
    return promote_integers(lhs, rhs)


def natural_dtype(value: bool | int | float) -> dtype:
    """The dtype a Python number takes by itself: the first that holds it."""
    if isinstance(value, bool):
        return int1
    if isinstance(value, float):
        return float32 if _fits_float32(value) else float64
    for candidate in (int32, uint32, int64, uint64):
        if candidate.get_int_min_value() <= value <= candidate.get_int_max_value():
            return candidate
    raise LiteralOutOfRange(f"the number {value} fits no integer type")


def _fits_float32(value: float) -> bool:
    magnitude = abs(value)
    is_special = value == 0 or value != value or magnitude == float("inf")
    return is_special or 2.0**-126 <= magnitude <= (2 - 2**-23) * 2.0**127


def _kind_of(value: bool | int | float) -> dtype.KIND:
    if isinstance(value, bool):
        return dtype.KIND.BOOLEAN
    return dtype.KIND.INTEGRAL if isinstance(value, int) else dtype.KIND.FLOATING


def literal_dtype(value: bool | int | float, other: dtype) -> dtype:
    """The dtype a Python number takes beside a tensor of `other`."""
    if _kind_of(value).value > other.kind().value:
        return natural_dtype(value)
    if other.is_int() and not (
        other.get_int_min_value() <= int(value) <= other.get_int_max_value()
    ):
        raise LiteralOutOfRange(
            f"the number {value} does not fit {other}, the dtype of the other operand",
            hint=f"cast the tile to a wider type first; {other} holds "
            f"{other.get_int_min_value()} to {other.get_int_max_value()}",
            known_as=f"Scalar {value} is out of range for type {other.name}",
        )
    return other
