"""Gives rings one memory, or makes one ring of them, where each for itself has too little (T0).

    for … { load A; load B }; for … { load C; load D }          48 KiB a slot of either
    ring0 A B slots 2; ring1 C D slots 2        ⇒ ring0 A B C D slots 4, as the tiles are equal
                                                ⇒ or ring1 C D slots 4 shares ring0

Loops that run one after the other do not use their slots at once. With equal tiles they go through
one ring, whose counters go on from loop to loop: what is loaded for the second one comes while the
first one ends. With other tiles the role that loads waits in between until the slots of the first
one are free, so that is done only where slots are short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.ir.encoding import SharedType
from tilewright.ir.schedule import Anchor, Channel
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.schedule.partition.lives import Site, are_exclusive, clash
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.tma.stage import tile_type


@dataclass(frozen=True)
class Ring:
    """Loads that fill a ring: of one block together (a group each), of several in turn.

    `slot_bytes` are those of one fill; `memory` is the ring in whose memory it lies.
    """

    name: str
    anchors: tuple[Anchor, ...]
    fills: tuple[tuple[DescriptorLoadOp | LoadOp, ...], ...]
    slot_bytes: int
    is_in_loop: bool
    shares: str = ""

    @property
    def memory(self) -> str:
        """The name of the ring in whose memory the slots lie."""
        return self.shares or self.name

    def channel(self, slots: int, release: str) -> Channel:
        """The ring with so many slots, of which one does outside of loops."""
        medium = "cp_async" if self.is_copied() else "tma"
        if not self.is_in_loop:
            return Channel(self.name, self.anchors, 1, medium, shares=self.shares)
        return Channel(self.name, self.anchors, slots, medium, release, self.shares)

    def tiles(self) -> list[SharedType]:
        """How the tiles of a slot lie."""
        loads = (load for load in self.fills[0] if isinstance(load, DescriptorLoadOp))
        return [tile_type(load, load.desc) for load in loads]

    def is_copied(self) -> bool:
        """Whether threads fill it, and no copy engine."""
        return any(isinstance(load, LoadOp) for loads in self.fills for load in loads)

    def sites(self) -> list[Site]:
        """Where the ring is filled."""
        return [Site(self.channel(1, "wait"), loads) for loads in self.fills]


def memory_bytes(rings: Sequence[Ring], *, is_in_loop: bool) -> int:
    """The bytes of a slot of all rings in loops, or of those outside, each memory once."""
    memories: dict[str, int] = {}
    for ring in rings:
        if ring.is_in_loop == is_in_loop:
            memories[ring.memory] = max(ring.slot_bytes, memories.get(ring.memory, 0))
    return sum(memories.values())


def share_rings(
    rings: Sequence[Ring], wanted: int, fitting: Callable[[Sequence[Ring]], int]
) -> Sequence[Ring]:
    """The rings, which share as little as lets `wanted` slots fit; as they are if none helps."""
    if fitting(rings) >= wanted:
        return rings
    joined = _joined(rings)
    if fitting(joined) >= wanted:
        return joined
    shared = _with_one_memory(joined)
    return max((rings, joined, shared), key=fitting)


def _joined(rings: Sequence[Ring]) -> list[Ring]:
    """One ring of those with equal tiles, which loops fill one after the other."""
    found: list[Ring] = []
    for ring in rings:
        place = next((n for n, other in enumerate(found) if _are_one(other, ring)), None)
        if place is None:
            found.append(ring)
            continue
        other = found[place]
        anchors, fills = other.anchors + ring.anchors, other.fills + ring.fills
        found[place] = replace(other, anchors=anchors, fills=fills)
    return found


def _are_one(one: Ring, other: Ring) -> bool:
    is_in_loop = one.is_in_loop and other.is_in_loop
    if not is_in_loop or not are_exclusive([*one.sites(), *other.sites()]):
        return False
    return one.tiles() == other.tiles()


def _with_one_memory(rings: Sequence[Ring]) -> list[Ring]:
    """The rings, each in the memory of the first one before it whose lives are apart."""
    found: list[Ring] = []
    for ring in rings:
        owner = next((o for o in found if not o.shares and _are_apart(found, o, ring)), None)
        found.append(ring if owner is None else replace(ring, shares=owner.name))
    return found


def _are_apart(rings: Sequence[Ring], owner: Ring, ring: Ring) -> bool:
    """Whether a ring can lie in the memory of another one, with all that lie there already."""
    members = [other for other in rings if other.memory == owner.name]
    if ring.is_in_loop != owner.is_in_loop:
        return False
    sites = [site for member in (*members, ring) for site in member.sites()]
    return clash(sites, [site.channel for site in sites]) is None
