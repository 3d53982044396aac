"""Conversions of layout: registers renamed, exchanged between lanes, or sent through memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.rules.staging import read_all, read_pass, write_pass
from tilewright.codegen.simt.words import (
    as_words32,
    from_words32,
    pack,
    storage_bits,
    unpack,
)
from tilewright.layout.convert import RegisterPermutation, SharedRoundTrip, WarpShuffle
from tilewright.ops.staging import ConvertLayoutOp
from tilewright.schedule.conversions import conversion_of
from tilewright.schedule.scratch import scratch_offset


@SIMT_RULES.register(ConvertLayoutOp)
def _convert(ctx: SimtContext, op: ConvertLayoutOp) -> None:
    plan = conversion_of(op)
    names = ctx.registers(op.src)
    element = element_type(op.src.type)
    if isinstance(plan, RegisterPermutation):
        values = [names[source] for source in plan.moves]
    elif isinstance(plan, WarpShuffle):
        values = _shuffled(ctx, element, names, plan)
    else:
        values = _through_memory(
            ctx, element, names, plan, ctx.scope.shared_byte(scratch_offset(op))
        )
    ctx.define_tile(op.result, values)


def _through_memory(
    ctx: SimtContext,
    element: Attribute,
    names: Sequence[str],
    plan: SharedRoundTrip,
    start: str,
) -> list[str]:
    values: dict[int, str] = {}
    for number in range(plan.num_passes):
        if number:
            ctx.scope.barrier()
        write_pass(ctx, element, names, start, plan.store, number)
        ctx.scope.barrier()
        read_pass(ctx, element, start, plan.load, values, number)
    return read_all(ctx, values, plan.load)


def _shuffled(
    ctx: SimtContext, element: Attribute, names: Sequence[str], plan: WarpShuffle
) -> list[str]:
    made = [_exchange(ctx, element, names, plan, sources) for sources in plan.source_registers]
    return [made[copy][index] for copy, index in plan.results]


def _exchange(
    ctx: SimtContext,
    element: Attribute,
    names: Sequence[str],
    plan: WarpShuffle,
    sources: Sequence[int],
) -> list[str]:
    """One copy of the atom: what each lane has after the rounds."""
    values = [names[register] for register in sources]
    for source, masks in ((ctx.index.lane, plan.select_lane), (ctx.index.warp, plan.select_warp)):
        values = _select(ctx, element, values, source, masks)
    source_lane = ctx.index.linear(ctx.fn, plan.source_lane, plan.source_warp)
    group = 1 << plan.packed_log2
    arrived: dict[int, str] = {}
    for step in plan.rounds:
        sent = [values[step.sent ^ low] for low in range(group)]
        if step.moves:
            lane = source_lane
            if step.lane:
                lane = ctx.fn.value(f"xor i32 {source_lane}, {step.lane}")
            sent = _sent(ctx, element, sent, lane)
        for low, value in enumerate(sent):
            arrived[step.received ^ low] = value
    received = [arrived[index] for index in range(len(arrived))]
    return _select(ctx, element, received, ctx.index.lane, plan.place_lane)


def _select(
    ctx: SimtContext,
    element: Attribute,
    values: list[str],
    source: str,
    masks: Sequence[int],
) -> list[str]:
    """`values[i ^ mask]` for the XOR of the masks of the bits set in `source`."""
    kind = llvm_type(element)
    for bit, mask in enumerate(masks):
        if mask == 0:
            continue
        is_set = _bit(ctx, source, bit)
        values = [
            ctx.fn.value(f"select i1 {is_set}, {kind} {values[i ^ mask]}, {kind} {values[i]}")
            for i in range(len(values))
        ]
    return values


def _bit(ctx: SimtContext, source: str, bit: int) -> str:
    kept = ctx.fn.prologue_value(f"and i32 {source}, {1 << bit}")
    return ctx.fn.prologue_value(f"icmp ne i32 {kept}, 0")


def _sent(ctx: SimtContext, element: Attribute, values: Sequence[str], lane: str) -> list[str]:
    """Elements of another lane, as many to a word as there are."""
    fn = ctx.fn
    if len(values) > 1:
        bits = storage_bits(element) * len(values)
        word = pack(fn, element, values, bits)[0]
        wide = word if bits == 32 else fn.value(f"zext i{bits} {word} to i32")
        wide = ctx.target.shuffle_index(fn, wide, lane)
        word = wide if bits == 32 else fn.value(f"trunc i32 {wide} to i{bits}")
        return unpack(fn, element, [word], bits)
    words = [ctx.target.shuffle_index(fn, w, lane) for w in as_words32(fn, element, values[0])]
    return [from_words32(fn, element, words)]
