"""What a wait says of itself: the ring or the turns that it is for."""

from __future__ import annotations

from typing import TypeAlias

from tilewright.interp.simt.types import CTA_WINDOW, SHARED_BASE
from tilewright.ops.rings import slot_side
from tilewright.support.dataclass import dataclass

# By definition of the rings that are emitted: an mbarrier for full and one for empty.
_SLOT_BYTES = 16
# By definition of the turns that are emitted: an mbarrier of each replica.
_TURN_BYTES = 8


@dataclass(frozen=True)
class WaitedRing:
    """The name of a ring, where its mbarriers begin, and the role that waits; as far as known."""

    name: str
    start: int | None = None
    role: str = ""

    @property
    def label(self) -> str:
        """What reports call it."""
        return f"ring {self.name}"

    @property
    def part(self) -> str:
        """What a wait is for one of."""
        return "slot"

    def wait_text(self, address: int, phase: int) -> str:
        """A wait at the mbarrier at a shared address, in words."""
        who = f"role {self.role} " if self.role else ""
        return f"{who}waits for phase {phase} of {self.barrier(address)}"

    def barrier(self, address: int) -> str:
        """What messages call the mbarrier at a shared address."""
        if self.start is None:
            return f"the mbarrier at shared address {address} of ring {self.name}"
        slot, side = divmod((address - SHARED_BASE) % CTA_WINDOW - self.start, _SLOT_BYTES)
        return slot_side(self.name, slot, is_empty=side != 0)


@dataclass(frozen=True)
class WaitedTurn:
    """The name of turns, the barrier of the first replica, and the role that takes them.

    `start` is the number of a named barrier, or the byte of an mbarrier in shared memory.
    """

    name: str
    start: int
    role: str

    @property
    def label(self) -> str:
        """What reports call them."""
        return f"turns {self.name}"

    @property
    def part(self) -> str:
        """What a wait is for one of."""
        return "turn"

    def wait_text(self, address: int, _phase: int) -> str:
        """A wait at the mbarrier at a shared address, in words."""
        return self.text(((address - SHARED_BASE) % CTA_WINDOW - self.start) // _TURN_BYTES)

    def text(self, replica: int) -> str:
        """A wait of a replica in words."""
        return f"role {self.role} {replica} waits for its turn at {self.name}"


Awaited: TypeAlias = WaitedRing | WaitedTurn
"""What a wait may name."""
