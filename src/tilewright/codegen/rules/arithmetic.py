"""Elementwise arithmetic, comparison, selection and casts on scalars and vectors.

Floats narrower than 32 bits compute in float32 and round once per op, as the interpreter does.
"""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import constant_text, lanes_of, llvm_type
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.rules.compute_types import (
    is_narrow,
    narrowed,
    storage_type,
    suffix,
    widened,
)
from tilewright.ir import types as ir
from tilewright.ops.creation.ir import ConstantOp, splatted_constant
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.comparisons import CmpFOp, CmpIOp
from tilewright.ops.elementwise.ir import (
    ELEMENTWISE,
    BinaryFloatOp,
    ClampFOp,
    FmaOp,
    SelectOp,
    UnaryOp,
)
from tilewright.ops.extern.ir import ExternElementwiseOp
from tilewright.ops.memory.ir import AddPtrOp

_SIMPLE_INTEGER = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}
_SHIFTS = {"arith.shli": "shl", "arith.shrsi": "ashr", "arith.shrui": "lshr"}
_INTEGER_EXTREMA = {
    "arith.maxsi": "smax",
    "arith.maxui": "umax",
    "arith.minsi": "smin",
    "arith.minui": "umin",
}
_FLOAT_INSTRUCTIONS = {
    "arith.addf": "fadd",
    "arith.subf": "fsub",
    "arith.mulf": "fmul",
    "arith.divf": "fdiv",
    "tt.precise_divf": "fdiv",
    "arith.remf": "frem",
}
_FLOAT_EXTREMA = {
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
}
_FLOAT_INTRINSICS = {
    "math.absf": "fabs",
    "math.ceil": "ceil",
    "math.floor": "floor",
    "math.round": "round",
    "math.roundeven": "roundeven",
    "math.trunc": "trunc",
    "math.sqrt": "sqrt",
    "tt.precise_sqrt": "sqrt",
}
_BIT_COUNTS = {"math.ctpop": "ctpop", "math.ctlz": "ctlz", "math.cttz": "cttz"}


def _ops(names: dict[str, str]) -> tuple[type[Operation], ...]:
    return tuple(ELEMENTWISE[name] for name in names)


@DEFAULT_RULES.register(ConstantOp)
def _constant(ctx: EmitContext, op: ConstantOp) -> None:
    ctx.define(op, constant_text(op.splat_value(), op.result.type))


@DEFAULT_RULES.register(HintOp)
def _hint(ctx: EmitContext, op: HintOp) -> None:
    ctx.define(op, ctx.value(op.src))


@DEFAULT_RULES.register(*_ops(_SIMPLE_INTEGER))
def _integer(ctx: EmitContext, op: Operation) -> None:
    lhs, rhs = op.operands
    name = _SIMPLE_INTEGER[op.name]
    ctx.define(op, ctx.fn.value(f"{name} {ctx.typed(lhs)}, {ctx.value(rhs)}"))


@DEFAULT_RULES.register(*_ops(_SHIFTS))
def _shift(ctx: EmitContext, op: Operation) -> None:
    lhs, rhs = op.operands
    name, by, width = _SHIFTS[op.name], splatted_constant(rhs), ir.width_bits(rhs.type)
    if by is not None and 0 <= by < width:
        ctx.define(op, ctx.fn.value(f"{name} {ctx.typed(lhs)}, {ctx.value(rhs)}"))
        return
    # LLVM leaves an amount of the width or more undefined; here all bits are shifted out.
    kind, last = llvm_type(rhs.type), constant_text(width - 1, rhs.type)
    if name == "ashr":
        call = f"call {kind} @llvm.umin.{suffix(rhs.type)}({ctx.typed(rhs)}, {kind} {last})"
        ctx.define(op, ctx.fn.value(f"ashr {ctx.typed(lhs)}, {ctx.fn.value(call)}"))
        return
    shifted = ctx.fn.value(f"{name} {ctx.typed(lhs)}, {ctx.value(rhs)}")
    fits = ctx.fn.value(f"icmp ule {ctx.typed(rhs)}, {last}")
    mask, zero = llvm_type(ir.with_element(rhs.type, ir.i1)), constant_text(0, lhs.type)
    ctx.define(op, ctx.fn.value(f"select {mask} {fits}, {kind} {shifted}, {kind} {zero}"))


