"""Lets a loop go on with the numbers that it ended with, whatever stands around it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.regions import ControlFlowOp, is_control_flow
from tilewright.ops.carried_values import carry


def carry_through(loop: Operation, starts: Sequence[SSAValue], ends: Sequence[SSAValue]) -> None:
    """Let a loop start with what it ended with the last time, and with `starts` the first time.

    The loops and branches around it carry the values. `starts` are constants, which go to where
    the outermost of them stands.
    """
    around: list[Operation] = []
    parent = loop.parent_op()
    while parent is not None and is_control_flow(parent):
        around.append(parent)
        parent = parent.parent_op()
    if not around:
        return
    around.reverse()
    outermost = around[0]
    block = outermost.parent
    assert block is not None
    first: list[SSAValue] = []
    for start in starts:
        assert isinstance(start.owner, Operation)
        copy = start.owner.clone()
        block.insert_op_before(copy, outermost)
        first.append(copy.results[0])
    _through(around, first, starts, ends)


def _through(
    around: Sequence[Operation],
    current: Sequence[SSAValue],
    starts: Sequence[SSAValue],
    ends: Sequence[SSAValue],
) -> Sequence[SSAValue]:
    """Carry values through nested ops, the outermost first; what they are behind it."""
    if not around:
        for start, value in zip(starts, current, strict=True):
            start.replace_all_uses_with(value)
        return ends
    op, inner = around[0], [*around[1:], starts[0].owner][0]
    assert isinstance(op, ControlFlowOp) and isinstance(inner, Operation)

    def inside(block: Block, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return _through(around[1:], values, starts, ends) if inner.parent is block else values

    return carry(op, current, inside)
