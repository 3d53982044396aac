"""Barriers of a cta and of a cluster, and which threads wait for what."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tilewright.interp.simt.clocks import Clocks, Joint
from tilewright.interp.simt.cluster_barrier import ClusterBarrier
from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.syntax import Site
from tilewright.interp.simt.timeline import Timeline
from tilewright.interp.simt.types import CTA_WINDOW, SHARED_BASE
from tilewright.interp.simt.waited_ring import Awaited
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import KernelFault

_WARP = 32


# Source: PTX ISA 8.8, "bar": barriers 0 to 15 of a cta.
_NUM_BARRIERS = 16


@dataclass
class NamedBarrier:
    """One of the 16 barriers of a cta while it collects arrivals; `turn` says who waits there."""

    expected: int = 0
    is_for_all: bool = False
    arrived: int = 0
    waiting: list[Array] = field(default_factory=list)
    joint: Joint | None = None
    turn: str = ""

    def warps(self) -> list[int]:
        """The warps that wait."""
        return sorted({int(w) for threads in self.waiting for w in threads // _WARP})


@dataclass
class MemoryBarrier:
    """An mbarrier: a phase ends when all arrivals and all announced bytes are there."""

    count: int
    pending: int
    bytes: int = 0
    ended: int = 0
    joint: Joint | None = None
    done: Joint | None = None

    @property
    def phase(self) -> int:
        """What hardware knows of the number of phases that have ended."""
        return self.ended & 1

    def describe(self) -> str:
        """What it waits for."""
        return f"phase {self.phase} lacks {self.pending} arrivals and {self.bytes} bytes"


class Synchronization:
    """Which threads of a cta, or of a cluster, wait, for what, and what they are ordered after.

    Barrier n of the cta of rank r has number 16 r + n.
    """

    def __init__(self, threads: int, cluster: int = 1) -> None:
        self.threads = threads
        self.cluster, self.cta_threads = cluster, threads // cluster
        self.cluster_barrier = ClusterBarrier.of(threads)
        self.clocks = Clocks(threads)
        self.waiting = np.zeros(threads, np.bool_)
        self.exited = np.zeros(threads, np.bool_)
        self.parked = np.zeros(threads, np.bool_)
        self.barriers: dict[int, NamedBarrier] = {}
        self.memory_barriers: dict[int, MemoryBarrier] = {}
        self.awaited: dict[int, str] = {}
        self.rings: dict[int, str] = {}
        self.last_waits: dict[int, str] = {}
        self.completed = 0
        self.timeline: Timeline | None = None

    def reset(self) -> None:
        """Begin another cta."""
        for flags in (self.waiting, self.exited, self.parked):
            flags[:] = False
        self.barriers.clear()
        self.memory_barriers.clear()
        self.cluster_barrier = ClusterBarrier.of(self.threads)
        self.awaited.clear()
        self.rings.clear()
        self.last_waits.clear()
        self.clocks.reset()

    # --- named barriers ---------------------------------------------------------------------

    def arrive(
        self, number: int, count: int | None, threads: Array, *, waits: bool, turn: str = ""
    ) -> None:
        """Threads arrive at a named barrier; `count` None means all of the cta.

        `turn` is a wait for a turn in words.
        """
        for rank in np.unique(threads // self.cta_threads):
            own = threads[threads // self.cta_threads == rank]
            barrier = number + _NUM_BARRIERS * int(rank)
            self._arrive(barrier, count, own, turn if waits else None)

    def _arrive(self, number: int, count: int | None, threads: Array, turn: str | None) -> None:
        """Threads of one cta arrive, and wait where `turn` is not None."""
        barrier = self.barriers.setdefault(number, NamedBarrier())
        expected = self.cta_threads if count is None else count
        if barrier.arrived and barrier.expected != expected:
            raise Fault(
                KernelFault,
                f"barrier {_number(number)} is used with {expected} threads while "
                f"{barrier.arrived} threads are at it that expect {barrier.expected}",
            )
        barrier.expected = expected
        barrier.is_for_all = count is None
        # The hardware counts warps: a warp some lanes of which have exited counts whole.
        barrier.arrived += len(np.unique(threads // _WARP)) * _WARP
        joint = self.clocks.release(threads)
        if self.timeline is not None:
            self.timeline.arrive(f"barrier {_number(number)}", threads)
        if barrier.joint is None:
            barrier.joint = joint
        else:
            barrier.joint.include(joint)
        if turn is not None:
            barrier.turn = turn
            barrier.waiting.append(threads)
            self.waiting[threads] = True
        self._complete_if_full(number, barrier)

    def exit(self, threads: Array) -> None:
        """Threads have ended; a barrier of the whole cta no longer waits for their warps."""
        self.exited[threads] = True
        for number, barrier in list(self.barriers.items()):
            self._complete_if_full(number, barrier)
        self._end_cluster_phase_if_full()
        if self.exited.all():
            for rank in range(self.cluster):
                first = rank * self.cta_threads
                self.cluster_barrier.require_met(rank, slice(first, first + self.cta_threads))

    def _complete_if_full(self, number: int, barrier: NamedBarrier) -> None:
        missing = 0
        if barrier.is_for_all:
            first = number // _NUM_BARRIERS * self.cta_threads
            exited = self.exited[first : first + self.cta_threads]
            missing = int(exited.reshape(-1, _WARP).all(1).sum()) * _WARP
        if barrier.arrived + missing < barrier.expected:
            return
        if barrier.arrived + missing > barrier.expected:
            raise Fault(
                KernelFault,
                f"{barrier.arrived} threads arrive at barrier {_number(number)}, which expects "
                f"{barrier.expected}",
            )
        del self.barriers[number]
        self.completed += 1
        if self.timeline is not None:
            self.timeline.end_phase(f"barrier {_number(number)}")
            for threads in barrier.waiting:
                name = f"barrier {_number(number)}"
                self.timeline.go_on(name, threads, name)
        released = 0
        for threads in barrier.waiting:
            self.waiting[threads] = False
            assert barrier.joint is not None
            self.clocks.acquire(threads, barrier.joint)
            released += len(threads)
        if released == self.threads:
            self.clocks.generation += 1

    # --- the barrier of a cluster -----------------------------------------------------------

    def arrive_at_cluster(self, threads: Array) -> None:
        """Threads arrive at the barrier of their cluster, and go on. *Raises*: KernelFault."""
        barrier = self.cluster_barrier
        if (barrier.arrivals[threads] > barrier.ended).any():
            raise Fault(KernelFault, "a thread arrives at its cluster's barrier twice in a phase")
        barrier.arrivals[threads] = barrier.ended + 1
        joint = self.clocks.release(threads)
        if barrier.joint is None:
            barrier.joint = joint
        else:
            barrier.joint.include(joint)
        self._end_cluster_phase_if_full()

    def wait_for_cluster(self, threads: Array) -> None:
        """Threads wait until all of the cluster that have not exited have arrived as often."""
        barrier = self.cluster_barrier
        is_over = barrier.arrivals[threads] <= barrier.ended
        if is_over.any() and barrier.done is not None:
            self.clocks.acquire(threads[is_over], barrier.done)
        barrier.waited[threads[is_over]] = barrier.ended
        barrier.waiting[threads[~is_over]] = True
        self.waiting[threads[~is_over]] = True

    def _end_cluster_phase_if_full(self) -> None:
        barrier = self.cluster_barrier
        is_there = (barrier.arrivals > barrier.ended) | self.exited
        if barrier.joint is None or not is_there.all():
            return
        barrier.ended += 1
        barrier.joint, barrier.done = None, barrier.joint
        released = np.flatnonzero(barrier.waiting)
        self.waiting[released] = barrier.waiting[released] = False
        barrier.waited[released] = barrier.ended
        self.completed += 1
        if len(released):
            assert barrier.done is not None
            self.clocks.acquire(released, barrier.done)

    # --- mbarriers --------------------------------------------------------------------------

    def initialize(self, address: int, count: int) -> None:
        """Make an mbarrier at a shared address."""
        self.memory_barriers[address] = MemoryBarrier(count, count)

    def memory_barrier(self, address: int) -> MemoryBarrier:
        """The mbarrier at a shared address."""
        found = self.memory_barriers.get(address)
        if found is None:
            raise Fault(KernelFault, f"shared address {address} holds no initialised mbarrier")
        return found

    def arrive_at(self, address: int, threads: Array, num_bytes: int, arrivals: int) -> None:
        """Threads announce bytes and arrive, `arrivals` each."""
        if self.cluster > 1:
            rank = (address - SHARED_BASE) // CTA_WINDOW
            others = threads[threads // self.cta_threads != rank]
            if len(others):
                self.cluster_barrier.reach(others, rank)
        barrier = self.memory_barrier(address)
        barrier.bytes += num_bytes * len(threads)
        if arrivals and self.timeline is not None:
            self.timeline.arrive(address, threads)
        if arrivals:
            self._join(barrier, self.clocks.release(threads))
            barrier.pending -= arrivals * len(threads)
        if barrier.pending < 0:
            raise Fault(
                KernelFault,
                f"more threads arrive at the mbarrier at {address} than the {barrier.count} that "
                "it was made for",
            )
        self._end_phase_if_full(address, barrier)

    def complete_bytes(self, address: int, num_bytes: int, column: int, clock: int) -> None:
        """An asynchronous copy of `num_bytes` has landed."""
        barrier = self.memory_barrier(address)
        barrier.bytes -= num_bytes
        known = np.zeros(column + 1, np.int32)
        known[column] = clock
        self._join(barrier, Joint(known, np.zeros(self.threads, np.int32)))
        self._end_phase_if_full(address, barrier)

    @staticmethod
    def _join(barrier: MemoryBarrier, joint: Joint) -> None:
        if barrier.joint is None:
            barrier.joint = joint
        else:
            barrier.joint.include(joint)

    def _end_phase_if_full(self, address: int, barrier: MemoryBarrier) -> None:
        if barrier.pending or barrier.bytes:
            return
        barrier.ended += 1
        if self.timeline is not None:
            self.timeline.end_phase(address)
        barrier.pending = barrier.count
        barrier.done = barrier.joint
        barrier.joint = None
        self.completed += 1
        self.parked[:] = False

    def test(self, address: int, parity: int, threads: Array, site: str) -> bool:
        """Whether the phase of a parity has ended; threads that must wait are parked."""
        barrier = self.memory_barrier(address)
        if barrier.phase != parity:
            if barrier.done is not None:
                self.clocks.acquire(threads, barrier.done)
            if self.timeline is not None:
                self.timeline.go_on(address, threads, "loads")
            return True
        self.parked[threads] = True
        self.awaited[address] = site
        return False

    def require_near(self, address: int, phase: int, ring: Awaited) -> None:
        """Check that parity tells the awaited phase: it runs, or is the one that ended last."""
        ended = self.memory_barrier(address).ended
        self.rings[address] = ring.label
        if self.timeline is not None:
            self.timeline.name_barrier(address, ring.label)
        if ended - phase not in (0, 1):
            raise Fault(
                KernelFault,
                f"a wait for phase {phase} of a {ring.part} of {ring.label} comes while the "
                f"{ring.part} is in phase {ended}: by parity it takes that for another one",
            )

    def note_wait(
        self, address: int, phase: int, ring: Awaited, threads: Array, site: Site
    ) -> None:
        """Keep what warps wait for, for the report of a deadlock."""
        text = f"{ring.wait_text(address, phase)}{site.in_source}"
        for warp in np.unique(threads // _WARP):
            self.last_waits[int(warp)] = text

    def describe_waits(self) -> list[str]:
        """What warps wait for at rings and for turns, those with the same wait together."""
        parked = {int(warp) for warp in np.unique(np.flatnonzero(self.parked) // _WARP)}
        by_text: dict[str, list[int]] = {}
        for warp in sorted(parked & self.last_waits.keys()):
            by_text.setdefault(self.last_waits[warp], []).append(warp)
        for barrier in self.barriers.values():
            if barrier.turn and barrier.waiting:
                by_text.setdefault(barrier.turn, []).extend(barrier.warps())
        return [f"{text} (warps {warps})" for text, warps in by_text.items()]

    def describe(self) -> str:
        """Where each warp waits, for the report of a deadlock."""
        lines: list[str] = []
        for number, barrier in sorted(self.barriers.items()):
            lines.append(
                f"warps {barrier.warps()} wait at barrier {_number(number)}: {barrier.arrived} of "
                f"{barrier.expected} threads are there"
            )
        if self.cluster_barrier.waiting.any():
            warps = sorted({int(w) for w in np.flatnonzero(self.cluster_barrier.waiting) // _WARP})
            lines.append(f"warps {warps} wait at the barrier of the cluster")
        for address, barrier in sorted(self.memory_barriers.items()):
            if address in self.awaited:
                lines.append(f"{self._called(address)}: {barrier.describe()}")
        return "; ".join(lines)

    def _called(self, address: int) -> str:
        """An mbarrier in words: with the ring that it is of, and which of the ring's it is."""
        ring = self.rings.get(address)
        if ring is None:
            return f"the mbarrier at shared address {address}"
        known = sorted(other for other, name in self.rings.items() if name == ring)
        number = known.index(address)
        return f"mbarrier {number} of {ring} (shared address {address})"


def _number(number: int) -> str:
    """The number of a barrier in its cta, and which cta's it is where that is not the first."""
    rank, own = divmod(number, _NUM_BARRIERS)
    return f"{own} of cta {rank}" if rank else str(own)
