"""Plans of exchanges: every element of a line is met once, every place in memory belongs to one."""

from __future__ import annotations

from itertools import product

import pytest

from tilewright.layout.axis import AxisBit, spread_along
from tilewright.layout.build import blocked, coalesced, mma_accumulator, wgmma_accumulator
from tilewright.layout.linear import LinearLayout
from tilewright.schedule.rearrangements import tile_places
from tilewright.schedule.reduction_scratch import Slots, exchange_along, plan_slots
from tilewright.schedule.sorts import SortKeys
from tilewright.support.errors import UnsupportedLayout

LAYOUTS = {
    "rows": coalesced((16, 64), (1, 0), 4, 4),
    "columns": coalesced((16, 64), (0, 1), 2, 4),
    "one row": coalesced((1, 2048), (1, 0), 4, 8),
    "few": coalesced((2, 4), (1, 0), 1, 4),
    "repeats": coalesced((192, 80), (1, 0), 4, 4),
    "blocks": blocked((64, 96), (2, 4), (4, 8), (2, 2), (1, 0)),
    "wgmma": wgmma_accumulator((128, 176), (8, 1), 176),
    "mma": mma_accumulator((32, 24), (2, 1)),
    "three dims": coalesced((4, 6, 16), (2, 1, 0), 2, 4),
}
CASES = [(name, axis) for name, layout in LAYOUTS.items() for axis in range(layout.rank)]


def steps(bits: tuple[AxisBit, ...]) -> list[int]:
    """How far every combination of bits moves along the axis."""
    return [sum(step) for step in product(*((0, bit.step) for bit in bits))]


@pytest.mark.parametrize(("name", "axis"), CASES)
def test_registers_lanes_and_warps_cover_a_line_once(name: str, axis: int) -> None:
    layout = LAYOUTS[name]
    spread = spread_along(layout, axis)
    for group in spread.groups:
        met = [
            spread.positions[register] + lane + warp
            for register in group
            for lane in steps(spread.lanes)
            for warp in steps(spread.warps)
        ]
        assert sorted(met) == list(range(layout.shape[axis]))


@pytest.mark.parametrize(("name", "axis"), CASES)
def test_registers_of_a_group_differ_along_the_axis_alone(name: str, axis: int) -> None:
    layout = LAYOUTS[name]
    spread = spread_along(layout, axis)
    offsets, lines = layout.register_offsets(), spread.result.register_offsets()
    for line, group in zip(lines, spread.groups, strict=True):
        for register in group:
            at = offsets[register]
            assert (*at[:axis], *at[axis + 1 :]) == line


def test_a_bit_that_moves_along_two_dims_is_refused() -> None:
    layout = LinearLayout((("register", ((1, 1),)), ("lane", ((1, 0),)), ("warp", ())), (2, 2))
    with pytest.raises(UnsupportedLayout):
        spread_along(layout, 1)


def combined(bases: tuple[int, ...], index: int) -> int:
    """A linear function of an index."""
    total = 0
    for bit, base in enumerate(bases):
        if index >> bit & 1:
            total ^= base
    return total


def bytes_of(slots: Slots, layout: LinearLayout) -> dict[int, set[tuple[int, int, int]]]:
    """Which places (register, lane, warp) share each byte."""
    found: dict[int, set[tuple[int, int, int]]] = {}
    for lane, warp in product(range(layout.num_lanes), range(layout.num_warps)):
        base = combined(slots.lane_bases, lane) + combined(slots.warp_bases, warp)
        base += combined(slots.axis_bases, warp)
        for register in range(slots.num_registers):
            byte = base + slots.register_bytes(register)
            found.setdefault(byte, set()).add((register, lane, warp))
    return found


@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
@pytest.mark.parametrize(("name", "axis"), CASES)
def test_only_copies_share_a_place_in_scratch(name: str, axis: int, element_bytes: int) -> None:
    layout = LAYOUTS[name]
    spread = spread_along(layout, axis)
    between = exchange_along(layout, spread)
    slots = plan_slots(between, spread.result.num_registers, element_bytes)
    gone = (between.gone_lanes, between.gone_warps)
    for byte, sharing in bytes_of(slots, layout).items():
        assert byte % element_bytes == 0
        assert byte + element_bytes <= slots.size_bytes
        owners = {(r, lane & ~gone[0], warp & ~gone[1]) for r, lane, warp in sharing}
        assert len(owners) == 1


@pytest.mark.parametrize("shape", [(4, 8), (3, 5), (6, 16, 2), (1,), (192, 80)])
def test_elements_of_a_tile_have_places_of_their_own(shape: tuple[int, ...]) -> None:
    places = tile_places(shape, 4)
    found = [places.byte(at) for at in product(*map(range, shape))]
    assert len(set(found)) == len(found)
    assert max(found) + 4 <= places.size_bytes


@pytest.mark.parametrize(
    ("key", "low", "words"),
    [(8, 16, (32,)), (16, 16, (32,)), (32, 0, (32,)), (32, 32, (64,)), (64, 0, (64,))],
)
def test_keys_and_positions_share_a_word(key: int, low: int, words: tuple[int, ...]) -> None:
    assert SortKeys(key, low).word_bits == words
    assert SortKeys(64, 32).word_bits == (64, 32)
