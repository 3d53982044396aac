"""Where roles meet, and where they make tensor maps, with rings and waits (T1 to T1).

    tw.meet            ⇒ ring_acquire, ring_commit; ring_wait, ring_release; fence
    in one that stores ⇒ tma_store_wait; the same
    make_tensor_map    ⇒ ring_landed, or tma_store_wait; make_tensor_map

A ring of one slot, whose tile nobody looks at: it is full when all roles have come, those that
store with what they have stored in memory. So what was stored before is found behind it, and what
a role has read before is stored to behind it, though that role waits for nothing else. A map is
made where the one before it was, so no copy may use that any more: those to slots have landed,
those to memory are complete.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import erase, insert_before
from tilewright.ir.encoding import shared_tile
from tilewright.ir.op import build
from tilewright.layout.build import shared_linear
from tilewright.ops.channels import ChannelOp, MeetOp
from tilewright.ops.descriptors.ir import DescriptorReduceOp, DescriptorStoreOp
from tilewright.ops.rings import (
    RING,
    RingAcquireOp,
    RingCommitOp,
    RingFill,
    RingLandedOp,
    RingOp,
    RingReleaseOp,
    RingWaitOp,
    slot_types,
)
from tilewright.ops.roles import RolesOp
from tilewright.ops.staging import LocalAllocOp
from tilewright.targets.nvidia.ops import FenceGlobalOp
from tilewright.targets.nvidia.tma_ops import (
    LeaveMapSlotOp,
    MakeTensorMapOp,
    TakeMapSlotOp,
    TmaStoreWaitOp,
)

_TOKENS = 32
"""The elements of the tile: as many as one line of shared memory has. By definition: a ring has
slots of a tile."""


def stage_meets(roles: RolesOp, channel: ChannelOp) -> None:
    """Make a ring of the channel at which roles meet."""
    storing = [any(map(_stores, body.walk())) for body in roles.bodies]
    replicas = [role.replicas for role in roles.described()]
    ring = _ring(channel, roles, sum(replicas))
    for body, is_storing in zip(roles.bodies, storing, strict=True):
        for op in tuple(body.walk()):
            if isinstance(op, MeetOp):
                _meet(op, ring, is_storing=is_storing)
    erase(channel)


def _stores(op: Operation) -> bool:
    return isinstance(op, DescriptorStoreOp | DescriptorReduceOp)


def _ring(channel: ChannelOp, roles: RolesOp, replicas: int) -> RingOp:
    tile = shared_tile(i32, shared_linear((_TOKENS,), (0,)), 1)
    alloc = build(LocalAllocOp, (), [tile], location=channel.location)
    properties: dict[str, Attribute] = {
        "ring_name": StringAttr(channel.channel_name.data),
        "producers": IntegerAttr(replicas, i32),
        "consumers": IntegerAttr(replicas, i32),
    }
    ring = build(RingOp, [alloc.results[0]], [RING], properties, location=channel.location)
    assert isinstance(ring, RingOp) and roles.parent is not None
    for op in (alloc, ring):
        roles.parent.insert_op_before(op, roles)
    return ring


def _meet(op: MeetOp, ring: RingOp, *, is_storing: bool) -> None:
    types, operands = slot_types(ring), [ring.result]
    if is_storing:
        insert_before(op, _complete(op))
    insert_before(op, build(RingAcquireOp, operands, types, location=op.location))
    insert_before(op, build(RingCommitOp, operands, location=op.location))
    insert_before(op, build(RingWaitOp, operands, types, location=op.location))
    insert_before(op, _release(op, ring.result))
    insert_before(op, build(FenceGlobalOp, location=op.location))
    erase(op)


def _release(op: Operation, ring: SSAValue) -> Operation:
    sizes: dict[str, Attribute] = {"operandSegmentSizes": integer_array((1, 0, 0))}
    return build(RingReleaseOp, [ring], (), sizes, location=op.location)


def _complete(op: Operation) -> Operation:
    """A wait until what a role has stored by the engine is in memory."""
    properties: dict[str, Attribute] = {"pending": IntegerAttr(0, i32), "is_complete": UnitAttr()}
    return build(TmaStoreWaitOp, (), (), properties, location=op.location)


def _number_takers(roles: RolesOp) -> None:
    """Tell replicas apart that take places for their maps, each of which has its own."""
    takes = [
        (op, role.replicas)
        for role, body in zip(roles.described(), roles.bodies, strict=True)
        for op in body.walk()
        if isinstance(op, TakeMapSlotOp)
    ]
    total, number = sum(replicas for _, replicas in takes), 0
    for op, replicas in takes:
        op.properties["takers"] = integer_array((total, number))
        number += replicas


def keep_maps(roles: RolesOp) -> None:
    """Let copies end that use a map before it is made anew, or its place is given back."""
    _number_takers(roles)
    for body in roles.bodies:
        fills = [op for op in body.walk() if isinstance(op, RingFill)]
        rings = dict.fromkeys(op.ring for op in fills)
        is_storing = any(map(_stores, body.walk()))
        for op in tuple(body.walk()):
            if not isinstance(op, MakeTensorMapOp | LeaveMapSlotOp):
                continue
            for ring in rings:
                if not _has_landed(op, ring):
                    insert_before(op, build(RingLandedOp, [ring], (), location=op.location))
            if is_storing:
                insert_before(op, _complete(op))


def _has_landed(op: Operation, ring: SSAValue) -> bool:
    """Whether the block has waited for the ring's copies already, and no copy began since."""
    before = op.prev_op
    while before is not None and not any(isinstance(o, RingFill) for o in before.walk()):
        if isinstance(before, RingLandedOp) and before.ring is ring:
            return True
        before = before.prev_op
    return False
