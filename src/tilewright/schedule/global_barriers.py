"""Barriers between accesses of one program to the same global memory by different threads.

Within a program a tile load completes before a later tile store. A thread keeps that order for
what it touches itself; where another thread may touch the same element, all warps wait between
the two. Accesses through different arguments are taken not to overlap, unless at the same
elements of both (`met_places`), or where a kernel is compiled for arguments that may: see the
memory model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.analysis.dataflow import StateFlow, run
from tilewright.analysis.provenance import base_argument
from tilewright.analysis.separation import Apart, find_apart
from tilewright.ir.effects import Access, Extent, Order, Resource, Wait, atomic_of, own_effects
from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import is_control_flow
from tilewright.ir.types import PointerType, element_of
from tilewright.layout.linear import LinearLayout
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.staging import LocalBarrierOp
from tilewright.schedule.atomics import waits_after, waits_before
from tilewright.schedule.met_places import Place, Touch, by_one_thread, met_places, threads_of
from tilewright.schedule.scratch import scratch_bytes
from tilewright.schedule.shared_effects import ended_by, shared_steps
from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class InsertGlobalBarriers(Pass):
    """The pass (T1 to T1); see the module. With `may_overlap` all arguments may be one array."""

    may_overlap: bool = False
    name = "insert-global-barriers"
    requires = "T1"
    produces = "T1"
    after = ("stage-tensor-maps", "mark-visible", "copy-async", "verify-exchanges")

    def apply(self, module: ModuleOp) -> None:
        """Insert the barriers."""
        insert_global_barriers(find_kernel(module), may_overlap=self.may_overlap)


@dataclass(frozen=True)
class Group:
    """Accesses that others meet alike, but for those through the same pointers."""

    base: SSAValue | None
    is_write: bool
    is_single: bool
    place: Place | None = None
    threads: LinearLayout | None = None


Pending = Mapping[Group, SSAValue | None]
"""What was done to global memory: the pointers of a group's accesses, None for several.

