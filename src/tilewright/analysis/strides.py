"""How a result changes from element to element where its operands change by known strides.

Loop nests of a CPU cut tiles into pieces in which every operand has one stride, and test
at run time where it ends (`targets.cpu.nests.pieces`). Strides add up modulo the width of the type;
signed numbers of at least ADDRESS_BITS are taken not to overflow where they get another width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Operation

from tilewright.ir.types import width_bits
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp, TruncIOp
from tilewright.ops.memory.ir import AddPtrOp

ADDRESS_BITS = 32
"""Signed arithmetic of at least this width is assumed not to overflow where it gives addresses."""
Strides = Sequence[int]
Numbers = Sequence[int | None]
"""The number that each operand is everywhere, where it is known."""


def stride_of(op: Operation, strides: Strides, numbers: Numbers) -> int | None:
    """The stride of the result of an elementwise op, by its operands'; None where it has none."""
    if not any(strides):
        return 0
    rule = _RULES.get(op.name)
    return None if rule is None else rule(op, strides, numbers)


def power_divided_by(op: Operation, number: int | None) -> int | None:
    """What a shift to the right by `number`, or a mask of that, divides by; None for other ops.

    The result is the quotient, rounded down, or the remainder, which is not negative.
    """
    if number is None or number <= 0:
        return None
    if op.name in ("arith.shrsi", "arith.shrui"):
        return 1 << number if number < width_bits(op.results[0].type) - 1 else None
    is_mask = op.name == "arith.andi" and number & (number + 1) == 0
    return number + 1 if is_mask else None


def _sum(op: Operation, strides: Strides, numbers: Numbers) -> int | None:
    return strides[0] + strides[1]


def _difference(op: Operation, strides: Strides, numbers: Numbers) -> int | None:
    return strides[0] - strides[1]


def _product(op: Operation, strides: Strides, numbers: Numbers) -> int | None:
    for moving, factor in ((0, 1), (1, 0)):
        number = numbers[factor]
        if not strides[factor] and number is not None:
            return strides[moving] * number
    return None


def _of_other_width(op: Operation, strides: Strides, numbers: Numbers) -> int | None:
    widths = (width_bits(op.operands[0].type), width_bits(op.results[0].type))
    return strides[0] if min(widths) >= ADDRESS_BITS else None


_RULES: Mapping[str, Callable[[Operation, Strides, Numbers], int | None]] = {
    AddPtrOp.name: _sum,
    ELEMENTWISE["arith.addi"].name: _sum,
    ELEMENTWISE["arith.subi"].name: _difference,
    ELEMENTWISE["arith.muli"].name: _product,
    ExtSIOp.name: _of_other_width,
    TruncIOp.name: _of_other_width,
}
