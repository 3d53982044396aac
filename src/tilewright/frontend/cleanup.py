"""Removal of what lowering left unused: pure ops without users, results that nothing reads.

Branches bind every variable that may be live, and loops are lowered speculatively; the leftovers
would only cost the passes time.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation

from tilewright.ir.effects import is_free
from tilewright.ir.regions import rebuilt
from tilewright.ops.control_flow import IfOp


def discard(block: Block) -> None:
    """Drop a block that was lowered in vain, with its uses of values outside of it."""
    block.drop_all_references()


def remove_unused(block: Block) -> None:
    """Erase unused pure ops and unused results of `scf.if`, users before producers."""
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        _visit(op)
        op = previous


def _visit(op: Operation) -> None:
    is_unused = bool(op.results) and all(result.first_use is None for result in op.results)
    if is_unused and is_free(op):
        op.detach()
        op.erase()
        return
    if isinstance(op, IfOp):
        op = _drop_results(op)
    for region in op.regions:
        for inner in region.blocks:
            remove_unused(inner)


def _drop_results(op: IfOp) -> IfOp:
    """The same branch without the results that nothing reads."""
    kept = [index for index, result in enumerate(op.results) if result.first_use is not None]
    if len(kept) == len(op.results):
        return op
    for region in op.regions:
        end = region.block.last_op
        assert end is not None
        end.operands = [end.operands[index] for index in kept]
    types = [op.results[index].type for index in kept]
    smaller = rebuilt(op, [op.cond], types)
    assert isinstance(smaller, IfOp)
    for index, result in zip(kept, smaller.results, strict=True):
        op.results[index].replace_all_uses_with(result)
    op.detach()
    op.erase()
    return smaller
