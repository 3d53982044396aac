"""Reductions: within a thread, within a warp, and across warps.

The tree is fixed, so that results are the same bits in every run: a thread folds its registers
in the order of the axis, the first half with the second, each half in the same way; lanes fold
in pairs, bit by bit from the shortest step along the axis; the warps' results fold as registers
do, in the order of their index along the axis. Every lane and warp along the axis ends with the
result.

Where that is not the order of the axis, and the function may not commute, each step along the
axis is folded in its turn, be it of registers, lanes or warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from xdsl.ir import Attribute

from tilewright.codegen.simt.combine import (
    Combine,
    Value,
    combine_of,
    exchange_lanes,
    take_from_lane,
)
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.slots import exchange_scratch
from tilewright.codegen.simt.words import from_bits, storage_bits, to_bits
from tilewright.ir.types import i1
from tilewright.layout.axis import AxisSpread
from tilewright.ops.reduction.ir import ReduceOp
from tilewright.schedule.reduction_levels import ReductionLevel
from tilewright.schedule.reductions import ReductionPlan, plan_reduction
from tilewright.schedule.scratch import scratch_offset
from tilewright.support.dataclass import dataclass, replace

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


@SIMT_RULES.register(ReduceOp)
def _reduce(ctx: SimtContext, op: ReduceOp) -> None:
    plan = plan_reduction(op)
    combine = combine_of(ctx, op)
    sources = list(zip(*(ctx.registers(value) for value in op.srcs), strict=True))
    offset = scratch_offset(op) if plan.scratch_bytes else 0
    fold = _fold_apart if plan.levels is None else _fold_in_order
    values = fold(combine, plan, sources, offset)
    for result, names in zip(op.outputs, zip(*values, strict=True), strict=True):
        ctx.define_tile(result, names)


def _fold_apart(
    combine: Combine, plan: ReductionPlan, sources: Sequence[Value], offset: int
) -> list[Value]:
    """The results in the cheapest order: registers, lanes, warps."""
    values = [combine.fold([sources[r] for r in group]) for group in plan.spread.groups]
    values = _fold_lanes(combine, plan, values)
    if plan.scratch is None:
        return values
    rows = exchange_scratch(combine.ctx, combine.elements, plan.scratch, offset, values)
    return [combine.fold(row) for row in rows]


@dataclass(frozen=True)
class _Part:
    """What an aligned block of the axis folds to: the result that it belongs to, its place."""

    line: int
    place: int
    value: Value


def _fold_in_order(
    combine: Combine, plan: ReductionPlan, sources: Sequence[Value], offset: int
) -> list[Value]:
    """The results in the order of the axis.

    After a level of lanes the lane at the start of each block has what it folds to; the others
    exchanged its halves.
    """
    levels = plan.levels or ()
    parts = [
        _Part(line, plan.spread.positions[register], sources[register])
        for line, group in enumerate(plan.spread.groups)
        for register in group
    ]
    for level in levels:
        parts = _fold_level(combine, level, _join(combine, parts, level.step), offset)
    values = [part.value for part in _join(combine, parts, plan.layout.shape[plan.spread.axis])]
    if not levels or levels[-1].scratch is not None:
        return values
    ctx = combine.ctx
    return take_from_lane(ctx, combine.elements, values, _first_lane(ctx, plan.spread))


def _join(combine: Combine, parts: Sequence[_Part], step: int) -> list[_Part]:
    """The parts that a thread holds of each aligned block of `step` elements, folded."""

    def block(part: _Part) -> tuple[int, int]:
        return part.line, part.place // step

    return [
        _Part(line, place * step, combine.fold([part.value for part in group]))
        for (line, place), group in groupby(parts, block)
    ]


def _fold_level(
    combine: Combine, level: ReductionLevel, parts: Sequence[_Part], offset: int
) -> list[_Part]:
    """The parts of all threads that a level joins."""
    ctx, values = combine.ctx, [part.value for part in parts]
    if level.scratch is None:
        others = exchange_lanes(ctx, combine.elements, values, 1 << level.bits[0].index)
        folded = [combine.apply(*pair) for pair in zip(values, others, strict=True)]
    else:
        start = offset + level.offset
        rows = exchange_scratch(ctx, combine.elements, level.scratch, start, values)
        folded = [combine.fold(row) for row in rows]
    return [replace(part, value=value) for part, value in zip(parts, folded, strict=True)]


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


def _first_lane(ctx: SimtContext, spread: AxisSpread) -> str:
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


def _extended(ctx: SimtContext, element: Attribute, name: str, kind: str) -> str:
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


def _narrowed(ctx: SimtContext, element: Attribute, word: str) -> str:
    bits = storage_bits(element)
    narrow = word if bits == 32 else ctx.fn.value(f"trunc i32 {word} to i{bits}")
    return from_bits(ctx.fn, element, narrow)
