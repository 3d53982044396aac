"""Finds loops over the steps of all of a program's tiles, and what has to hold to take them apart.

See `nest_loops.py` for the form.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.ir.effects import is_free
from tilewright.ir.types import i32
from tilewright.ops.control_flow import ForOp, IfOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.walk_guards import (
    Sums,
    chosen,
    integer,
    is_number,
    is_seen_from,
    one_more,
)

_MULTIPLY = ELEMENTWISE["arith.muli"]


@dataclass(frozen=True)
class FlatLoop:
    """A loop of `depth` steps for each of `tiles`, whose step's number is `step`.

    It is carried as argument `number` of the body. `first` and `last` are the branches of the
    first and the last step of a tile.
    """

    loop: ForOp
    depth: Expression
    tiles: SSAValue
    number: int
    step: OpResult
    first: IfOp
    last: IfOp
    sums: Sums

    @property
    def body(self) -> Block:
        """What runs in each step."""
        return self.loop.body.block

    @property
    def end(self) -> Operation:
        """What hands on the carried values."""
        end = self.body.last_op
        assert end is not None
        return end

    def demands(self) -> list[Guard]:
        """That a tile has a step, and that all of them are counted in 32 bits."""
        found = one_more(self.tiles, self.sums)
        count = self.sums.of(self.tiles if found is None else found[0])
        counts = [count] if found is None else [count, count.plus(integer(1))]
        totals = [self.depth.times(count) for count in counts]
        least = Guard(self.depth, Demand.AT_LEAST, 1)
        return [least, *(guard for total in totals for guard in is_number(total))]

    def phi_of(self, value: SSAValue) -> int | None:
        """The carried value, by its number, that the end of the body gives a value to."""
        places = [place for place, handed in enumerate(self.end.operands) if handed is value]
        return places[0] if len(places) == 1 else None


def find_flat(loop: ForOp) -> FlatLoop | None:
    """A loop as one over the steps of all tiles; None where it is another one."""
    if (constant_of(loop.lb), constant_of(loop.step)) != (0, 1) or loop.ub.type != i32:
        return None
    if not isinstance(loop.ub.owner, _MULTIPLY) or loop.body.block.args[0].first_use is not None:
        return None
    sums = Sums()
    for depth, tiles in (loop.ub.owner.operands, reversed(loop.ub.owner.operands)):
        of_depth = sums.of(depth)
        for number, phi in enumerate(loop.iter_args):
            step = _step(loop, number, of_depth, sums)
            if constant_of(phi) != -1 or step is None or not is_seen_from(of_depth, loop):
                continue
            branches = _branches(loop, step, of_depth, sums)
            if branches is not None:
                flat = FlatLoop(loop, of_depth, tiles, number, step, *branches, sums)
                return flat if _may_be_nested(flat) else None
    return None


def _step(loop: ForOp, number: int, depth: Expression, sums: Sums) -> OpResult | None:
    """The number of a step, from 0 below the depth and from 0 again, where one is carried so.

    What makes it makes nothing else, so that it can go.
    """
    end, before = loop.body.block.last_op, loop.body.block.args[number + 1]
    assert end is not None
    step = end.operands[number]
    choice = chosen(step)
    if choice is None or not isinstance(step, OpResult) or step.op.parent is not end.parent:
        return None
    if step.type != i32 or len(step.op.results) != 1 or not is_free(step.op):
        return None
    condition, again, following = choice
    is_last = _is_equal_to(condition, before, depth.minus(integer(1)), sums)
    is_next = sums.of(following).minus(sums.of(before)).as_int() == 1
    users = {use.operation for use in before.uses}
    is_alone = users <= {condition.owner, following.owner} and _is_used_by(condition, step.op)
    is_alone = is_alone and all(_stands_in(use.operation, step.op) for use in following.uses)
    is_left = loop.results[number].first_use is not None
    is_counted = is_last and is_next and constant_of(again) == 0
    return step if is_counted and is_alone and not is_left else None


def _is_used_by(value: SSAValue, op: Operation) -> bool:
    return all(use.operation is op for use in value.uses)


def _is_equal_to(condition: SSAValue, value: SSAValue, number: Expression, sums: Sums) -> bool:
    """Whether a condition says that a value is a number."""
    op = condition.owner
    if not isinstance(op, CmpIOp) or op.predicate_name() != "eq" or value not in op.operands:
        return False
    other = op.operands[1] if op.operands[0] is value else op.operands[0]
    return sums.of(other).minus(number).is_zero()


def _branches(
    loop: ForOp, step: SSAValue, depth: Expression, sums: Sums
) -> tuple[IfOp, IfOp] | None:
    """The branches of the first step and of the last one."""
    branches = [op for op in loop.body.block.ops if isinstance(op, IfOp)]
    last = depth.minus(integer(1))
    first_ones = [op for op in branches if _is_equal_to(op.cond, step, integer(0), sums)]
    last_ones = [op for op in branches if _is_equal_to(op.cond, step, last, sums)]
    is_one_each = len(first_ones) == len(last_ones) == 1 and first_ones[0] is not last_ones[0]
    return (first_ones[0], last_ones[0]) if is_one_each else None


def _may_be_nested(flat: FlatLoop) -> bool:
    ops = list(flat.body.ops)
    before, behind = ops[: ops.index(flat.first)], ops[ops.index(flat.last) + 1 : -1]
    if flat.first in behind or not all(map(is_free, (*before, *behind))):
        return False
    return _keeps_what_it_begins_with(flat) and _ends_alone(flat)


def other_values(branch: IfOp) -> Sequence[SSAValue] | None:
    """What a branch hands on where it is not taken; None where it does something then."""
    if not branch.false_region.blocks:
        return ()
    (*others, end) = branch.false_region.block.ops
    return None if others else end.operands


def _keeps_what_it_begins_with(flat: FlatLoop) -> bool:
    """Whether what the first step makes is carried as it is through the others of its tile."""
    others = other_values(flat.first)
    if others is None:
        return False
    for result, other in zip(flat.first.results, others, strict=True):
        place = flat.phi_of(result)
        if place is None or other is not flat.body.args[place + 1]:
            return False
        if not all(_stands_in(use.operation, flat.first) for use in other.uses):
            return False
    return _is_known(flat.first, flat, ())


def _ends_alone(flat: FlatLoop) -> bool:
    """Whether what the last step hands on goes to the next tile, and only that reads it."""
    others = other_values(flat.last)
    if others is None:
        return False
    for result, other in zip(flat.last.results, others, strict=True):
        if flat.phi_of(result) is None or not _is_used_by(result, flat.end):
            return False
        if isinstance(other.owner, Operation) and other.owner.parent is not flat.body:
            return False
    return _is_known(flat.last, flat, (*others, *flat.end.operands, *flat.first.results))


def _stands_in(op: Operation, around: Operation) -> bool:
    found: Operation | None = op
    while found is not None and found is not around:
        found = found.parent_op()
    return found is around


def _is_known(branch: IfOp, flat: FlatLoop, kept: Sequence[SSAValue]) -> bool:
    """Whether outside of the steps there is all that a branch reads, or it can be computed there.

    In front of them there are the carried values, behind them `kept` instead.
    """
    pending = [
        operand
        for op in branch.true_region.block.walk()
        for operand in op.operands
        if not (isinstance(operand.owner, Operation) and _stands_in(operand.owner, branch))
    ]
    while pending:
        value = pending.pop()
        if value in kept or value is flat.step:
            continue
        if isinstance(value, BlockArgument):
            if value.block is flat.body and (kept or value is flat.body.args[0]):
                return False
            continue
        assert isinstance(value, OpResult)
        if value.op.parent is flat.body:
            if not is_free(value.op) or value.op.regions:
                return False
            pending += value.op.operands
    return True
