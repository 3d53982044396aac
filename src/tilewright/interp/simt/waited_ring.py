"""What a wait says of the ring that it is for."""

from __future__ import annotations

from tilewright.interp.simt.types import SHARED_BASE
from tilewright.ops.roles import slot_side
from tilewright.support.dataclass import dataclass

# By definition of the rings that are emitted: an mbarrier for full and one for empty.
_SLOT_BYTES = 16


@dataclass(frozen=True)
class WaitedRing:
    """The name of a ring, where its mbarriers begin, and the role that waits; as far as known."""

    name: str
    start: int | None = None
    role: str = ""

    def barrier(self, address: int) -> str:
        """What messages call the mbarrier at a shared address."""
        if self.start is None:
            return f"the mbarrier at shared address {address} of ring {self.name}"
        slot, side = divmod(address - SHARED_BASE - self.start, _SLOT_BYTES)
        return slot_side(self.name, slot, is_empty=side != 0)
