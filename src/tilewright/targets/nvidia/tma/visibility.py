"""Which copies must see, or be seen by, what threads do to global memory in the same launch.

The copy engine and the threads see memory by ways of their own. What other launches did is seen;
a load of what threads of this one wrote takes a fence before it, and a store that threads of this
one may read is waited for until it has been written, not only until its tile has been read.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ops.atomics import AtomicOp
from tilewright.ops.debug import BarrierOp
from tilewright.ops.function import FuncOp
from tilewright.schedule.global_order import Touch, global_touches
from tilewright.targets.nvidia.tma.effects import described_argument
from tilewright.targets.nvidia.tma_ops import TmaLoadOp, TmaStoreOp, TmaStoreWaitOp


def mark_visible(kernel: FuncOp) -> None:
    """Mark the loads that need a fence and the waits for stores that must be complete."""
    ops = list(kernel.walk())
    synchronizes = any(isinstance(op, AtomicOp) and _is_used(op) for op in ops)
    releases = any(isinstance(op, AtomicOp | BarrierOp) for op in ops)
    plain = [op for op in ops if not isinstance(op, TmaLoadOp | TmaStoreOp | TmaStoreWaitOp)]
    written = _bases(plain, is_write=True)
    read = _bases([op for op in ops if not isinstance(op, TmaStoreOp)], is_write=False)
    for op in ops:
        if isinstance(op, TmaLoadOp) and (synchronizes or _meets(op.desc, written)):
            op.properties["is_fenced"] = UnitAttr()
        if isinstance(op, TmaStoreWaitOp):
            stores = [token.op for token in op.tokens if isinstance(token, OpResult)]
            descs = [store.desc for store in stores if isinstance(store, TmaStoreOp)]
            if releases or any(_meets(desc, read) for desc in descs):
                op.properties["is_complete"] = UnitAttr()


def _is_used(op: Operation) -> bool:
    return any(result.uses for result in op.results)


def _bases(ops: Iterable[Operation], *, is_write: bool) -> set[SSAValue | None]:
    """The arguments that ops read or write through; None for those that are not known."""
    touches: list[Touch] = [touch for op in ops for touch in global_touches(op)]
    return {touch.base for touch in touches if touch.is_write == is_write}


def _meets(desc: SSAValue, bases: set[SSAValue | None]) -> bool:
    return None in bases or described_argument(desc) in bases
