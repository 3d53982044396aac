"""Checks that nothing uses a tensor map any more where a role makes it anew or leaves its place.

    tma_store %c, …; tma_store_wait 0 (complete); make_tensor_map %c        the map of the stores
    tma_fill %ring, …; ring_landed %ring; make_tensor_map %a                the map of the loads

Another program takes a place that was left, so that no launch of one program shows a missing wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.ops.function import FuncOp
from tilewright.ops.rings import RingFill, RingLandedOp
from tilewright.ops.roles import Role, find_roles
from tilewright.schedule.protocol.broken import broken
from tilewright.targets.nvidia.tma_ops import (
    LeaveMapSlotOp,
    MakeTensorMapOp,
    TmaStoreOp,
    TmaStoreWaitOp,
)


def check_maps(kernel: FuncOp) -> None:
    """Check the roles of a kernel. *Raises*: ProtocolBroken."""
    roles = find_roles(kernel)
    if roles is None:
        return
    for role, body in zip(roles.described(), roles.bodies, strict=True):
        ops = list(body.walk())
        rings = {op.ring: None for op in ops if isinstance(op, RingFill) and _is_made(op.operands)}
        stores = any(isinstance(op, TmaStoreOp) and _is_made(op.operands) for op in ops)
        for op in ops:
            if isinstance(op, MakeTensorMapOp | LeaveMapSlotOp):
                _require_idle(role, op, list(rings), stores=stores)


def _is_made(operands: Sequence[SSAValue]) -> bool:
    """Whether a copy uses a map that the program made."""
    return any(isinstance(value.owner, MakeTensorMapOp) for value in operands)


def _require_idle(role: Role, op: Operation, rings: list[SSAValue], *, stores: bool) -> None:
    waits = list(_straight_before(op))
    verb = "makes a tensor map anew" if isinstance(op, MakeTensorMapOp) else "leaves its maps"
    if stores and not any(_is_complete(wait) for wait in waits):
        raise broken(role.name, f"{verb} while its stores may still use them", op)
    landed = {wait.ring for wait in waits if isinstance(wait, RingLandedOp)}
    if not landed.issuperset(rings):
        raise broken(role.name, f"{verb} while its loads may still use them", op)


def _straight_before(op: Operation) -> Iterator[Operation]:
    """The ops in front of an op up to the copy, the loop or the branch before it."""
    before = op.prev_op
    while before is not None and not before.regions:
        if isinstance(before, RingFill | TmaStoreOp):
            return
        yield before
        before = before.prev_op


def _is_complete(op: Operation) -> bool:
    if not isinstance(op, TmaStoreWaitOp) or op.is_complete is None:
        return False
    return op.pending is None or op.pending.value.data == 0