It does not grow with the accesses: long runs of loads would else be compared pair by pair.
"""


@dataclass(frozen=True)
class GlobalAccess:
    """A read or write of global memory: the pointers, and the argument they come from.

    `place` is that of pointers which meet others through another argument, by other threads.
    `is_over`: what any thread does to memory later comes after it anyway. `is_single`: the
    one thread that starts the program's copies does it, whatever it touches.
    """

    pointers: SSAValue
    base: SSAValue | None
    is_write: bool
    is_over: bool = False
    is_single: bool = False
    place: Place | None = None

    def conflicts(self, pending: Pending) -> bool:
        """Whether another thread may have done something pending where a thread does this."""
        return any(self._meets(group, pointers) for group, pointers in pending.items())

    def _meets(self, group: Group, pointers: SSAValue | None) -> bool:
        if not (self.is_write or group.is_write) or (self.is_single and group.is_single):
            return False
        if self.base is not group.base and self.base is not None and group.base is not None:
            if self.place is None or group.place is None or not self.place.meets(group.place):
                return False
            threads = threads_of(self.pointers)
            if self.is_write and group.is_write:
                return threads != group.threads
            return not by_one_thread(threads, group.threads)
        return self.pointers is not pointers or not _is_private(self.pointers)

    def group(self) -> Group:
        """The accesses that this one is pending with."""
        threads = None if self.place is None else threads_of(self.pointers)
        return Group(self.base, self.is_write, self.is_single, self.place, threads)


def _is_private(pointers: SSAValue) -> bool:
    """Whether each element of a tile is in one thread alone, and no two are one in memory.

    Strides that are known only at run time may be zero: a barrier costs less than a test.
    """
    if not has_layout(pointers.type):
        return False
    layout = layout_of(pointers.type)
    if layout.free_bits("lane") or layout.free_bits("warp"):
        return False
    return find_apart(AffineTiles(), pointers) is Apart.YES


def insert_global_barriers(kernel: FuncOp, *, may_overlap: bool = False) -> int:
    """Insert the barriers into a T1 kernel; how many there are."""
    places = {} if may_overlap else met_places(touches_of(kernel))
    walk = BarrierWalk(places, may_overlap=may_overlap)
    run(walk, kernel.body.block)
    return walk.count


class BarrierWalk(StateFlow[Pending]):
    """One walk, which puts barriers in; the state is what was touched since the last of them."""

    def __init__(
        self, places: Mapping[SSAValue, Place] | None = None, *, may_overlap: bool = False
    ) -> None:
        super().__init__({})
        self.may_overlap = may_overlap
        self.places = places or {}
        self.count = 0

    def join(self, left: Pending, right: Pending) -> Pending:
        """What is pending on either way."""
        alike = {**left, **right}
        return {g: p if left.get(g, p) is p else None for g, p in alike.items()}

    def step(self, op: Operation, state: Pending) -> Pending:
        """What is pending behind an op, which a barrier goes before where it must."""
        if is_control_flow(op) or _does_nothing(op):
            return state
        accesses = tuple(map(self.placed, global_accesses(op)))
        if waits_before(op):
            state = {}
        if any(access.conflicts(state) for access in accesses):
            assert op.parent is not None
            op.parent.insert_op_before(build(LocalBarrierOp, location=op.location), op)
            self.count += 1
            state = {}
        if atomic_of(op) is not None:
            return {} if waits_after(op) else _with(state, accesses)
        lasting = [access for access in accesses if not access.is_over]
        if not op.regions and Order.BARRIER in shared_steps(op):
            state = {}
        return _with(state, lasting)

    def placed(self, access: GlobalAccess) -> GlobalAccess:
        """An access with its place, or of any argument."""
        if self.may_overlap:
            return replace(access, base=None)
        place = self.places.get(access.pointers)
        return access if place is None else replace(access, place=place)


def touches_of(kernel: FuncOp) -> list[Touch]:
    """The plain accesses of a kernel, of which it is known through which argument they go."""
    return [
        Touch(access.pointers, access.base, access.is_write)
        for op in kernel.walk()
        if not (is_control_flow(op) or _does_nothing(op))
        for access in global_accesses(op)
        if access.base is not None and isinstance(element_of(access.pointers.type), PointerType)
    ]


def _does_nothing(op: Operation) -> bool:
    """Whether an op only computes, as most do, and needs no shared memory for it."""
    return not op.regions and not own_effects(op) and not scratch_bytes(op)


def global_accesses(op: Operation) -> tuple[GlobalAccess, ...]:
    """What an op without regions does to global memory."""
    accesses: list[GlobalAccess] = []
    for effect in own_effects(op):
        if isinstance(effect, Access):
            accesses += _accesses(effect)
        elif isinstance(effect, Wait) and not effect.is_joint:
            accesses += [t for _, access in ended_by(op, effect) for t in _accesses(access)]
    return tuple(accesses)


def _accesses(access: Access) -> Iterator[GlobalAccess]:
    """An access as those see it who wait for each other.

    A thread counts its own copies where they start. The copy engine's are started by one thread:
    there is a wait before anything else touches global memory, and what that thread then knows
    to be done, others know behind a barrier after it.
    """
    if access.resource is not Resource.GLOBAL or access.value is None:
        return
    if access.extent is Extent.END and not access.is_async:
        return
    is_over = access.is_async and access.extent is Extent.START
    base = base_argument(access.value)
    yield GlobalAccess(access.value, base, access.writes, is_over, access.is_async)


def _with(pending: Pending, accesses: Iterable[GlobalAccess]) -> Pending:
    """What is pending, and these accesses."""
    result = dict(pending)
    for access in accesses:
        group = access.group()
        known = result.get(group, access.pointers)
        result[group] = access.pointers if known is access.pointers else None
    return result
