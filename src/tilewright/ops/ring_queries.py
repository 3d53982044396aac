"""Which rings a kernel has, which lie in one memory, which tiles are slots, and who meets there."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation

from tilewright.ops.rings import RingOp, RingWaitOp
from tilewright.ops.roles import RolesOp, TurnOp


def rings_of(kernel: Operation) -> tuple[RingOp, ...]:
    """The rings of a kernel, all of which its program makes before its roles begin."""
    return tuple(op for op in kernel.regions[0].block.ops if isinstance(op, RingOp))


def is_in_ring(allocation: Operation) -> bool:
    """Whether a shared tile is the slots of a ring, whose accesses the ring orders."""
    users = (use.operation for result in allocation.results for use in result.uses)
    return any(isinstance(user, RingOp) for user in users)


def rings_by_memory(rings: Iterable[RingOp]) -> list[list[RingOp]]:
    """Rings that lie in one memory, together, in the order of the first ones."""
    found: dict[str, list[RingOp]] = {}
    for ring in rings:
        found.setdefault(ring.memory, []).append(ring)
    return list(found.values())


def meetings_in(body: Block) -> list[RingWaitOp]:
    """The waits of a role at a barrier of all its replicas."""
    return [op for op in body.walk() if isinstance(op, RingWaitOp) and op.meets is not None]


def barriers_of(roles: RolesOp) -> list[int]:
    """The named barriers of each role: of its replicas, of their turns, and where they all meet."""
    numbers: list[int] = []
    for role, region in zip(roles.described(), roles.bodies, strict=True):
        turns = {op.turns.data for op in region.block.walk() if isinstance(op, TurnOp)}
        meetings = {wait.ring_of() for wait in meetings_in(region.block)}
        taken = 1 + (len(turns) if role.replicas > 1 else 0)
        numbers.append(role.replicas * taken + len(meetings))
    return numbers