@DEFAULT_RULES.register(*_ops(_INTEGER_EXTREMA))
def _integer_extremum(ctx: EmitContext, op: Operation) -> None:
    _call_binary(ctx, op, _INTEGER_EXTREMA[op.name])


def _call_binary(ctx: EmitContext, op: Operation, name: str) -> None:
    lhs, rhs = op.operands
    kind = llvm_type(lhs.type)
    function = f"@llvm.{name}.{suffix(lhs.type)}"
    ctx.define(op, ctx.fn.value(f"call {kind} {function}({ctx.typed(lhs)}, {ctx.typed(rhs)})"))


_DIVISIONS = {
    "arith.divsi": "sdiv",
    "arith.divui": "udiv",
    "arith.remsi": "srem",
    "arith.remui": "urem",
}


def _constant_divisor(op: Operation) -> bool:
    return splatted_constant(op.operands[1]) not in (None, 0, -1)


def _safe_divisor(ctx: EmitContext, op: Operation, is_signed: bool) -> str:
    """The divisor with the cases that trap replaced by 1: zero, and -1 under the minimum."""
    lhs, rhs = op.operands
    value = ctx.value(rhs)
    if _constant_divisor(op):
        return value
    fn, kind = ctx.fn, llvm_type(rhs.type)
    traps = fn.value(f"icmp eq {kind} {value}, {constant_text(0, rhs.type)}")
    mask = llvm_type(ir.with_element(rhs.type, ir.i1))
    if is_signed:
        least = constant_text(-(1 << (ir.width_bits(rhs.type) - 1)), rhs.type)
        at_least = fn.value(f"icmp eq {ctx.typed(lhs)}, {least}")
        minus_one = fn.value(f"icmp eq {kind} {value}, {constant_text(-1, rhs.type)}")
        overflows = fn.value(f"and {mask} {at_least}, {minus_one}")
        traps = fn.value(f"or {mask} {traps}, {overflows}")
    one = constant_text(1, rhs.type)
    return fn.value(f"select {mask} {traps}, {kind} {one}, {kind} {value}")


@DEFAULT_RULES.register(*_ops(_DIVISIONS))
def _division(ctx: EmitContext, op: Operation) -> None:
    name = _DIVISIONS[op.name]
    lhs = op.operands[0]
    if ir.width_bits(lhs.type) == 1:
        # One-bit division by anything but the trapping zero is the dividend.
        ctx.define(op, ctx.value(lhs) if "div" in name else constant_text(0, lhs.type))
        return
    divisor = _safe_divisor(ctx, op, name[0] == "s")
    is_vector = lanes_of(lhs.type) is not None
    if is_vector and not _constant_divisor(op) and ir.width_bits(lhs.type) <= 32:
        ctx.define(op, _divide_in_double(ctx, lhs.type, name, ctx.value(lhs), divisor))
        return
    ctx.define(op, ctx.fn.value(f"{name} {ctx.typed(lhs)}, {divisor}"))


def _divide_in_double(ctx: EmitContext, type_: Attribute, name: str, lhs: str, rhs: str) -> str:
    """Vectors have no integer division: quotients of 32 bits are exact in double."""
    fn, kind = ctx.fn, llvm_type(type_)
    double = llvm_type(ir.with_element(type_, ir.f64))
    sign = "s" if name[0] == "s" else "u"
    dividend = fn.value(f"{sign}itofp {kind} {lhs} to {double}")
    divisor = fn.value(f"{sign}itofp {kind} {rhs} to {double}")
    ratio = fn.value(f"fdiv {double} {dividend}, {divisor}")
    quotient = fn.value(f"fpto{sign}i {double} {ratio} to {kind}")
    if name.endswith("div"):
        return quotient
    product = fn.value(f"mul {kind} {quotient}, {rhs}")
    return fn.value(f"sub {kind} {lhs}, {product}")


