"""Barriers of a cta, and which threads wait for what."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tilewright.interp.simt.faults import Fault
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import KernelFault

_WARP = 32


@dataclass
class NamedBarrier:
    """One of the 16 barriers of a cta while it collects arrivals."""

    expected: int = 0
    is_for_all: bool = False
    arrived: int = 0
    participants: list[Array] = field(default_factory=list)
    waiting: list[Array] = field(default_factory=list)


class Synchronization:
    """Which threads of a cta wait, and for what."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.waiting = np.zeros(threads, np.bool_)
        self.exited = np.zeros(threads, np.bool_)
        self.parked = np.zeros(threads, np.bool_)
        self.barriers: dict[int, NamedBarrier] = {}
        self.completed = 0

    def reset(self) -> None:
        """Begin another cta."""
        for flags in (self.waiting, self.exited, self.parked):
            flags[:] = False
        self.barriers.clear()

    def stalls(self) -> bool:
        """Whether any thread cannot go on at once."""
        return bool(self.waiting.any() or self.parked.any() or self.exited.any())

    def arrive(self, number: int, count: int | None, threads: Array, *, waits: bool) -> None:
        """Threads arrive at a named barrier; `count` None means all of the cta."""
        barrier = self.barriers.setdefault(number, NamedBarrier())
        expected = self.threads if count is None else count
        if barrier.arrived and barrier.expected != expected:
            raise Fault(
                KernelFault,
                f"barrier {number} is used with {expected} threads while {barrier.arrived} "
                f"threads are at it that expect {barrier.expected}",
            )
        barrier.expected = expected
        barrier.is_for_all = count is None
        barrier.participants.append(threads)
        # The hardware counts warps: a warp some lanes of which have exited counts whole.
        barrier.arrived += len(np.unique(threads // _WARP)) * _WARP
        if waits:
            barrier.waiting.append(threads)
            self.waiting[threads] = True
        self._complete_if_full(number, barrier)

    def exit(self, threads: Array) -> None:
        """Threads have ended; a barrier of the whole cta no longer waits for their warps."""
        self.exited[threads] = True
        for number, barrier in list(self.barriers.items()):
            self._complete_if_full(number, barrier)

    def _complete_if_full(self, number: int, barrier: NamedBarrier) -> None:
        missing = 0
        if barrier.is_for_all:
            missing = int(self.exited.reshape(-1, _WARP).all(1).sum()) * _WARP
        if barrier.arrived + missing < barrier.expected:
            return
        if barrier.arrived + missing > barrier.expected:
            raise Fault(
                KernelFault,
                f"{barrier.arrived} threads arrive at barrier {number}, which expects "
                f"{barrier.expected}",
            )
        del self.barriers[number]
        self.completed += 1
        for threads in barrier.waiting:
            self.waiting[threads] = False

    def describe(self) -> str:
        """Where each warp waits, for the report of a deadlock."""
        lines: list[str] = []
        for number, barrier in sorted(self.barriers.items()):
            warps = sorted({int(w) for threads in barrier.waiting for w in threads // _WARP})
            lines.append(
                f"warps {warps} wait at barrier {number}: {barrier.arrived} of "
                f"{barrier.expected} threads are there"
            )
        return "; ".join(lines)
