"""Which copies must see, or be seen by, what threads do to global memory in the same launch.

The copy engine and the threads see memory by ways of their own. What other launches did is seen;
a load of what threads of this one wrote takes a fence before it, and a store that threads of this
one may read is waited for until it has been written, not only until its tile has been read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.provenance import base_argument
from tilewright.ir.effects import atomic_of, is_free
from tilewright.ir.passes import Pass
from tilewright.ir.regions import loops_around
from tilewright.ops.debug.ir import BarrierOp
from tilewright.ops.descriptors.ir import DescriptorStoreOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.schedule.global_barriers import GlobalAccess, global_accesses
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tma_ops import (
    MakeTensorMapOp,
    TmaLoadOp,
    TmaStoreOp,
    TmaStoreWaitOp,
)


@dataclass(frozen=True)
class MarkVisible(Pass):
    """The pass (T1 to T1); see the module. With `may_overlap` all arguments may be one array."""

    may_overlap: bool = False
    name = "mark-visible"
    requires = "T1"
    produces = "T1"
    after = ("stage-tensor-maps",)

    def apply(self, module: ModuleOp) -> None:
        """Mark the copies of the kernel."""
        mark_visible(find_kernel(module), may_overlap=self.may_overlap)


def mark_visible(kernel: FuncOp, *, may_overlap: bool = False) -> None:
    """Mark the loads that need a fence and the waits for stores that must be complete."""
    ops = list(kernel.walk())
    if not any(isinstance(op, TmaLoadOp | TmaStoreOp | TmaStoreWaitOp) for op in ops):
        return
    synchronizes = any(atomic_of(op) is not None and _is_used(op) for op in ops)
    releases = any(atomic_of(op) is not None or isinstance(op, BarrierOp) for op in ops)
    copies = [op for op in ops if isinstance(op, TmaLoadOp | TmaStoreOp)]
    plain = [op for op in ops if not isinstance(op, TmaLoadOp | TmaStoreOp | TmaStoreWaitOp)]
    written = _bases(plain, is_write=True)
    read = _bases([op for op in ops if not isinstance(op, TmaStoreOp)], is_write=False)
    stores = [op for op in copies if isinstance(op, TmaStoreOp)]
    if may_overlap:
        written, read = (_unknown(bases) for bases in (written, read))
    for op in ops:
        if isinstance(op, TmaLoadOp) and (synchronizes or _meets(op.desc, written)):
            op.properties["is_fenced"] = UnitAttr()
        if isinstance(op, TmaStoreWaitOp):
            own = stores_of(op)
            is_seen = releases or any(_meets(store.desc, read) for store in own)
            # A map that a program made is changed or given away once its copies are done.
            is_made = any(isinstance(store.desc.owner, MakeTensorMapOp) for store in own)
            is_again = len(stores) > 1 and may_overlap
            is_again = is_again or any(is_overwritten(store, stores) for store in own)
            if is_seen or is_made or is_again:
                op.properties["is_complete"] = UnitAttr()


def stores_of(wait: TmaStoreWaitOp) -> list[TmaStoreOp]:
    """The stores that a wait is for."""
    ops = [token.op for token in wait.tokens if isinstance(token, OpResult)]
    return [op for op in ops if isinstance(op, TmaStoreOp)]


def is_overwritten(
    store: TmaStoreOp | DescriptorStoreOp, stores: Sequence[TmaStoreOp | DescriptorStoreOp]
) -> bool:
    """Whether a later store of the program may go to the same block, as far as indices tell.

    Stores to overlapping blocks with different indices keep no order: nobody waits for it.
    """
    loop = next(loops_around(store), None)
    if loop is not None and not any(_varies(index, loop) for index in store.indices):
        return True
    base = base_argument(store.desc)
    bases = (base, None)
    others = [op for op in stores if op is not store and base_argument(op.desc) in bases]
    return any(op.desc is not store.desc or _same_indices(op, store) for op in others)


def _same_indices(
    left: TmaStoreOp | DescriptorStoreOp, right: TmaStoreOp | DescriptorStoreOp
) -> bool:
    return all(a is b for a, b in zip(left.indices, right.indices, strict=True))


def _varies(value: SSAValue, loop: Operation) -> bool:
    """Whether a value may be another one in the next iteration of a loop."""
    pending, seen = [value], {value}
    while pending:
        owner = pending.pop().owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        if op is None or not (op is loop or loop.is_ancestor(op)):
            continue
        if not isinstance(owner, Operation) or op.regions or not is_free(op):
            return True
        new = [operand for operand in op.operands if operand not in seen]
        seen.update(new)
        pending += new
    return False


def _is_used(op: Operation) -> bool:
    return any(result.uses for result in op.results)


def _bases(ops: Iterable[Operation], *, is_write: bool) -> set[SSAValue | None]:
    """The arguments that ops read or write through; None for those that are not known."""
    accesses: list[GlobalAccess] = [access for op in ops for access in global_accesses(op)]
    return {access.base for access in accesses if access.is_write == is_write}


def _unknown(bases: set[SSAValue | None]) -> set[SSAValue | None]:
    """What is known of arguments that may be one array: whether there are any."""
    return {None} if bases else set()


def _meets(desc: SSAValue, bases: set[SSAValue | None]) -> bool:
    argument = base_argument(desc)
    return None in bases or argument in bases or (argument is None and bool(bases))
