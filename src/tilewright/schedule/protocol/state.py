"""What roles share while a protocol runs: rings with absolute phases, and turns.

Nothing here knows tiles: a slot is a number, and a phase counts up from 0 and never comes back.
"""

from __future__ import annotations

from dataclasses import field

from tilewright.support.dataclass import dataclass


class Broken(Exception):
    """What a role did against the protocol, in a phrase; whose and where is added outside."""


@dataclass
class Phases:
    """An mbarrier: `count` arrivals end a phase, and the bytes that were announced for it."""

    count: int
    arrived: int = 0
    missing_bytes: int = 0
    ended: int = 0

    def arrive(self, announced: int = 0) -> None:
        """One arrival. *Raises*: Broken for one too many."""
        if self.arrived == self.count:
            raise Broken(f"more arrive than the {self.count} of a phase")
        self.arrived += 1
        self.missing_bytes += announced
        self._end_if_full()

    def bring(self, num_bytes: int) -> None:
        """Bytes have come."""
        self.missing_bytes -= num_bytes
        self._end_if_full()

    def _end_if_full(self) -> None:
        if self.arrived == self.count and self.missing_bytes == 0:
            self.arrived = 0
            self.ended += 1

    def has_ended(self, phase: int) -> bool:
        """Whether a phase has. *Raises*: Broken where parity takes it for another one."""
        if self.ended - phase not in (0, 1):
            raise Broken(
                f"waits for phase {phase} while it is in phase {self.ended}: by parity it takes "
                "that for another one"
            )
        return self.ended > phase


@dataclass
class Ring:
    """A ring while it runs: for each slot the two barriers, and who of whom holds it."""

    name: str
    full: list[Phases]
    empty: list[Phases]

    @classmethod
    def of(cls, name: str, slots: int, producers: int, consumers: int) -> Ring:
        """A ring whose slots are empty."""
        full = [Phases(producers) for _ in range(slots)]
        return cls(name, full, [Phases(consumers) for _ in range(slots)])

    def unread(self) -> list[int]:
        """The slots that were filled once more than they were emptied, or are in between."""
        pairs = zip(self.full, self.empty, strict=True)
        return [
            slot
            for slot, (full, empty) in enumerate(pairs)
            if full.ended != empty.ended or full.arrived or empty.arrived or full.missing_bytes
        ]


@dataclass
class Turns:
    """Turns of the replicas of a role; the first of them begins."""

    num_replicas: int
    offered: list[bool] = field(default_factory=lambda: [True])
    holder: int | None = None

    def __post_init__(self) -> None:
        self.offered += [False] * (self.num_replicas - 1)

    def take(self, replica: int) -> bool:
        """Whether a replica has its turn. *Raises*: Broken where it has it already."""
        if self.holder == replica:
            raise Broken("waits for a turn that it has")
        if not self.offered[replica]:
            return False
        self.offered[replica], self.holder = False, replica
        return True

    def hand_on(self, replica: int) -> None:
        """It is the next replica's turn. *Raises*: Broken without a turn to pass."""
        if self.holder != replica:
            raise Broken("passes a turn that it has not")
        self.holder = None
        self.offered[(replica + 1) % self.num_replicas] = True
