"""Waits for what stores read before replicas meet, a barrier for what follows, too (T2 to T2).

    ring_wait {meets} %parts, …; …; tma_store_wait {pending = 0}; barrier; local_store …
    ⇒ tma_store_wait {pending = 0}; ring_wait {meets} %parts, …; …; local_store …

A stage is written again when one thread has seen that the copy engine has read it, and a barrier
has told the others. Where replicas meet before that, and no store is started in between, their
barrier tells them: what a store reads is then waited for half an iteration later than it started.

*Why here*: behind the barriers, as one goes where all accesses are ordered without it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.ir.passes import Pass
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingWaitOp
from tilewright.ops.staging import LocalBarrierOp
from tilewright.schedule.check_ordering import is_ordered
from tilewright.schedule.placed_accesses import PlacedAccesses
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tma_ops import TmaStoreOp, TmaStoreWaitOp


@dataclass(frozen=True)
class JoinBarriers(Pass):
    """The pass; see the module."""

    name = "join-barriers"
    requires = "T2"
    produces = "T2"
    after = ("meet-at-barriers", "insert-shared-barriers")

    def apply(self, module: ModuleOp) -> None:
        """Move the waits of the kernel, and take out the barriers behind them."""
        kernel = find_kernel(module)
        for op in tuple(kernel.walk()):
            meeting = _meeting_before(op) if isinstance(op, TmaStoreWaitOp) else None
            barrier = op.next_op
            if meeting is None or not isinstance(barrier, LocalBarrierOp):
                continue
            block, following = op.parent, barrier.next_op
            assert block is not None and following is not None
            op.detach()
            barrier.detach()
            block.insert_op_before(op, meeting)
            if is_ordered(kernel, PlacedAccesses()):
                barrier.erase()
                continue
            op.detach()
            block.insert_op_before(op, following)
            block.insert_op_before(barrier, following)


def _meeting_before(wait: TmaStoreWaitOp) -> RingWaitOp | None:
    """Where replicas meet in front of a wait in its block, with no store started in between."""
    op: Operation | None = wait.prev_op
    while op is not None and not any(isinstance(inner, TmaStoreOp) for inner in op.walk()):
        if isinstance(op, RingWaitOp) and op.meets is not None:
            return op
        op = op.prev_op
    return None
