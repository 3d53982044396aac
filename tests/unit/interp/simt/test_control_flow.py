"""Threads that go different ways, meet again, and wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.simt.programs import validated
from tilewright.interp.simt.faults import DivergentCollective, StepLimit
from tilewright.interp.simt.simulate import simulate
from tilewright.support.errors import Deadlock, KernelFault

TID = "  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
STORE = (
    "  %place = getelementptr i32, ptr addrspace(1) %out, i32 %tid\n"
    "  store i32 %result, ptr addrspace(1) %place\n"
    "  ret void\n"
)


def run(body: str, threads: int = 64, shared_bytes: int = 0) -> np.ndarray:
    """The 32-bit values that the threads of one program store."""
    out = np.zeros(threads, np.int32)
    text = (
        "@shared = external addrspace(3) global [0 x i8], align 1024\n"
        f"define ptx_kernel void @k(ptr addrspace(1) %out) {{\nentry:\n{TID}{body}{STORE}}}\n"
    )
    simulate(validated(text), "k", (1, 1, 1), threads, [out], shared_bytes)
    return out


def test_threads_that_leave_a_loop_early_keep_their_values() -> None:
    out = run(
        """  br label %bb1
bb1:
  %i = phi i32 [ 0, %entry ], [ %next, %bb1 ]
  %sum = phi i32 [ 0, %entry ], [ %more, %bb1 ]
  %more = add i32 %sum, %i
  %next = add i32 %i, 1
  %again = icmp ule i32 %next, %tid
  br i1 %again, label %bb1, label %bb2
bb2:
  %result = add i32 %more, 1000
"""
    )
    expected = np.array([sum(range(t + 1)) + 1000 for t in range(64)])
    np.testing.assert_array_equal(out, expected)


def test_both_sides_of_a_branch_run_and_meet_in_a_phi() -> None:
    out = run(
        """  %odd = trunc i32 %tid to i1
  br i1 %odd, label %bb1, label %bb2
bb1:
  %a = mul i32 %tid, 10
  br label %bb3
bb2:
  %b = sub i32 0, %tid
  br label %bb3
bb3:
  %result = phi i32 [ %a, %bb1 ], [ %b, %bb2 ]
"""
    )
    ids = np.arange(64)
    np.testing.assert_array_equal(out, np.where(ids % 2, ids * 10, -ids))


def test_phis_of_one_edge_take_their_values_at_once() -> None:
    out = run(
        """  br label %bb1
bb1:
  %x = phi i32 [ 1, %entry ], [ %y, %bb1 ]
  %y = phi i32 [ 2, %entry ], [ %x, %bb1 ]
  %i = phi i32 [ 0, %entry ], [ %next, %bb1 ]
  %next = add i32 %i, 1
  %again = icmp ult i32 %next, 3
  br i1 %again, label %bb1, label %bb2
bb2:
  %ten = mul i32 %x, 10
  %result = add i32 %ten, %y
"""
    )
    assert out.tolist() == [12] * 64


def test_switch_takes_its_default_for_other_values() -> None:
    out = run(
        """  switch i32 %tid, label %bb3 [
    i32 0, label %bb1
    i32 5, label %bb2
  ]
bb1:
  br label %bb4
bb2:
  br label %bb4
bb3:
  br label %bb4
bb4:
  %result = phi i32 [ 100, %bb1 ], [ 200, %bb2 ], [ %tid, %bb3 ]
"""
    )
    assert out[[0, 5, 6]].tolist() == [100, 200, 6]


def test_internal_functions_run_in_the_active_threads() -> None:
    text = f"""define internal fastcc i32 @collatz(i32 %x) {{
entry:
  %one = icmp ule i32 %x, 1
  br i1 %one, label %bb1, label %bb2
bb1:
  ret i32 7
bb2:
  %r = mul i32 %x, %x
  ret i32 %r
}}
define ptx_kernel void @k(ptr addrspace(1) %out) {{
entry:
{TID}  %low = icmp ult i32 %tid, 40
  br i1 %low, label %bb1, label %bb2
bb1:
  %a = call fastcc i32 @collatz(i32 %tid)
  br label %bb2
bb2:
  %result = phi i32 [ -1, %entry ], [ %a, %bb1 ]
{STORE}}}
"""
    out = np.zeros(64, np.int32)
    simulate(validated(text), "k", (1, 1, 1), 64, [out])
    ids = np.arange(64)
    np.testing.assert_array_equal(out, np.where(ids < 2, 7, np.where(ids < 40, ids**2, -1)))


BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"


def test_a_barrier_that_some_warps_never_reach_is_a_deadlock() -> None:
    with pytest.raises(Deadlock, match=r"warps \[0\] wait at barrier 1: 32 of 64"):
        run(
            """  %first = icmp ult i32 %tid, 32
  br i1 %first, label %bb1, label %bb2
bb1:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  br label %bb2
bb2:
  %result = add i32 %tid, 0
"""
        )


def test_a_barrier_in_a_part_of_a_warp_is_refused() -> None:
    with pytest.raises(DivergentCollective, match="without lanes"):
        run(
            f"""  %first = icmp ult i32 %tid, 5
  br i1 %first, label %bb1, label %bb2
bb1:
{BARRIER}  br label %bb2
bb2:
  %result = add i32 %tid, 0
"""
        )


def test_named_barriers_let_arriving_warps_go_on() -> None:
    out = run(
        """  %first = icmp ult i32 %tid, 32
  br i1 %first, label %bb1, label %bb2
bb1:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 3, i32 64)
  br label %bb3
bb2:
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 3, i32 64)
  br label %bb3
bb3:
  %result = add i32 %tid, 1
"""
    )
    np.testing.assert_array_equal(out, np.arange(64) + 1)


def test_endless_loops_end_at_the_step_limit() -> None:
    text = """define ptx_kernel void @k() {
entry:
  br label %bb1
bb1:
  br label %bb1
}
"""
    with pytest.raises(StepLimit):
        simulate(validated(text), "k", (1, 1, 1), 32, [], step_limit=1000)


def test_a_trap_names_the_threads_and_the_line() -> None:
    with pytest.raises(KernelFault, match="LLVM line"):
        run(
            """  %bad = icmp eq i32 %tid, 9
  br i1 %bad, label %bb1, label %bb2
bb1:
  call void @llvm.trap()
  unreachable
bb2:
  %result = add i32 %tid, 0
"""
        )


def test_a_warp_that_spins_does_not_starve_the_one_that_it_waits_for() -> None:
    text = f"""define ptx_kernel void @k(ptr addrspace(1) %flag) {{
entry:
{TID}  %first = icmp ult i32 %tid, 32
  br i1 %first, label %bb1, label %bb2
bb1:
  %seen = load atomic i32, ptr addrspace(1) %flag syncscope("device") acquire, align 4
  %set = icmp ne i32 %seen, 0
  br i1 %set, label %bb3, label %bb1
bb2:
  store atomic i32 1, ptr addrspace(1) %flag syncscope("device") release, align 4
  br label %bb3
bb3:
  ret void
}}
"""
    flag = np.zeros(1, np.int32)
    simulate(validated(text), "k", (1, 1, 1), 64, [flag], step_limit=10_000)
    assert flag[0] == 1
