"""Sorts of tiles too large for their network to be written out: a loop over shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute

from tilewright.codegen.simt.combine import Value
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.flow import repeat_while
from tilewright.codegen.simt.places import read_tile, write_tile
from tilewright.codegen.simt.shared import load_shared, store_shared
from tilewright.codegen.simt.sort_keys import KeyCodec
from tilewright.schedule.rearrangements import TilePlaces, tile_places
from tilewright.schedule.sorts import SortPlan
from tilewright.support.dataclass import dataclass

_TYPES: dict[int, Attribute] = {32: i32, 64: i64}


def sort_in_memory(
    ctx: SimtContext, plan: SortPlan, codec: KeyCodec, offset: int, values: Sequence[Value]
) -> list[Value]:
    """The registers of a tile sorted along its last dim, as words of the codec."""
    arrays: list[_Array] = []
    for bits in plan.keys.word_bits:
        places = tile_places(plan.layout.shape, bits // 8)
        arrays.append(_Array(bits, offset, places))
        offset += places.size_bytes
    for place, array in enumerate(arrays):
        names = [value[place] for value in values]
        write_tile(ctx, _TYPES[array.bits], plan.layout, array.places, array.offset, names)
    _sort(ctx, plan, codec, arrays)
    ctx.scope.barrier()
    columns = [
        read_tile(ctx, _TYPES[array.bits], plan.layout, array.places, array.offset)
        for array in arrays
    ]
    return list(zip(*columns, strict=True))


@dataclass(frozen=True)
class _Array:
    """One word of every element in shared memory."""

    bits: int
    offset: int
    places: TilePlaces

    def byte(self, ctx: SimtContext, index: str) -> str:
        """The byte of the element at a flat index."""
        scaled = ctx.fn.value(f"shl i32 {index}, {self.bits.bit_length() - 4}")
        return ctx.fn.value(f"add i32 {scaled}, {ctx.scope.shared_byte(self.offset)}")


def _sort(ctx: SimtContext, plan: SortPlan, codec: KeyCodec, arrays: Sequence[_Array]) -> None:
    """Every comparison of the network, all threads together: runs of `run`, distance `step`."""
    fn, extent = ctx.fn, plan.layout.shape[-1]

    def body(variables: Sequence[str]) -> Sequence[str]:
        run, step = variables
        is_first = fn.value(f"icmp eq i32 {run}, {step}")
        doubled = fn.value(f"shl i32 {run}, 1")
        mirror = fn.value(f"sub i32 {doubled}, 1")
        mask = fn.value(f"select i1 {is_first}, i32 {mirror}, i32 {step}")
        ctx.scope.barrier()
        _compare_pairs(ctx, plan, codec, arrays, step, mask)
        is_last = fn.value(f"icmp eq i32 {step}, 1")
        half = fn.value(f"lshr i32 {step}, 1")
        return (
            fn.value(f"select i1 {is_last}, i32 {doubled}, i32 {run}"),
            fn.value(f"select i1 {is_last}, i32 {doubled}, i32 {half}"),
        )

    repeat_while(fn, ["1", "1"], lambda names: fn.value(f"icmp ult i32 {names[0]}, {extent}"), body)


def _compare_pairs(
    ctx: SimtContext,
    plan: SortPlan,
    codec: KeyCodec,
    arrays: Sequence[_Array],
    step: str,
    mask: str,
) -> None:
    """Each thread orders its share of the pairs of elements whose places differ in `mask`."""
    fn = ctx.fn
    lanes, warps = ctx.target.lanes, ctx.scope.warps
    thread = ctx.index.linear(
        fn,
        [1 << bit for bit in range(lanes.bit_length() - 1)],
        [lanes << bit for bit in range(warps.bit_length() - 1)],
    )
    low_mask = fn.value(f"sub i32 {step}, 1")

    def body(variables: Sequence[str]) -> Sequence[str]:
        (pair,) = variables
        low = fn.value(f"and i32 {pair}, {low_mask}")
        high = fn.value(f"sub i32 {pair}, {low}")
        high = fn.value(f"shl i32 {high}, 1")
        first = fn.value(f"or disjoint i32 {high}, {low}")
        second = fn.value(f"xor i32 {first}, {mask}")
        _order(ctx, codec, arrays, first, second)
        return (fn.value(f"add i32 {pair}, {lanes * warps}"),)

    pairs = prod(plan.layout.shape) // 2
    repeat_while(fn, [thread], lambda names: fn.value(f"icmp ult i32 {names[0]}, {pairs}"), body)


def _order(
    ctx: SimtContext, codec: KeyCodec, arrays: Sequence[_Array], first: str, second: str
) -> None:
    """Put the lesser of two elements at the first place."""
    places = [(array.byte(ctx, first), array.byte(ctx, second)) for array in arrays]
    found = [
        tuple(
            load_shared(ctx.fn, place[side], 1, array.bits)[0]
            for array, place in zip(arrays, places, strict=True)
        )
        for side in range(2)
    ]
    is_ordered = codec.is_less(*found)
    ordered = codec.choose(is_ordered, *found), codec.choose(is_ordered, *reversed(found))
    for side, value in enumerate(ordered):
        for array, place, word in zip(arrays, places, value, strict=True):
            store_shared(ctx.fn, place[side], [word], array.bits)
