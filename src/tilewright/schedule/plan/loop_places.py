"""Where the ops of a loop run that has so many slots, and the same schedule with a slot less."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.schedule import Anchor, Channel, LoopSchedule, Place, Schedule
from tilewright.support.dataclass import replace

LATE_SLOTS = 4
"""From here on products run on. With 3 slots loads are then a single iteration ahead.

Measured on an H200, 2026-11-22: 529 against 592 TFLOP/s (fp16 8192³, 128 x 256 x 64, by
descriptors)."""


def places_of(
    loads: Sequence[Anchor], others: Sequence[Anchor], slots: int, is_late: bool
) -> tuple[tuple[Anchor, Place], ...]:
    """The places of a loop's ops: loads are stages ahead of all others."""
    lead = slots - (2 if is_late else 1)
    loaded, multiplied = (1, 0) if is_late else (0, 1)
    ahead = [(anchor, Place(0, loaded)) for anchor in loads]
    return (*ahead, *((anchor, Place(lead, multiplied)) for anchor in others))


def shortened(schedule: Schedule) -> Schedule | None:
    """A schedule whose longest loop has a slot less, or runs as written; None where all do."""
    longest = max(schedule.loops, key=lambda loop: schedule.slots_of(loop.loop), default=None)
    if longest is None:
        return None
    own, slots = schedule.rings_of(longest.loop), schedule.slots_of(longest.loop) - 1
    if slots <= 1:
        others = tuple(loop for loop in schedule.loops if loop is not longest)
        left = tuple(channel for channel in schedule.channels if channel not in own)
        return replace(schedule, loops=others, channels=left)
    is_late = slots >= LATE_SLOTS and all(channel.release == "late" for channel in own)
    shorter = _with_slots(longest, own, slots, is_late)
    loops = tuple(shorter if loop is longest else loop for loop in schedule.loops)
    release = "late" if is_late else "wait"
    channels = tuple(
        replace(channel, slots=slots, release=release) if channel in own else channel
        for channel in schedule.channels
    )
    return replace(schedule, loops=loops, channels=channels)


def _with_slots(
    loop: LoopSchedule, rings: Sequence[Channel], slots: int, is_late: bool
) -> LoopSchedule:
    loaded = {tile for ring in rings for tile in ring.tiles}
    placed = [anchor for anchor, _ in loop.places]
    loads = [anchor for anchor in placed if anchor in loaded]
    others = [anchor for anchor in placed if anchor not in loaded]
    return replace(loop, places=places_of(loads, others, slots, is_late))
