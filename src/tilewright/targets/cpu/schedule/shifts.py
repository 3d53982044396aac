"""Whether the tile of a loop's next iteration continues the one of this iteration.

A tile of extent B along a dimension *continues* when index s of the next iteration holds what
index s + B would hold now, were the tile longer. The operands of a matrix product's k loop do:
their pointers move by as much from iteration to iteration as from one end of a tile to the
other. The proof compares polynomials of the loop's invariants, so symbolic strides are fine.
As in `analysis/affine/rules.py`, index arithmetic is taken as non-wrapping.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import is_integer, is_pointer, shape_of
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp, SplatOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, CmpIOp, ExtSIOp
from tilewright.ops.memory.ir import AddPtrOp, LoadOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, TransOp
from tilewright.support.worklist import needed_first

_ADD, _SUBTRACT, _MULTIPLY = (ELEMENTWISE[f"arith.{name}"] for name in ("addi", "subi", "muli"))
_SAME_VALUE = (SplatOp, BroadcastOp, ExpandDimsOp, TransOp, HintOp, ExtSIOp)

Polynomial = dict[tuple[int, ...], int]
"""Coefficients by product of symbols; a symbol is the number of a scalar, in order of mention."""


def added(left: Polynomial, right: Polynomial, factor: int = 1) -> Polynomial:
    """left + factor · right."""
    total = dict(left)
    for symbols, coefficient in right.items():
        total[symbols] = total.get(symbols, 0) + factor * coefficient
    return {symbols: coefficient for symbols, coefficient in total.items() if coefficient}


def multiplied(left: Polynomial, right: Polynomial) -> Polynomial:
    """left · right."""
    total: Polynomial = {}
    for symbols, coefficient in left.items():
        scaled = {tuple(sorted((*symbols, *s))): coefficient * c for s, c in right.items()}
        total = added(total, scaled)
    return total


def constant(value: int) -> Polynomial:
    """The polynomial that is one integer."""
    return {(): value} if value else {}


def source_dim(op: Operation, dim: int) -> int | None:
    """The dimension of an op's operand that is `dim` of its result; None where it is new."""
    if isinstance(op, ExpandDimsOp):
        axis = op.axis.value.data
        return None if dim == axis else dim - (dim > axis)
    return op.permutation()[dim] if isinstance(op, TransOp) else dim


def _terms(value: SSAValue) -> Sequence[SSAValue]:
    """The scalars of which an integer is a polynomial."""
    op = value.op if isinstance(value, OpResult) else None
    return op.operands if isinstance(op, _ADD | _SUBTRACT | _MULTIPLY | ExtSIOp) else ()


def _along(place: tuple[SSAValue, int]) -> list[tuple[SSAValue, int]]:
    """The tiles that have to continue, and where, for a tile to continue along a dimension."""
    value, dim = place
    op = value.op if isinstance(value, OpResult) else None
    if op is None or not shape_of(value.type):
        return []
    if isinstance(op, ElementwiseOp | LoadOp):
        return [(operand, dim) for operand in op.operands]
    inner = source_dim(op, dim) if isinstance(op, _SAME_VALUE) else None
    if inner is None or not shape_of(op.operands[0].type):
        return []
    return [(op.operands[0], inner)]


