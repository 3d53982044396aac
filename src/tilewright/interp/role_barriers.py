"""Where roles of a program wait for each other: mbarriers with their phases, and turns.

Phases are counted from 0 and never come back, so that a wait for the wrong one is noticed where
hardware, which tells only odd from even, would let it pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

import numpy as np

from tilewright.interp.role_clocks import NOTHING, Knowledge
from tilewright.interp.simt.faults import Fault, UnfinishedOperation
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import KernelFault


@dataclass
class Copy:
    """What a copy in flight will write: bytes, and to where.

    `again` reads them once more: a machine may take them at any time until it is waited for.
    `by_threads`: threads write them, which asynchronous units have to be shown.
    """

    places: Array
    data: Array
    again: Callable[[], Array] | None = None
    by_threads: bool = False

    def brought(self) -> Array:
        """The bytes, now that they are there. *Raises*: Fault where it is open which they are."""
        if self.again is not None and not np.array_equal(self.again(), self.data):
            message = "what an asynchronous copy reads was overwritten before anyone waited for it"
            raise Fault(UnfinishedOperation, message)
        return self.data


@dataclass
class MemoryBarrier:
    """An mbarrier: a phase ends when its arrivals and all announced bytes are there.

    Nobody sees when the bytes come: what the loads bring lies there once a wait has found out.
    """

    name: object
    count: int
    arrived: int = 0
    announced: int = 0
    copies: list[Copy] = field(default_factory=list)
    num_ended: int = 0
    told: Knowledge | None = None
    ended: Knowledge = NOTHING

    @property
    def brought(self) -> int:
        """The bytes that the loads of this phase bring."""
        return sum(copy.places.size for copy in self.copies)

    @property
    def is_full(self) -> bool:
        """Whether the phase has all it waits for."""
        return self.arrived == self.count and self.announced == self.brought

    def arrive(self, told: Knowledge, num_bytes: int) -> None:
        """One arrival, with bytes that it announces. *Raises*: Fault for one too many."""
        if self.arrived == self.count:
            raise Fault(
                KernelFault,
                f"more arrive at mbarrier {self.name} than the {self.count} of a phase, of which "
                f"{self.brought} of {self.announced} bytes are on their way",
            )
        self.arrived += 1
        self.announced += num_bytes
        self.told = told.joined(self.told)

    def end_phase(self, brought: Knowledge) -> list[Copy]:
        """End the phase; the loads that have come. `brought` is what knows of their writes."""
        done = self.copies
        self.ended = brought.joined(self.told)
        self.arrived = self.announced = 0
        self.copies, self.told = [], None
        self.num_ended += 1
        return done

    def test(self, phase: int) -> Knowledge | None:
        """What is known after phase number `phase`; None before it has ended.

        Phase -1 is the one before the first, and has always ended.

        *Raises*: Fault where parity would confuse it with another: the phase after it has ended
        as well, or the phase before it has not.
        """
        ahead = self.num_ended - phase
        if ahead == 1:
            return self.ended
        if ahead == 0:
            return None
        raise Fault(
            KernelFault,
            f"a wait for phase {phase} of mbarrier {self.name} comes while it is in phase "
            f"{self.num_ended}: by parity it takes that for another one",
        )


@dataclass
class Turns:
    """What the replicas of a role take turns at, in order; the first of them begins."""

    name: str
    # What each replica was told that has its turn and has not taken it.
    offered: list[Knowledge | None]
    # Who has taken its turn and not passed it.
    holder: int | None = None

    @classmethod
    def of(cls, name: str, num_replicas: int) -> Turns:
        """Turns of so many replicas."""
        return cls(name, [NOTHING, *[None] * (num_replicas - 1)])

    def take(self, replica: int) -> Knowledge | None:
        """What a replica knows once it has its turn; None before."""
        told, self.offered[replica] = self.offered[replica], None
        if told is not None:
            self.holder = replica
        return told

    def hand_on(self, replica: int, told: Knowledge) -> None:
        """A replica's turn is over, and the next one has it. *Raises*: Fault without a turn."""
        if self.holder != replica:
            raise Fault(KernelFault, f"replica {replica} passes a turn at {self.name} it has not")
        self.holder = None
        self.offered[(replica + 1) % len(self.offered)] = told
