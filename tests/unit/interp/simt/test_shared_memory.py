"""Shared memory: races, reads of nothing, bank conflicts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.simt.programs import BARRIER, WARP_BARRIER, run, shared_at
from tilewright.interp.simt.faults import SharedRace
from tilewright.support.errors import (
    KernelFault,
    MisalignedAccess,
    OutOfBoundsAccess,
    UninitializedRead,
)

MINE = "  %off = mul i32 %tid, 4\n" + shared_at("mine", "%off")
WRITE = "  store i32 %tid, ptr addrspace(3) %mine, align 4\n"
NEIGHBOUR = """  %xor = xor i32 %tid, {0}
  %theirs = mul i32 %xor, 4
"""
READ = """  %read = load i32, ptr addrspace(3) %other, align 4
  %place = getelementptr i32, ptr addrspace(1) %out, i32 %tid
  store i32 %read, ptr addrspace(1) %place
"""


def exchange(distance: int, between: str) -> np.ndarray:
    out = np.zeros(64, np.int32)
    other = NEIGHBOUR.format(distance) + shared_at("other", "%theirs")
    run(MINE + WRITE + between + other + READ, "out", out)
    return out


def test_a_barrier_orders_a_read_after_another_warps_write() -> None:
    np.testing.assert_array_equal(exchange(32, BARRIER), np.arange(64) ^ 32)


def test_without_a_barrier_reading_another_warps_write_is_a_race() -> None:
    with pytest.raises(
        SharedRace,
        match=r"thread 0 \(warp 0\) reads shared offset 128, which "
        r"thread 32 \(warp 1\) wrote",
    ):
        exchange(32, "")


def test_lanes_of_a_warp_need_a_warp_barrier() -> None:
    np.testing.assert_array_equal(exchange(1, WARP_BARRIER), np.arange(64) ^ 1)
    with pytest.raises(SharedRace):
        exchange(1, "")


def test_a_warp_barrier_does_not_order_other_warps() -> None:
    with pytest.raises(SharedRace):
        exchange(32, WARP_BARRIER)


def test_a_thread_may_read_what_it_wrote_itself() -> None:
    np.testing.assert_array_equal(exchange(0, ""), np.arange(64))


def test_a_write_after_another_warps_read_needs_a_barrier() -> None:
    first = MINE + WRITE + BARRIER + NEIGHBOUR.format(32) + shared_at("other", "%theirs") + READ
    again = "  store i32 7, ptr addrspace(3) %mine, align 4\n"
    out = np.zeros(64, np.int32)
    run(first + BARRIER + again, "out", out)
    with pytest.raises(SharedRace, match="writes shared offset 0, which thread 32"):
        run(first + again, "out", out)


def test_copies_of_one_value_may_be_written_together() -> None:
    same = shared_at("all", "0") + "  store i32 5, ptr addrspace(3) %all, align 4\n"
    run(same, "")
    different = shared_at("all", "0") + "  store i32 %tid, ptr addrspace(3) %all, align 4\n"
    with pytest.raises(SharedRace, match="different values"):
        run(different, "")


def test_a_named_barrier_orders_its_participants_only() -> None:
    body = (
        MINE
        + WRITE
        + """  %warp = lshr i32 %tid, 5
  %low = icmp ult i32 %warp, 2
  br i1 %low, label %bb1, label %bb2
bb1:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  br label %bb2
bb2:
"""
        + NEIGHBOUR.format("{0}")
        + shared_at("other", "%theirs")
        + READ
    )
    out = np.zeros(128, np.int32)
    with pytest.raises(SharedRace, match="thread 64"):
        run(body.format(32), "out", out, threads=128)
    with pytest.raises(SharedRace, match=r"thread 0 \(warp 0\) reads shared offset 256"):
        run(body.format(64), "out", out, threads=128)


def test_reading_what_nobody_wrote_is_a_fault() -> None:
    with pytest.raises(UninitializedRead, match="offset 0 of shared memory"):
        run(shared_at("p", "0") + "  %v = load i32, ptr addrspace(3) %p\n", "")


def test_leaving_shared_memory_is_a_fault() -> None:
    with pytest.raises(OutOfBoundsAccess, match="which has 4096 bytes"):
        run(shared_at("p", "4096") + "  store i32 0, ptr addrspace(3) %p\n", "")


def test_a_misaligned_vector_is_a_fault() -> None:
    text = "  store <4 x i32> zeroinitializer, ptr addrspace(3) %p, align 16\n"
    with pytest.raises(MisalignedAccess):
        run(shared_at("p", "8") + text, "")


def test_atomics_do_not_race_with_each_other() -> None:
    out = np.zeros(64, np.int32)
    body = (
        shared_at("sum", "0")
        + """  %first = icmp eq i32 %tid, 0
  br i1 %first, label %bb1, label %bb2
bb1:
  store i32 0, ptr addrspace(3) %sum
  br label %bb2
bb2:
"""
        + BARRIER
        + "  %old = atomicrmw add ptr addrspace(3) %sum, i32 1 monotonic\n"
        + BARRIER
        + shared_at("other", "0")
        + READ
    )
    run(body, "out", out)
    assert out.tolist() == [64] * 64


@pytest.mark.parametrize(
    ("stride", "kind", "wavefronts", "ideal"),
    [
        (4, "i32", 1, 1),
        (8, "i32", 2, 1),
        (128, "i32", 32, 1),
        (132, "i32", 1, 1),
        (16, "<4 x i32>", 4, 4),
        (32, "<4 x i32>", 8, 4),
        (0, "i32", 1, 1),
    ],
)
def test_bank_conflicts_are_counted(stride: int, kind: str, wavefronts: int, ideal: int) -> None:
    body = f"  %off = mul i32 %tid, {stride}\n" + shared_at("p", "%off")
    body += f"  store {kind} zeroinitializer, ptr addrspace(3) %p\n"
    report = run(body, "", threads=32, shared_bytes=8192)
    (access,) = report.shared_accesses()
    assert (access.transactions, access.ideal_transactions) == (wavefronts, ideal)


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (8, 32)])
def test_global_sectors_show_what_does_not_coalesce(stride: int, sectors: int) -> None:
    body = f"""  %i = mul i32 %tid, {stride}
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %p
"""
    report = run(body, "x", np.zeros(1024, np.int32), threads=32)
    (access,) = report.global_accesses()
    # An array that begins inside of a sector takes one more.
    assert access.transactions in (sectors, sectors + 1)
    assert access.ideal_transactions == 4


def test_barrier_with_wrong_count_is_a_fault() -> None:
    body = """  %first = icmp ult i32 %tid, 32
  br i1 %first, label %bb1, label %bb2
bb1:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  br label %bb3
bb2:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 96)
  br label %bb3
bb3:
"""
    with pytest.raises(KernelFault, match="barrier 1 is used with 96 threads"):
        run(body, "")
