"""Which warps, named barriers and shared memory each role of a program has."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation

from tilewright.codegen.simt.partition import Partition
from tilewright.ir.effects import Access, Allocation, Effect, Extent, Resource, own_effects
from tilewright.ir.op import OneThreadOp
from tilewright.ir.regions import is_control_flow
from tilewright.ops.ring_queries import meetings_in
from tilewright.ops.rings import RingAccess
from tilewright.ops.roles import RolesOp, TurnOp
from tilewright.support.dataclass import dataclass

_FIRST_BARRIER = 1  # Barrier 0 is where the whole cta meets before the roles part.


@dataclass(frozen=True)
class Allotment:
    """The partition of each role, and the barrier of the first replica of each of its turns.

    `turns` are by the number of the role and the name of the turns. `meetings` are the barriers at
    which all replicas of a role wait for a fill, by the name of the ring.
    """

    partitions: tuple[Partition, ...]
    turns: Mapping[tuple[int, str], int]
    meetings: Mapping[str, int]

    @property
    def cta_warps(self) -> int:
        """The warps of the whole program."""
        return self.partitions[-1].end_warp


def allot(op: RolesOp) -> Allotment:
    """Warps and barriers in the order of the roles; shared memory as the op has it."""
    roles = op.described()
    cta_warps = sum(role.replicas * role.warps for role in roles)
    warp, barrier = 0, _FIRST_BARRIER
    partitions: list[Partition] = []
    turns: dict[tuple[int, str], int] = {}
    meetings: dict[str, int] = {}
    for number, (role, body) in enumerate(zip(roles, op.bodies, strict=True)):
        part = Partition(
            cta_warps,
            role.warps,
            warp,
            role.replicas,
            barrier,
            role.shared_start,
            role.shared_bytes,
            role.registers,
            runs_in_one_thread(body.block),
        )
        partitions.append(part)
        warp, barrier = part.end_warp, barrier + len(part.barriers)
        for name in turn_names(body.block) if role.replicas > 1 else ():
            turns[number, name] = barrier
            barrier += role.replicas
        for name in meeting_names(body.block):
            meetings[name] = barrier
            barrier += 1
    return Allotment(tuple(partitions), turns, meetings)


def turn_names(body: Block) -> list[str]:
    """What the replicas of a role take turns at, in the order of the text."""
    found = (op for op in body.walk() if isinstance(op, TurnOp))
    return list(dict.fromkeys(op.turns.data for op in found))


def meeting_names(body: Block) -> list[str]:
    """The rings for whose fills the replicas of a role wait at a barrier of them all."""
    return list(dict.fromkeys(op.ring_of().ring_name.data for op in meetings_in(body)))


def runs_in_one_thread(body: Block) -> bool:
    """Whether one thread does all that a role does: it starts copies, and computes with scalars."""
    return all(_is_of_one_thread(op) for op in body.walk())


def _is_of_one_thread(op: Operation) -> bool:
    if any(isinstance(v.type, TensorType) for v in (*op.operands, *op.results)):
        return False
    if isinstance(op, RingAccess):
        return op.is_of_one_thread()
    if isinstance(op, OneThreadOp):
        return True
    return is_control_flow(op) or all(_starts_or_reads(effect) for effect in own_effects(op))


def _starts_or_reads(effect: Effect) -> bool:
    """Whether an effect is a copy that an engine makes, a read of global memory, or a promise.

    Memory that is only named is nobody's work.
    """
    if not isinstance(effect, Access):
        return isinstance(effect, Allocation)
    is_started = effect.is_async and effect.extent is Extent.START
    is_read = effect.resource is Resource.GLOBAL and not effect.writes
    return is_started or is_read or effect.resource is Resource.CONTROL
