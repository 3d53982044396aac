"""When the parts of a simulated program would run, by a simple model of one multiprocessor.

A warp group has a clock, which an instruction moves by a cycle. Products of a warp group run on the
tensor cores one after the other, loads by the copy engine take a latency and share a bandwidth;
who waits for either, for an mbarrier or at a barrier goes on at the time of what it waits for. So
order and overlap are those of the program, and lengths are those of the model: no measurement.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from tilewright.interp.simt.in_flight import WARP_GROUP
from tilewright.interp.simt.syntax import Site
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.source import Span

_ROWS_DEPTH = 64 * 32
"""M of a wgmma times the bytes of its K. Source: PTX ISA 8.8, "wgmma"."""
_TENSOR_BYTES_PER_CYCLE = 4096
"""Multiplications of a multiprocessor in a cycle, times the bytes of an element.

Source: NVIDIA, "H100 Tensor Core GPU Architecture": 2048 of two bytes a cycle (dense bf16)."""
_LOAD_LATENCY_CYCLES = 700
"""Chosen, not measured: of the order of what a load of the copy engine out of the L2 takes."""
_LOAD_BYTES_PER_CYCLE = 64
"""Chosen, not measured: of the order of a multiprocessor's share of the L2's bandwidth."""

FREE = re.compile(
    r"= (?:(?:extract|insert)(?:value|element)|shufflevector|bitcast|addrspacecast|freeze"
    r"|inttoptr|ptrtoint|getelementptr|phi)\b"
)
"""Instructions of LLVM that name registers, or become a part of others."""


@dataclass(frozen=True)
class Activity:
    """Something that runs on a track from one cycle to another; `source` is its line."""

    track: str
    name: str
    kind: str
    start_cycles: int
    end_cycles: int
    source: Span | None = None


@dataclass
class _Unit:
    """What does one thing at a time, and the times in which it does."""

    busy: list[tuple[int, int]] = field(default_factory=list)

    def take(self, earliest: int, cycles: int) -> tuple[int, int]:
        """The first time from `earliest` on in which it is free for so long; it is taken."""
        start = earliest
        for begin, end in self.busy:
            if end <= start:
                continue
            if begin >= start + cycles:
                break
            start = end
        insort(self.busy, (start, start + cycles))
        return start, start + cycles


@dataclass
class _Barrier:
    """The latest arrival of the phase that runs, and when the one before ended."""

    latest: int = 0
    ended: int = 0
    name: str = ""


class Timeline:
    """The activities of the first program of a launch, and the clocks that time them.

    `now` is the time of each warp group in cycles, `names` what they are called.
    """

    def __init__(self) -> None:
        self.activities: list[Activity] = []
        self.is_over = False
        self._last: dict[str, int] = {}
        self._tensor_cores = _Unit()
        self._engine = _Unit()
        self._barriers: dict[object, _Barrier] = {}
        self.call([])

    def call(self, names: Sequence[str]) -> None:
        """Say what the warp groups are called, before any of them runs."""
        self.names = list(names)
        self.now = [0] * len(names)
        self._products: list[list[int]] = [[] for _ in names]
        self._started = [0] * len(names)
        self._copies: list[list[int]] = [[] for _ in names]
        self._copied = [0] * len(names)

    def groups(self, threads: Array) -> list[int]:
        """The warp groups of some threads."""
        return [int(group) for group in np.unique(threads // WARP_GROUP)]

    # --- what a warp group does itself ---

    def compute(self, threads: Array, sites: Sequence[tuple[Span | None, int]]) -> None:
        """Warp groups run instructions: so many of each source line, in order."""
        for group in self.groups(threads):
            for source, count in sites:
                start = self.now[group]
                self.now[group] += count
                self._note(self.names[group], _line(source), "compute", start, source, group)

    def _note(
        self, track: str, name: str, kind: str, start: int, source: Span | None, group: int
    ) -> None:
        """What a warp group has done since `start`."""
        self._add(Activity(track, name, kind, start, self.now[group], source))

    def _add(self, new: Activity) -> None:
        """Note an activity; one that goes on where the one before ended becomes a part of it."""
        if self.is_over or new.end_cycles == new.start_cycles:
            return
        index = self._last.get(new.track, -1)
        last = self.activities[index] if index >= 0 else None
        is_same = last is not None and (last.name, last.kind) == (new.name, new.kind)
        if last is not None and is_same and last.end_cycles == new.start_cycles:
            self.activities[index] = replace(last, end_cycles=new.end_cycles)
        else:
            self._last[new.track] = len(self.activities)
            self.activities.append(new)

    def _wait_until(self, group: int, time: int, what: str) -> None:
        start = self.now[group]
        self.now[group] = max(start, time)
        self._note(self.names[group], f"waits: {what}", "wait", start, None, group)

    # --- products ---

    def start_product(self, group: int, columns: int, site: Site) -> None:
        """A warp group starts a wgmma of so many columns."""
        cycles = max(1, _ROWS_DEPTH * columns // _TENSOR_BYTES_PER_CYCLE)
        earliest = max(self.now[group], self._started[group])
        start, end = self._tensor_cores.take(earliest, cycles)
        self._started[group] = end
        name = f"product of {self.names[group]}"
        self._add(Activity("tensor cores", name, "product", start, end, site.source))

    def commit_products(self, group: int) -> None:
        """What a warp group started is one group of products."""
        self._products[group].append(self._started[group])

    def wait_for_products(self, group: int, pending: int) -> None:
        """A warp group waits until at most `pending` groups of products run."""
        done = self._products[group][: len(self._products[group]) - pending]
        self._wait_until(group, max(done, default=0), "products")

    # --- copies ---

    def start_copy(self, threads: Array, num_bytes: int, site: Site) -> None:
        """Threads start copies of their own of so many bytes together."""
        for group in self.groups(threads):
            landed = self._load(group, num_bytes, "cp.async", site)
            self._copied[group] = max(self._copied[group], landed)

    def commit_copies(self, threads: Array) -> None:
        """What threads copied is one group."""
        for group in self.groups(threads):
            self._copies[group].append(self._copied[group])

    def wait_for_copies(self, threads: Array, pending: int) -> None:
        """Threads wait until at most `pending` of their groups are under way."""
        for group in self.groups(threads):
            done = self._copies[group][: max(0, len(self._copies[group]) - pending)]
            self._wait_until(group, max(done, default=0), "copies")

    def load(self, address: int, thread: int, num_bytes: int, site: Site) -> None:
        """A thread has the copy engine load bytes, which an mbarrier waits for."""
        landed = self._load(thread // WARP_GROUP, num_bytes, "load", site)
        barrier = self._barriers.setdefault(address, _Barrier())
        barrier.latest = max(barrier.latest, landed)

    def _load(self, group: int, num_bytes: int, name: str, site: Site) -> int:
        cycles = max(1, num_bytes // _LOAD_BYTES_PER_CYCLE)
        start, end = self._engine.take(self.now[group], cycles)
        name = f"{name}, {_line(site.source)}"
        self._add(Activity("loads", name, "load", start, end, site.source))
        return end + _LOAD_LATENCY_CYCLES

    # --- barriers ---

    def arrive(self, barrier: object, threads: Array) -> None:
        """Threads arrive at an mbarrier (by its address) or at another one."""
        found = self._barriers.setdefault(barrier, _Barrier())
        times = [self.now[group] for group in self.groups(threads)]
        found.latest = max([found.latest, *times])

    def end_phase(self, barrier: object) -> None:
        """All have arrived."""
        found = self._barriers.setdefault(barrier, _Barrier())
        found.ended, found.latest = found.latest, 0

    def name_barrier(self, barrier: object, name: str) -> None:
        """Call a barrier by its ring."""
        self._barriers.setdefault(barrier, _Barrier()).name = name

    def go_on(self, barrier: object, threads: Array, what: str) -> None:
        """Threads go on at the end of the phase that they waited for."""
        found = self._barriers.setdefault(barrier, _Barrier())
        for group in self.groups(threads):
            self._wait_until(group, found.ended, found.name or what)


def _line(source: Span | None) -> str:
    return "no line" if source is None else f"line {source.line}"