@DEFAULT_RULES.register(ELEMENTWISE["tt.mulhiui"])
def _high_product(ctx: EmitContext, op: Operation) -> None:
    lhs, rhs = op.operands
    bits = ir.width_bits(lhs.type)
    wide = llvm_type(lhs.type).replace(f"i{bits}", f"i{2 * bits}")
    fn = ctx.fn
    a = fn.value(f"zext {ctx.typed(lhs)} to {wide}")
    c = fn.value(f"zext {ctx.typed(rhs)} to {wide}")
    product = fn.value(f"mul {wide} {a}, {c}")
    amount = str(bits) if lanes_of(lhs.type) is None else f"splat (i{2 * bits} {bits})"
    high = fn.value(f"lshr {wide} {product}, {amount}")
    ctx.define(op, fn.value(f"trunc {wide} {high} to {llvm_type(lhs.type)}"))


def _flags(op: BinaryFloatOp | UnaryOp) -> str:
    fastmath = op.fastmath
    # A quotient is rounded once: only a target's own rule takes the reciprocal instead.
    flags = [] if fastmath is None else [flag for flag in fastmath.data if flag != "arcp"]
    return f"{' '.join(flags)} " if flags else ""


@DEFAULT_RULES.register(*_ops(_FLOAT_INSTRUCTIONS))
def _float_binary(ctx: EmitContext, op: BinaryFloatOp) -> None:
    type_, (lhs, rhs) = op.results[0].type, op.operands
    wide, left = widened(ctx, type_, ctx.value(lhs))
    _, right = widened(ctx, type_, ctx.value(rhs))
    # A narrow result is rounded after every op, so nothing may be contracted around it.
    flags = "" if is_narrow(type_) else _flags(op)
    name = _FLOAT_INSTRUCTIONS[op.name]
    result = ctx.fn.value(f"{name} {flags}{llvm_type(wide)} {left}, {right}")
    ctx.define(op, narrowed(ctx, type_, result))


@DEFAULT_RULES.register(*_ops(_FLOAT_EXTREMA))
def _float_extremum(ctx: EmitContext, op: Operation) -> None:
    lhs, rhs = op.operands
    name = _FLOAT_EXTREMA[op.name]
    wide, left = widened(ctx, lhs.type, ctx.value(lhs))
    _, right = widened(ctx, lhs.type, ctx.value(rhs))
    kind = llvm_type(wide)
    call = f"call {kind} @llvm.{name}.{suffix(wide)}({kind} {left}, {kind} {right})"
    ctx.define(op, narrowed(ctx, lhs.type, ctx.fn.value(call)))


@DEFAULT_RULES.register(ELEMENTWISE["math.copysign"])
def _copysign(ctx: EmitContext, op: Operation) -> None:
    lhs, rhs = op.operands
    wide, left = widened(ctx, lhs.type, ctx.value(lhs))
    _, right = widened(ctx, lhs.type, ctx.value(rhs))
    kind = llvm_type(wide)
    call = f"call {kind} @llvm.copysign.{suffix(wide)}({kind} {left}, {kind} {right})"
    ctx.define(op, narrowed(ctx, lhs.type, ctx.fn.value(call)))


@DEFAULT_RULES.register(ELEMENTWISE["arith.negf"])
def _negate(ctx: EmitContext, op: UnaryOp) -> None:
    wide, value = widened(ctx, op.operand.type, ctx.value(op.operand))
    result = ctx.fn.value(f"fneg {llvm_type(wide)} {value}")
    ctx.define(op, narrowed(ctx, op.result.type, result))


@DEFAULT_RULES.register(*_ops(_FLOAT_INTRINSICS))
def _float_intrinsic(ctx: EmitContext, op: UnaryOp) -> None:
    wide, value = widened(ctx, op.operand.type, ctx.value(op.operand))
    kind = llvm_type(wide)
    name = _FLOAT_INTRINSICS[op.name]
    result = ctx.fn.value(f"call {kind} @llvm.{name}.{suffix(wide)}({kind} {value})")
    ctx.define(op, narrowed(ctx, op.result.type, result))


@DEFAULT_RULES.register(ELEMENTWISE["math.absi"])
def _absolute(ctx: EmitContext, op: UnaryOp) -> None:
    kind = llvm_type(op.operand.type)
    call = f"call {kind} @llvm.abs.{suffix(op.operand.type)}({ctx.typed(op.operand)}, i1 false)"
    ctx.define(op, ctx.fn.value(call))


