"""Expressions in the words of the kernel: names of its variables, where it has any."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.ir.locations import span_of
from tilewright.ops.function import is_argument
from tilewright.ops.program.ir import GetProgramIdOp


def name_of(value: SSAValue) -> str:
    """What a scalar is called: its name in the source, or what makes it."""
    if value.name_hint is not None:
        return value.name_hint
    if isinstance(value, BlockArgument):
        if is_argument(value):
            return f"argument {value.index}"
        kind = f"number {value.index} carried by the loop" if value.index else "counter"
        return f"{kind}{_line(value.block)}"
    assert isinstance(value, OpResult)
    axis = value.op.properties.get("axis")
    if type(value.op) is GetProgramIdOp and isinstance(axis, IntegerAttr):
        return f"program_id({axis.value.data})"
    return f"{value.op.name.partition('.')[2]}{_line(value.op)}"


def _line(made: Operation | Block) -> str:
    """` of line 12`, where the line is known."""
    op = made if isinstance(made, Operation) else made.parent_op()
    span = None if op is None else span_of(op)[0]
    return "" if span is None else f" of line {span.line}"


def text_of(expression: Expression) -> str:
    """`128*pid_m + K - 1`."""
    text = ""
    for coefficient, factors in expression.terms:
        names = [name_of(factor) for factor in factors]
        if abs(coefficient) != 1 or not names:
            names.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {'*'.join(names)}" if text else f"{'-' * (sign == '-')}{'*'.join(names)}"
    return text or "0"
