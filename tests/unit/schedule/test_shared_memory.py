"""Places in shared memory: what may share bytes, and what a kernel that needs too much is told."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.shared_programs import (
    PLAIN,
    SWIZZLED,
    TILE_BYTES,
    Program,
    machine_with,
    random_program,
)
from tilewright.analysis.alias import SharedAliases
from tilewright.ir.encoding import layout_of, shared_tile
from tilewright.ir.types import f16
from tilewright.layout.build import shared_swizzled
from tilewright.ops.staging import LocalAllocOp
from tilewright.schedule.scratch import scratch_offset
from tilewright.schedule.shared_memory import (
    SharedPlan,
    place_shared,
    plan_shared,
    tile_alignment,
)
from tilewright.support.errors import SharedMemoryExceeded

LIMIT_BYTES = 232448
TIGHT_BYTES = 3 * TILE_BYTES + 512
"""Room for so few tiles that as many as may share bytes."""


def placed(program: Program) -> SharedPlan:
    """The plan of a program."""
    return place_shared(program.kernel(), machine_with(TIGHT_BYTES), 4)


def offsets(plan: SharedPlan) -> list[int]:
    """Where everything lies, in the order of the text."""
    return [buffer.offset_bytes for buffer in plan.buffers]


def test_tiles_that_are_in_use_at_once_lie_apart() -> None:
    program = Program()
    first, second = program.alloc(filled=True), program.alloc(filled=True)
    program.load(first)
    program.load(second)
    plan = placed(program)
    assert offsets(plan) == [0, TILE_BYTES]
    assert plan.total_bytes == 2 * TILE_BYTES


def test_tiles_that_follow_each_other_share_bytes() -> None:
    program = Program()
    program.load(program.alloc(filled=True))
    program.load(program.alloc(filled=True))
    assert offsets(placed(program)) == [0, 0]


def test_branches_share_bytes() -> None:
    program = Program()

    def side() -> None:
        program.load(program.alloc(filled=True))

    program.branch(side, side)
    assert offsets(placed(program)) == [0, 0]


def test_a_tile_that_a_loop_reads_lives_to_the_end_of_it() -> None:
    program = Program()
    tile = program.alloc(filled=True)

    def body() -> None:
        program.load(tile)
        program.load(program.alloc(filled=True))

    program.loop(body)
    assert offsets(placed(program)) == [0, TILE_BYTES]


def test_a_tile_of_one_iteration_does_not_outlive_it() -> None:
    program = Program()

    def body() -> None:
        program.load(program.alloc(filled=True))
        program.load(program.alloc(filled=True))

    program.loop(body)
    assert offsets(placed(program)) == [0, 0]


def test_scratch_lies_beside_the_tiles_in_use() -> None:
    program = Program()
    tile = program.alloc(filled=True)
    exchange = program.exchange()
    program.load(tile)
    late = program.exchange()
    kernel = program.kernel()
    place_shared(kernel, machine_with(TILE_BYTES + 512), 4)
    assert scratch_offset(exchange) == TILE_BYTES
    assert scratch_offset(late) == 0


def test_small_scratch_lies_apart_where_that_costs_no_program() -> None:
    program = Program()
    first, second = program.exchange(), program.exchange()
    place_shared(program.kernel(), machine_with(LIMIT_BYTES), 4)
    assert (scratch_offset(first), scratch_offset(second)) == (0, 512)


def test_tiles_lie_apart_where_products_fill_the_registers() -> None:
    program = Program()
    for _ in range(2):
        tile = program.alloc(SWIZZLED, filled=True)
        program.dot(tile, tile)
    plan = place_shared(program.kernel(), machine_with(LIMIT_BYTES), 8)
    assert offsets(plan) == [0, TILE_BYTES]


def test_tiles_share_bytes_where_products_leave_registers_for_more_programs() -> None:
    program = Program()
    for _ in range(2):
        tile = program.alloc(SWIZZLED, filled=True)
        program.dot(tile, tile)
    # 94 registers a thread let five programs run; as many have one tile each, but not two.
    plan = place_shared(program.kernel(), machine_with(8 * TILE_BYTES), 4)
    assert offsets(plan) == [0, 0]


def test_a_view_keeps_its_tile_alive() -> None:
    program = Program()
    ring = program.alloc(shared_tile(f16, layout_of(PLAIN), 2))
    slot = program.index(ring, program.constant(1))
    program.store(slot)
    program.load(program.alloc(filled=True))
    program.load(slot)
    assert offsets(placed(program)) == [0, 2 * TILE_BYTES]
    (place,) = SharedAliases().places(slot)
    assert (place.start, place.end) == (TILE_BYTES, 2 * TILE_BYTES)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_a_swizzled_tile_is_aligned_to_its_pattern(swizzle: int) -> None:
    layout = shared_swizzled((64, 64), 2, swizzle, (1, 0))
    assert tile_alignment(layout, 2) == max(128, 8 * swizzle)


def test_alignment_holds_behind_small_scratch() -> None:
    program = Program()
    program.alloc()
    kernel_tile = program.alloc(SWIZZLED, filled=True)
    program.load(kernel_tile)
    plan = placed(program)
    assert all(b.offset_bytes % b.alignment_bytes == 0 for b in plan.buffers)


@pytest.mark.parametrize("seed", range(40))
def test_no_two_that_are_in_use_at_once_overlap(seed: int) -> None:
    plan = plan_shared(
        random_program(Random(seed)), machine_with(TIGHT_BYTES if seed % 2 else LIMIT_BYTES), 4
    )
    for number, left in enumerate(plan.buffers):
        assert left.offset_bytes % left.alignment_bytes == 0
        assert left.end_bytes <= plan.total_bytes
        for right in plan.buffers[:number]:
            apart = left.end_bytes <= right.offset_bytes or right.end_bytes <= left.offset_bytes
            assert apart or not left.live.overlaps(right.live)


def test_the_plan_is_a_table_of_lines() -> None:
    program = Program()
    tile = program.alloc(filled=True)
    program.exchange()
    program.load(tile)
    assert str(placed(program)).splitlines() == [
        "line         what                 bytes  offset  in use",
        "kernel.py:2  [64, 64] f16         8192   0       1-3",
        "kernel.py:3  scratch of exchange  512    8192    2-2",
    ]


def test_too_much_is_an_error_that_lists_the_tiles_by_line() -> None:
    program = Program()
    layout = shared_swizzled((128, 128), 2, 128, (1, 0))
    tiles = [program.alloc(shared_tile(f16, layout, slots), filled=slots == 1) for slots in (4, 1)]
    for tile in tiles:
        program.load(tile)
    with pytest.raises(SharedMemoryExceeded) as caught:
        place_shared(program.kernel(), machine_with(131072), 4)
    assert str(caught.value) == (
        "error[SharedMemoryExceeded]: the kernel needs 163840 bytes of shared memory, sm_90a has "
        "131072\n"
        "  kernel.py:2, col 0\n"
        "  1. [128, 128] f16 x 4 at kernel.py:2: 131072 bytes   "
        "2. [128, 128] f16 at kernel.py:3: 32768 bytes\n"
        "  help: 3 slots a ring fit instead of 4: lower `num_stages`, or say `slots 3` in the "
        "schedule"
    )


def test_without_stages_smaller_blocks_are_the_advice() -> None:
    program = Program()
    layout = shared_swizzled((256, 256), 2, 128, (1, 0))
    tiles = [program.alloc(shared_tile(f16, layout), filled=False) for _ in range(2)]
    for tile in tiles:
        program.load(tile)
    with pytest.raises(SharedMemoryExceeded) as caught:
        place_shared(program.kernel(), machine_with(LIMIT_BYTES), 4)
    assert caught.value.hint == "blocks of half the size fit, such as 128 for 256"


def test_a_plan_that_is_too_large_is_packed_again_with_the_largest_first() -> None:
    program = Program()
    layout = shared_swizzled((128, 128), 2, 128, (1, 0))
    first, second = program.alloc(filled=True), program.alloc(filled=True)
    program.load(first)
    large = program.alloc(shared_tile(f16, layout), filled=True)
    program.load(second)
    program.load(large)
    kernel = program.kernel()
    assert plan_shared(kernel, machine_with(6 * TILE_BYTES), 4).total_bytes == 6 * TILE_BYTES
    assert plan_shared(kernel, machine_with(5 * TILE_BYTES), 4).total_bytes == 5 * TILE_BYTES


def test_every_shared_tile_gets_a_place() -> None:
    kernel = random_program(Random(7))
    place_shared(kernel, machine_with(LIMIT_BYTES), 4)
    allocs = [op for op in kernel.walk() if isinstance(op, LocalAllocOp)]
    assert allocs and all(op.offset_bytes is not None for op in allocs)
