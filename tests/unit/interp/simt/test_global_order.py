"""The order of a program's own accesses to global memory."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.simt.programs import BARRIER, kernel, validated
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
