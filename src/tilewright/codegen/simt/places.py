"""Writes tiles to shared memory as a whole, and reads elements of them at any place."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.flow import only_where
from tilewright.codegen.simt.shared import load_shared, store_shared
from tilewright.codegen.simt.slots import is_zero
from tilewright.codegen.simt.words import pack, storage_bits, unpack, word_bits_of
from tilewright.layout.linear import LinearLayout
from tilewright.schedule.layout.anchors import registers_in_a_row
from tilewright.schedule.rearrangements import TilePlaces

_VECTOR_BITS = 128


def owners(ctx: SimtContext, layout: LinearLayout) -> str | None:
    """Whether this thread is the first of those that hold its elements, i1; None: all are."""
    beyond = (ctx.scope.warps - 1) & ~(layout.num_warps - 1)
    return is_zero(ctx, layout.free_bits("lane"), layout.free_bits("warp") | beyond)


def tile_base(ctx: SimtContext, layout: LinearLayout, places: TilePlaces) -> str:
    """The byte of this thread's register 0 in a tile, i32."""
    return ctx.index.linear(ctx.fn, places.bases(layout, "lane"), places.bases(layout, "warp"))


def write_tile(
    ctx: SimtContext,
    element: Attribute,
    layout: LinearLayout,
    places: TilePlaces,
    offset: int,
    names: Sequence[str],
) -> None:
    """Write every element once; `offset` is the byte where the tile begins."""
    bits = storage_bits(element)
    width = min(registers_in_a_row(layout, layout.rank - 1), max(1, _VECTOR_BITS // bits))
    word = word_bits_of(element, width)
    base = tile_base(ctx, layout, places)
    with only_where(ctx, owners(ctx, layout)):
        for start in range(0, len(names), width):
            at = layout.register_offsets()[start]
            place = ctx.scope.shared_byte(offset + places.byte(at), base)
            store_shared(
                ctx.fn, place, pack(ctx.fn, element, names[start : start + width], word), word
            )


def read_tile(
    ctx: SimtContext,
    element: Attribute,
    layout: LinearLayout,
    places: TilePlaces,
    offset: int,
) -> list[str]:
    """Read every register of a layout."""
    bits = storage_bits(element)
    width = min(registers_in_a_row(layout, layout.rank - 1), max(1, _VECTOR_BITS // bits))
    word = word_bits_of(element, width)
    base = tile_base(ctx, layout, places)
    names: list[str] = []
    for start in range(0, layout.num_registers, width):
        place = ctx.scope.shared_byte(offset + places.byte(layout.register_offsets()[start]), base)
        words = load_shared(ctx.fn, place, width * bits // word, word)
        names += unpack(ctx.fn, element, words, word)
    return names


def read_element(ctx: SimtContext, element: Attribute, place: str) -> str:
    """The element at byte `place` (i32) of the program's shared memory."""
    bits = storage_bits(element)
    return unpack(ctx.fn, element, load_shared(ctx.fn, place, 1, bits), bits)[0]
