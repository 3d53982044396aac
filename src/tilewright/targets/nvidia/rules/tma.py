"""Copies by the copy engine: one thread starts them, mbarriers and groups tell when they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IntegerAttr

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.rules.staging import add
from tilewright.codegen.simt.shared import shared_pointer
from tilewright.ops.atomics.ir import RMW_KINDS
from tilewright.ops.roles import role_around
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.nvidia.rules.waiting import giving_up, wait_parity
from tilewright.targets.nvidia.tma.barriers import BARRIER_BYTES
from tilewright.targets.nvidia.tma.box_annotations import box_plan
from tilewright.targets.nvidia.tma.boxes import BoxPlan
from tilewright.targets.nvidia.tma_ops import (
    InitBarriersOp,
    TensorMapOp,
    TmaDoneOp,
    TmaLoadOp,
    TmaLoadSlotOp,
    TmaStoreOp,
    TmaStoreWaitOp,
    TmaWaitOp,
    TmaWaitSlotOp,
)

_NO_HINT = "i64 0, i1 false"
_REDUCTIONS = {"fadd": "add", "umin": "min", "umax": "max"}


@dataclass(frozen=True)
class ElectedPart:
    """Where control comes from behind code of one thread: by `last`, or around it by `others`."""

    last: str
    others: tuple[str, ...]


def in_one_thread(ctx: SimtContext, emit: Callable[[FunctionBuilder], None]) -> ElectedPart:
    """Emit what one thread of the program does: always the same one, of the first warp.

    The warp decides by a uniform branch and elects its lane inside: ptxas then knows that one
    thread runs the code, and repeats no copy in a loop over the lanes that might.
    """
    fn = ctx.fn
    if ctx.scope.partition.is_elected:
        emit(fn)
        return ElectedPart(fn.block, ())
    body, done = fn.new_label(), fn.new_label()
    others: list[str] = []
    if ctx.scope.warps > 1:
        is_first_warp = fn.prologue_value(f"icmp eq i32 {ctx.index.uniform_warp(fn)}, 0")
        electing = fn.new_label()
        others.append(fn.block)
        fn.branch_if(is_first_warp, electing, done)
        fn.place(electing)
    is_leader = ctx.target.elect(fn)
    others.append(fn.block)
    fn.branch_if(is_leader, body, done)
    fn.place(body)
    emit(fn)
    last = fn.block
    fn.branch(done)
    fn.place(done)
    return ElectedPart(last, tuple(others))


def in_first_thread(ctx: SimtContext, emit: Callable[[FunctionBuilder], None]) -> ElectedPart:
    """Emit what the first thread of a role does: the one that starts its stores."""
    fn = ctx.fn
    body, done = fn.new_label(), fn.new_label()
    before = fn.block
    fn.branch_if(fn.prologue_value(f"icmp eq i32 {ctx.scope.thread()}, 0"), body, done)
    fn.place(body)
    emit(fn)
    last = fn.block
    fn.branch(done)
    fn.place(done)
    return ElectedPart(last, (before,))


def _barrier(ctx: SimtContext, place: IntegerAttr | None) -> str:
    """The address of an mbarrier."""
    if place is None:
        raise InternalError("an mbarrier has no place")
    return shared_pointer(ctx.fn, ctx.scope.shared_byte(place.value.data))


@NVIDIA_RULES.register(InitBarriersOp)
def _init(ctx: SimtContext, op: InitBarriersOp) -> None:
    if op.offset_bytes is None:
        raise InternalError("the mbarriers have no place")
    start = op.offset_bytes.value.data

    def emit(fn: FunctionBuilder) -> None:
        for index in range(op.count.value.data):
            pointer = shared_pointer(fn, ctx.scope.shared_byte(start + BARRIER_BYTES * index))
            fn.emit(f"call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) {pointer}, i32 1)")
        fn.emit("call void @llvm.nvvm.fence.mbarrier_init.release.cluster()")

    in_one_thread(ctx, emit)
    ctx.scope.barrier()


@NVIDIA_RULES.register(TmaLoadOp)
def _load(ctx: SimtContext, op: TmaLoadOp) -> None:
    plan, desc, start = box_plan(op, op.desc), ctx.value(op.desc), ctx.value(op.dst)
    indices = [ctx.value(index) for index in op.indices]

    def emit(fn: FunctionBuilder) -> None:
        if op.is_fenced is not None:
            fn.emit("call void @llvm.nvvm.fence.proxy.async()")
        barrier = f"ptr addrspace(3) {_barrier(ctx, op.barrier_bytes)}"
        if op.announced_bytes is not None:
            announce(fn, barrier, op.announced_bytes.value.data)
        start_copies(fn, plan, (barrier, desc, start), indices)

    in_one_thread(ctx, emit)


def announce(fn: FunctionBuilder, barrier: str, num_bytes: int) -> None:
    """Arrive at an mbarrier (type and name) and announce bytes."""
    name = "@llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta"
    fn.value(f"call i64 {name}({barrier}, i32 {num_bytes})")


def start_copies(
    fn: FunctionBuilder, plan: BoxPlan, places: tuple[str, str, str], indices: Sequence[str]
) -> None:
    """Copy the boxes of a block at `indices`; `places` are the mbarrier, the map and the tile."""
    barrier, desc, start = places
    rank = len(plan.shape)
    for offset, at in plan.copies():
        target = shared_pointer(fn, add(fn, start, str(offset)))
        arguments = f"ptr addrspace(3) {target}, {barrier}, ptr {desc}"
        name = f"@llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.{rank}d"
        fn.emit(f"call void {name}({arguments}, {_coordinates(fn, indices, at)}, {_NO_HINT})")


def _coordinates(fn: FunctionBuilder, indices: Sequence[str], at: Sequence[int]) -> str:
    """Where a box starts, as the engine takes it: the last dim first."""
    moved = [
        index if step == 0 else fn.value(f"add i32 {index}, {step}")
        for index, step in zip(indices, at, strict=True)
    ]
    return ", ".join(f"i32 {index}" for index in reversed(moved))


@NVIDIA_RULES.register(TmaWaitOp)
def _wait(ctx: SimtContext, op: TmaWaitOp) -> None:
    if op.phase is None:
        raise InternalError("a wait for an mbarrier has no phase")
    fn = ctx.fn
    barrier, phase = _barrier(ctx, op.barrier_bytes), ctx.value(op.phase)
    wait_parity(fn, barrier, phase, give_up=giving_up(fn, op, str(op.barrier.value.data), phase))


@NVIDIA_RULES.register(TmaLoadSlotOp)
def _load_slot(ctx: SimtContext, op: TmaLoadSlotOp) -> None:
    plan, desc, start = box_plan(op, op.desc), ctx.value(op.desc), ctx.value(op.dst)
    indices = [ctx.value(index) for index in op.indices]
    condition = ctx.value(op.condition)
    barrier = f"ptr addrspace(3) {_slot_barrier(ctx, op.barrier_bytes, ctx.value(op.slot))}"

    def emit(fn: FunctionBuilder) -> None:
        body, done = fn.new_label(), fn.new_label()
        fn.branch_if(condition, body, done)
        fn.place(body)
        if op.is_fenced is not None:
            fn.emit("call void @llvm.nvvm.fence.proxy.async()")
        if op.announced_bytes is not None:
            announce(fn, barrier, op.announced_bytes.value.data)
        start_copies(fn, plan, (barrier, desc, start), indices)
        fn.branch(done)
        fn.place(done)

    in_one_thread(ctx, emit)


@NVIDIA_RULES.register(TmaWaitSlotOp)
def _wait_slot(ctx: SimtContext, op: TmaWaitSlotOp) -> None:
    barrier = _slot_barrier(ctx, op.barrier_bytes, ctx.value(op.slot))
    slot, phase = ctx.value(op.slot), ctx.value(op.phase)
    wait_parity(ctx.fn, barrier, phase, give_up=giving_up(ctx.fn, op, slot, phase))


@NVIDIA_RULES.register(TmaDoneOp)
def _done(_: SimtContext, __: TmaDoneOp) -> None:
    """Nothing is left to wait for."""


def _slot_barrier(ctx: SimtContext, place: IntegerAttr | None, slot: str) -> str:
    """The address of the mbarrier of a slot."""
    if place is None:
        raise InternalError("an mbarrier has no place")
    step = ctx.fn.value(f"mul nuw nsw i32 {slot}, {BARRIER_BYTES}")
    return shared_pointer(ctx.fn, add(ctx.fn, step, ctx.scope.shared_byte(place.value.data)))


@NVIDIA_RULES.register(TmaStoreOp)
def _store(ctx: SimtContext, op: TmaStoreOp) -> None:
    plan, desc, start = box_plan(op, op.desc), ctx.value(op.desc), ctx.value(op.src)
    indices = [ctx.value(index) for index in op.indices]
    form = "s2g"
    if op.kind is not None:
        kind = RMW_KINDS[op.kind.value.data]
        form = f"reduce.{_REDUCTIONS.get(kind, kind)}"

    # A map that a program makes is known to the thread alone that an election finds; in a role
    # that stores it is the first one.
    is_known_to_first = isinstance(op.desc.owner, TensorMapOp) or role_around(op) is not None
    if is_known_to_first and not ctx.scope.partition.is_cta and op.kind is None:
        _store_by_predicate(ctx, plan, (desc, start), indices)
        return

    def emit(fn: FunctionBuilder) -> None:
        name = f"@llvm.nvvm.cp.async.bulk.tensor.{form}.tile.{len(plan.shape)}d"
        for offset, at in plan.copies():
            source = shared_pointer(fn, add(fn, start, str(offset)))
            arguments = f"ptr addrspace(3) {source}, ptr {desc}, {_coordinates(fn, indices, at)}"
            fn.emit(f"call void {name}({arguments}, {_NO_HINT})")
        fn.emit(_COMMIT)

    in_one_thread(ctx, emit)


_COMMIT = "call void @llvm.nvvm.cp.async.bulk.commit.group()"


def _store_by_predicate(
    ctx: SimtContext, plan: BoxPlan, places: tuple[str, str], indices: Sequence[str]
) -> None:
    """Store the boxes of a block in one thread, without a branch.

    *Why*: behind a branch that one lane of a role takes, ptxas asks in each step of every loop
    around whether the warp is whole (703 against 729 TFLOP/s for persistent attention on an H200).
    """
    fn, (desc, start) = ctx.fn, places
    is_first = fn.prologue_value(f"icmp eq i32 {ctx.scope.thread()}, 0")
    flag = fn.value(f"zext i1 {is_first} to i32")
    rank = len(plan.shape)
    at_names = ", ".join(f"${3 + dim}" for dim in range(rank))
    store = f"@p cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
    text = f"{{ .reg .pred p; setp.ne.b32 p, $0, 0; {store} [$1, {{{at_names}}}], [$2]; }}"
    constraints = ",".join(["r", "l", "r", *["r"] * rank, "~{memory}"])
    for offset, at in plan.copies():
        source = shared_pointer(fn, add(fn, start, str(offset)))
        address = fn.value(f"ptrtoint ptr addrspace(3) {source} to i32")
        arguments = f"i32 {flag}, ptr {desc}, i32 {address}, {_coordinates(fn, indices, at)}"
        fn.emit(
            f'call void asm sideeffect "{text}", "{constraints}"({arguments}) convergent nounwind'
        )
    fn.emit(_COMMIT)  # Other threads close groups of nothing.


@NVIDIA_RULES.register(TmaStoreWaitOp)
def _store_wait(ctx: SimtContext, op: TmaStoreWaitOp) -> None:
    """Groups of the thread: one without stores has none to wait for."""
    is_complete = op.is_complete is not None
    pending = 0 if op.pending is None else op.pending.value.data
    form = "" if is_complete else ".read"

    def emit(fn: FunctionBuilder) -> None:
        fn.emit(f"call void @llvm.nvvm.cp.async.bulk.wait.group{form}(i32 {pending})")
        if is_complete:
            # The writes were the engine's; what follows may show them to other programs.
            fn.emit("call void @llvm.nvvm.fence.proxy.async()")

    if ctx.scope.partition.is_cta:
        in_one_thread(ctx, emit)
    else:
        emit(ctx.fn)  # Without a branch, as the stores; others have nothing to wait for.
