"""Barriers and fences: where they are put, and what the check of them refuses."""

from __future__ import annotations

from random import Random

import pytest
from xdsl.ir import Operation

from tests.unit.shared_programs import (
    PLAIN,
    SWIZZLED,
    Program,
    first_hazard,
    machine_with,
    random_program,
    trace,
)
from tilewright.ir.encoding import layout_of, shared_tile
from tilewright.ir.types import f16
from tilewright.ops.function import FuncOp
from tilewright.ops.staging import LocalBarrierOp
from tilewright.schedule.check_ordering import check_ordering, is_ordered
from tilewright.schedule.placed_accesses import PlacedAccesses
from tilewright.schedule.shared_barriers import insert_shared_barriers
from tilewright.schedule.shared_memory import place_shared
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp

LIMIT_BYTES = 48 << 10


def ordered(program: Program) -> FuncOp:
    """The program with its memory placed and its barriers put in and checked."""
    kernel = program.kernel()
    place_shared(kernel, machine_with(LIMIT_BYTES), 4)
    insert_shared_barriers(kernel, FenceAsyncSharedOp)
    check_ordering(kernel)
    return kernel


def names(kernel: FuncOp | Operation) -> list[str]:
    """The shared ops of a kernel, `end` behind each region."""
    found: list[str] = []
    for region in kernel.regions:
        for block in region.blocks:
            for op in block.ops:
                found += [_SHORT[op.name]] if op.name in _SHORT else []
                found += [*names(op), "end"] if op.regions else []
    return found


_SHORT = {
    "ttg.local_alloc": "alloc",
    "ttg.local_store": "store",
    "ttg.local_load": "load",
    "ttg.dot": "dot",
    "ttg.barrier": "barrier",
    "ttng.fence_async_shared": "fence",
    "test.exchange": "exchange",
    "scf.for": "for",
    "scf.if": "if",
    "scf.while": "while",
}


def test_a_read_waits_for_the_write_that_it_sees() -> None:
    program = Program()
    program.load(program.alloc(filled=True))
    assert names(ordered(program)) == ["alloc", "barrier", "load"]


def test_reads_do_not_wait_for_reads() -> None:
    program = Program()
    tile = program.alloc(filled=True)
    program.load(tile)
    program.load(tile)
    assert names(ordered(program)) == ["alloc", "barrier", "load", "load"]


def test_a_write_waits_for_the_reads_before_it() -> None:
    program = Program()
    tile = program.alloc(filled=True)
    program.load(tile)
    program.store(tile)
    assert names(ordered(program)) == ["alloc", "barrier", "load", "barrier", "store"]


def test_one_barrier_serves_several_tiles() -> None:
    program = Program()
    tiles = [program.alloc(filled=True) for _ in range(3)]
    for tile in tiles:
        program.load(tile)
    assert names(ordered(program)).count("barrier") == 1


def test_the_barrier_inside_of_an_exchange_counts() -> None:
    program = Program()
    tile = program.alloc(filled=True)
    program.exchange()
    program.load(tile)
    assert names(ordered(program)) == ["alloc", "exchange", "load"]


def test_tiles_that_share_bytes_wait_for_each_other() -> None:
    program = Program()
    program.load(program.alloc(filled=True))
    program.load(program.alloc(filled=True))
    expected = ["alloc", "barrier", "load", "barrier", "alloc", "barrier", "load"]
    assert names(ordered(program)) == expected


def test_iterations_of_a_loop_wait_for_each_other() -> None:
    program = Program()
    tile = program.alloc()

    def body() -> None:
        program.store(tile)
        program.load(tile)

    program.loop(body)
    assert names(ordered(program)) == ["alloc", "for", "barrier", "store", "barrier", "load", "end"]


def test_a_barrier_that_the_first_iteration_needs_stands_outside() -> None:
    program = Program()
    tile = program.alloc(filled=True)
    program.loop(lambda: program.load(tile) and None)
    assert names(ordered(program)) == ["alloc", "barrier", "for", "load", "end"]


def test_barriers_around_branches_cover_both_sides() -> None:
    program = Program()
    tile = program.alloc(filled=True)
    program.branch(lambda: program.load(tile) and None)
    program.store(tile)
    assert names(ordered(program)) == ["alloc", "barrier", "if", "load", "end", "barrier", "store"]


