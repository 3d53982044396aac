"""The scheduler: which threads execute which part of a program next.

A program is a list of segments: stretches without branch that no thread waits in. Of the
threads that can run, those at the earliest segment go first, a warp group at its earliest
lane, so threads meet again where control flow joins. Now and then the segment that has not run
for the longest time goes instead, and more rarely that of a single warp, so that a loop that
waits for another warp cannot starve it. With a seed, warp groups take turns at random.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np

from tilewright.interp.simt.faults import Fault, StepLimit
from tilewright.interp.simt.in_flight import WARP_GROUP
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.statistics import WARP
from tilewright.interp.simt.syntax import Site
from tilewright.interp.simt.timeline import FREE
from tilewright.interp.simt.values import Value, merge
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import Deadlock, KernelFault, UnsupportedError
from tilewright.support.source import Span

_FAIR_TURN = 64
_DEEP_TURN = 1024
_DONE = 1 << 40


@dataclass
class Step:
    """One instruction: what computes its value, and the slot that takes it."""

    slot: int
    compute: Callable[[], Value | None]
    site: Site
    is_local: bool = False


@dataclass
class Edge:
    """A way to another segment, with the values that its phis take."""

    target: int
    slots: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)


@dataclass
class Segment:
    """Instructions that run one after the other, and how they end.

    The end is one of: `edges` with one edge; two edges and a `condition` slot (true first);
    more edges and `cases`, the first edge being the default; none, which returns or traps.
    `suspend` is what the threads do before they go on, such as to arrive at a barrier.
    """

    label: str
    site: Site
    steps: list[Step] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    condition: int = -1
    cases: tuple[int, ...] = ()
    returned: int = -1
    suspend: Callable[[], None] | None = None
    is_trap: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    executions: int = 0


class Runner:
    """Runs the threads of a cta, or of a mask in a called function, until all have returned."""

    def __init__(
        self,
        machine: Machine,
        segments: Sequence[Segment],
        step_limit: int,
        *,
        is_kernel: bool,
        seed: int | None = None,
    ) -> None:
        self.machine = machine
        self.segments = segments
        self.is_kernel = is_kernel
        self.step_limit = step_limit
        self._places = np.zeros(machine.threads, np.int64)
        self._last_turn = [0] * len(segments)
        self._turn = 0
        self._is_together = False
        self._counted: dict[int, list[tuple[Span | None, int]]] = {}
        self._random = None if seed is None else np.random.default_rng(seed)

    def run(self, mask: Array | None) -> None:
        """Run from the first segment in the threads of `mask` (None: all)."""
        machine = self.machine
        self._places[:] = 0 if mask is None else np.where(mask, 0, _DONE)
        self._turn = 0
        self._is_together = not self.is_kernel
        place: int | None = 0
        group = mask
        seen_progress, futile = -1, 0
        while True:
            if place is None:
                picked = self._pick()
                if picked is None:
                    if bool((self._places == _DONE).all()):
                        break
                    seen_progress, futile = self._unpark(seen_progress, futile)
                    continue
                place, group = picked
            machine.mask = group
            self._turn += 1
            if self._turn > self.step_limit:
                raise self._fault_at(place, StepLimit, f"more than {self.step_limit} segments ran")
            place = self._run_segment(place, group)
        machine.mask = mask

    # --- one segment ------------------------------------------------------------------------

    def _run_segment(self, place: int, group: Array | None) -> int | None:
        """Run a segment; where the group goes on, None when the next one must be picked."""
        machine, segment = self.machine, self.segments[place]
        values = machine.values
        segment.executions += machine.warps if group is None else _warps_in(group)
        step = None
        try:
            if group is None:
                for step in segment.steps:
                    values[step.slot] = step.compute()
            else:
                for step in segment.steps:
                    new = step.compute()
                    if not step.is_local and new is not None:
                        new = merge(group, new, values[step.slot])
                    values[step.slot] = new
            step = None
            if machine.synchronization.timeline is not None:
                machine.synchronization.timeline.compute(machine.active(), self._lines(place))
            return self._end(segment, place, group)
        except Fault as fault:
            raise fault.at(segment.site if step is None else step.site, machine.cta) from None

    def _lines(self, place: int) -> list[tuple[Span | None, int]]:
        """The source lines of a segment's instructions, and how many there are of each in a row."""
        if place not in self._counted:
            found: list[tuple[Span | None, int]] = []
            sites = dict.fromkeys(step.site for step in self.segments[place].steps)
            for site in sites:  # an instruction with several results is several steps
                if FREE.search(site.text):
                    continue
                source = site.source
                if found and found[-1][0] == source:
                    found[-1] = (source, found[-1][1] + 1)
                else:
                    found.append((source, 1))
            self._counted[place] = found
        return self._counted[place]

    def _end(self, segment: Segment, place: int, group: Array | None) -> int | None:
        if segment.suspend is not None:
            if not self.is_kernel:
                raise UnsupportedError("a barrier inside of a function that is not inlined")
            self._go(segment.edges[0], group)
            segment.suspend()
            return self._continue(segment.edges[0].target, group)
        if not segment.edges:
            return self._return(segment, group)
        if segment.condition < 0:
            self._take(segment.edges[0], group)
            return self._continue(segment.edges[0].target, group)
        return self._branch(segment, group)

    def _branch(self, segment: Segment, group: Array | None) -> int | None:
        chosen = self._chosen(segment)
        relevant = chosen if group is None else chosen[group]
        first = int(relevant[0])
        if (relevant == first).all():
            self._take(segment.edges[first], group)
            return self._continue(segment.edges[first].target, group)
        for index in np.unique(relevant):
            lanes = chosen == index
            if group is not None:
                lanes &= group
            self._go(segment.edges[int(index)], lanes)
        return None

    def _chosen(self, segment: Segment) -> Array:
        """The number of the edge that each thread takes."""
        value = self.machine.values[segment.condition]
        assert isinstance(value, np.ndarray)
        if not segment.cases:
            return np.where(value, 0, 1)
        chosen = np.zeros(len(value), np.int64)
        bits = value.dtype.itemsize * 8
        for index, case in enumerate(segment.cases, 1):
            chosen[value == case % (1 << bits)] = index
        return chosen

    def _take(self, edge: Edge, group: Array | None) -> None:
        """Give the phis of the target their values, all at once."""
        if not edge.slots:
            return
        values = self.machine.values
        new = [values[source] for source in edge.sources]
        for slot, value in zip(edge.slots, new, strict=True):
            assert value is not None
            values[slot] = value if group is None else merge(group, value, values[slot])

    def _go(self, edge: Edge, group: Array | None) -> None:
        self._take(edge, group)
        if group is None:
            self._places[:] = edge.target
        else:
            self._places[group] = edge.target

    def _continue(self, target: int, group: Array | None) -> int | None:
        """Go on at once when no other thread could have to run first."""
        if group is None:
            synchronization = self.machine.synchronization
            if self.is_kernel and (synchronization.parked.any() or synchronization.waiting.any()):
                self._places[:] = target
                return None
            return target
        self._places[group] = target
        return target if self._is_together and not self.is_kernel else None

    def _return(self, segment: Segment, group: Array | None) -> None:
        machine = self.machine
        threads = machine.active()
        if segment.is_trap:
            raise Fault(KernelFault, f"threads {_short(threads)} reach a trap")
        self._places[threads] = _DONE
        if self.is_kernel:
            machine.copies.check_exit(threads)
            machine.synchronization.exit(threads)
            machine.progress += 1

    # --- who goes next ----------------------------------------------------------------------

    def _pick(self) -> tuple[int, Array | None] | None:
        """The segment to run next and the threads that run it; None when nobody can."""
        places = self._places
        if self.is_kernel:
            synchronization = self.machine.synchronization
            stalled = synchronization.waiting | synchronization.parked
            places = np.where(stalled, _DONE, places)
        is_deep_turn = self._turn % _DEEP_TURN == _DEEP_TURN - 1
        first = self._firsts(places, WARP if is_deep_turn else WARP_GROUP)
        place = int(first.min())
        if place == _DONE:
            return None
        if self._random is not None:
            place = int(self._random.choice(first[first != _DONE]))
        elif self._turn % _FAIR_TURN == _FAIR_TURN - 1:
            candidates = [int(p) for p in np.unique(first) if p != _DONE]
            place = min(candidates, key=lambda p: self._last_turn[p])
        self._last_turn[place] = self._turn
        lanes = (places == place) & (first == place)
        self._is_together = bool((lanes | (places == _DONE)).all())
        return place, None if lanes.all() else lanes

    def _firsts(self, places: Array, width: int) -> Array:
        """The earliest place in each group of `width` threads, for every thread."""
        count = -(-len(places) // width)
        padded = np.full(count * width, _DONE)
        padded[: len(places)] = places
        return np.repeat(padded.reshape(count, width).min(1), width)[: len(places)]

    def _unpark(self, seen_progress: int, futile: int) -> tuple[int, int]:
        """Let threads that wait for an mbarrier look again; nothing new means a deadlock."""
        machine = self.machine
        synchronization = machine.synchronization
        progress = machine.progress + synchronization.completed
        futile = futile + 1 if progress == seen_progress else 0
        if futile > 2 or not synchronization.parked.any():
            raise self._deadlock()
        synchronization.parked[:] = False
        return progress, futile

    def _deadlock(self) -> KernelFault:
        machine = self.machine
        synchronization = machine.synchronization
        lines = [*synchronization.describe_waits(), synchronization.describe()]
        left = np.flatnonzero(self._places != _DONE)
        for place in np.unique(self._places[left]):
            warps = sorted({int(w) for w in left[self._places[left] == place] // WARP})
            segment = self.segments[int(place)]
            lines.append(f"warps {warps} are at {segment.label}, {segment.site}")
        return Deadlock(f"program {machine.cta}: " + "\n  ".join(line for line in lines if line))

    def _fault_at(self, place: int, kind: type[KernelFault], message: str) -> KernelFault:
        return Fault(kind, message).at(self.segments[place].site, self.machine.cta)


def _warps_in(mask: Array) -> int:
    return int(mask.reshape(-1, WARP).any(1).sum())


def _short(threads: Array) -> str:
    names = ", ".join(str(i) for i in threads[:8])
    return names + (", …" if len(threads) > 8 else "")
