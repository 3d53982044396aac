"""Between which numbers the elements of integers lie in any run, exactly.

    tl.arange(0, 128) * 9         0 to 1143
    tl.program_id(0) * 1024       any integer: the product may wrap around
    tl.load(p) & 7                0 to 7

What `AffineTile.is_nonnegative` says is of addresses, and holds unless index arithmetic wraps
around; whoever computes with the numbers asks here. Numbers are those of signed integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, mul, sub

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.types import width_bits
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp, UnsplatOp, constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp, ExtUIOp, SelectOp, TruncIOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, FlipOp, ReshapeOp, TransOp
from tilewright.ops.staging import ConvertLayoutOp
from tilewright.support.deep_calls import with_room
from tilewright.support.rules import RuleTable

Range = tuple[int, int]
"""The least and the greatest number."""

RULES: RuleTable[Callable[[Operation, list[Range]], Range | None]] = RuleTable("ranges")
"""The range of an op's result by its operands', as if nothing wrapped around; None: any number."""


class Ranges:
    """The ranges of values, each found once."""

    def __init__(self) -> None:
        self._found: dict[SSAValue, Range] = {}

    def of(self, value: SSAValue) -> Range:
        """The range of an integer or of a tile of them."""
        return with_room(lambda: self._of(value))

    def is_nonnegative(self, value: SSAValue) -> bool:
        """Whether no element is negative, whatever wraps around on the way to it."""
        return self.of(value)[0] >= 0

    def _of(self, value: SSAValue) -> Range:
        found = self._found.get(value)
        if found is None:
            found = self._found[value] = self._compute(value)
        return found

    def _compute(self, value: SSAValue) -> Range:
        least, most = every = _every(value.type)
        op = value.owner
        rule = RULES.find(type(op))
        if rule is None or not isinstance(op, Operation):
            return every
        found = rule(op, [self.of(operand) for operand in op.operands])
        return every if found is None or found[0] < least or found[1] > most else found


def _every(type_: Attribute) -> Range:
    """The numbers of a type, signed."""
    half = 1 << width_bits(type_) - 1
    return -half, half - 1


@RULES.register(ConstantOp)
def _constant(op: Operation, operands: list[Range]) -> Range | None:
    number = constant_of(op.results[0])
    return (number, number) if isinstance(number, int) else None


@RULES.register(MakeRangeOp)
def _counted(op: MakeRangeOp, operands: list[Range]) -> Range:
    return op.start.value.data, op.end.value.data - 1


@RULES.register(GetProgramIdOp, GetNumProgramsOp, GetGridExtentOp)
def _of_grid(op: Operation, operands: list[Range]) -> Range:
    return 0, _every(op.results[0].type)[1]


@RULES.register(SplatOp, UnsplatOp, ExpandDimsOp, BroadcastOp, ReshapeOp, TransOp, FlipOp)
@RULES.register(ConvertLayoutOp, ExtSIOp, TruncIOp)
def _same(op: Operation, operands: list[Range]) -> Range:
    return operands[0]


@RULES.register(ExtUIOp)
def _zero_extended(op: Operation, operands: list[Range]) -> Range:
    (found,) = operands
    return found if found[0] >= 0 else (0, (1 << width_bits(op.operands[0].type)) - 1)


@RULES.register(SelectOp)
def _either(op: Operation, operands: list[Range]) -> Range:
    _, one, other = operands
    return min(one[0], other[0]), max(one[1], other[1])


def _corners(function: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    """The rule of a function that is monotonic in each operand."""

    def rule(left: Range, right: Range) -> Range:
        found = [function(a, b) for a in left for b in right]
        return min(found), max(found)

    return rule


def _quotient(left: Range, right: Range) -> Range | None:
    """Of what is not negative by what is positive."""
    return (left[0] // right[1], left[1] // right[0]) if left[0] >= 0 < right[0] else None


def _remainder(left: Range, right: Range) -> Range | None:
    """It has the sign of the dividend, and is no further from 0 than that."""
    if right[0] <= 0:
        return None
    most = right[1] - 1
    return min(max(left[0], -most), 0), max(min(left[1], most), 0)


def _unsigned_remainder(left: Range, right: Range) -> Range | None:
    return _remainder(left, right) if left[0] >= 0 else (0, right[1] - 1) if right[0] > 0 else None


def _right_shift(left: Range, right: Range) -> Range | None:
    """By what is no less than the width, a shift gives 0 or -1."""
    if right[0] < 0:
        return None
    return _corners(lambda number, count: number >> min(count, 64))(left, right)


def _unsigned_shift(left: Range, right: Range) -> Range | None:
    return _right_shift(left, right) if left[0] >= 0 else None


def _left_shift(left: Range, right: Range) -> Range | None:
    if right[0] < 0 or right[1] >= 64:
        return None
    return _corners(lambda number, count: number << count)(left, right)


def _and(left: Range, right: Range) -> Range | None:
    """No more than either operand that is not negative."""
    most = [high for low, high in (left, right) if low >= 0]
    return (0, min(most)) if most else None


def _or(left: Range, right: Range) -> Range | None:
    """No bit above the highest of both."""
    if left[0] < 0 or right[0] < 0:
        return None
    return 0, (1 << max(left[1], right[1]).bit_length()) - 1


_BINARY: Mapping[str, Callable[[Range, Range], Range | None]] = {
    "arith.addi": _corners(add),
    "arith.subi": _corners(sub),
    "arith.muli": _corners(mul),
    "arith.divsi": _quotient,
    "arith.divui": _quotient,
    "arith.remsi": _remainder,
    "arith.remui": _unsigned_remainder,
    "arith.shrsi": _right_shift,
    "arith.shrui": _unsigned_shift,
    "arith.shli": _left_shift,
    "arith.andi": _and,
    "arith.ori": _or,
    "arith.xori": _or,
    "arith.minsi": _corners(min),
    "arith.maxsi": _corners(max),
}


@RULES.register(*(ELEMENTWISE[name] for name in _BINARY))
def _of_two(op: Operation, operands: list[Range]) -> Range | None:
    return _BINARY[op.name](*operands)
