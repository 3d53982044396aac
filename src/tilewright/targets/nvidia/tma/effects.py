"""What the ops of the copy engine do to memory, for those who order it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.schedule.global_order import GLOBAL_TOUCHES, Touch
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
    TensorMapOp,
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


def described_argument(desc: SSAValue) -> SSAValue:
    """The argument that the address of a tensor map comes from."""
    assert isinstance(desc, OpResult) and isinstance(desc.op, TensorMapOp)
    return desc.op.arguments[0]


@GLOBAL_TOUCHES.register(TmaLoadOp)
def _read(op: TmaLoadOp) -> Sequence[Touch]:
    """Every thread waits for what is read before it writes anything."""
    return (Touch(op.desc, described_argument(op.desc), is_write=False, is_over=True),)


@GLOBAL_TOUCHES.register(TmaStoreOp)
def _write(op: TmaStoreOp) -> Sequence[Touch]:
    return (Touch(op.desc, described_argument(op.desc), is_write=True),)


@GLOBAL_TOUCHES.register(TmaStoreWaitOp)
def _written(op: TmaStoreWaitOp) -> Sequence[Touch]:
    """What one thread knows to be written, others know behind a barrier after it."""
    stores = [token.op for token in op.tokens if isinstance(token, OpResult)]
    return [touch for store in stores if isinstance(store, TmaStoreOp) for touch in _write(store)]
