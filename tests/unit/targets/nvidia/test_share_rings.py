"""Rings that have too little memory each for itself: which of them share, and which do not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.corpus.case import Case
from tests.corpus.run import tile_module
from tests.corpus.sharing import held_tiles_case, two_products_case
from tests.corpus.threads import gpu_request, lower_for_gpu, run_threads
from tests.unit.targets.nvidia.test_decide_roles import decided
from tilewright.compiler.compile import to_tiles
from tilewright.compiler.stages import schedule_of as schedule_of_request
from tilewright.ir.schedule import Channel, Schedule
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.explain.schedule import explain_schedule
from tilewright.targets.nvidia.partition.form import FormRoles, partition_remarks
from tilewright.targets.target import load_target

LARGE = (128, 256, 64, 64)
KIB = 1024


def channels(case: Case, **options: int) -> tuple[Channel, ...]:
    schedule = decided(case, groups=2, **options)
    assert isinstance(schedule, Schedule)
    assert parse_schedule(str(schedule)) == schedule
    return schedule.channels


def product(*blocks: int) -> Case:
    """Two products of two steps each, of four tiles."""
    rows, columns, depth, other = blocks
    return two_products_case("large", (2, 2), (rows, columns, depth, other), (2, 2))


def test_rings_that_fit_have_memory_of_their_own() -> None:
    assert [(c.slots, c.shares) for c in channels(product(*LARGE))] == [(2, ""), (2, "")]


def test_loops_over_equal_tiles_go_through_one_ring_where_more_slots_are_asked_for() -> None:
    (ring,) = channels(product(*LARGE), slots=4)
    assert (len(ring.tiles), ring.slots, ring.shares) == (4, 4, "")


def test_other_tiles_lie_in_one_memory() -> None:
    first, second = channels(product(128, 256, 64, 32), slots=4)
    assert (first.slots, second.slots, second.shares) == (4, 4, first.name)


def test_a_single_slot_each_is_too_little_unasked() -> None:
    """96 and 48 KiB a slot: two of both fit where one of each alone would."""
    schedule = decided(product(128, 256, 128, 64), groups=2)
    assert schedule is not None
    first, second = schedule.channels
    assert (first.slots, second.slots, second.shares) == (2, 2, first.name)
    assert schedule.reasons[:2] == (
        "2 slots of 98304 bytes fit beside 32768 bytes",
        "ring1 lies in the memory of ring0: one slot of each alone would fit",
    )


def test_a_tile_that_stays_gives_its_memory_to_the_next_one() -> None:
    """64 KiB twice, and 32 KiB a slot twice: where one ring for both loops is not enough."""
    case = held_tiles_case("stay", (2, 2), 128, 64, 256)
    assert [(c.slots, c.shares) for c in channels(case)] == [(1, ""), (2, ""), (1, "")]
    found = channels(case, slots=4)
    assert [(c.slots, c.shares) for c in found] == [(1, ""), (4, ""), (1, "ring0")]


@pytest.mark.parametrize("blocks", [LARGE, (128, 256, 64, 32), (128, 256, 128, 64)])
def test_what_fits_then_that_did_not(blocks: tuple[int, ...]) -> None:
    """Four slots of 48 KiB, and two of 96, for both loops; the bits are those of one program."""
    options = {} if blocks[2] == 128 else {"num_buffers_warp_spec": 4}
    threads = lower_for_gpu(product(*blocks), None, num_consumer_groups=2, **options)
    rings, chunks = 192 * KIB, 2 * 2 * 8 * KIB
    assert rings + chunks < threads.scheduled.metadata["shared_bytes"] <= 227 * KIB
    remarks = "\n".join(threads.scheduled.remarks)
    assert "instead of" not in remarks
    is_one = "ring0 is filled by loops in turn" in remarks
    assert is_one == (blocks == LARGE)
    assert ("in the memory of ring ring0" in remarks) == (blocks != LARGE)


@pytest.mark.parametrize("steps", [(3, 2), (0, 3), (5, 0)])
@pytest.mark.parametrize("blocks", [(128, 128, 128, 128), (128, 128, 128, 64)])
def test_threads_compute_the_bits_of_one_program(
    steps: tuple[int, int], blocks: tuple[int, int, int, int]
) -> None:
    case = two_products_case("wide", steps, blocks, (2, 1), rest=(27, 8))
    found = run_threads(case, None, num_consumer_groups=2, num_buffers_warp_spec=3)
    for name, array in case.expected().items():
        np.testing.assert_array_equal(found[name], array, name)


REFUSED = {
    "ring1 is filled in the same loop": (
        "ring a tiles load#0 slots 2; ring b tiles load#1 slots 2 shares a; "
        "ring cd tiles load#2 load#3 slots 2",
        "`b` is filled while slots of `a` are in use",
    ),
    "given back late": (
        "ring ab tiles load#0 load#1 slots 2; "
        "ring cd tiles load#2 load#3 slots 2 release late shares ab",
        "slots that are released late are in use behind their loop",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_author_who_is_wrong_about_it_is_told(name: str) -> None:
    rings, reason = REFUSED[name]
    request = gpu_request(two_products_case("refused", (2, 2)))
    module = tile_module(request)
    kernel = find_kernel(module)
    annotate_schedule(kernel, parse_schedule(f"roles load | math; {rings}"))
    FormRoles().apply(module)
    assert schedule_of(kernel) is None
    (remark,) = partition_remarks(kernel)
    assert "cannot have one memory: " + reason in remark


def test_a_tile_that_is_there_before_the_other_one_is_read_has_its_own_memory() -> None:
    early = held_tiles_case("early", (2, 2), 128, 64, 256, is_early=True)
    assert not any(channel.shares for channel in channels(early, slots=4))
    rings = (
        "ring a tiles load#0 slots 1; ring b tiles load#2 slots 2; "
        "ring c tiles load#1 slots 1 shares a; ring d tiles load#3 slots 2"
    )
    module = tile_module(gpu_request(held_tiles_case("refused", (2, 2), is_early=True)))
    annotate_schedule(find_kernel(module), parse_schedule(f"roles load | math; {rings}"))
    FormRoles().apply(module)
    (remark,) = partition_remarks(find_kernel(module))
    assert "`c` is filled while slots of `a` are in use" in remark


def test_explain_says_whose_slots_are_shared_and_who_waits_for_them() -> None:
    """At the line of the load that fills the second ring; a ring of its own says nothing."""
    asked = {"num_consumer_groups": 2, "num_buffers_warp_spec": 4}
    request = gpu_request(product(128, 256, 64, 32), **asked)
    tiles = find_kernel(to_tiles(request, load_target("nvidia")))
    summary = explain_schedule(tiles, find_kernel(schedule_of_request(request).module))
    assert summary is not None
    assert [ring.shares for ring in summary.rings] == ["", "ring0"]
    waits = [wait.what for wait in summary.waits if wait.role == "load"]
    what = "all slots of ring {} to be released, as the next ring has their memory"
    assert {what.format("ring0"), what.format("ring1")} <= set(waits)
