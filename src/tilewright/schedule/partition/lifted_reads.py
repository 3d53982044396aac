"""Numbers of memory that loops follow from, read in front of the branches that they stand in.

    if %ended { } else { %n = load %p; for 0 to %n … }
    ⇒ %n = load %p, not %ended, 0; if %ended { } else { for 0 to %n … }

A program that returns early is such a branch. The condition becomes the mask of the read, so
nothing is read that was not read before; what is read is the same, as nothing is written in
between. In front of all loops, branches and stores it is one number for all roles; see
`reads_in_front`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from tilewright.ir.effects import is_free, writes_global
from tilewright.ir.op import build
from tilewright.ir.regions import blocks_of, is_control_flow
from tilewright.ir.types import i1, i32
from tilewright.ops.control_flow import IfOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.memory.ir import LoadOp
from tilewright.schedule.pipeline.addressing import needs_guard
from tilewright.schedule.plan.copies import is_volatile


def lift_reads(block: Block, steering: Collection[Operation]) -> None:
    """Bring reads of integers among `steering` in front of the first branch of a block.

    They stand in branches or behind them, and nothing is written before. What they are computed
    from there is free and defined for every operand, or such a read itself.
    """
    for op in tuple(_unwritten(block)):
        if isinstance(op, IfOp):
            for side, inner in zip((True, False), blocks_of(op), strict=False):
                lift_reads(inner, steering)
                _lift(inner, op, steering, side)
    first = next((op for op in block.ops if is_control_flow(op)), None)
    if isinstance(first, IfOp):
        _lift(block, first, steering, None)


def _unwritten(block: Block) -> Iterator[Operation]:
    """The ops of a block up to its first loop, or the first op that writes: that one comes last."""
    for op in block.ops:
        yield op
        is_loop = is_control_flow(op) and not isinstance(op, IfOp)
        if is_loop or any(map(writes_global, op.walk())):
            return


def _lift(block: Block, to: Operation, steering: Collection[Operation], side: bool | None) -> None:
    """Bring the reads of a block in front of `to`: of the side of a branch, or of its own block."""
    settled = set[Operation]()
    if block is to.parent:
        settled = {op for op in block.ops if op.is_before_in_block(to)}
    mask: SSAValue | None = None
    for op in tuple(_unwritten(block)):
        if not (op in steering and isinstance(op, LoadOp) and _is_plain_integer(op)):
            continue
        needed = None if op in settled else _needed(op, block, settled)
        if needed is None:
            continue
        if side is not None:
            mask = mask or _condition(to, side)
        for one in needed:
            one.detach()
            _inserted(one, to)
            settled.add(one)
        if mask is not None:
            _hide(op, mask)


def _is_plain_integer(load: LoadOp) -> bool:
    return isinstance(load.result.type, IntegerType) and not is_volatile(load)


def _needed(op: Operation, block: Block, settled: Collection[Operation]) -> list[Operation] | None:
    """An op of a block with what it is computed from there, in order; None where that must stay."""
    found, pending = set[Operation](), [op]
    while pending:
        one = pending.pop()
        if one in found or one in settled:
            continue
        if one is not op and (one.regions or not is_free(one) or needs_guard(one)):
            return None
        found.add(one)
        owners = (v.op for v in one.operands if isinstance(v, OpResult))
        pending += [owner for owner in owners if owner.parent is block]
    return [one for one in block.ops if one in found]


def _condition(branch: Operation, side: bool) -> SSAValue:
    """Whether a branch takes a side, in front of it."""
    assert isinstance(branch, IfOp)
    if side:
        return branch.cond
    true = _constant(1, i1, branch)
    return _combined("arith.xori", branch.cond, true, branch)


def _hide(load: LoadOp, mask: SSAValue) -> None:
    """Let a read happen only where `mask` holds; it finds 0 elsewhere."""
    if load.mask is not None:
        mask = _combined("arith.andi", load.mask, mask, load)
    other = load.other or _constant(0, load.result.type, load)
    load.operands = (load.ptr, mask, other)
    load.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, (1, 1, 1))


def _constant(value: int, type_: Attribute, before: Operation) -> SSAValue:
    assert isinstance(type_, IntegerType)
    properties: dict[str, Attribute] = {"value": IntegerAttr(value, type_)}
    return _inserted(build(ConstantOp, (), [type_], properties, location=before.location), before)


def _combined(name: str, left: SSAValue, right: SSAValue, before: Operation) -> SSAValue:
    op = build(ELEMENTWISE[name], (left, right), [left.type], location=before.location)
    return _inserted(op, before)


def _inserted(op: Operation, before: Operation) -> SSAValue:
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.results[0]
