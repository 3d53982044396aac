"""Reductions: within a thread, within a warp, and across warps.

The tree is fixed, so that results are the same bits in every run: a thread folds its registers
in the order of the axis, the first half with the second, each half in the same way; lanes fold
in pairs, bit by bit from the shortest step along the axis; the warps' results fold as registers
do, in the order of their index along the axis. Every lane and warp along the axis ends with the
result.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.codegen.threads.combine import (
    Combine,
    Value,
    combine_of,
    exchange_lanes,
    take_from_lane,
)
from tilewright.codegen.threads.context import ThreadContext
from tilewright.codegen.threads.rules import THREAD_RULES
from tilewright.codegen.threads.slots import exchange_scratch
from tilewright.codegen.threads.words import from_bits, storage_bits, to_bits
from tilewright.ir.types import i1
from tilewright.layout.axis import AxisSpread
from tilewright.ops.reduction import ReduceOp
from tilewright.schedule.folds import ReductionPlan, plan_reduction
from tilewright.schedule.scratch import scratch_offset

_WORD_KINDS = {
    "arith.addi": "add",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.maxsi": "max",
    "arith.minsi": "min",
    "arith.maxui": "umax",
    "arith.minui": "umin",
}
# Folds for which it does not matter how often an element takes part.
_IDEMPOTENT = frozenset({"and", "or", "max", "min", "umax", "umin"})


@THREAD_RULES.register(ReduceOp)
def _reduce(ctx: ThreadContext, op: ReduceOp) -> None:
    plan = plan_reduction(op)
    combine = combine_of(ctx, op)
    sources = list(zip(*(ctx.registers(value) for value in op.srcs), strict=True))
    values = [combine.fold([sources[r] for r in group]) for group in plan.spread.groups]
    values = _fold_lanes(combine, plan, values)
    if plan.scratch is not None:
        offset = scratch_offset(op)
        rows = exchange_scratch(ctx, combine.elements, plan.scratch, offset, values)
        values = [combine.fold(row) for row in rows]
    for result, names in zip(op.outputs, zip(*values, strict=True), strict=True):
        ctx.define_tile(result, names)


def _fold_lanes(combine: Combine, plan: ReductionPlan, values: list[Value]) -> list[Value]:
    """The values folded over the lanes along the axis; all of these lanes get the same bits."""
    ctx, spread = combine.ctx, plan.spread
    if not spread.lanes:
        return values
    whole = _fold_whole_warp(combine, plan, values)
    if whole is not None:
        return whole
    for bit in spread.lanes:
        others = exchange_lanes(ctx, combine.elements, values, 1 << bit.index)
        values = [combine.apply(*pair) for pair in zip(values, others, strict=True)]
    if combine.is_commutative or plan.scratch is not None:
        return values
    return take_from_lane(ctx, combine.elements, values, _first_lane(ctx, spread))


def _first_lane(ctx: ThreadContext, spread: AxisSpread) -> str:
    """The lane at the start of the axis that holds elements of this lane's results."""
    mask = (ctx.target.lanes - 1) & ~spread.lane_mask
    return ctx.fn.prologue_value(f"and i32 {ctx.index.lane}, {mask}")


def _fold_whole_warp(
    combine: Combine, plan: ReductionPlan, values: list[Value]
) -> list[Value] | None:
    """The values folded by the machine's instruction for whole warps, if there is one."""
    kind = _WORD_KINDS.get(combine.single_op)
    if kind is None or storage_bits(combine.elements[0]) > 32:
        return None
    covered = plan.spread.lane_mask
    if kind in _IDEMPOTENT:
        covered |= plan.layout.free_bits("lane")
    if covered != combine.ctx.target.lanes - 1 or len(plan.spread.lanes) < 2:
        return None
    folded: list[Value] = []
    for (name,) in values:
        word = _extended(combine.ctx, combine.elements[0], name, kind)
        result = combine.ctx.target.fold_warp(combine.ctx.fn, kind, word)
        if result is None:
            return None
        folded.append((_narrowed(combine.ctx, combine.elements[0], result),))
    return folded


def _extended(ctx: ThreadContext, element: Attribute, name: str, kind: str) -> str:
    """An integer as an i32 whose order is that of the fold."""
    bits = storage_bits(element)
    word = to_bits(ctx.fn, element, name)
    if bits == 32:
        return word
    # One bit is 0 or -1 to a signed comparison.
    if kind in ("max", "min"):
        if element == i1:
            return ctx.fn.value(f"sext i1 {name} to i32")
        return ctx.fn.value(f"sext i{bits} {word} to i32")
    return ctx.fn.value(f"zext i{bits} {word} to i32")


def _narrowed(ctx: ThreadContext, element: Attribute, word: str) -> str:
    bits = storage_bits(element)
    narrow = word if bits == 32 else ctx.fn.value(f"trunc i32 {word} to i{bits}")
    return from_bits(ctx.fn, element, narrow)
