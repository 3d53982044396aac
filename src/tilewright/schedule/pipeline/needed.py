"""What the rest of a loop needs, once its loads run ahead."""

from __future__ import annotations

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilewright.ir.effects import is_free
from tilewright.ops.control_flow import ForOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.staging import LocalAllocOp
from tilewright.schedule.pipeline.addressing import end_of, taken_by
from tilewright.schedule.plan.copies import is_zero
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Needed:
    """What the rest of a loop needs: ops of its body, and carried values by number."""

    ops: set[Operation]
    numbers: set[int]

    def carries(self, number: int) -> bool:
        """Whether a carried value is needed."""
        return number in self.numbers


def needed_by(loop: ForOp, fetched: set[Operation]) -> Needed:
    """What has effects, or makes what is used behind the loop, with all it is computed from."""
    body, end = loop.body.block, end_of(loop)
    ops: set[Operation] = set()
    numbers: set[int] = set()
    pending: list[SSAValue] = []

    def need(op: Operation) -> None:
        if op in ops:
            return
        ops.add(op)
        if op in fetched:
            pending.extend(filled_in_with(op))
        else:
            pending.extend(taken_by(op, body))

    for op in body.ops:
        is_idle = op in fetched or isinstance(op, LoadOp | LocalAllocOp) or is_free(op)
        if not is_idle and op is not end:
            need(op)
    for number, result in enumerate(loop.results):
        if result.uses:
            numbers.add(number)
            pending.append(end.arguments[number])
    while pending:
        value = pending.pop()
        if isinstance(value, OpResult) and value.op.parent is body:
            need(value.op)
        elif isinstance(value, BlockArgument) and value.block is body and value.index:
            number = value.index - 1
            pending += [end.arguments[number]] if number not in numbers else []
            numbers.add(number)
    return Needed(ops, numbers)


def filled_in_with(load: Operation) -> list[SSAValue]:
    """A mask and what a load reads where it is off, unless that is what a copy leaves there."""
    if not isinstance(load, LoadOp):
        return []
    if load.mask is None or load.other is None or is_zero(load.other):
        return []
    return [load.mask, load.other]
