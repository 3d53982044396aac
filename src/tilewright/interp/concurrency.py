"""Races between programs, found by vector clocks over a shadow of memory.

Each program has a clock that ticks when it releases. An access of program p at its clock c is
ordered before program q when q has acquired, directly or through others, a release of p at
clock c or later. Two accesses of one place race when one of them writes, not both are atomic,
and neither is ordered before the other. Programs run in some order on one thread, so a race is
found whether or not it changed the result of this run.

The shadow keeps, per granule of memory, the last plain write, the last atomic write and one
atomic read, and two readers. A reader beyond the second is forgotten when neither of the two is
ordered before it, so a write that is ordered after two readers but not after a third may
escape; there are no false alarms.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from xdsl.ir import Operation

from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass

_CLOCK_BITS = 32
_KINDS = ("write", "atomic_write", "read", "read2", "atomic_read")
_CONFLICTS = {
    "read": ("write", "atomic_write"),
    "write": ("write", "atomic_write", "read", "read2", "atomic_read"),
    "atomic_read": ("write",),
    "atomic_write": ("write", "read", "read2"),
}


@dataclass
class _Shadow:
    """The last accesses of each granule of one allocation, one array pair per kind."""

    granule: int
    count: int
    epochs: dict[str, Array] = field(default_factory=dict)
    sites: dict[str, Array] = field(default_factory=dict)

    def table(self, kind: str) -> tuple[Array, Array]:
        """The epochs (program + 1, clock) and sites (number of an op) of `kind`."""
        if kind not in self.epochs:
            self.epochs[kind] = np.zeros(self.count, np.int64)
            self.sites[kind] = np.zeros(self.count, np.int32)
        return self.epochs[kind], self.sites[kind]

    def refine(self, granule: int, size: int) -> None:
        """Split every granule, for accesses narrower than those before."""
        factor = self.granule // granule
        self.count = -(-size // granule)
        for kind in self.epochs:
            self.epochs[kind] = np.repeat(self.epochs[kind], factor)[: self.count]
            self.sites[kind] = np.repeat(self.sites[kind], factor)[: self.count]
        self.granule = granule


@dataclass(frozen=True)
class Place:
    """Byte `offsets`, one per lane, in the allocation of `size` bytes that `allocation` names."""

    allocation: int
    size: int
    offsets: Array


@dataclass(frozen=True)
class Race:
    """The earlier of two accesses without order, and the lane of the later one."""

    lane: int
    other_program: int
    other_operation: Operation
    other_kind: str


class RaceDetector:
    """Orders programs by the atomics that they execute and checks each access of memory."""

    def __init__(self, num_programs: int) -> None:
        self._num_programs = num_programs
        self._shadows: dict[int, _Shadow] = {}
        self._clocks: dict[int, int] = {}
        self._known: dict[int, Array] = {}
        self._released: dict[int, Array] = {}
        self._sites: dict[Operation, int] = {}
        self._operations: list[Operation] = []

    def access(
        self, program: int, operation: Operation, kind: str, place: Place, width: int
    ) -> Race | None:
        """Record accesses of `width` bytes at `place` and return a race if there is one.

        `kind` is read, write, atomic_read or atomic_write.
        """
        shadow = self._shadow(place.allocation, place.size, width)
        granules, per_lane = _granules(place.offsets, width, shadow.granule)
        for other in _CONFLICTS[kind]:
            race = self._conflict(shadow, other, program, granules, per_lane)
            if race is not None:
                return race
        self._record(shadow, kind, program, operation, granules)
        return None

    def _shadow(self, base: int, size: int, width: int) -> _Shadow:
        shadow = self._shadows.get(base)
        if shadow is None:
            shadow = self._shadows[base] = _Shadow(width, -(-size // width))
        if width < shadow.granule:
            shadow.refine(width, size)
        return shadow

    def _conflict(
        self, shadow: _Shadow, kind: str, program: int, granules: Array, per_lane: int
    ) -> Race | None:
        if kind not in shadow.epochs:
            return None
        epochs = shadow.epochs[kind][granules]
        bad = ~self._is_ordered(program, epochs)
        if not bad.any():
            return None
        position = int(np.argmax(bad))
        site = int(shadow.sites[kind][granules[position]])
        other = (int(epochs[position]) >> _CLOCK_BITS) - 1
        return Race(position // per_lane, other, self._operations[site], kind)

    def _is_ordered(self, program: int, epochs: Array) -> Array:
        """Whether accesses at `epochs` happened before `program` stands where it does."""
        programs = epochs >> _CLOCK_BITS
        ordered = (programs == 0) | (programs == program + 1)
        known = self._known.get(program)
        if known is None:
            return ordered
        clocks = epochs & ((1 << _CLOCK_BITS) - 1)
        return ordered | (clocks <= known[np.maximum(programs - 1, 0)])

    def _record(
        self, shadow: _Shadow, kind: str, program: int, operation: Operation, granules: Array
    ) -> None:
        site = self._site(operation)
        epoch = ((program + 1) << _CLOCK_BITS) | self._clock(program)
        if kind != "read":
            epochs, sites = shadow.table(kind)
            epochs[granules] = epoch
            sites[granules] = site
            return
        epochs, sites = shadow.table("read")
        displaced = granules[~self._is_ordered(program, epochs[granules])]
        if displaced.size:
            spare, spare_sites = shadow.table("read2")
            free = displaced[self._is_ordered(program, spare[displaced])]
            spare[free] = epoch
            spare_sites[free] = site
            granules = granules[self._is_ordered(program, epochs[granules])]
        epochs[granules] = epoch
        sites[granules] = site

    def _site(self, operation: Operation) -> int:
        site = self._sites.get(operation)
        if site is None:
            site = self._sites[operation] = len(self._operations)
            self._operations.append(operation)
        return site

    def _clock(self, program: int) -> int:
        return self._clocks.setdefault(program, 1)

    def acquire(self, program: int, addresses: Array) -> None:
        """Order `program` after what was released at the addresses that it has read."""
        for address in addresses.tolist():
            released = self._released.get(address)
            if released is None:
                continue
            known = self._known.get(program)
            if known is None:
                self._known[program] = released.copy()
            else:
                np.maximum(known, released, out=known)

    def release(self, program: int, addresses: Array, *, joins: bool) -> None:
        """Publish what `program` has done at the addresses that it writes.

        A read-modify-write `joins` the releases before it; a plain atomic store replaces them.
        """
        published = np.zeros(self._num_programs, np.int64)
        known = self._known.get(program)
        if known is not None:
            published[:] = known
        clock = self._clock(program)
        published[program] = clock
        for address in addresses.tolist():
            before = self._released.get(address)
            if joins and before is not None:
                self._released[address] = np.maximum(before, published)
            else:
                self._released[address] = published
        self._clocks[program] = clock + 1

    def forget_release(self, addresses: Array) -> None:
        """A relaxed store ends the release sequence of its addresses."""
        for address in addresses.tolist():
            self._released.pop(address, None)


def _granules(offsets: Array, width: int, granule: int) -> tuple[Array, int]:
    """The granules that accesses touch, and how many each of them touches."""
    if width == granule:
        return offsets // granule, 1
    per_lane = width // granule
    first = offsets // granule
    return (first[:, None] + np.arange(per_lane)).ravel(), per_lane
