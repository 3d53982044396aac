"""What of a loop's body its loads need: the part that may run iterations ahead of the rest.

The part is everything between the loop's counter and carried values, and the operands of the
loads. It holds no op with effects but loads, so that running it once too often is no harm: its
results are not used, its loads are masked, and its divisors are made ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.ir.effects import is_free
from tilewright.ir.locations import describe
from tilewright.ops.control_flow import ForOp, YieldOp
from tilewright.ops.creation.ir import constant_of, splatted
from tilewright.ops.memory.ir import LoadOp
from tilewright.schedule.plan.copies import is_volatile
from tilewright.support.dataclass import dataclass

DIVISIONS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui")
"""Ops that are not defined where their second operand is zero."""


@dataclass(frozen=True)
class AddressPart:
    """Ops of a body in the order of the text, and the carried values (by number) they need.

    `reason` says why there is no such part; '' where there is one.
    """

    ops: tuple[Operation, ...] = ()
    carried: tuple[int, ...] = ()
    reason: str = ""


def end_of(loop: ForOp) -> YieldOp:
    """What a loop's body ends with."""
    end = loop.body.block.last_op
    assert isinstance(end, YieldOp)
    return end


def address_part(loop: ForOp, inputs: Sequence[SSAValue]) -> AddressPart:
    """What the inputs of some loads of a loop's body are computed from, in the body."""
    body = loop.body.block
    found: set[Operation] = set()
    carried: set[int] = set()
    pending = list(inputs)
    while pending:
        value = pending.pop()
        if isinstance(value, BlockArgument) and value.block is body:
            number = value.index - 1
            if number >= 0 and number not in carried:
                carried.add(number)
                pending.append(end_of(loop).arguments[number])
        elif isinstance(value, OpResult) and value.op.parent is body and value.op not in found:
            reason = _obstacle(value.op)
            if reason:
                return AddressPart(reason=reason)
            found.add(value.op)
            pending += taken_by(value.op, body)
    ordered = tuple(op for op in body.ops if op in found)
    return AddressPart(ordered, tuple(sorted(carried)))


def taken_by(op: Operation, body: Block) -> list[SSAValue]:
    """What an op and its regions take from around it."""
    if not op.regions:
        return list(op.operands)
    return [v for inner in op.walk() for v in inner.operands if not _is_inside(v, op)]


def _is_inside(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    holder = owner.parent_op()
    return holder is not None and (holder is op or op.is_ancestor(holder))


def _obstacle(op: Operation) -> str:
    """Why an op may not run ahead of its iteration; '' where it may."""
    if isinstance(op, LoadOp):
        return f"the load at {describe(op)} is volatile" if is_volatile(op) else ""
    if not is_free(op):
        return f"{op.name} at {describe(op)}, which an address is computed from, has effects"
    if any(inner is not op and inner.name in DIVISIONS for inner in op.walk()):
        return f"{op.name} at {describe(op)}, which an address is computed from, divides"
    return ""


def needs_guard(op: Operation) -> bool:
    """Whether an op is a division that is not defined for every divisor."""
    if op.name not in DIVISIONS:
        return False
    divisor = splatted(op.operands[1]) or op.operands[1]
    return (constant_of(divisor) or 0) <= 0
