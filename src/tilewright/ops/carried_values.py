"""Rewrites of what loops and branches carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, BlockArgument, SSAValue

from tilewright.ir.op import build
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, replaced
from tilewright.ops.control_flow import YieldOp

Values = Sequence[SSAValue]


def carry(op: ControlFlowOp, values: Values, through: Callable[[Block, Values], Values]) -> Values:
    """Let a loop or branch carry more values; what they are behind it.

    `through` says what they are at the end of a block of the op, given what they are at its start.
    """
    for region in op.regions:
        if not region.blocks:
            region.add_block(Block([build(YieldOp, location=op.location)]))
    edges = op.edges()
    # A region that only starts from outside sees the values that are there.
    carrying = {edge.target: edge for edge in edges if edge.source is not OUTSIDE}
    is_given = any(edge.source is OUTSIDE and edge.target in carrying for edge in edges)
    for index, region in enumerate(op.regions):
        block, inside = region.block, values
        if index in carrying:
            first = _behind(block, carrying[index].receivers)
            inside = [block.insert_arg(v.type, first + n) for n, v in enumerate(values)]
        after = through(block, inside)
        end = block.last_op
        assert end is not None
        end.operands = [*end.operands, *after]
    operands = [*op.operands, *(values if is_given else ())]
    new = replaced(op, operands, op.results, [value.type for value in values])
    return new.results[len(new.results) - len(values) :]


def _behind(block: Block, receivers: Sequence[SSAValue]) -> int:
    """The place of the argument that follows those that a block is handed."""
    if not receivers:
        return len(block.args)
    last = receivers[-1]
    assert isinstance(last, BlockArgument)
    return last.index + 1
