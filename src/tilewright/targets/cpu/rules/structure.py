"""Nests, splats, lane reductions, program ids, matrix products."""

from __future__ import annotations

from xdsl.ir import Attribute, Block, SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import lanes_of, llvm_type
from tilewright.codegen.rules.control import emit_body
from tilewright.ir import types as ir
from tilewright.ops.creation.ir import SplatOp
from tilewright.ops.debug.ir import AssumeOp, BarrierOp
from tilewright.ops.function import ReturnOp
from tilewright.ops.program.ir import ClockOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.support.powers_of_two import is_power_of_two
from tilewright.targets.cpu.ops import NestOp, ReduceLanesOp, YieldOp
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.cpu.rules.extreme_lanes import emit_extreme, takes_extreme
from tilewright.targets.cpu.rules.memory import splat_text

# Chosen, not measured: two vectors of AVX2 in words, as loads of f32 take; more lanes are mostly
# bytes, and any width is right.
_LANES_OF_WORDS = 16


@CPU_RULES.register(SplatOp)
def _splat(ctx: EmitContext, op: SplatOp) -> None:
    lanes = lanes_of(op.result.type)
    value = ctx.value(op.src)
    if lanes is not None and op.src.type == ir.i1 and _splits_masks(ctx, lanes):
        value = _mask_text(ctx, value, lanes)
    elif lanes is not None:
        value = splat_text(ctx, ir.element_of(op.result.type), value, lanes)
    ctx.define(op, value)


def _splits_masks(ctx: EmitContext, lanes: int) -> bool:
    """Whether a splat mask must be spelt as a comparison of the lanes' numbers.

    Without mask registers LLVM 22 splits a wide masked load, and loads a half in full whose mask
    is known to be false because a splat was and-ed with constants. As a comparison the mask is
    split right, and it costs a broadcast: as the bits of an integer, each lane one instruction.
    Remove when `test_a_part_of_a_mask_that_is_known_to_be_false_is_not_loaded` holds without.
    """
    features = getattr(ctx.target, "features", frozenset())
    return "avx512f" not in features and is_power_of_two(lanes) and lanes > 1


def _mask_text(ctx: EmitContext, value: str, lanes: int) -> str:
    """The lanes whose numbers are below their count, or below 0."""
    element = ir.i32 if lanes <= _LANES_OF_WORDS else ir.i8
    kind = llvm_type(element)
    count = ctx.fn.value(f"select i1 {value}, {kind} {lanes}, {kind} 0")
    every = splat_text(ctx, element, count, lanes)
    numbers = ", ".join(f"{kind} {lane}" for lane in range(lanes))
    return ctx.fn.value(f"icmp ugt <{lanes} x {kind}> {every}, <{numbers}>")


@CPU_RULES.register(GetProgramIdOp)
def _program_id(ctx: EmitContext, op: GetProgramIdOp) -> None:
    ctx.define(op, f"%pid{op.axis.value.data}")


@CPU_RULES.register(GetNumProgramsOp)
def _num_programs(ctx: EmitContext, op: GetNumProgramsOp) -> None:
    ctx.define(op, f"%grid{op.axis.value.data}")


@CPU_RULES.register(ClockOp)
def _clock(ctx: EmitContext, op: ClockOp) -> None:
    if not ctx.module.has_function("tw.clock"):
        ctx.module.add_function("tw.clock", _CLOCK)
    ctx.define(op, ctx.fn.value("call i64 @tw.clock()"))


# The C library's clock_gettime with CLOCK_MONOTONIC as Linux numbers it.
_CLOCK = """declare i32 @clock_gettime(i32, ptr)

define internal i64 @tw.clock() noinline nounwind {
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %ns.at = getelementptr i8, ptr %time, i64 8
  %ns = load i64, ptr %ns.at
  %s.ns = mul i64 %s, 1000000000
  %now = add i64 %s.ns, %ns
  ret i64 %now
}"""


@CPU_RULES.register(NestOp)
def _nest(ctx: EmitContext, op: NestOp) -> None:
    names, _ = emit_body(ctx, op.body.block)
    ctx.define(op, *names)


@CPU_RULES.register(YieldOp)
def _yield(ctx: EmitContext, op: YieldOp) -> None:
    """The parent's rule reads the operands."""


@CPU_RULES.register(ReturnOp)
def _return(ctx: EmitContext, op: ReturnOp) -> None:
    ctx.fn.emit("ret void")


