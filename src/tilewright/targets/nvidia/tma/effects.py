"""What the ops of the copy engine do to memory, for those who order it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.provenance import base_argument
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
    MakeTensorMapOp,
    TensorMapOp,
    TmaLoadOp,
    TmaStoreOp,
    TmaStoreWaitOp,
    TmaWaitOp,
)


@SHARED_EFFECTS.register(InitBarriersOp)
def _init(op: InitBarriersOp) -> tuple[Step, ...]:
    return (Order.BARRIER,)


@SHARED_EFFECTS.register(MakeTensorMapOp)
def _make(op: MakeTensorMapOp) -> tuple[Step, ...]:
    """One thread writes its workspace and reads it."""
    return () if op.workspace is None else (Access(op, op.workspace, is_write=True),)


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


def described_argument(desc: SSAValue) -> SSAValue | None:
    """The argument that the address of a tensor map comes from; None where it is not known."""
    assert isinstance(desc, OpResult)
    if isinstance(desc.op, MakeTensorMapOp):
        return base_argument(desc.op.base)
    assert isinstance(desc.op, TensorMapOp)
    return desc.op.arguments[0]


def _touch(op: TmaLoadOp | TmaStoreOp, *, is_over: bool) -> Touch:
    is_write = isinstance(op, TmaStoreOp)
    base = described_argument(op.desc)
    return Touch(op.desc, base, is_write=is_write, is_over=is_over, is_single=True)


@GLOBAL_TOUCHES.register(TmaLoadOp, TmaStoreOp)
def _started(op: TmaLoadOp | TmaStoreOp) -> Sequence[Touch]:
    """There is a wait before anything else touches global memory."""
    return (_touch(op, is_over=True),)


@GLOBAL_TOUCHES.register(TmaStoreWaitOp)
def _written(op: TmaStoreWaitOp) -> Sequence[Touch]:
    """What one thread knows to be written, others know behind a barrier after it."""
    return [_touch(store, is_over=False) for store in stores_of(op)]


def stores_of(wait: TmaStoreWaitOp) -> list[TmaStoreOp]:
    """The stores that a wait is for."""
    ops = [token.op for token in wait.tokens if isinstance(token, OpResult)]
    return [op for op in ops if isinstance(op, TmaStoreOp)]
