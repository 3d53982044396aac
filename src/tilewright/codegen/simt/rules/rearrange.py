"""Elements that change their place in a tile: reversal, concatenation, look-up."""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.combine import exchange_lanes, move_registers_by
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.places import read_element, tile_base, write_tile
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.rules.structure import registers_at
from tilewright.ir.encoding import layout_of
from tilewright.layout.axis import AxisSpread
from tilewright.ops.indexing.ir import GatherOp
from tilewright.ops.shape.ir import CatOp, FlipOp
from tilewright.schedule.rearrangements import (
    GatherPlan,
    TilePlaces,
    plan_flip,
    plan_gather,
)
from tilewright.schedule.reduction_scratch import axis_of
from tilewright.schedule.scratch import scratch_offset


@SIMT_RULES.register(FlipOp)
def _flip(ctx: SimtContext, op: FlipOp) -> None:
    plan = plan_flip(op)
    if plan.places is not None:
        ctx.define_tile(op.result, _flip_in_memory(ctx, op, plan.places))
        return
    names = ctx.registers(op.src)
    moved = [names[register] for register in plan.sources]
    if plan.lane_mask:
        element = element_type(op.src.type)
        values = exchange_lanes(ctx, [element], [(name,) for name in moved], plan.lane_mask)
        moved = [name for (name,) in values]
    ctx.define_tile(op.result, moved)


def _flip_in_memory(ctx: SimtContext, op: FlipOp, places: TilePlaces) -> list[str]:
    layout, axis, element = layout_of(op.src.type), axis_of(op), element_type(op.src.type)
    offset = scratch_offset(op)
    write_tile(ctx, element, layout, places, offset, ctx.registers(op.src))
    ctx.scope.barrier()
    # The thread's part of the place counts down along the axis and up along the others.
    stride, last = places.strides[axis], layout.shape[axis] - 1
    along = TilePlaces(_only(places.strides, axis), places.element_bytes, 0)
    others = TilePlaces(_without(places.strides, axis), places.element_bytes, 0)
    up, down = tile_base(ctx, layout, others), tile_base(ctx, layout, along)
    base = ctx.fn.value(f"sub i32 {up}, {down}")
    names: list[str] = []
    for at in layout.register_offsets():
        byte = offset + others.byte(at) + (last - at[axis]) * stride
        # The part of the thread may be negative.
        place = ctx.fn.value(f"add i32 {base}, {ctx.scope.shared_byte(byte)}")
        names.append(read_element(ctx, element, place))
    return names


def _only(strides: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(stride if dim == axis else 0 for dim, stride in enumerate(strides))


def _without(strides: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(0 if dim == axis else stride for dim, stride in enumerate(strides))


@SIMT_RULES.register(CatOp)
def _cat(ctx: SimtContext, op: CatOp) -> None:
    rows = layout_of(op.lhs.type).shape[0]
    sides = (ctx.registers(op.lhs), ctx.registers(op.rhs))
    target = layout_of(op.result.type)
    moves = registers_at(layout_of(op.lhs.type), target, lambda at: (at[0] % rows, *at[1:]))
    halves = [at[0] // rows for at in target.register_offsets()]
    ctx.define_tile(op.result, [sides[s][r] for s, r in zip(halves, moves, strict=True)])


@SIMT_RULES.register(GatherOp)
def _gather(ctx: SimtContext, op: GatherOp) -> None:
    plan = plan_gather(op)
    indices = [_as_i32(ctx, op.indices.type, name) for name in ctx.registers(op.indices)]
    if plan.spread is not None:
        ctx.define_tile(op.result, _gather_by_shuffles(ctx, op, plan, plan.spread, indices))
        return
    assert plan.places is not None
    ctx.define_tile(op.result, _gather_in_memory(ctx, op, plan.places, indices))


def _as_i32(ctx: SimtContext, type_: Attribute, name: str) -> str:
    kind = llvm_type(element_type(type_))
    if kind == "i32":
        return name
    return ctx.fn.value(f"{'trunc' if kind == 'i64' else 'zext'} {kind} {name} to i32")


def _gather_in_memory(
    ctx: SimtContext, op: GatherOp, places: TilePlaces, indices: list[str]
) -> list[str]:
    fn, axis, element = ctx.fn, axis_of(op), element_type(op.src.type)
    source, target = layout_of(op.src.type), layout_of(op.result.type)
    offset = scratch_offset(op)
    write_tile(ctx, element, source, places, offset, ctx.registers(op.src))
    ctx.scope.barrier()
    others = TilePlaces(_without(places.strides, axis), places.element_bytes, 0)
    base = tile_base(ctx, target, others)
    limit = (1 << (source.shape[axis] - 1).bit_length()) - 1
    names: list[str] = []
    for at, index in zip(target.register_offsets(), indices, strict=True):
        # What an index outside reads is anybody's guess, but it is in the tile.
        inside = fn.value(f"and i32 {index}, {limit}")
        if source.shape[axis] <= limit:
            inside = fn.value(
                f"call i32 @llvm.umin.i32(i32 {inside}, i32 {source.shape[axis] - 1})"
            )
        scaled = fn.value(f"mul nuw nsw i32 {inside}, {places.strides[axis]}")
        line = ctx.scope.shared_byte(offset + others.byte(at), base)
        place = fn.value(f"add nuw nsw i32 {line}, {scaled}")
        names.append(read_element(ctx, element, place))
    return names


def _gather_by_shuffles(
    ctx: SimtContext, op: GatherOp, plan: GatherPlan, spread: AxisSpread, indices: list[str]
) -> list[str]:
    """For each register of the result a shuffle of each register of its line, then one of them."""
    fn, element = ctx.fn, element_type(op.src.type)
    sources = ctx.registers(op.src)
    kind = llvm_type(element)
    in_lanes = sum(bit.step for bit in spread.lanes)
    names: list[str] = []
    for line, index in zip(plan.result_lines, indices, strict=True):
        lane = _source_lane(ctx, spread, index)
        group = spread.groups[line]
        moved = move_registers_by(
            ctx,
            element,
            [sources[register] for register in group],
            lambda word, lane=lane: ctx.target.shuffle_index(fn, word, lane),
        )
        found = moved[0]
        place = fn.value(f"and i32 {index}, {~in_lanes}") if len(group) > 1 else index
        for register, name in list(zip(group, moved, strict=True))[1:]:
            is_here = fn.value(f"icmp eq i32 {place}, {spread.positions[register]}")
            found = fn.value(f"select i1 {is_here}, {kind} {name}, {kind} {found}")
        names.append(found)
    return names


def _source_lane(ctx: SimtContext, spread: AxisSpread, index: str) -> str:
    """The lane that holds the element at `index` of this lane's line, i32."""
    fn = ctx.fn
    mask = (ctx.target.lanes - 1) & ~spread.lane_mask
    lane = fn.prologue_value(f"and i32 {ctx.index.lane}, {mask}")
    for bit in spread.lanes:
        shift = bit.step.bit_length() - 1 - bit.index
        moved = index
        if shift:
            opcode, amount = ("lshr", shift) if shift > 0 else ("shl", -shift)
            moved = fn.value(f"{opcode} i32 {index}, {amount}")
        kept = fn.value(f"and i32 {moved}, {1 << bit.index}")
        lane = fn.value(f"or disjoint i32 {lane}, {kept}")
    return lane
