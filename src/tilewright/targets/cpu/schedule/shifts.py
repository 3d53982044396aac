"""Whether the tile of a loop's next iteration continues the one of this iteration.

A tile of extent B along a dimension *continues* when index s of the next iteration holds what
index s + B would hold now, were the tile longer. The operands of a matrix product's k loop do:
their pointers move by as much from iteration to iteration as from one end of a tile to the
other. The proof compares polynomials of the loop's invariants, so symbolic strides are fine.
As in `analysis/affine/rules/table.py`, index arithmetic is taken as non-wrapping.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import ZERO, Expression
from tilewright.analysis.affine.scalars import Scalars
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.effects import is_free
from tilewright.ir.op import PointwiseOp, ViewOp
from tilewright.ir.types import is_integer, is_pointer, shape_of
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.support.worklist import needed_first

_ADD, _SUBTRACT, _MULTIPLY = (ELEMENTWISE[f"arith.{name}"] for name in ("addi", "subi", "muli"))
_SAME_NUMBERS = (HintOp, ExtSIOp)
# By definition: the sign of the second operand.
_SUMS: dict[type[Operation], int] = {
    ELEMENTWISE["arith.addi"]: 1,
    AddPtrOp: 1,
    ELEMENTWISE["arith.subi"]: -1,
}


def source_dim(op: Operation, dim: int) -> int | None:
    """The dimension of an op's operand that is `dim` of its result; None where it is new."""
    if not isinstance(op, ViewOp):
        return dim
    dims = op.source_dims()
    return dims.index(dim) if dim in dims else None


def _is_same_value(op: Operation | None) -> bool:
    """Whether an op's elements are numbers of its operand: as they are, or with more bits."""
    return isinstance(op, ViewOp) or type(op) in _SAME_NUMBERS


def _along(place: tuple[SSAValue, int]) -> list[tuple[SSAValue, int]]:
    """The tiles that have to continue, and where, for a tile to continue along a dimension."""
    value, dim = place
    op = value.op if isinstance(value, OpResult) else None
    if op is None or not shape_of(value.type):
        return []
    if isinstance(op, PointwiseOp):
        return [(operand, dim) for operand in op.operands]
    inner = source_dim(op, dim) if _is_same_value(op) else None
    if inner is None or not shape_of(op.operands[0].type):
        return []
    return [(op.operands[0], inner)]


class Shifts:
    """What one iteration of a loop changes."""

    def __init__(self, loop: ForOp, tiles: AffineTiles) -> None:
        self._loop, self._body = loop, loop.body.block
        self._tiles, self._scalars = tiles, Scalars()
        self._changes: dict[SSAValue, Expression | None] = {}
        self._continued: dict[tuple[SSAValue, int], bool] = {}

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is made by the loop's body."""
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        return block is self._body

    def change(self, value: SSAValue) -> Expression | None:
        """What one iteration adds to every element; None where that is not one number."""
        for needed in needed_first(value, self._changing, self._changes.__contains__):
            self._changes[needed] = self._compute_change(needed)
        return self._changes[value]

    def _changing(self, value: SSAValue) -> Sequence[SSAValue]:
        """The operands whose changes make that of a value."""
        op = value.op if isinstance(value, OpResult) else None
        is_made = op is not None and self.is_inside(value) and is_free(op)
        return op.operands if op is not None and is_made else ()

    def _compute_change(self, value: SSAValue) -> Expression | None:
        if not self.is_inside(value):
            return ZERO
        op = value.op if isinstance(value, OpResult) else None
        if op is None:
            return self._scalars.step(value)
        if not is_free(op) or op.regions:
            return None
        if all(self._is_unchanged(operand) for operand in op.operands):
            return ZERO
        if _is_same_value(op):
            return self.change(op.operands[0])
        if type(op) is _MULTIPLY:
            return self._scaled(op)
        return self._summed(op, _SUMS[type(op)]) if type(op) in _SUMS else None

    def _summed(self, op: Operation, sign: int) -> Expression | None:
        """The change of a sum or difference."""
        left, right = (self.change(operand) for operand in op.operands)
        return None if left is None or right is None else left.plus(right, sign)

    def _scaled(self, op: Operation) -> Expression | None:
        """The change of a product of which one side stays the same number."""
        for side, other in (op.operands, op.operands[::-1]):
            factor, change = self._uniform(side), self.change(other)
            if factor is not None and change is not None:
                return factor.times(change)
        return None

    def _uniform(self, value: SSAValue) -> Expression | None:
        """The one number that a value holds in every iteration."""
        number = self._tiles.of(value).uniform()
        is_same = number is not None and all(map(self._is_unchanged, number.symbols()))
        return self._scalars.resolve(number) if number is not None and is_same else None

    def _is_unchanged(self, value: SSAValue) -> bool:
        change = self.change(value)
        return change is not None and change.is_zero()

    def continues(self, value: SSAValue, dim: int) -> bool:
        """Whether the next iteration's tile continues this one along a dimension."""
        for needed in needed_first((value, dim), _along, self._continued.__contains__):
            self._continued[needed] = self._compute_continues(*needed)
        return self._continued[value, dim]

    def _compute_continues(self, value: SSAValue, dim: int) -> bool:
        op = value.op if isinstance(value, OpResult) else None
        if op is None or not shape_of(value.type) or type(op) is ConstantOp:
            return self._is_unchanged(value)
        if is_integer(value.type) or is_pointer(value.type):
            gap = self._gap(value, dim)
            if gap is not None:
                return gap.is_zero()
        if type(op) is CmpIOp and self._difference_continues(op, dim):
            return True
        if isinstance(op, PointwiseOp):
            return all(self.continues(operand, dim) for operand in op.operands)
        return _is_same_value(op) and self._source_continues(op, dim)

    def _source_continues(self, op: Operation, dim: int) -> bool:
        source = op.operands[0]
        inner = source_dim(op, dim)
        if not shape_of(source.type) or inner is None or shape_of(source.type)[inner] == 1:
            return self._is_unchanged(source)
        return self.continues(source, inner)

    def _difference_continues(self, op: CmpIOp, dim: int) -> bool:
        """A comparison asks for the difference of its sides: `s < K - k` is `s + k < K`.

        Not so one of unsigned numbers, where a difference may wrap.
        """
        if op.predicate_name().startswith("u"):
            return False
        left, right = (self._gap(operand, dim) for operand in op.operands)
        return left is not None and right is not None and left.minus(right).is_zero()

    def _gap(self, value: SSAValue, dim: int) -> Expression | None:
        """What an iteration adds, less what a tile's length along `dim` adds."""
        stride, change = self._tiles.strides(value)[dim], self.change(value)
        if stride is None or stride.jumps or change is None:
            return None
        if not all(map(self._is_unchanged, stride.value.symbols())):
            return None
        length = self._scalars.resolve(stride.value).scaled(shape_of(value.type)[dim])
        return change.minus(length)
