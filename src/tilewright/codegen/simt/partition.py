"""Partitions: which warps of a cta run a body together, and what they have of their own.

A kernel without roles is one partition, its whole cta. A role is a partition of some of the warps;
a replicated one has several groups of warps that run the same body, each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.support.powers_of_two import is_power_of_two


@dataclass(frozen=True)
class Partition:
    """`replicas` groups of `warps` each, from warp `first_warp` of a cta of `cta_warps` on.

    Replica r meets at named barrier `barrier + r`, and its scratch and shared tiles lie
    `shared_start + r * shared_bytes` bytes behind the places that the schedule gave them.
    `registers` are those of each thread while it runs the body; 0 leaves them as they are.
    `is_elected`: one thread of the first warp of a group runs the body, the others leave it out.

    *Constraints*: `warps` is a power of two, as layouts have it. Only a cta of roles may have any
    number of warps, as nothing laid out is emitted for all of it.
    """

    cta_warps: int
    warps: int
    first_warp: int = 0
    replicas: int = 1
    barrier: int = 0
    shared_start: int = 0
    shared_bytes: int = 0
    registers: int = 0
    is_elected: bool = False

    def __post_init__(self) -> None:
        if not (is_power_of_two(self.warps) or self.is_cta) or not 0 < self.warps <= self.cta_warps:
            raise InternalError(f"a partition of {self.warps} out of {self.cta_warps} warps")

    @property
    def end_warp(self) -> int:
        """The first warp behind the partition."""
        return self.first_warp + self.replicas * self.warps

    @property
    def is_cta(self) -> bool:
        """Whether its only group is the whole cta."""
        return self.warps == self.cta_warps

    @property
    def barriers(self) -> range:
        """The named barriers at which its replicas meet; a single warp or thread needs none."""
        has_one_warp = self.warps == 1 or self.is_elected
        return range(self.barrier, self.barrier + (0 if has_one_warp else self.replicas))

    @property
    def shared(self) -> range:
        """The bytes of shared memory that its replicas have of their own, where that is known."""
        return range(self.shared_start, self.shared_start + self.replicas * self.shared_bytes)


def whole_cta(warps: int) -> Partition:
    """The partition of a kernel without roles."""
    return Partition(warps, warps)


def check_partitions(partitions: Sequence[Partition], num_barriers: int) -> None:
    """Check that partitions of one cta have nothing in common.

    *Raises*: InternalError with the two that share warps, barriers or shared memory.
    """
    for part in partitions:
        # Barrier 0 is where the whole cta meets, before the roles part.
        has_barriers = not part.barriers or 0 < part.barrier <= num_barriers - len(part.barriers)
        if part.end_warp > part.cta_warps or not has_barriers:
            raise InternalError(f"{part} has no such warps or barriers in its cta")
    for one, other in combinations(partitions, 2):
        ranges = (
            ("warps", range(one.first_warp, one.end_warp), range(other.first_warp, other.end_warp)),
            ("barriers", one.barriers, other.barriers),
            ("shared memory", one.shared, other.shared),
        )
        for what, first, second in ranges:
            if max(first.start, second.start) < min(first.stop, second.stop):
                raise InternalError(f"{one} and {other} share {what}")
