"""What a person is told of the roles of a kernel: a remark with roles, rings and reasons."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from tilewright.analysis.alias import tile_bytes
from tilewright.ir.encoding import SharedType
from tilewright.ir.locations import describe
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ops.program.persistence import cluster_of, most_programs
from tilewright.ops.rings import RingCommitOp, RingOp
from tilewright.ops.roles import RolesOp
from tilewright.targets.nvidia.remarks import REMARKS


@REMARKS.register(RolesOp)
def account_of_roles(op: RolesOp) -> Iterator[str]:
    """The roles with their warps and registers, and the rings between them."""
    roles = " | ".join(
        f"{role.name}{f' x{role.replicas}' if role.replicas > 1 else ''} "
        f"({role.warps} warps, {role.registers or 'their own'} registers)"
        for role in op.described()
    )
    yield f"{describe(op)}: the kernel runs as roles: {roles}"
    assert op.parent is not None
    for ring in op.parent.ops:
        if isinstance(ring, RingOp):
            yield _account_of_ring(ring)
    kernel = op.parent_op()
    most = 0 if kernel is None else most_programs(kernel)
    if most:
        yield f"{describe(op)}: {most} programs at most run the grid, each one tile after the other"
    if kernel is not None and cluster_of(kernel) > 1:
        size = cluster_of(kernel)
        yield f"{describe(op)}: {size} programs are a cluster; blocks of both come by halves"
    schedule = None if kernel is None else schedule_of(kernel)
    if schedule is not None:
        yield from (f"{describe(op)}: {reason}" for reason in schedule.reasons)


def _account_of_ring(ring: RingOp) -> str:
    types = [tile.type for tile in ring.tiles]
    total = sum(tile_bytes(type_) for type_ in types if isinstance(type_, SharedType))
    slots, readers = ring.num_slots, ring.consumers.value.data
    shapes = ", ".join("x".join(map(str, t.extents())) for t in types if isinstance(t, SharedType))
    text = (
        f"{describe(ring)}: ring {ring.ring_name.data} has {_count(slots, 'slot')} of "
        f"{total // slots} bytes ({shapes}), read by {_count(readers, 'group')}"
    )
    if any(_waits_for_copies(use.operation) for use in ring.result.uses):
        text += ", filled by threads"
    return text if ring.shares is None else f"{text}, in the memory of ring {ring.shares.data}"


def _waits_for_copies(op: Operation) -> bool:
    return isinstance(op, RingCommitOp) and op.by_copies is not None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