def test_a_barrier_in_both_branches_covers_what_follows() -> None:
    program = Program()
    tile = program.alloc(filled=True)
    program.branch(lambda: program.exchange() and None, lambda: program.exchange() and None)
    program.load(tile)
    assert names(ordered(program)) == ["alloc", "if", "exchange", "exchange", "end", "load"]


def test_a_product_sees_written_tiles_behind_a_fence() -> None:
    program = Program()
    a, b = program.alloc(SWIZZLED, filled=True), program.alloc(SWIZZLED, filled=True)
    program.dot(a, b)
    assert names(ordered(program)) == ["alloc", "alloc", "fence", "barrier", "dot"]


def test_the_fence_stands_before_the_barrier_of_an_exchange() -> None:
    program = Program()
    a = program.alloc(SWIZZLED, filled=True)
    program.exchange()
    program.dot(a, a)
    assert names(ordered(program)) == ["alloc", "fence", "exchange", "dot"]


def test_no_fence_where_threads_read() -> None:
    program = Program()
    program.load(program.alloc(SWIZZLED, filled=True))
    assert "fence" not in names(ordered(program))


def test_slots_with_known_numbers_do_not_wait_for_each_other() -> None:
    program = Program()
    ring = program.alloc(shared_tile(f16, layout_of(PLAIN), 2))
    first, second = (program.index(ring, program.constant(i)) for i in range(2))
    program.store(first)
    program.store(second)
    program.load(first)
    program.store(second)
    assert names(ordered(program)) == ["alloc", "store", "store", "barrier", "load", "store"]


def test_the_report_names_lines_and_reasons() -> None:
    program = Program()
    program.load(program.alloc(filled=True))
    kernel = program.kernel()
    place_shared(kernel, machine_with(LIMIT_BYTES), 4)
    (reason,) = insert_shared_barriers(kernel).barriers
    assert str(reason) == (
        "barrier before kernel.py:3: the write of ttg.local_alloc at kernel.py:2 comes before "
        "the read of ttg.local_load at kernel.py:3"
    )


@pytest.mark.parametrize("missing", ["barrier", "fence"])
def test_the_check_refuses_a_program_without(missing: str) -> None:
    program = Program()
    a = program.alloc(SWIZZLED, filled=True)
    if missing == "fence":
        program.barrier()
    else:
        program.fence()
    program.dot(a, a)
    kernel = program.kernel()
    place_shared(kernel, machine_with(LIMIT_BYTES), 4)
    with pytest.raises(InternalError, match=f"no {missing}"):
        check_ordering(kernel)


def test_the_check_refuses_a_barrier_before_the_fence() -> None:
    program = Program()
    a = program.alloc(SWIZZLED, filled=True)
    program.barrier()
    program.fence()
    program.dot(a, a)
    kernel = program.kernel()
    place_shared(kernel, machine_with(LIMIT_BYTES), 4)
    with pytest.raises(InternalError, match="no barrier behind the fence"):
        check_ordering(kernel)


def barriers(kernel: FuncOp) -> list[Operation]:
    """The barriers of a kernel."""
    return [op for op in kernel.walk() if isinstance(op, LocalBarrierOp)]


@pytest.mark.parametrize("first_seed", range(0, 100, 25))
def test_random_programs_are_ordered_on_every_path(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 25):
        random = Random(seed)
        kernel = random_program(random)
        place_shared(kernel, machine_with(LIMIT_BYTES), 4)
        insert_shared_barriers(kernel, FenceAsyncSharedOp)
        check_ordering(kernel)
        for _ in range(10):
            assert first_hazard(trace(kernel, random)) is None, seed


@pytest.mark.parametrize("first_seed", range(0, 100, 25))
def test_the_check_and_the_traces_agree(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 25):
        random = Random(seed)
        kernel = random_program(random, orders=0.5)
        place_shared(kernel, machine_with(LIMIT_BYTES), 4)
        hazards = (first_hazard(trace(kernel, random)) for _ in range(60))
        found = any(hazard is not None for hazard in hazards)
        assert is_ordered(kernel, PlacedAccesses()) is not found, seed
