"""Lets a loop go on with the numbers that it ended with, whatever stands around it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.op import build
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, is_control_flow, rebuilt
from tilewright.ops.control_flow import YieldOp


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
    for region in op.regions:
        if not region.blocks:
            region.add_block(Block([build(YieldOp, location=op.location)]))
    edges = op.edges()
    # A region that only starts from outside sees the values that are there.
    carrying = {edge.target for edge in edges if edge.source is not OUTSIDE}
    is_given = any(edge.source is OUTSIDE and edge.target in carrying for edge in edges)
    for index, region in enumerate(op.regions):
        block, values = region.block, current
        if index in carrying:
            values = [block.insert_arg(value.type, len(block.args)) for value in current]
        if inner.parent is block:
            values = _through(around[1:], values, starts, ends)
        end = block.last_op
        assert end is not None
        end.operands = [*end.operands, *values]
    return _rebuilt(op, current if is_given else (), [value.type for value in current])


def _rebuilt(
    op: Operation, given: Sequence[SSAValue], types: Sequence[Attribute]
) -> Sequence[SSAValue]:
    """The op with more operands and results, in its place; its new results."""
    new = rebuilt(op, [*op.operands, *given], [*(r.type for r in op.results), *types])
    for old, result in zip(op.results, new.results, strict=False):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    op.detach()
    op.erase()
    return new.results[-len(types) :]
