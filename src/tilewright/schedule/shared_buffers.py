"""Pieces of shared memory, and how they are given places: first fit between those in use."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tilewright.analysis.liveness import LiveRange
from tilewright.ir.encoding import SharedType
from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class SharedBuffer:
    """A piece of shared memory that an op allocates or needs while it runs.

    `slots` and `shape` are those of a shared tile; scratch has no shape.
    """

    op: Operation
    size_bytes: int
    alignment_bytes: int
    live: LiveRange
    shape: tuple[int, ...] = ()
    slots: int = 1
    offset_bytes: int = 0

    @property
    def what(self) -> str:
        """What it holds; the name of an element takes xDSL's printer, so no compile asks."""
        if not self.shape:
            return f"scratch of {self.op.name.partition('.')[2]}"
        type_ = self.op.results[0].type
        assert isinstance(type_, SharedType)
        copies = f" x {self.slots}" if self.slots > 1 else ""
        return f"{list(self.shape)} {type_.element}{copies}"

    @property
    def end_bytes(self) -> int:
        """Where it ends."""
        return self.offset_bytes + self.size_bytes


def total(buffers: Sequence[SharedBuffer]) -> int:
    """How many bytes the buffers take from the first byte on."""
    return max((buffer.end_bytes for buffer in buffers), default=0)


def sweep(buffers: Sequence[SharedBuffer], apart_bytes: int = 0) -> list[SharedBuffer]:
    """First fit in the order of the starts, among those that are still in use.

    What has at most `apart_bytes` shares with nothing.
    """
    placed: list[SharedBuffer] = []
    floor = 0
    for buffer in (b for b in buffers if b.size_bytes <= apart_bytes):
        placed.append(fitted(buffer, (), floor))
        floor = placed[-1].end_bytes
    active: list[SharedBuffer] = []
    shared = [b for b in buffers if b.size_bytes > apart_bytes]
    for buffer in sorted(shared, key=lambda b: (b.live.start, -b.size_bytes)):
        active = [other for other in active if other.live.end >= buffer.live.start]
        active.append(fitted(buffer, active, floor))
        placed.append(active[-1])
    return placed


def largest_first(buffers: Sequence[SharedBuffer]) -> list[SharedBuffer]:
    """First fit in the order of the sizes; it compares every two."""
    placed: list[SharedBuffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size_bytes, b.live.start)):
        beside = [other for other in placed if other.live.overlaps(buffer.live)]
        placed.append(fitted(buffer, beside))
    return placed


def fitted(buffer: SharedBuffer, beside: Sequence[SharedBuffer], floor: int = 0) -> SharedBuffer:
    """The buffer at the lowest place from `floor` on between those that are in use with it."""
    offset = aligned(floor, buffer.alignment_bytes)
    for start, end in sorted((other.offset_bytes, other.end_bytes) for other in beside):
        if start - offset >= buffer.size_bytes:
            break
        offset = max(offset, aligned(end, buffer.alignment_bytes))
    return replace(buffer, offset_bytes=offset)


def aligned(offset: int, alignment: int) -> int:
    """The lowest multiple of an alignment from an offset on."""
    return -(-offset // alignment) * alignment
