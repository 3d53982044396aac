"""Removal of what lowering left unused: pure ops without users, results that nothing reads.

Branches bind every variable that may be live, and loops are lowered speculatively; the leftovers
would only cost the passes time.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation

from tilewright.ir.edits import erase
from tilewright.ir.effects import is_free
from tilewright.ir.regions import ControlFlowOp, phis_of, without_phis


def discard(block: Block) -> None:
    """Drop a block that was lowered in vain, with its uses of values outside of it."""
    block.drop_all_references()


def remove_unused(block: Block) -> None:
    """Erase unused pure ops and what control flow hands on unused, users before producers."""
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        _visit(op)
        op = previous


def _visit(op: Operation) -> None:
    is_unused = bool(op.results) and all(result.first_use is None for result in op.results)
    if is_unused and is_free(op):
        erase(op)
        return
    if isinstance(op, ControlFlowOp):
        op = _drop_unused(op)
    for region in op.regions:
        for inner in region.blocks:
            remove_unused(inner)


def _drop_unused(op: ControlFlowOp) -> Operation:
    """The same loop or branch without what it hands on and nothing reads."""
    unused = [phi for phi in phis_of(op) if all(value.first_use is None for value in phi.values)]
    return without_phis(op, unused) if unused else op
