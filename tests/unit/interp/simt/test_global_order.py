"""The order of a program's own accesses to global memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.simt.programs import BARRIER, FENCE, kernel, validated
from tilewright.interp.simt.faults import GlobalRace
from tilewright.interp.simt.simulate import simulate

MINE = "  %mine = getelementptr i32, ptr addrspace(1) %x, i32 %tid\n"
OTHER = """  %other = xor i32 %tid, 32
  %theirs = getelementptr i32, ptr addrspace(1) %x, i32 %other
"""
READ = "  %v = load i32, ptr addrspace(1) %theirs\n"
WRITE = "  store i32 %tid, ptr addrspace(1) %mine\n"


def launch(body: str, grid: int = 1) -> None:
    text = validated(kernel(MINE + OTHER + body, "x"))
    x = np.full(64, -1, np.int32)
    simulate(text, "k", (grid, 1, 1), 64, [x], checks_global_order=True)


def test_a_read_behind_another_threads_write_needs_a_barrier() -> None:
    launch(WRITE + BARRIER + READ)
    with pytest.raises(GlobalRace, match=r"thread 0 \(warp 0\) reads offset 128 of x, which"):
        launch(WRITE + READ)


def test_a_write_behind_another_threads_read_needs_a_barrier() -> None:
    launch(READ + BARRIER + WRITE)
    with pytest.raises(GlobalRace, match="writes offset 0 of x, which thread 32"):
        launch(READ + WRITE)


def test_programs_are_not_compared() -> None:
    launch(WRITE + BARRIER + READ, grid=3)


def test_atomics_do_not_race() -> None:
    add = "  %old = atomicrmw add ptr addrspace(1) %x, i32 1 monotonic\n"
    launch(add + add.replace("%old", "%old2"))
    with pytest.raises(GlobalRace):
        launch(add + "  %v = load i32, ptr addrspace(1) %x\n")


def test_threads_that_write_one_place_in_one_instruction_race_unless_they_write_the_same() -> None:
    first = "  %one = getelementptr i32, ptr addrspace(1) %x, i32 7\n"
    launch(first + "  store i32 4, ptr addrspace(1) %one\n")
    with pytest.raises(GlobalRace, match="writes offset 28 of x, where another thread writes a"):
        launch(first + "  store i32 %tid, ptr addrspace(1) %one\n")


# --- threads and the copy engine ----------------------------------------------------------------

SLOT = """  %from = getelementptr <4 x i32>, ptr addrspace(3) @shared, i32 %tid
  store <4 x i32> <i32 1, i32 2, i32 3, i32 4>, ptr addrspace(3) %from
  %shared_at = ptrtoint ptr addrspace(3) %from to i32
  %to = getelementptr <4 x i32>, ptr addrspace(1) %x, i32 %tid
  %global_at = ptrtoint ptr addrspace(1) %to to i64
"""
STORE = (
    '  call void asm sideeffect "cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], 16; '
    'cp.async.bulk.commit_group; cp.async.bulk.wait_group{} 0;", "l,r"(i64 %global_at, i32 '
    "%shared_at)\n"
)
UNFINISHED, FINISHED = STORE.format(".read"), STORE.format("")
BLOCK_OF_OTHER = """  %who = xor i32 %tid, 32
  %block = getelementptr <4 x i32>, ptr addrspace(1) %x, i32 %who
"""
OVERWRITE = "  store i32 9, ptr addrspace(1) %block\n"
ADD = "  %sum = atomicrmw add ptr addrspace(1) %block, i32 5 monotonic\n"
READ_BLOCK = "  %seen = load i32, ptr addrspace(1) %block\n"


def launch_engine(body: str) -> np.ndarray:
    """Each of 64 threads has a block of 16 bytes that it stores by the copy engine."""
    x = np.zeros(256, np.int32)
    text = validated(kernel(SLOT + FENCE + BLOCK_OF_OTHER + body, "x"))
    simulate(text, "k", (1, 1, 1), 64, [x], 4096, checks_global_order=True)
    return x


@pytest.mark.parametrize("write", [OVERWRITE, ADD], ids=["store", "atomic"])
def test_a_write_behind_a_store_of_the_engine_needs_its_end_and_a_barrier(write: str) -> None:
    found = launch_engine(FINISHED + BARRIER + write)
    assert set(found[::4].tolist()) == {9 if write is OVERWRITE else 6}
    for body in (UNFINISHED + BARRIER + write, FINISHED + write):
        with pytest.raises(GlobalRace, match=r"writes offset .* of x, which a store by the copy"):
            launch_engine(body)


@pytest.mark.parametrize("access", [OVERWRITE, ADD, READ_BLOCK], ids=["store", "atomic", "load"])
def test_the_engine_stores_behind_a_barrier_where_threads_were(access: str) -> None:
    launch_engine(access + BARRIER + FINISHED)
    with pytest.raises(GlobalRace, match=r"writes offset .* of x, which thread"):
        launch_engine(access + FINISHED)
