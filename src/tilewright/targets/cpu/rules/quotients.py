"""Quotients of vectors by one number: products with its reciprocal, corrected to the same bits.

A division of 16 lanes starts every 16 cycles on x86; a fused multiply-add starts twice a cycle.
With `r` the rounded reciprocal of `d`, and all exponents moderate,

    q = x·r        e = x - q·d      q' = q + e·r       within one unit in the last place
                   e = x - q'·d     q'' = q' + e·r     the rounded quotient (Markstein's theorem)

where each right side is rounded once. +0 comes out right too, -0 would lose its sign. A vector
with another lane that is not moderate is divided.
*Source* Markstein, IA-64 and Elementary Functions, 2000, theorem 8.1; 16 cycles: uops.info,
`vdivps zmm`, Ice Lake to Sapphire Rapids.
"""

from __future__ import annotations

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import lanes_of
from tilewright.codegen.math.lanes import LaneCode, LaneValue
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.rules.arithmetic import BinaryFloatOp
from tilewright.ir import types as ir
from tilewright.ops.creation.ir import SplatOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.targets.cpu.rules import CPU_RULES

# Exponents of the dividend and the divisor. Quotients lie within 2^-120 and 2^120, reciprocals
# within 2^-20 and 2^20, and a remainder is a multiple of 2^(-100 - 47), above the least number.
# Chosen, not measured: any that keep these bounds give the bits of a division.
_X_LOG2, _D_LOG2 = 100, 20
# By definition: the fields of a float32.
_BIAS, _MANTISSA_BITS, _MAGNITUDE = 127, 23, 0x7FFFFFFF
# Fewer lanes are divided in the time of the corrections. Chosen, not measured: the bits are equal.
_LEAST_LANES = 16


@CPU_RULES.register(ELEMENTWISE["arith.divf"], ELEMENTWISE["tt.precise_divf"])
def _quotient(ctx: EmitContext, op: BinaryFloatOp) -> None:
    splat = op.rhs.owner
    lanes = lanes_of(op.result.type)
    features = getattr(ctx.target, "features", frozenset[str]())
    is_single = ir.element_of(op.result.type) == ir.f32
    code, scalar = LaneCode(ctx.fn, lanes, features), LaneCode(ctx.fn, None, features)
    is_long = is_single and lanes is not None and lanes >= _LEAST_LANES
    if not (isinstance(splat, SplatOp) and is_long and code.has_fused_multiply_add()):
        divide = DEFAULT_RULES.find(type(op))
        assert divide is not None
        divide(ctx, op)
        return
    x = code.wrap("float", ctx.value(op.lhs))
    divisors = code.wrap("float", ctx.value(op.rhs))
    d = scalar.wrap("float", ctx.value(splat.src))
    ctx.define(op, _divided(x, divisors, d))


def _divided(x: LaneValue, divisors: LaneValue, d: LaneValue) -> str:
    """The name of `x / d`: corrected products where all exponents are moderate."""
    fn, kind = x.code.fn, x.type
    mask = f"i{x.code.lanes}"
    lanes = _is_moderate(x, _X_LOG2) | x.bits().compare("eq", 0)
    lanes_fit = fn.value(f"bitcast <{x.code.lanes} x i1> {lanes.name} to {mask}")
    all_fit = fn.value(f"icmp eq {mask} {lanes_fit}, -1")
    fits = fn.value(f"and i1 {all_fit}, {_is_moderate(d, _D_LOG2).name}")
    corrected, divided, done = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch_if(fits, corrected, divided)
    fn.place(corrected)
    product = _corrected(x, divisors, d).name
    fn.branch(done)
    fn.place(divided)
    quotient = fn.value(f"fdiv {kind} {x.name}, {divisors.name}")
    fn.branch(done)
    fn.place(done)
    return fn.value(f"phi {kind} [ {product}, %{corrected} ], [ {quotient}, %{divided} ]")


def _is_moderate(x: LaneValue, log2: int) -> LaneValue:
    """Whether magnitudes lie within 2^-log2 and 2^log2."""
    low, high = ((_BIAS + e) << _MANTISSA_BITS for e in (-log2, log2))
    return ((x.bits() & _MAGNITUDE) - low).compare("ule", high - low)


def _corrected(x: LaneValue, divisors: LaneValue, d: LaneValue) -> LaneValue:
    fn, code = x.code.fn, x.code
    inverse = fn.value(f"fdiv float 1.0, {d.name}")
    one = fn.value(f"insertelement {x.type} poison, float {inverse}, i64 0")
    zeros = f"<{code.lanes} x i32> zeroinitializer"
    r = code.wrap("float", fn.value(f"shufflevector {x.type} {one}, {x.type} poison, {zeros}"))
    q = x * r
    for _ in range(2):
        q = code.fused(code.fused(-q, divisors, x), r, q)
    return q
