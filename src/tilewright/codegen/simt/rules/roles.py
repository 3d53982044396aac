"""Roles as bodies of warps of their own, and turns as named barriers.

A turn of replica r is a barrier that it waits at and that the replica before it arrives at. The
last replica arrives once at the start, which gives the first one its turn.
"""

from __future__ import annotations

from xdsl.ir import Region

from tilewright.codegen.simt.allotment import Allotment
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.partition import Partition
from tilewright.codegen.simt.roles import Body, emit_partitions
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.ops.roles import RolesOp, TurnOp, TurnPassOp, TurnWaitOp, role_around
from tilewright.support.errors import InternalError


@SIMT_RULES.register(RolesOp)
def _roles(ctx: SimtContext, op: RolesOp) -> None:
    allotted = ctx.allotment(op)
    bodies = [_body(ctx, allotted, number, body) for number, body in enumerate(op.bodies)]
    emit_partitions(ctx, list(zip(allotted.partitions, bodies, strict=True)))


def _body(ctx: SimtContext, allotted: Allotment, number: int, body: Region) -> Body:
    """What emits the body of one role."""
    part = allotted.partitions[number]
    turns = [first for (role, _), first in allotted.turns.items() if role == number]

    def emit() -> None:
        (replica,) = body.block.args
        ctx.values[replica] = ctx.index.replica(ctx.fn)
        for first in turns:
            _give_first_turn(ctx, part, first)
        *ops, _ = body.block.ops
        for op in ops:
            ctx.emit_op(op)

    return emit


def _give_first_turn(ctx: SimtContext, part: Partition, first: int) -> None:
    """The last replica arrives where the first one will wait."""
    fn = ctx.fn
    is_last = fn.value(f"icmp eq i32 {ctx.index.replica(fn)}, {part.replicas - 1}")
    here, after = fn.new_label(), fn.new_label()
    fn.branch_if(is_last, here, after)
    fn.place(here)
    ctx.target.barrier_arrive(fn, str(first), _threads_of_turn(ctx))
    fn.branch(after)
    fn.place(after)


def _threads_of_turn(ctx: SimtContext) -> int:
    """Those of the replica that waits and of the one that arrives."""
    return 2 * ctx.scope.num_threads


@SIMT_RULES.register(TurnWaitOp)
def _wait(ctx: SimtContext, op: TurnWaitOp) -> None:
    first = _first_barrier(ctx, op)
    if first is not None:
        number = ctx.fn.prologue_value(f"add nuw nsw i32 {ctx.index.replica(ctx.fn)}, {first}")
        node = ctx.module.add_metadata(turn_node(op, first))
        ctx.target.barrier(ctx.fn, number, _threads_of_turn(ctx), f", !tw.turn {node}")


def turn_node(op: TurnOp, start: int) -> str:
    """What a wait for a turn says of itself; `start` is the barrier of the first replica."""
    around = role_around(op)
    role = "" if around is None else around[0].described()[around[1]].name
    return f'!{{!"{op.turns.data}", i32 {start}, !"{role}", !"turns"}}'


@SIMT_RULES.register(TurnPassOp)
def _pass(ctx: SimtContext, op: TurnPassOp) -> None:
    first = _first_barrier(ctx, op)
    if first is None:
        return
    fn, replica = ctx.fn, ctx.index.replica(ctx.fn)
    last = ctx.scope.partition.replicas - 1
    is_last = fn.prologue_value(f"icmp eq i32 {replica}, {last}")
    following = fn.prologue_value(f"add nuw nsw i32 {replica}, {first + 1}")
    number = fn.prologue_value(f"select i1 {is_last}, i32 {first}, i32 {following}")
    ctx.target.barrier_arrive(fn, number, _threads_of_turn(ctx))


def _first_barrier(ctx: SimtContext, op: TurnOp) -> int | None:
    """The barrier of the first replica; None for a role of one, which always has its turn."""
    around = role_around(op)
    if around is None:
        raise InternalError(f"{op.name} stands outside of every role")
    roles, number = around
    return ctx.allotment(roles).turns.get((number, op.turns.data))
