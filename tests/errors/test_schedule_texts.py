"""Texts of schedules that are none: the word at fault, its place and what fits there."""

from __future__ import annotations

import pytest

from tests.plugins.goldens import Golden
from tilewright.ir.schedule_text import parse_schedule
from tilewright.support.errors import MalformedSchedule

WRONG = {
    "schedule_of_an_unknown_clause": "rings ab tiles load#0 slots 2",
    "schedule_with_two_roles_of_a_name": "roles load | math | math x2",
    "schedule_with_registers_in_between": "roles load regs 42",
    "schedule_with_too_many_registers": "roles load regs 264",
    "schedule_with_three_warps": "roles load | math warps 3",
    "schedule_with_too_many_replicas": "roles load | math x9",
    "schedule_with_an_unknown_split": "roles math split k",
    "schedule_with_two_rings_of_a_name": "ring a tiles load#0 slots 2; ring a tiles load#1 slots 2",
    "schedule_with_a_load_in_two_rings": "ring a tiles load#0 slots 2; ring b tiles load#0 slots 2",
    "schedule_with_an_empty_ring": "ring a tiles slots 2",
    "schedule_without_slots": "ring a tiles load#0 slots 0",
    "schedule_with_an_unknown_medium": "ring a tiles load#0 slots 2 wires",
    "schedule_with_memory_of_a_later_ring": "ring a tiles load#0 slots 2 tma release wait shares b",
    "schedule_with_memory_that_is_shared": (
        "ring a tiles load#0 slots 1; ring b tiles load#1 slots 1 shares a; "
        "ring c tiles load#2 slots 1 shares b"
    ),
    "schedule_of_a_product_in_a_ring": "ring a tiles dot#0 slots 2",
    "schedule_with_a_place_left_out": "loop for#0 dot#0 dot#1 @0.0",
    "schedule_with_a_place_without_cluster": "loop for#0 dot#0 @1",
    "schedule_with_two_places_of_an_op": "loop for#0 dot#0 @0.0 dot#0 @1.0",
    "schedule_of_a_loop_twice": "loop for#0 dot#0 @0.0\nloop for#0 dot#1 @0.0",
    "schedule_with_an_order_of_no_loop": "order dot#0",
    "schedule_with_an_empty_order": "loop for#0 dot#0 @0.0\norder",
    "schedule_that_releases_no_ring": "loop for#0 dot#0 @0.0 order dot#0 release(ab)",
    "schedule_that_waits_for_a_load": "loop for#0 dot#0 @0.0 order wait(load#0)",
    "schedule_with_turns_of_no_role": "roles load | math x2; turns mat lock dot#0 pass done",
    "schedule_that_persists_twice": "persist static; persist static",
    "schedule_of_too_large_clusters": "persist static; cluster 4",
    "schedule_with_too_wide_an_epilogue": "epilogue tma columns 512",
}


@pytest.mark.parametrize("name", WRONG)
def test_the_message_of_a_wrong_schedule(name: str, golden: Golden) -> None:
    with pytest.raises(MalformedSchedule) as caught:
        parse_schedule(WRONG[name])
    golden(f"golden/{name}", str(caught.value))
