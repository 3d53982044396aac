"""What the ops of the copy engine do to shared memory, for those who order it."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.schedule.shared_effects import (
    SHARED_EFFECTS,
    Access,
    Extent,
    Order,
    Step,
    ends_of,
)
from tilewright.targets.nvidia.tma_ops import (
    InitBarriersOp,
    TmaLoadOp,
    TmaStoreOp,
    TmaStoreWaitOp,
    TmaWaitOp,
)


@SHARED_EFFECTS.register(InitBarriersOp)
def _init(op: InitBarriersOp) -> tuple[Step, ...]:
    return (Order.BARRIER,)


@SHARED_EFFECTS.register(TmaLoadOp)
def _load(op: TmaLoadOp) -> tuple[Step, ...]:
    return (Access(op, op.dst, is_write=True, is_async=True, extent=Extent.START),)


@SHARED_EFFECTS.register(TmaWaitOp)
def _wait(op: Operation) -> tuple[Step, ...]:
    """Every thread waits for the mbarrier itself, so what it does next is ordered."""
    return ends_of(op, (TmaLoadOp,), is_joint=True)


@SHARED_EFFECTS.register(TmaStoreOp)
def _store(op: TmaStoreOp) -> tuple[Step, ...]:
    return (Access(op, op.src, is_write=False, is_async=True, extent=Extent.START),)


@SHARED_EFFECTS.register(TmaStoreWaitOp)
def _store_wait(op: Operation) -> tuple[Step, ...]:
    """One thread waits, so others need a barrier behind it."""
    return ends_of(op, (TmaStoreOp,))