@CPU_RULES.register(AssumeOp)
def _assume(ctx: EmitContext, op: AssumeOp) -> None:
    ctx.fn.emit(f"call void @llvm.assume(i1 {ctx.value(op.condition)})")


@CPU_RULES.register(BarrierOp)
def _barrier(ctx: EmitContext, op: BarrierOp) -> None:
    """A program runs on one thread: its tiles are in order already."""


@CPU_RULES.register(ReduceLanesOp)
def _reduce_lanes(ctx: EmitContext, op: ReduceLanesOp) -> None:
    block = op.combine.block
    values = [ctx.value(v) for v in op.srcs]
    elements = [ir.element_of(v.type) for v in op.srcs]
    lanes = lanes_of(op.srcs[0].type) or 1
    features = getattr(ctx.target, "features", frozenset())
    if takes_extreme(block, lanes, features):
        ctx.define(op, emit_extreme(ctx.fn, block, values[0], lanes))
        return
    if not is_liftable(block) or lanes & (lanes - 1):
        ctx.define(op, *_fold_in_order(ctx, block, values, elements, lanes))
        return
    while lanes > 1:
        half = lanes // 2
        pairs = list(zip(values, elements, strict=True))
        firsts, seconds = range(half), range(half, lanes)
        if op.in_order is not None:
            firsts, seconds = range(0, lanes, 2), range(1, lanes, 2)
        lows = [_taken(ctx, value, element, lanes, firsts) for value, element in pairs]
        highs = [_taken(ctx, value, element, lanes, seconds) for value, element in pairs]
        values = _emit_combine(ctx, lift_block(block, half), [*lows, *highs])
        lanes = half
    ctx.define(op, *values)


def _fold_in_order(
    ctx: EmitContext, block: Block, values: list[str], elements: list[Attribute], lanes: int
) -> list[str]:
    """Lane after lane, for combine regions with control flow."""

    def lane_values(lane: int) -> list[str]:
        if lanes == 1:
            return values
        rows = zip(values, elements, strict=True)
        return [
            ctx.fn.value(f"extractelement <{lanes} x {llvm_type(e)}> {v}, i64 {lane}")
            for v, e in rows
        ]

    folded = lane_values(0)
    for lane in range(1, lanes):
        folded = _emit_combine(ctx, lift_block(block, 1), [*folded, *lane_values(lane)])
    return folded


def _taken(ctx: EmitContext, value: str, element: Attribute, lanes: int, places: range) -> str:
    """The lanes of a vector at `places`; a scalar for one of them."""
    vector = f"<{lanes} x {llvm_type(element)}>"
    if len(places) == 1:
        return ctx.fn.value(f"extractelement {vector} {value}, i64 {places[0]}")
    pattern = ", ".join(f"i32 {lane}" for lane in places)
    mask = f"<{len(places)} x i32> <{pattern}>"
    return ctx.fn.value(f"shufflevector {vector} {value}, {vector} poison, {mask}")


def _emit_combine(ctx: EmitContext, block: Block, arguments: list[str]) -> list[str]:
    for argument, name in zip(block.args, arguments, strict=True):
        ctx.values[argument] = name
    names, _ = emit_body(ctx, block)
    return names


def is_liftable(block: Block) -> bool:
    """Whether a block of scalar code works on vectors as it stands: no regions inside."""
    return not any(op.regions for op in block.ops)


def lift_block(block: Block, lanes: int) -> Block:
    """A copy of a block of scalar code with every type a vector of `lanes` (1: as it is)."""
    if lanes == 1:
        return _copy(block)
    lifted = Block(arg_types=[ir.vector_of(ir.element_of(a.type), lanes) for a in block.args])
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, lifted.args, strict=True))
    for op in block.ops:
        copy = type(op).create(
            operands=[mapping.get(v, v) for v in op.operands],
            result_types=[ir.vector_of(ir.element_of(r.type), lanes) for r in op.results],
            properties=op.properties,
            location=op.location,
        )
        mapping.update(zip(op.results, copy.results, strict=True))
        lifted.add_op(copy)
    return lifted


def _copy(block: Block) -> Block:
    copy = Block(arg_types=[a.type for a in block.args])
    mapping: dict[SSAValue, SSAValue] = dict(zip(block.args, copy.args, strict=True))
    for op in block.ops:
        copy.add_op(op.clone(mapping))
    return copy