class Shifts:
    """What one iteration of a loop changes."""

    def __init__(self, loop: ForOp, structure: AffineTiles) -> None:
        self._loop = loop
        self._structure = structure
        self._symbols: dict[SSAValue, int] = {}
        self._carried: dict[SSAValue, Polynomial | None] = {}
        self._invariants: dict[SSAValue, Polynomial | None] = {}
        self._changes: dict[SSAValue, Polynomial | None] = {}
        self._continued: dict[tuple[SSAValue, int], bool] = {}
        step = self.invariant(loop.operands[2])
        self._carried[loop.body.block.args[0]] = step
        terminator = loop.body.block.last_op
        assert terminator is not None
        pairs = zip(loop.body.block.args[1:], terminator.operands, strict=True)
        for argument, value in pairs:
            self._carried[argument] = self._step(argument, value)

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is made by the loop's body."""
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        return block is self._loop.body.block

    def invariant(self, value: SSAValue) -> Polynomial | None:
        """A scalar that the loop does not change, as a polynomial."""
        for needed in needed_first(value, _terms, self._invariants.__contains__):
            self._invariants[needed] = self._compute_invariant(needed)
        return self._invariants[value]

    def _compute_invariant(self, value: SSAValue) -> Polynomial | None:
        op = value.op if isinstance(value, OpResult) else None
        if isinstance(op, ConstantOp):
            number = op.splat_value()
            return constant(number) if isinstance(number, int) else None
        if isinstance(op, ExtSIOp):
            return self.invariant(op.operands[0])
        if isinstance(op, _ADD | _SUBTRACT | _MULTIPLY):
            left, right = (self.invariant(operand) for operand in op.operands)
            if left is not None and right is not None:
                if isinstance(op, _MULTIPLY):
                    return multiplied(left, right)
                return added(left, right, 1 if isinstance(op, _ADD) else -1)
        if self.is_inside(value) or not is_integer(value.type):
            return None
        return {(self._symbols.setdefault(value, len(self._symbols)),): 1}

    def change(self, value: SSAValue) -> Polynomial | None:
        """What one iteration adds to every element; None where that is not one number."""
        for needed in needed_first(value, self._changing, self._changes.__contains__):
            self._changes[needed] = self._compute_change(needed)
        return self._changes[value]

    def _changing(self, value: SSAValue) -> Sequence[SSAValue]:
        """The operands whose changes make that of a value."""
        op = value.op if isinstance(value, OpResult) else None
        is_made = op is not None and value not in self._carried and self.is_inside(value)
        return op.operands if op is not None and is_made and not isinstance(op, LoadOp) else ()

    def _compute_change(self, value: SSAValue) -> Polynomial | None:
        if value in self._carried:
            return self._carried[value]
        op = value.op if isinstance(value, OpResult) else None
        if op is None or not self.is_inside(value) or isinstance(op, ConstantOp):
            return {}
        if isinstance(op, _SAME_VALUE):
            return self.change(op.operands[0])
        if isinstance(op, _ADD | _SUBTRACT | AddPtrOp):
            left, right = (self.change(operand) for operand in op.operands)
            if left is None or right is None:
                return None
            return added(left, right, -1 if isinstance(op, _SUBTRACT) else 1)
        if isinstance(op, LoadOp):
            return None
        if all(self.change(operand) == {} for operand in op.operands):
            return {}
        return self._scaled(op) if isinstance(op, _MULTIPLY) else None

    def continues(self, value: SSAValue, dim: int) -> bool:
        """Whether the next iteration's tile continues this one along a dimension."""
        for needed in needed_first((value, dim), _along, self._continued.__contains__):
            self._continued[needed] = self._compute_continues(*needed)
        return self._continued[value, dim]

    def _compute_continues(self, value: SSAValue, dim: int) -> bool:
        op = value.op if isinstance(value, OpResult) else None
        if op is None or not shape_of(value.type) or isinstance(op, ConstantOp):
            return self.change(value) == {}
        if is_integer(value.type) or is_pointer(value.type):
            gap = self._gap(value, dim)
            if gap is not None:
                return gap == {}
        if isinstance(op, CmpIOp) and self._difference_continues(op, dim):
            return True
        if isinstance(op, ElementwiseOp | LoadOp):
            return all(self.continues(operand, dim) for operand in op.operands)
        return isinstance(op, _SAME_VALUE) and self._source_continues(op, dim)

    def _source_continues(self, op: Operation, dim: int) -> bool:
        source = op.operands[0]
        inner = source_dim(op, dim)
        if not shape_of(source.type) or inner is None or shape_of(source.type)[inner] == 1:
            return self.change(source) == {}
        return self.continues(source, inner)

    def _difference_continues(self, op: CmpIOp, dim: int) -> bool:
        """A comparison asks for the difference of its sides: `s < K - k` is `s + k < K`.

        Not so one of unsigned numbers, where a difference may wrap.
        """
        if op.predicate_name().startswith("u"):
            return False
        left, right = (self._gap(operand, dim) for operand in op.operands)
        return left is not None and left == right

    def _gap(self, value: SSAValue, dim: int) -> Polynomial | None:
        """What an iteration adds, less what a tile's length along `dim` adds."""
        stride, change = self._structure.strides(value)[dim], self.change(value)
        if stride is None or stride.jumps or change is None:
            return None
        length: Polynomial = {}
        for coefficient, factors in stride.terms:
            term = constant(coefficient * shape_of(value.type)[dim])
            for factor in factors:
                known = self.invariant(factor)
                if known is None:
                    return None
                term = multiplied(term, known)
            length = added(length, term)
        return added(change, length, -1)

    def _scaled(self, op: Operation) -> Polynomial | None:
        """The change of a product of which one side is an invariant number."""
        for side, other in (op.operands, op.operands[::-1]):
            factor, change = self._uniform(side), self.change(other)
            if factor is not None and change is not None:
                return multiplied(factor, change)
        return None

    def _uniform(self, value: SSAValue) -> Polynomial | None:
        while shape_of(value.type):
            op = value.op if isinstance(value, OpResult) else None
            if isinstance(op, ConstantOp):
                break
            if not isinstance(op, _SAME_VALUE):
                return None
            value = op.operands[0]
        return self.invariant(value)

    def _step(self, argument: SSAValue, value: SSAValue) -> Polynomial | None:
        """What the loop adds to a carried scalar."""
        total: Polynomial = {}
        while value is not argument:
            op = value.op if isinstance(value, OpResult) else None
            if not isinstance(op, _ADD | _SUBTRACT) or shape_of(value.type):
                return None
            value, moved = op.operands
            if isinstance(op, _ADD) and self.invariant(moved) is None:
                value, moved = moved, value
            step = self.invariant(moved)
            if step is None:
                return None
            total = added(total, step, 1 if isinstance(op, _ADD) else -1)
        return total
