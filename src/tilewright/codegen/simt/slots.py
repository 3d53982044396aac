"""Writes and reads the slots of a plan in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.flow import only_where
from tilewright.codegen.simt.shared import load_shared, store_shared
from tilewright.codegen.simt.words import pack, storage_bits, unpack, word_bits_of
from tilewright.schedule.reduction_scratch import Scratch, Slots


def masked(ctx: SimtContext, lane_mask: int, warp_mask: int) -> str:
    """The masked bits of lane and warp in one word (i32) that is 0 where all of them are."""
    fn = ctx.fn
    terms: list[str] = []
    for source, mask in ((ctx.index.lane, lane_mask), (ctx.index.warp, warp_mask)):
        if mask:
            terms.append(fn.prologue_value(f"and i32 {source}, {mask}"))
    if not terms:
        return "0"
    return terms[0] if len(terms) == 1 else fn.prologue_value(f"or i32 {terms[0]}, {terms[1]}")


def is_zero(ctx: SimtContext, lane_mask: int, warp_mask: int) -> str | None:
    """Whether the masked bits of lane and warp are all 0, i1; None where that is always so."""
    if not lane_mask and not warp_mask:
        return None
    return ctx.fn.prologue_value(f"icmp eq i32 {masked(ctx, lane_mask, warp_mask)}, 0")


def exchange_scratch(
    ctx: SimtContext,
    elements: Sequence[Attribute],
    scratch: Scratch,
    offset: int,
    values: Sequence[tuple[str, ...]],
) -> list[list[tuple[str, ...]]]:
    """For each register the values of all warps that exchange, in their order.

    `values` are the registers of this thread, a tuple of operands each; one barrier.
    """
    between = scratch.between
    warps = between.gone_warps | (ctx.scope.warps - 1) & ~(between.layout.num_warps - 1)
    places = list(zip(elements, scratch.slots, scratch.offsets, strict=True))
    with only_where(ctx, is_zero(ctx, between.gone_lanes, warps)):
        for operand, (element, slots, start) in enumerate(places):
            write_slots(ctx, element, slots, offset + start, [value[operand] for value in values])
    ctx.scope.barrier()
    columns = [read_slots(ctx, element, slots, offset + start) for element, slots, start in places]
    return [list(zip(*rows, strict=True)) for rows in zip(*columns, strict=True)]


def write_slots(
    ctx: SimtContext, element: Attribute, slots: Slots, offset: int, names: Sequence[str]
) -> None:
    """Write one value a register to this warp's places."""
    fn = ctx.fn
    warp = tuple(a | b for a, b in zip(slots.warp_bases, slots.axis_bases, strict=True))
    base = ctx.index.linear(fn, slots.lane_bases, warp)
    width = 1 if slots.is_axis_fastest else slots.vector
    for start in range(0, len(names), width):
        place = ctx.scope.shared_byte(offset + slots.register_bytes(start), base)
        _store(ctx, element, place, names[start : start + width])


def read_slots(ctx: SimtContext, element: Attribute, slots: Slots, offset: int) -> list[list[str]]:
    """For each register the values of all warps along the axis, in its order."""
    fn = ctx.fn
    base = ctx.index.linear(fn, slots.lane_bases, slots.warp_bases)
    found: list[list[str]] = [[] for _ in range(slots.num_registers)]
    if slots.is_axis_fastest:
        for register, values in enumerate(found):
            for warp in range(0, slots.num_warps_along, slots.vector):
                byte = offset + slots.register_bytes(register) + warp * slots.axis_bytes
                values += _load(ctx, element, ctx.scope.shared_byte(byte, base), slots.vector)
        return found
    for start in range(0, slots.num_registers, slots.vector):
        for warp in range(slots.num_warps_along):
            byte = offset + slots.register_bytes(start) + warp * slots.axis_bytes
            loaded = _load(ctx, element, ctx.scope.shared_byte(byte, base), slots.vector)
            for place, value in enumerate(loaded):
                found[start + place].append(value)
    return found


def _store(ctx: SimtContext, element: Attribute, place: str, names: Sequence[str]) -> None:
    bits = word_bits_of(element, len(names))
    store_shared(ctx.fn, place, pack(ctx.fn, element, names, bits), bits)


def _load(ctx: SimtContext, element: Attribute, place: str, count: int) -> list[str]:
    bits = word_bits_of(element, count)
    words = load_shared(ctx.fn, place, count * storage_bits(element) // bits, bits)
    return unpack(ctx.fn, element, words, bits)
