"""Promises that stand as statements: `tl.multiple_of(x, 8)` says it of `x` from there on.

What such a call returns nobody uses; the promise is about the value itself. So every use of the
value that the statement comes before, in its block or in blocks inside, takes the promised one.
Uses before it, after its branch, or on the other side of an `if` keep the value as it was.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, Use

from tilewright.ops.debug.ir import HintOp

Positions = dict[Operation, int]


def keep_promises(body: Block) -> None:
    """Let the uses that a bare promise comes before take the value with the promise."""
    positions: dict[Block, Positions] = {}
    for op in list(body.walk()):
        # An `isinstance` of an op class goes through Python's abstract classes, 20 times as slow.
        if type(op) is HintOp and op.result.first_use is None:
            assert isinstance(op, HintOp)
            _apply(op, positions)


def _apply(hint: HintOp, positions: dict[Block, Positions]) -> None:
    block = hint.parent
    assert block is not None
    if block not in positions:
        positions[block] = {op: index for index, op in enumerate(block.ops)}
    for use in list(hint.src.uses):
        if _comes_before(hint, use, block, positions[block]):
            use.operation.operands[use.index] = hint.result


def _comes_before(hint: HintOp, use: Use, block: Block, positions: Positions) -> bool:
    """Whether a use can only happen after the hint's statement in the same run of its block."""
    user = block.find_ancestor_op_in_block(use.operation)
    return user is not None and positions[user] > positions[hint]
