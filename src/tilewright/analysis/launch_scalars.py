"""Scalars that a launch knows, and those that it can bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import BlockArgument, OpResult, SSAValue

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.regions import ControlFlowOp, counter_of
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.descriptors.ir import MakeTensorDescriptorOp
from tilewright.ops.function import is_argument
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp


def is_known_at_launch(value: SSAValue) -> bool:
    """Whether a scalar is an argument or computed from arguments alone."""
    return _is_made_of(value, _arguments)


def is_bounded(value: SSAValue) -> bool:
    """Whether a launch can bound a scalar: by arguments, the grid, programs' numbers, counters."""
    return _is_made_of(value, _bounded)


def is_of_geometry(value: SSAValue) -> bool:
    """Whether a scalar is computed from arguments, the grid, what loops count and extents alone.

    An extent is what the same block makes a descriptor with, wherever it comes from.
    """
    return _is_made_of(value, _geometry)


def _is_made_of(value: SSAValue, leaf: Callable[[SSAValue], Sequence[SSAValue] | None]) -> bool:
    """Whether a scalar is computed from leaves; `leaf` says what else one depends on, or None."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        needed = leaf(current)
        if needed is None:
            op = current.op if isinstance(current, OpResult) else None
            if type(op) is not ConstantOp and not isinstance(op, ElementwiseOp):
                return False
            needed = op.operands
        new = [operand for operand in needed if operand not in seen]
        seen.update(new)
        pending += new
    return True


def _arguments(value: SSAValue) -> Sequence[SSAValue] | None:
    return () if is_argument(value) else None


def _bounded(value: SSAValue) -> Sequence[SSAValue] | None:
    if is_argument(value) or type(value.owner) in (GetProgramIdOp, GetNumProgramsOp):
        return ()
    counter = counter_of(value.owner.parent_op()) if isinstance(value, BlockArgument) else None
    if counter is None or counter.value is not value:
        return None
    return counter.start, counter.end, counter.step


def _geometry(value: SSAValue) -> Sequence[SSAValue] | None:
    if type(value.owner) is GetGridExtentOp or _is_extent(value):
        return ()
    bounded = _bounded(value)
    return _carried(value) if bounded is None else bounded


def _is_extent(value: SSAValue) -> bool:
    """Whether a descriptor, made wherever the value is computed, has it as an extent."""
    block = value.block if isinstance(value, BlockArgument) else value.owner.parent
    users = (use.operation for use in value.uses)
    makers = (op for op in users if type(op) is MakeTensorDescriptorOp and op.parent is block)
    return any(value in op.shape for op in makers)


def _carried(value: SSAValue) -> Sequence[SSAValue] | None:
    """What a loop hands to a number that it carries, from outside and after each iteration."""
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    if not isinstance(loop, ControlFlowOp):
        return None
    return [
        handed
        for edge in loop.edges()
        for handed, receiver in zip(edge.values, edge.receivers, strict=True)
        if receiver is value
    ]
