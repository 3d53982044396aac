"""Integers of up to 32 bits become floats of up to 16 by way of float32, rounded once.

By way of float64, as the default rule goes, a vector is halved, compared and put together again:
sixteen instructions for each register of f16. Float32 holds integers of 24 bits. A longer one is
first rounded to odd at its ninth bit: 16 bits are left at least, and its last one says whether any
was lost, so that no tie of a narrower type (12 bits with the one that decides) is made or missed.
Halves need no such step: what is longer than 24 bits is infinite as a half, however it is rounded.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import constant_text, lanes_of, llvm_type
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.rules.compute_types import is_narrow
from tilewright.ir import types as ir
from tilewright.ops.elementwise.ir import SIToFPOp, UIToFPOp
from tilewright.targets.cpu.rules import CPU_RULES

# By definition: the bits of a float32's significand, and those of an int32 beyond them.
_FLOAT_BITS, _LOST_BITS = 24, 8


@CPU_RULES.register(SIToFPOp, UIToFPOp)
def _integer_to_float(ctx: EmitContext, op: Operation) -> None:
    (src,) = op.operands
    result, width = op.results[0].type, ir.width_bits(src.type)
    if not is_narrow(result) or width > 32:
        rule = DEFAULT_RULES.find(type(op))
        assert rule is not None
        rule(ctx, op)
        return
    target = ir.element_of(result)
    value = ctx.value(src)
    if width == 32 and target != ir.f16:
        value = _rounded_to_odd(ctx, op)
    opcode = "sitofp" if isinstance(op, SIToFPOp) else "uitofp"
    single = llvm_type(ir.with_element(result, ir.f32))
    exact = ctx.fn.value(f"{opcode} {llvm_type(src.type)} {value} to {single}")
    lanes = lanes_of(result)
    ctx.define(op, ctx.target.convert_float(ctx.fn, ir.f32, target, lanes, exact, "rtne"))


def _rounded_to_odd(ctx: EmitContext, op: Operation) -> str:
    """The integer with its low bits folded into the ninth where it has more than 24."""
    (src,) = op.operands
    fn, kind = ctx.fn, llvm_type(src.type)

    def constant(number: int) -> str:
        return constant_text(number, src.type)

    lost = (1 << _LOST_BITS) - 1
    low = fn.value(f"and {kind} {ctx.value(src)}, {constant(lost)}")
    carried = fn.value(f"add {kind} {low}, {constant(lost)}")
    joined = fn.value(f"or {kind} {carried}, {ctx.value(src)}")
    folded = fn.value(f"and {kind} {joined}, {constant(~lost)}")
    is_signed = isinstance(op, SIToFPOp)
    from_zero = ctx.value(src)
    if is_signed:
        from_zero = fn.value(f"add {kind} {from_zero}, {constant(1 << _FLOAT_BITS)}")
    high = fn.value(f"lshr {kind} {from_zero}, {constant(_FLOAT_BITS + is_signed)}")
    is_long = fn.value(f"icmp ne {kind} {high}, {constant(0)}")
    mask = llvm_type(ir.with_element(src.type, ir.i1))
    return fn.value(f"select {mask} {is_long}, {kind} {folded}, {kind} {ctx.value(src)}")
