"""Operators of one operand, and logic on truth values."""

from __future__ import annotations

from tilewright.language.core import float8e5, tensor, uint8
from tilewright.ops.builder import Builder
from tilewright.ops.casting import reinterpret_bits, to_tensor
from tilewright.ops.elementwise.operators import elementwise, meet, operand_pair
from tilewright.ops.surface import surface
from tilewright.support.errors import DtypeNotAllowed, PointerArithmetic


def negate(b: Builder, x: tensor) -> tensor:
    """-x; unsigned integers wrap."""
    if x.dtype.is_ptr():
        raise PointerArithmetic("a pointer cannot be negated")
    if x.dtype == float8e5:
        return _on_bits(b, "arith.xori", x, 0x80)
    if x.dtype.is_floating():
        return elementwise(b, "arith.negf", x)
    return elementwise(b, "arith.subi", b.constant(0, x.type), x)


def magnitude(b: Builder, x: tensor) -> tensor:
    """|x| of floats."""
    if x.dtype == float8e5:
        return _on_bits(b, "arith.andi", x, 0x7F)
    return elementwise(b, "math.absf", x)


def _on_bits(b: Builder, op: str, x: tensor, mask: int) -> tensor:
    """`x` of 8 bits with the bits of `mask` changed; conversions to it would lose infinities."""
    bits = reinterpret_bits(b, x, uint8)
    changed = elementwise(b, op, bits, b.constant(mask, bits.type))
    return reinterpret_bits(b, changed, x.dtype)


def unary(b: Builder, operator: str, operand: object) -> tensor:
    """`operator operand` for USub, UAdd, Invert and Not."""
    x = to_tensor(b, operand)
    if operator == "UAdd":
        return x
    if operator == "USub":
        return negate(b, x)
    if operator == "Not":
        return logical_not(b, x)
    if not x.dtype.is_int():
        raise DtypeNotAllowed(f"`~` takes integers, got {x.dtype}")
    return elementwise(b, "arith.xori", x, b.constant(-1, x.type))


def logical_not(b: Builder, x: tensor) -> tensor:
    """`not x` on int1."""
    if not x.dtype.is_bool():
        raise DtypeNotAllowed(
            f"`not` takes int1, got {x.dtype}", hint="compare first, as in `not (x != 0)`"
        )
    return elementwise(b, "arith.xori", x, b.constant(1, x.type))


def logical(b: Builder, operator: str, lhs: object, rhs: object) -> tensor:
    """`lhs and rhs`, `lhs or rhs` on int1, element by element."""
    x, y = operand_pair(b, lhs, rhs)
    for side in (x, y):
        if not side.dtype.is_bool():
            raise DtypeNotAllowed(
                f"`{operator.lower()}` takes int1, got {side.dtype}",
                hint="compare first, or use & and | for bits",
            )
    x, y = meet(b, x, y)
    return elementwise(b, "arith.andi" if operator == "And" else "arith.ori", x, y)


@surface(member=True)
def logical_and(b: Builder, input: object, other: object) -> tensor:
    """`input and other`, element by element.

    Dtypes: int1.
    Raises: DtypeNotAllowed, BroadcastMismatch.
    """
    return logical(b, "And", input, other)


@surface(member=True)
def logical_or(b: Builder, input: object, other: object) -> tensor:
    """`input or other`, element by element.

    Dtypes: int1.
    Raises: DtypeNotAllowed, BroadcastMismatch.
    """
    return logical(b, "Or", input, other)
