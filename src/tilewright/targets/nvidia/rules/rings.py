"""Rings: two mbarriers for each slot, which roles arrive and wait at.

Slot s has `full` at byte 16 s of the ring's place and `empty` 8 bytes behind. A wait takes the
parity of its phase off the number of the fill, and says which ring it is for, so that the
simulator can hold it to that number.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.rules.staging import add
from tilewright.codegen.simt.shared import shared_pointer
from tilewright.ir.encoding import SharedType, slot_bytes
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.rings import (
    RingAcquireOp,
    RingCommitOp,
    RingDrainedOp,
    RingFill,
    RingLandedOp,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingSettled,
    RingWaitOp,
)
from tilewright.ops.roles import ClusterWaitOp, RolesOp, role_around
from tilewright.ops.staging import LaidOutDotOp
from tilewright.schedule.shared_memory import RING_SLOT_BYTES
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.nvidia.rules.arrivals import arrive_behind_copies, arrive_by_warps
from tilewright.targets.nvidia.rules.clusters import meet_cluster, start_halves
from tilewright.targets.nvidia.rules.tma import announce, in_one_thread, start_copies
from tilewright.targets.nvidia.rules.waiting import giving_up, wait_parity
from tilewright.targets.nvidia.tma.box_annotations import box_plan
from tilewright.targets.nvidia.tma_ops import TmaFillOp

# By definition: a slot's second mbarrier, behind the 8 bytes of its first.
_EMPTY = 8
# By definition: the threads of a warp.
_LANES = 32


@NVIDIA_RULES.register(RingOp)
def _ring(ctx: SimtContext, op: RingOp) -> None:
    """The last ring of the program makes the mbarriers of all, for one barrier of the cta."""
    assert op.parent is not None
    rings = [other for other in op.parent.ops if isinstance(other, RingOp)]
    if op is not rings[-1]:
        return

    def emit(fn: FunctionBuilder) -> None:
        for ring in rings:
            sides = (0, _full_arrivals(ctx, ring)), (_EMPTY, _empty_arrivals(ctx, ring))
            for slot in range(ring.num_slots):
                for side, count in sides:
                    place = _start(ring) + RING_SLOT_BYTES * slot + side
                    pointer = f"ptr addrspace(3) {shared_pointer(fn, str(place))}"
                    fn.emit(f"call void @llvm.nvvm.mbarrier.init.shared({pointer}, i32 {count})")
        fn.emit("call void @llvm.nvvm.fence.mbarrier_init.release.cluster()")

    in_one_thread(ctx, emit)
    if any(ring.programs > 1 for ring in rings):
        meet_cluster(ctx.fn)
    else:
        ctx.scope.barrier()


def _full_arrivals(ctx: SimtContext, ring: RingOp) -> int:
    """How many arrivals fill a slot of a ring, by its producers."""
    return _arrivals_of(ctx, ring, RingCommitOp, ring.producers.value.data)


def _empty_arrivals(ctx: SimtContext, ring: RingOp) -> int:
    """How many arrivals empty a slot of a ring, by its consumers in all programs that share it."""
    return ring.programs * _arrivals_of(ctx, ring, RingReleaseOp, ring.consumers.value.data)


def _arrivals_of(ctx: SimtContext, ring: RingOp, kind: type[Operation], count: int) -> int:
    """How often `count` replicas arrive where they commit or release a slot.

    Those of a role that one thread runs arrive once, others by warps. *Raises*: InternalError.
    """
    ops = [use.operation for use in ring.result.uses if isinstance(use.operation, kind)]
    found = {(_role_of(op), _arrivals(ctx, op)) for op in ops}
    times = {number for _, number in found} or {1}
    if len(times) == 1:
        return count * times.pop()
    replicas = [roles.described()[index].replicas for (roles, index), _ in found]
    if len({role for role, _ in found}) != len(found) or sum(replicas) != count:
        raise InternalError(
            f"ring {ring.ring_name.data}: {kind.name} arrives {sorted(times)} times"
        )
    return sum(n * number for n, (_, number) in zip(replicas, found, strict=True))


def _role_of(op: Operation) -> tuple[RolesOp, int]:
    """The role that an op is in. *Raises*: InternalError outside of all."""
    around = role_around(op)
    if around is None:
        raise InternalError(f"{op.name} stands outside of every role")
    return around


def _arrivals(ctx: SimtContext, op: Operation) -> int:
    """How often a replica arrives at an mbarrier by an op: once, each of its warps, or threads."""
    roles, number = _role_of(op)
    part = ctx.allotment(roles).partitions[number]
    if isinstance(op, RingCommitOp) and op.by_copies is not None:
        return part.warps * _LANES
    is_announced = isinstance(op, RingCommitOp) and op.announced_bytes is not None
    return 1 if part.is_elected or is_announced else part.warps


def _start(ring: RingOp) -> int:
    if ring.offset_bytes is None:
        raise InternalError(f"ring {ring.ring_name.data} has no place")
    return ring.offset_bytes.value.data


def _barrier(ctx: SimtContext, ring: RingOp, slot: SSAValue | None, side: int) -> str:
    """The mbarrier of a slot, with its type."""
    if slot is None:
        raise InternalError(f"an op on ring {ring.ring_name.data} has no slot")
    start = str(_start(ring) + side)
    number = ctx.value(slot)
    step = ctx.fn.value(f"mul nuw nsw i32 {number}, {RING_SLOT_BYTES}")
    return f"ptr addrspace(3) {shared_pointer(ctx.fn, add(ctx.fn, step, start))}"


@NVIDIA_RULES.register(RingAcquireOp, RingWaitOp)
def _wait(ctx: SimtContext, op: RingAcquireOp | RingWaitOp) -> None:
    fn, ring = ctx.fn, op.ring_of()
    if len(op.position) != 2:
        raise InternalError(f"{op.name} on ring {ring.ring_name.data} has no slot")
    if isinstance(op, RingWaitOp) and op.meets is not None:
        _meet(ctx, op)
        _give_views(ctx, op)
        return
    slot, fill = op.position
    phase = ctx.value(fill)
    side = 0
    if isinstance(op, RingAcquireOp):
        # A slot may be filled once more when it has been emptied as often as filled before.
        side, phase = _EMPTY, fn.value(f"add i32 {phase}, -1")
    parity = fn.value(f"and i32 {phase}, 1")
    node = ctx.module.add_metadata(_wait_node(op))
    barrier = _barrier(ctx, ring, slot, side).removeprefix("ptr addrspace(3) ")
    give_up = giving_up(fn, op, ctx.value(slot), phase)
    with _where_it_matters(ctx, op):
        wait_parity(fn, barrier, parity, f", !tw.ring {node}", give_up)
    _give_views(ctx, op)


def _meet(ctx: SimtContext, op: RingWaitOp) -> None:
    """Wait for all replicas of the role, each of which has filled its part."""
    roles, number = _role_of(op)
    allotted = ctx.allotment(roles)
    part = allotted.partitions[number]
    barrier = allotted.meetings[op.ring_of().ring_name.data]
    ctx.target.barrier(ctx.fn, str(barrier), part.replicas * part.warps * _LANES)


def _give_views(ctx: SimtContext, op: RingAcquireOp | RingWaitOp) -> None:
    """The tiles of the slot of a wait."""
    fn, ring, slot = ctx.fn, op.ring_of(), op.position[0]
    for tile, view in zip(ring.tiles, op.results, strict=True):
        assert isinstance(tile.type, SharedType)
        step = fn.value(f"mul nuw nsw i32 {ctx.value(slot)}, {slot_bytes(tile.type)}")
        ctx.values[view] = add(fn, step, ctx.value(tile))


@NVIDIA_RULES.register(RingLandedOp, RingDrainedOp)
def _settled(ctx: SimtContext, op: RingSettled) -> None:
    """Wait for what ends the last fill of each slot: nobody else starts any, so parity tells."""
    fn, ring = ctx.fn, op.ring_of()
    if len(op.position) != 2:
        raise InternalError(f"{op.name} on ring {ring.ring_name.data} has no slot")
    slot, fill = (ctx.value(value) for value in op.position)
    before = fn.value(f"add i32 {fill}, -1")
    node = ctx.module.add_metadata(_wait_node(op))
    with _in_first_warp(ctx):
        for number in range(ring.num_slots):
            is_filled = fn.value(f"icmp ult i32 {number}, {slot}")
            phase = fn.value(f"select i1 {is_filled}, i32 {fill}, i32 {before}")
            parity = fn.value(f"and i32 {phase}, 1")
            side = _EMPTY if op.IS_EMPTY else 0
            barrier = shared_pointer(fn, str(_start(ring) + RING_SLOT_BYTES * number + side))
            give_up = giving_up(fn, op, str(number), phase)
            wait_parity(fn, barrier, parity, f", !tw.ring {node}", give_up)


@contextmanager
def _where_it_matters(ctx: SimtContext, op: RingAcquireOp | RingWaitOp) -> Generator[None]:
    """A block that all warps of a role run, or for slots that one thread fills the first alone.

    *Why*: nobody waits for the other warps before such a slot is filled and emptied again. One
    that falls two fills behind takes the parity of its phase for one that is still to come, and
    waits for ever: seen on an H200 with pauses in every role (2026-11-22).
    """
    if not isinstance(op, RingAcquireOp) or not _is_filled_by_one_thread(op):
        yield
        return
    with _in_first_warp(ctx):
        yield


@contextmanager
def _in_first_warp(ctx: SimtContext) -> Generator[None]:
    """A block that the first warp of a role runs, whose leader starts all copies."""
    fn = ctx.fn
    if ctx.scope.partition.is_elected or ctx.scope.warps == 1:
        yield
        return
    inside, behind = fn.new_label(), fn.new_label()
    fn.branch_if(fn.prologue_value(f"icmp eq i32 {ctx.index.uniform_warp(fn)}, 0"), inside, behind)
    fn.place(inside)
    yield
    fn.branch(behind)
    fn.place(behind)


def _is_filled_by_one_thread(op: RingAcquireOp) -> bool:
    """Whether copy engines alone fill the slot, which one thread of the role starts."""
    users = list(_users(op.results))
    return bool(users) and all(isinstance(user, RingFill) for user in users)


def _wait_node(op: RingAcquireOp | RingWaitOp | RingSettled) -> str:
    """What a wait says of itself: its ring, where the ring starts, and the role that waits."""
    ring, around = op.ring_of(), role_around(op)
    role = "" if around is None else around[0].described()[around[1]].name
    return f'!{{!"{ring.ring_name.data}", i32 {_start(ring)}, !"{role}"}}'


@NVIDIA_RULES.register(TmaFillOp)
def _fill(ctx: SimtContext, op: TmaFillOp) -> None:
    assert isinstance(op.ring.owner, RingOp)
    plan, desc, start = box_plan(op, op.desc), ctx.value(op.desc), ctx.value(op.dst)
    indices = [ctx.value(index) for index in op.indices]
    barrier = _barrier(ctx, op.ring.owner, op.slot, 0)
    places = barrier, desc, start
    if op.shared is None:
        in_one_thread(ctx, lambda fn: start_copies(fn, plan, places, indices))
        return
    is_shared = ctx.value(op.shared)

    def emit(fn: FunctionBuilder) -> None:
        both, own, done = (fn.new_label() for _ in range(3))
        fn.branch_if(is_shared, both, own)
        fn.place(both)
        start_halves(fn, plan, places, indices)
        fn.branch(done)
        fn.place(own)
        start_copies(fn, plan, places, indices)
        fn.branch(done)
        fn.place(done)

    in_one_thread(ctx, emit)


@NVIDIA_RULES.register(RingCommitOp)
def _commit(ctx: SimtContext, op: RingCommitOp) -> None:
    barrier = _barrier(ctx, op.ring_of(), op.slot, 0)
    announced: IntegerAttr | None = op.announced_bytes
    if op.by_copies is not None:
        arrive_behind_copies(ctx, barrier)
    elif announced is not None:
        in_one_thread(ctx, lambda fn: announce(fn, barrier, announced.value.data))
    else:
        # Each warp arrives for its lanes, all of which have written before.
        if not ctx.scope.partition.is_elected:
            ctx.target.warp_barrier(ctx.fn)
        arrive_by_warps(ctx, barrier, None)


@NVIDIA_RULES.register(RingReleaseOp)
def _release(ctx: SimtContext, op: RingReleaseOp) -> None:
    readers = list(_readers(op))
    is_of_products = all(isinstance(reader, LaidOutDotOp) for reader in readers)
    if not (readers and is_of_products) and not ctx.scope.partition.is_elected:
        ctx.target.warp_barrier(ctx.fn)
    barrier = _barrier(ctx, op.ring_of(), op.slot, _EMPTY)
    condition = None if op.condition is None else ctx.value(op.condition)
    arrive_by_warps(ctx, barrier, condition, op.ring_of().programs)


def _readers(op: RingReleaseOp) -> Iterable[Operation]:
    """Who may read slots of the ring in the role: products as warps, others lane by lane."""
    own = role_around(op)
    for use in op.ring.uses:
        wait = use.operation
        if isinstance(wait, RingWaitOp) and role_around(wait) == own:
            yield from _users(wait.results)


def _users(views: Sequence[SSAValue]) -> Iterable[Operation]:
    for view in views:
        for use in view.uses:
            inner = [r for r in use.operation.results if isinstance(r.type, SharedType)]
            yield from _users(inner) if inner else (use.operation,)


@NVIDIA_RULES.register(ClusterWaitOp)
def _wait_for_cluster(ctx: SimtContext, _: ClusterWaitOp) -> None:
    """Threads that have ended are not waited for; those of a role may come one by one."""
    ctx.fn.emit("call void @llvm.nvvm.barrier.cluster.arrive()")
    ctx.fn.emit("call void @llvm.nvvm.barrier.cluster.wait()")


@NVIDIA_RULES.register(RingSeekOp)
def _seek(ctx: SimtContext, op: RingSeekOp) -> None:
    fn, slots = ctx.fn, op.ring_of().num_slots
    if len(op.before) != 2:
        raise InternalError(f"{op.name} on ring {op.ring_of().ring_name.data} has no slot")
    slot, fill = (ctx.value(value) for value in op.before)
    following = fn.value(f"add nuw nsw i32 {slot}, {ctx.value(op.count)}")
    if _is_one(op.count):
        wraps = fn.value(f"icmp eq i32 {following}, {slots}")
        next_slot = fn.value(f"select i1 {wraps}, i32 0, i32 {following}")
        more = fn.value(f"zext i1 {wraps} to i32")
    else:
        next_slot = fn.value(f"urem i32 {following}, {slots}")
        more = fn.value(f"udiv i32 {following}, {slots}")
    for result, name in zip(
        op.after, (next_slot, fn.value(f"add i32 {fill}, {more}")), strict=True
    ):
        ctx.values[result] = name


def _is_one(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, ConstantOp):
        return False
    constant = owner.value
    return isinstance(constant, IntegerAttr) and constant.value.data == 1
