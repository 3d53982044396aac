"""Quotients and roots of float32 by the special function unit, where bits may change.

A quotient that may be a product with the reciprocal is `div.full` (2 ulp), or two products with
the same bits where several registers of a thread have one divisor, as the rows of a softmax do; a
root is `sqrt.approx` (1 ulp). Rounded to nearest each is a routine of twenty instructions with
branches. `div_rn`, `sqrt_rn` and programs without fusion keep the rounded ones.
"""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from tilewright.codegen.context import EmitContext
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.rules.compute_types import narrowed, widened
from tilewright.codegen.simt.context import SimtContext
from tilewright.ir.attributes import FastMathAttr
from tilewright.ir.types import element_of, f32
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.rules import NVIDIA_RULES

_REMAINDER = ELEMENTWISE["arith.remf"]
_DIVIDE, _ROOT = ELEMENTWISE["arith.divf"], ELEMENTWISE["math.sqrt"]
_NAMES: dict[type[Operation], str] = {_DIVIDE: "div", _ROOT: "sqrt"}
_SHARED_DIVISOR = "div_by_shared"


@NVIDIA_RULES.register(_DIVIDE, _ROOT)
def _approximate(ctx: SimtContext, op: Operation) -> None:
    ctx.emit_elementwise(partial(_scalar, _routine(ctx, op)), op)


def _routine(ctx: SimtContext, op: Operation) -> str:
    """The function of an op: one of its own where registers of a thread have the same divisor."""
    if isinstance(op, _DIVIDE) and isinstance(op.results[0].type, TensorType):
        divisors = ctx.registers(op.operands[1])
        if len(set(divisors)) < len(divisors):
            return _SHARED_DIVISOR
    return _NAMES[type(op)]


def _scalar(routine: str, ctx: EmitContext, op: Operation) -> None:
    type_ = op.results[0].type
    operands = [widened(ctx, value.type, ctx.value(value)) for value in op.operands]
    wide = operands[0][0]
    if element_of(wide) != f32 or not _may_change(op):
        rule = DEFAULT_RULES.find(type(op))
        if rule is None:
            raise InternalError(f"no default rule for {op.name}")
        rule(ctx, op)
        return
    names = [name for _, name in operands]
    value = ctx.target.emit_math(ctx.fn, routine, wide, names)
    ctx.define(op, narrowed(ctx, type_, value))


@NVIDIA_RULES.register(_REMAINDER)
def _remainder(ctx: SimtContext, op: Operation) -> None:
    ctx.emit_elementwise(_exact_remainder, op)


def _exact_remainder(ctx: EmitContext, op: Operation) -> None:
    # LLVM's own is x - trunc(x/y)·y, which is wrong for great quotients.
    operands = [widened(ctx, value.type, ctx.value(value)) for value in op.operands]
    value = ctx.target.emit_math(ctx.fn, "fmod", operands[0][0], [name for _, name in operands])
    ctx.define(op, narrowed(ctx, op.results[0].type, value))


def _may_change(op: Operation) -> bool:
    flags = op.properties.get("fastmath")
    return isinstance(flags, FastMathAttr) and bool({"arcp", "afn"} & set(flags.data))
