"""Quotients and remainders of vectors of integers by one number: products with its reciprocal.

Vectors have no integer division, and a division of 8 doubles starts every 16 cycles on x86, where a
fused multiply-add starts twice a cycle. With `r` the rounded reciprocal of `|d|`,

    q = trunc(x·r ± r/2)      the sign is that of x; rounded once

`(|x| + 1/2) / |d|` lies at least `1 / 2|d|` from every integer. The two roundings move it by less
than `2^-52·2^50 / |d|` in double where x has 49 bits, and by `2^-22·2^17 / |d|` in single where it
has 16, so q is the quotient towards zero of `|d|`. Where d is below zero q changes its sign as an
integer, so that the least number divided by -1 wraps. Integers of 64 bits are asked whether all of
them, and d, have 49 bits, as indices have; else they are divided one by one.
"""

from __future__ import annotations

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import lanes_of, llvm_type
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.ir import types as ir
from tilewright.ir.op import ElementwiseOp
from tilewright.ops.creation.ir import ConstantOp, SplatOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.targets.cpu.rules import CPU_RULES

_NAMES = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui")
# By definition: the bits of integers that singles and doubles divide exactly, and of a boolean.
_SINGLE_BITS, _DOUBLE_BITS, _BOOLEAN_BITS = 16, 49, 1
# By definition: the conversions between integers of 64 bits and doubles.
_LONG_CONVERSIONS = "avx512dq"


@CPU_RULES.register(*(ELEMENTWISE[name] for name in _NAMES))
def _quotient(ctx: EmitContext, op: ElementwiseOp) -> None:
    lhs, rhs = op.operands
    lanes, bits = lanes_of(lhs.type), ir.width_bits(lhs.type)
    features = getattr(ctx.target, "features", frozenset[str]())
    code = LaneCode(ctx.fn, lanes, features)
    splat = rhs.owner
    is_convertible = bits <= _DOUBLE_BITS or code.has(_LONG_CONVERSIONS)
    fits = lanes is not None and bits > _BOOLEAN_BITS and is_convertible
    is_one = isinstance(splat, SplatOp) and not isinstance(splat.src.owner, ConstantOp)
    if not (fits and is_one and code.has_fused_multiply_add()):
        rule = DEFAULT_RULES.find(type(op))
        assert rule is not None
        rule(ctx, op)
        return
    assert isinstance(splat, SplatOp)
    kind = llvm_type(splat.src.type)
    x = code.wrap(kind, ctx.value(lhs))
    d = LaneCode(ctx.fn, None, features).wrap(kind, ctx.value(splat.src))
    d = d.compare("eq", 0).select(d.coerce(1), d)
    is_signed, is_quotient = op.name.endswith("si"), "div" in op.name
    divide = _divided if bits <= _DOUBLE_BITS else _divided_if_short
    quotient = divide(x, d, is_signed)
    if is_quotient:
        ctx.define(op, quotient.name)
        return
    ctx.define(op, (x - quotient * _spread(code, d)).name)


def _divided_if_short(x: LaneValue, d: LaneValue, is_signed: bool) -> LaneValue:
    """`x / d` towards zero of integers of 64 bits; d is not zero."""
    fn, mask = x.code.fn, f"i{x.code.lanes}"
    short = _is_short(x, is_signed)
    lanes = fn.value(f"bitcast {short.type} {short.name} to {mask}")
    all_short = fn.value(f"icmp eq {mask} {lanes}, -1")
    fits = fn.value(f"and i1 {all_short}, {_is_short(d, is_signed).name}")
    multiplied, divided, done = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch_if(fits, multiplied, divided)
    fn.place(multiplied)
    product = _divided(x, d, is_signed).name
    fn.branch(done)
    fn.place(divided)
    quotient = _divided_one_by_one(x, d, is_signed).name
    fn.branch(done)
    fn.place(done)
    ends = f"[ {product}, %{multiplied} ], [ {quotient}, %{divided} ]"
    return x.code.wrap(x.element, fn.value(f"phi {x.type} {ends}"))


def _is_short(x: LaneValue, is_signed: bool) -> LaneValue:
    """Whether magnitudes have `_DOUBLE_BITS`."""
    bound = 1 << _DOUBLE_BITS
    return (x + bound).compare("ult", 2 * bound) if is_signed else x.compare("ult", bound)


def _divided_one_by_one(x: LaneValue, d: LaneValue, is_signed: bool) -> LaneValue:
    """The same by the machine's division, which traps at the least number divided by -1."""
    fn, code = x.code.fn, x.code
    if not is_signed:
        name = fn.value(f"udiv {x.type} {x.name}, {_spread(code, d).name}")
        return code.wrap(x.element, name)
    is_minus_one = d.compare("eq", -1)
    safe = _spread(code, is_minus_one.select(d.coerce(1), d))
    quotient = code.wrap(x.element, fn.value(f"sdiv {x.type} {x.name}, {safe.name}"))
    negative = _spread(code, is_minus_one.select(d, d.coerce(0)))
    return (quotient ^ negative) - negative


def _divided(x: LaneValue, d: LaneValue, is_signed: bool) -> LaneValue:
    """`x / d` towards zero; d is not zero."""
    code, sign = x.code, "si" if is_signed else "ui"
    bits = int(x.element[1:])
    element = "float" if bits <= _SINGLE_BITS else "double"
    divisor = d.convert(f"{sign}tofp", element)
    inverse = divisor.coerce(1.0) / (divisor.absolute() if is_signed else divisor)
    dividend = x.convert(f"{sign}tofp", element)
    half = _spread(code, inverse * 0.5)
    half = half.with_sign_of(dividend) if is_signed else half
    product = code.fused(dividend, _spread(code, inverse), half)
    quotient = product.convert(f"fpto{sign}", x.element)
    if not is_signed:
        return quotient
    negative = _spread(code, d.arithmetic_shift(bits - 1))
    return (quotient ^ negative) - negative


def _spread(code: LaneCode, value: LaneValue) -> LaneValue:
    """A scalar in all lanes."""
    fn, kind = code.fn, f"<{code.lanes} x {value.element}>"
    one = fn.value(f"insertelement {kind} poison, {value.element} {value.name}, i64 0")
    zeros = f"<{code.lanes} x i32> zeroinitializer"
    return code.wrap(value.element, fn.value(f"shufflevector {kind} {one}, {kind} poison, {zeros}"))
