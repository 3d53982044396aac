"""Barriers of a cluster, of a cta and of a warp."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.calls import Call, Compute, intrinsic
from tilewright.interp.simt.faults import Fault
from tilewright.support.errors import KernelFault, UnsupportedError


def uniform_integer(call: Call, index: int) -> int:
    """An argument that must be the same in all active threads."""
    values = call.array(index)[call.machine.active()]
    if (values != values[0]).any():
        raise Fault(KernelFault, f"argument {index} of {call.name} differs between threads")
    return int(values[0])


@intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all")
def _sync_all(call: Call) -> Compute:
    call.is_suspension = True
    return _barrier(call, None, waits=True)


@intrinsic("llvm.nvvm.barrier.cta.sync.aligned.count")
def _sync_count(call: Call) -> Compute:
    call.is_suspension = True
    return _barrier(call, 1, waits=True)


@intrinsic("llvm.nvvm.barrier.cta.arrive.aligned.count")
def _arrive(call: Call) -> Compute:
    call.is_suspension = True
    return _barrier(call, 1, waits=False)


def _barrier(call: Call, count_index: int | None, *, waits: bool) -> Compute:
    machine = call.machine

    def compute() -> None:
        machine.require_whole_warps(call.name)
        threads = machine.active()
        numbers = call.array(0)[threads]
        for number in np.unique(numbers):
            count = None if count_index is None else uniform_integer(call, count_index)
            chosen = threads[numbers == number]
            turn = _turn(call, int(number))
            machine.synchronization.arrive(int(number), count, chosen, waits=waits, turn=turn)
        machine.progress += 1

    return compute


def _turn(call: Call, number: int) -> str:
    """The turn that a wait at a named barrier is for, in words; '' where it is for none."""
    if call.turn is None:
        return ""
    return f"{call.turn.text(number - call.turn.start)}{call.site.in_source}"


@intrinsic("llvm.nvvm.barrier.cluster.arrive", words="aligned relaxed")
def _arrive_at_cluster(call: Call) -> Compute:
    call.is_suspension = True
    machine = call.machine

    def compute() -> None:
        machine.synchronization.arrive_at_cluster(machine.active())
        machine.progress += 1

    return compute


@intrinsic("llvm.nvvm.barrier.cluster.wait", words="aligned")
def _wait_for_cluster(call: Call) -> Compute:
    call.is_suspension = True
    machine = call.machine

    def compute() -> None:
        machine.synchronization.wait_for_cluster(machine.active())
        machine.progress += 1

    return compute


@intrinsic("llvm.nvvm.bar.warp.sync")
def _sync_warp(call: Call) -> Compute:
    machine = call.machine

    def compute() -> None:
        members = call.array(0)[machine.active()]
        if (members != 0xFFFFFFFF).any():
            raise UnsupportedError("bar.warp.sync of a part of a warp")
        warps = machine.require_whole_warps("bar.warp.sync")
        machine.synchronization.clocks.synchronize_warps(warps)

    return compute


@intrinsic("llvm.nvvm.membar.sys")
def _fence(call: Call) -> Compute:
    return lambda: None
