"""Casts between numbers and pointers, on scalars and vectors."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import constant_text, lanes_of, llvm_type
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.rules.compute_types import is_narrow, widened
from tilewright.ir import types as ir
from tilewright.ops.elementwise.ir import (
    ArithBitcastOp,
    BitcastOp,
    CastOp,
    ExtFOp,
    ExtSIOp,
    ExtUIOp,
    FpToFpOp,
    FPToSIOp,
    FPToUIOp,
    IndexCastOp,
    IntToPtrOp,
    PtrToIntOp,
    SIToFPOp,
    TruncFOp,
    TruncIOp,
    UIToFPOp,
)

_INTEGER_CASTS: dict[type[Operation], str] = {ExtSIOp: "sext", ExtUIOp: "zext", TruncIOp: "trunc"}


@DEFAULT_RULES.register(*_INTEGER_CASTS)
def _integer_cast(ctx: EmitContext, op: Operation) -> None:
    (src,) = op.operands
    name = _INTEGER_CASTS[type(op)]
    ctx.define(op, ctx.fn.value(f"{name} {ctx.typed(src)} to {llvm_type(op.results[0].type)}"))


@DEFAULT_RULES.register(IndexCastOp)
def _index_cast(ctx: EmitContext, op: CastOp) -> None:
    source, target = llvm_type(op.src.type), llvm_type(op.result.type)
    if source == target:
        ctx.define(op, ctx.value(op.src))
        return
    name = "sext" if int(source[1:]) < int(target[1:]) else "trunc"
    ctx.define(op, ctx.fn.value(f"{name} {ctx.typed(op.src)} to {target}"))


@DEFAULT_RULES.register(ExtFOp, TruncFOp, FpToFpOp)
def _float_cast(ctx: EmitContext, op: Operation) -> None:
    (src,) = op.operands
    rounding = op.rounding_name() if isinstance(op, FpToFpOp) else "rtne"
    source, target = ir.element_of(src.type), ir.element_of(op.results[0].type)
    lanes = lanes_of(src.type)
    value = ctx.target.convert_float(ctx.fn, source, target, lanes, ctx.value(src), rounding)
    ctx.define(op, value)


@DEFAULT_RULES.register(SIToFPOp, UIToFPOp)
def _integer_to_float(ctx: EmitContext, op: Operation) -> None:
    (src,) = op.operands
    result = op.results[0].type
    name = "sitofp" if isinstance(op, SIToFPOp) else "uitofp"
    fn = ctx.fn
    if not is_narrow(result):
        ctx.define(op, fn.value(f"{name} {ctx.typed(src)} to {llvm_type(result)}"))
        return
    # Through float32 a wide integer would round twice; float64 holds 32 bits exactly, and
    # a 64-bit integer beyond 2^53 is far outside what changes a 16-bit float's rounding
    # unless it is a tie, which the sticky bit below keeps odd.
    value = _sticky(ctx, src.type, ctx.value(src), name == "sitofp")
    double = llvm_type(ir.with_element(result, ir.f64))
    exact = fn.value(f"{name} {llvm_type(src.type)} {value} to {double}")
    target, lanes = ir.element_of(result), lanes_of(result)
    ctx.define(op, ctx.target.convert_float(fn, ir.f64, target, lanes, exact, "rtne"))


def _sticky(ctx: EmitContext, type_: Attribute, value: str, is_signed: bool) -> str:
    """A 64-bit integer with its low 12 bits folded into bit 12 where it has over 53 bits."""
    if ir.width_bits(type_) < 64:
        return value
    fn, kind = ctx.fn, llvm_type(type_)
    low = fn.value(f"and {kind} {value}, {constant_text(4095, type_)}")
    carried = fn.value(f"add {kind} {low}, {constant_text(4095, type_)}")
    joined = fn.value(f"or {kind} {carried}, {value}")
    folded = fn.value(f"and {kind} {joined}, {constant_text(-4096, type_)}")
    high = fn.value(f"ashr {kind} {value}, {constant_text(52, type_)}")
    if is_signed:
        shifted = fn.value(f"add {kind} {high}, {constant_text(1, type_)}")
        is_large = fn.value(f"icmp ugt {kind} {shifted}, {constant_text(1, type_)}")
    else:
        is_large = fn.value(f"icmp ne {kind} {high}, {constant_text(0, type_)}")
    mask = llvm_type(ir.with_element(type_, ir.i1))
    return fn.value(f"select {mask} {is_large}, {kind} {folded}, {kind} {value}")


@DEFAULT_RULES.register(FPToSIOp, FPToUIOp)
def _float_to_integer(ctx: EmitContext, op: Operation) -> None:
    (src,) = op.operands
    wide, value = widened(ctx, src.type, ctx.value(src))
    name = "fptosi" if isinstance(op, FPToSIOp) else "fptoui"
    target = llvm_type(op.results[0].type)
    raw = ctx.fn.value(f"{name} {llvm_type(wide)} {value} to {target}")
    # Out of range is poison in LLVM; frozen it is some value, and nothing worse.
    ctx.define(op, ctx.fn.value(f"freeze {target} {raw}"))


@DEFAULT_RULES.register(ArithBitcastOp, BitcastOp)
def _bitcast(ctx: EmitContext, op: Operation) -> None:
    (src,) = op.operands
    source, target = llvm_type(src.type), llvm_type(op.results[0].type)
    if source == target:
        ctx.define(op, ctx.value(src))
        return
    ctx.define(op, ctx.fn.value(f"bitcast {ctx.typed(src)} to {target}"))


@DEFAULT_RULES.register(IntToPtrOp, PtrToIntOp)
def _pointer_cast(ctx: EmitContext, op: Operation) -> None:
    (src,) = op.operands
    name = "inttoptr" if isinstance(op, IntToPtrOp) else "ptrtoint"
    ctx.define(op, ctx.fn.value(f"{name} {ctx.typed(src)} to {llvm_type(op.results[0].type)}"))
