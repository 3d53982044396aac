"""What the conditions around an op say of two scalars: `a - b` inside of `while a >= b`.

A program that takes every so many-th tile of several products finds its tile in the present one so.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ops.control_flow import IfOp, WhileOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.support.worklist import once

_AND = ELEMENTWISE["arith.andi"]
_AT_LEAST, _AT_MOST = ("sge", "sgt", "eq"), ("sle", "slt", "eq")


def is_known_at_least(op: Operation, left: SSAValue, right: SSAValue) -> bool:
    """Whether `op` runs only where `left` is at least `right`, as signed integers.

    *Semantics*: a branch or the head of a loop around the op says so, alone or with others by
    `and`. Nothing is computed, so that x + 1 is not known to be above x.
    """
    block = op.parent
    while block is not None:
        for condition, names in _conditions_of(block):
            one, other = names.get(left, left), names.get(right, right)
            if any(_says(term, one, other) for term in _terms(condition)):
                return True
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return False


def _conditions_of(block: Block) -> Iterator[tuple[SSAValue, dict[SSAValue, SSAValue]]]:
    """What holds where a block is entered, and what its arguments are called there."""
    around = block.parent_op()
    if isinstance(around, IfOp) and block is around.true_region.block:
        yield around.cond, {}
    if isinstance(around, WhileOp) and block is around.after_region.block:
        end = around.before_region.block.last_op
        assert end is not None
        condition, *forwarded = end.operands
        yield condition, dict(zip(block.args, forwarded, strict=True))


def _terms(condition: SSAValue) -> Iterator[CmpIOp]:
    """The comparisons that all hold where a condition does."""
    pending = [condition]
    for part in once(pending):
        op = part.owner
        if isinstance(op, CmpIOp):
            yield op
        elif isinstance(op, _AND):
            pending += op.operands


def _says(op: CmpIOp, left: SSAValue, right: SSAValue) -> bool:
    sides, predicate = tuple(op.operands), op.predicate_name()
    return (sides == (left, right) and predicate in _AT_LEAST) or (
        sides == (right, left) and predicate in _AT_MOST
    )
