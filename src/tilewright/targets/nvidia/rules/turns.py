"""Turns that are waited for with a bound: an mbarrier of each replica beside its named barrier."""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.rules.staging import add
from tilewright.codegen.simt.shared import shared_pointer
from tilewright.ir.attributes import integers_of
from tilewright.ops.roles import role_around
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.ops import AwaitTurnOp, TellTurnOp, TurnBarriersOp
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.nvidia.rules.arrivals import arrive_by_warps
from tilewright.targets.nvidia.rules.tma import in_one_thread
from tilewright.targets.nvidia.rules.waiting import giving_up, wait_parity
from tilewright.targets.nvidia.tma.barriers import BARRIER_BYTES


@NVIDIA_RULES.register(TurnBarriersOp)
def _make(ctx: SimtContext, op: TurnBarriersOp) -> None:
    """Make the mbarriers, for one barrier of the cta."""
    start = op.offset_bytes.value.data

    def emit(fn: FunctionBuilder) -> None:
        for number, count in enumerate(integers_of(op.arrivals)):
            place = shared_pointer(fn, str(start + BARRIER_BYTES * number))
            arguments = f"ptr addrspace(3) {place}, i32 {count}"
            fn.emit(f"call void @llvm.nvvm.mbarrier.init.shared({arguments})")
        fn.emit("call void @llvm.nvvm.fence.mbarrier_init.release.cluster()")

    in_one_thread(ctx, emit)
    ctx.scope.barrier()


@NVIDIA_RULES.register(AwaitTurnOp)
def _await(ctx: SimtContext, op: AwaitTurnOp) -> None:
    fn, replica, start = ctx.fn, ctx.index.replica(ctx.fn), op.start_bytes.value.data
    # Nobody passes the first replica its first turn: it waits for the phase before phase 0.
    is_first = fn.prologue_value(f"icmp eq i32 {replica}, 0")
    ahead = fn.prologue_value(f"sext i1 {is_first} to i32")
    phase = fn.value(f"add i32 {ctx.value(op.count)}, {ahead}")
    parity = fn.value(f"and i32 {phase}, 1")
    role = _role_name(op)
    node = ctx.module.add_metadata(f'!{{!"{op.turns.data}", i32 {start}, !"{role}", !"turns"}}')
    give_up = giving_up(fn, op, replica, phase)
    wait_parity(fn, _barrier(ctx, start, replica), parity, f", !tw.ring {node}", give_up)


@NVIDIA_RULES.register(TellTurnOp)
def _tell(ctx: SimtContext, op: TellTurnOp) -> None:
    fn, replica = ctx.fn, ctx.index.replica(ctx.fn)
    last = ctx.scope.partition.replicas - 1
    is_last = fn.prologue_value(f"icmp eq i32 {replica}, {last}")
    following = fn.prologue_value(f"add nuw nsw i32 {replica}, 1")
    receiver = fn.prologue_value(f"select i1 {is_last}, i32 0, i32 {following}")
    barrier = _barrier(ctx, op.start_bytes.value.data, receiver)
    arrive_by_warps(ctx, f"ptr addrspace(3) {barrier}", None)


def _barrier(ctx: SimtContext, start: int, replica: str) -> str:
    """The mbarrier of a replica, a pointer to shared memory."""
    fn = ctx.fn
    step = fn.value(f"mul nuw nsw i32 {replica}, {BARRIER_BYTES}")
    return shared_pointer(fn, add(fn, step, str(start)))


def _role_name(op: AwaitTurnOp) -> str:
    around = role_around(op)
    if around is None:
        raise InternalError(f"{op.name} stands outside of every role")
    roles, number = around
    return roles.described()[number].name
