"""Decides which loads are copied to shared memory by the machine, on T1 (T1 to T1).

    %x = tt.load %p; %s = ttg.local_alloc %x
    ⇒ %x = tt.load %p {tw.copy = #tw.copy<"async 8">}; %s = ttg.local_alloc %x

A copy of 4, 8 or 16 bytes a lane passes no registers and runs while other work does, so every
load whose tile goes to shared memory alone is one, unless something stands against it, which the
annotation then says: `#tw.copy<"registers", "it is volatile">`. `copy-async` reads it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tilewright.ir.annotations import annotate, annotated
from tilewright.ir.encoding import SharedType, has_layout, layout_of
from tilewright.ir.locations import span_of
from tilewright.ir.passes import Pass
from tilewright.ir.plans import CopyAttr, CopyPlan, vector_elems
from tilewright.ir.types import element_of, is_integer, storage_bytes
from tilewright.layout.placing import plan_access
from tilewright.ops.creation.ir import SplatOp, constant_of
from tilewright.ops.elementwise.ir import CastOp
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp, is_volatile
from tilewright.ops.shape.ir import BroadcastOp, PermutingOp
from tilewright.ops.staging import ConvertLayoutOp, LocalAllocOp, shared_tiles_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import NotPowerOfTwo, PlanRefused

# Source: PTX ISA 8.8, cp.async: the sizes of a copy.
_COPY_BYTES = (4, 8, 16)


@dataclass(frozen=True)
class DecideCopies(Pass):
    """Annotate the loads of shared tiles with how they get there; see the module.

    *Raises*: PlanRefused for a copy that was annotated and cannot be.
    """

    name = "decide-copies"
    requires = "T1"
    produces = "T1"
    after = ("stage-tensor-maps",)

    def apply(self, module: ModuleOp) -> None:
        """Decide the loads of the kernel."""
        for op in find_kernel(module).walk():
            if isinstance(op, LoadOp) and has_layout(op.result.type):
                _decide(op)


def _decide(load: LoadOp) -> None:
    given, alloc = annotated(load, CopyAttr), next(shared_tiles_of(load.result), None)
    if alloc is None and given is None:
        return
    reason = _no_copy(load, alloc)
    elems = 0 if reason or alloc is None else _copy_elems(load, alloc)
    if given is None:
        kind = "registers" if reason else "async"
        annotate(load, CopyAttr(CopyPlan(kind, elems, reason)))
    elif given.is_async:
        if not reason and given.elems not in (0, elems):
            reason = f"one instruction of a lane copies {elems} elements, not {given.elems}"
        if reason:
            raise _refused(load, given, reason)
        annotate(load, CopyAttr(CopyPlan("async", elems)))


def _no_copy(load: LoadOp, alloc: LocalAllocOp | None) -> str:
    """Why a load is no copy; '' where it is one."""
    if alloc is None:
        return "its tile does not go to shared memory"
    if load.parent is not alloc.parent:
        return "its tile goes to shared memory in another block"
    if sum(1 for _ in load.result.uses) != 1:
        return "its tile is needed elsewhere, too"
    assert isinstance(alloc.result.type, SharedType)
    return no_copy_to(load, alloc.result.type)


def no_copy_to(load: LoadOp, to: SharedType) -> str:
    """Why a load that nothing else needs is no copy to a shared tile of a type; '' where it is."""
    if is_volatile(load):
        return "it is volatile"
    if not (load.other is None or is_zero(load.other)):
        return "a copy fills in zeros only"
    if not copy_elems(load, to):
        return "no 4, 8 or 16 bytes of a lane are adjacent in both memories"
    return ""


def _copy_elems(load: LoadOp, alloc: LocalAllocOp) -> int:
    assert isinstance(alloc.result.type, SharedType)
    return copy_elems(load, alloc.result.type)


def copy_elems(load: LoadOp, to: SharedType) -> int:
    """The elements of a load that one copy instruction of a lane moves; 0 where none fits."""
    layout, size = layout_of(load.result.type), storage_bytes(load.result.type)
    try:
        access = plan_access(layout, layout_of(to), size, matrices=False)
    except NotPowerOfTwo:
        return 0
    width = min(vector_elems(load), access.vector_elems)
    is_in_order = all(
        group == tuple(range(group[0], group[0] + len(group))) for group in access.passes[0]
    )
    return width if is_in_order and width * size in _COPY_BYTES else 0


def is_zero(value: SSAValue) -> bool:
    """Whether every byte of a value is zero for certain."""
    owner = value.owner
    # The zero of one type is cast to that of another, all of whose bits are zero as well.
    while isinstance(owner, SplatOp | BroadcastOp | CastOp | ConvertLayoutOp | PermutingOp):
        value = owner.operands[0]
        owner = value.owner
    number = constant_of(value)
    # A negative zero is other bits than what a copy fills in.
    return (
        number is not None
        and number == 0
        and (is_integer(element_of(value.type)) or str(number)[0] != "-")
    )


def _refused(load: LoadOp, plan: CopyPlan, reason: str) -> PlanRefused:
    span, chain = span_of(load)
    return PlanRefused(
        f"load: the plan `{plan}` is refused: {reason}",
        hint="take `registers`, or no annotation",
        span=span,
        chain=chain,
    )