@DEFAULT_RULES.register(*_ops(_BIT_COUNTS))
def _bit_count(ctx: EmitContext, op: UnaryOp) -> None:
    kind = llvm_type(op.operand.type)
    name = _BIT_COUNTS[op.name]
    zero_flag = "" if name == "ctpop" else ", i1 false"
    call = f"@llvm.{name}.{suffix(op.operand.type)}({ctx.typed(op.operand)}{zero_flag})"
    ctx.define(op, ctx.fn.value(f"call {kind} {call}"))


_BY_TARGET = {
    f"math.{name}": name
    for name in (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "cbrt"),
        *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
        *("asinh", "acosh", "atanh", "erf", "atan2"),
    )
} | {"math.powf": "pow"}


@DEFAULT_RULES.register(*_ops(_BY_TARGET))
def _math(ctx: EmitContext, op: Operation) -> None:
    type_ = op.operands[0].type
    wide = ir.with_element(type_, ir.f32) if is_narrow(type_) else type_
    operands = [widened(ctx, v.type, ctx.value(v))[1] for v in op.operands]
    result = ctx.target.emit_math(ctx.fn, _BY_TARGET[op.name], wide, operands)
    ctx.define(op, narrowed(ctx, type_, result))


@DEFAULT_RULES.register(ExternElementwiseOp)
def _extern(ctx: EmitContext, op: ExternElementwiseOp) -> None:
    extern = op.extern()
    operands = [ctx.value(operand) for operand in op.operands]
    selector = op.operands[extern.selector].type
    ctx.define(op, ctx.target.emit_math(ctx.fn, extern.routine, selector, operands))


@DEFAULT_RULES.register(FmaOp)
def _fma(ctx: EmitContext, op: FmaOp) -> None:
    wide, a = widened(ctx, op.a.type, ctx.value(op.a))
    c, d = (widened(ctx, v.type, ctx.value(v))[1] for v in (op.b, op.c))
    kind = llvm_type(wide)
    call = f"call {kind} @llvm.fma.{suffix(wide)}({kind} {a}, {kind} {c}, {kind} {d})"
    ctx.define(op, narrowed(ctx, op.result.type, ctx.fn.value(call)))


@DEFAULT_RULES.register(ClampFOp)
def _clamp(ctx: EmitContext, op: ClampFOp) -> None:
    wide, x = widened(ctx, op.x.type, ctx.value(op.x))
    low, high = (widened(ctx, v.type, ctx.value(v))[1] for v in (op.low, op.high))
    kind, s = llvm_type(wide), suffix(wide)
    greater, lesser = ("maximum", "minimum") if op.propagates_nan() else ("maxnum", "minnum")
    raised = ctx.fn.value(f"call {kind} @llvm.{greater}.{s}({kind} {x}, {kind} {low})")
    result = ctx.fn.value(f"call {kind} @llvm.{lesser}.{s}({kind} {raised}, {kind} {high})")
    ctx.define(op, narrowed(ctx, op.result.type, result))


@DEFAULT_RULES.register(CmpIOp)
def _compare_integers(ctx: EmitContext, op: CmpIOp) -> None:
    comparison = f"icmp {op.predicate_name()} {ctx.typed(op.lhs)}, {ctx.value(op.rhs)}"
    ctx.define(op, ctx.fn.value(comparison))


@DEFAULT_RULES.register(CmpFOp)
def _compare_floats(ctx: EmitContext, op: CmpFOp) -> None:
    wide, lhs = widened(ctx, op.lhs.type, ctx.value(op.lhs))
    _, rhs = widened(ctx, op.rhs.type, ctx.value(op.rhs))
    ctx.define(op, ctx.fn.value(f"fcmp {op.predicate_name()} {llvm_type(wide)} {lhs}, {rhs}"))


@DEFAULT_RULES.register(SelectOp)
def _select(ctx: EmitContext, op: SelectOp) -> None:
    arms = f"{ctx.typed(op.lhs)}, {ctx.typed(op.rhs)}"
    ctx.define(op, ctx.fn.value(f"select {ctx.typed(op.condition)}, {arms}"))


@DEFAULT_RULES.register(AddPtrOp)
def _add_pointer(ctx: EmitContext, op: AddPtrOp) -> None:
    pointer = ir.element_of(op.ptr.type)
    assert isinstance(pointer, ir.PointerType)
    element = storage_type(pointer.pointee)
    address = f"getelementptr {element}, {ctx.typed(op.ptr)}, {ctx.typed(op.offset)}"
    ctx.define(op, ctx.fn.value(address))
