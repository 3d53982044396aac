"""Small changes of a block: an op put in front of another, replaced by a value, or taken out."""

from __future__ import annotations

from typing import TypeVar

from xdsl.ir import Operation, SSAValue

from tilewright.ir.effects import is_free

Op = TypeVar("Op", bound=Operation)


def insert_before(op: Operation, new: Op) -> Op:
    """Put an op in front of another one; the new one."""
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    return new


def replace_by(op: Operation, value: SSAValue) -> None:
    """Let who uses the one result of an op use another value; the op goes."""
    op.results[0].replace_all_uses_with(value)
    erase(op)


def erase(op: Operation) -> None:
    """Take an op out of its block for good. Nothing uses its results."""
    op.detach()
    op.erase()


def erase_unused(op: Operation) -> None:
    """Erase an op that nobody needs, and what is left without use by that."""
    if any(result.first_use is not None for result in op.results) or not is_free(op):
        return
    operands = list(op.operands)
    erase(op)
    for operand in operands:
        if isinstance(operand.owner, Operation) and operand.owner.parent is not None:
            erase_unused(operand.owner)
