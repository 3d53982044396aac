"""What each op does to a replica of a role: control, products, rings and turns.

A rule is a coroutine that stops where the replica has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

from xdsl.ir import Block, Operation

from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.rings import (
    RingAcquireOp,
    RingCommitOp,
    RingDrainedOp,
    RingFill,
    RingLandedOp,
    RingReleaseOp,
    RingSeekOp,
    RingSettled,
    RingWaitOp,
)
from tilewright.ops.roles import ClusterWaitOp, TurnPassOp, TurnWaitOp, shared_by_roles
from tilewright.ops.staging import AsyncCopyOp, DotWaitOp, LaidOutDotOp
from tilewright.schedule.protocol.replica import Replica, Slot, ring_of
from tilewright.schedule.protocol.state import Broken, Phases
from tilewright.support.rules import RuleTable

STEP_LIMIT = 1_000_000
"""Ops after which a role is taken to run without end. Chosen, not measured:
it only tells a role that does not end by itself from one that does."""

Running: TypeAlias = Generator[None, None, None]
Act: TypeAlias = Callable[[Replica, Operation], Running]
STEPS: RuleTable[Act] = RuleTable("steps of roles")
"""What goes on inside of a replica."""
EVENTS: RuleTable[Act] = RuleTable("events of roles")
"""What other replicas see."""


class GivenUp(Exception):
    """A role has gone on for as many ops as the run was to take."""


def run_role(replica: Replica, body: Block) -> Running:
    """Run a role to its end, where it holds nothing and no product runs."""
    replica.values[body.args[0]] = replica.index
    yield from _block(replica, body)
    replica.require_end()


def _block(replica: Replica, block: Block) -> Running:
    for op in block.ops:
        replica.op = op
        replica.steps += 1
        if replica.shared.num_steps is not None and replica.steps > replica.shared.num_steps:
            raise GivenUp
        if replica.steps > STEP_LIMIT:
            raise replica.error(f"runs for more than {STEP_LIMIT} ops")
        yield from _step(replica, op)


def _step(replica: Replica, op: Operation) -> Running:
    step = STEPS.find(type(op))
    if step is not None:
        yield from step(replica, op)
        return
    if not isinstance(op, RingFill):
        event = EVENTS.find(type(op))
        if event is None:
            replica.evaluate(op)
            return
        running = event(replica, op)
    else:
        running = _fill(replica, op)
    replica.shared.events += 1
    yield from _guarded(replica, op, running)


def _guarded(replica: Replica, op: Operation, running: Running) -> Running:
    """Do what an op on a ring or a turn does; what breaks the protocol gets its place."""
    while True:
        replica.op = op
        try:
            next(running)
        except StopIteration:
            return
        except Broken as broken:
            name = shared_by_roles(op)
            raise replica.error(f"{name}: {broken}" if name else str(broken), op) from broken
        yield


@STEPS.register(ForOp)
def _for(replica: Replica, op: ForOp) -> Running:
    low, high, step = (replica.integer(v, "a bound of a loop") for v in (op.lb, op.ub, op.step))
    carried = replica.all(op.iter_args)
    body = op.body.block
    for number in range(low, high, step):
        replica.bind(body.args, [number, *carried])
        yield from _block(replica, body)
        carried = replica.all(_end(body).operands)
    replica.bind(op.results, carried)


@STEPS.register(IfOp)
def _if(replica: Replica, op: IfOp) -> Running:
    taken = op.true_region if replica.integer(op.cond, "a condition") else op.false_region
    if taken.blocks:
        yield from _block(replica, taken.block)
        replica.bind(op.results, replica.all(_end(taken.block).operands))


@STEPS.register(WhileOp)
def _while(replica: Replica, op: WhileOp) -> Running:
    carried = replica.all(op.arguments)
    while True:
        before, after = op.before_region.block, op.after_region.block
        replica.bind(before.args, carried)
        yield from _block(replica, before)
        condition, *forwarded = _end(before).operands
        carried = replica.all(forwarded)
        if not replica.integer(condition, "a condition"):
            break
        replica.bind(after.args, carried)
        yield from _block(replica, after)
        carried = replica.all(_end(after).operands)
    replica.bind(op.results, carried)


def _end(block: Block) -> Operation:
    """The op that ends a block and hands its values on."""
    last = block.last_op
    assert last is not None
    return last


@STEPS.register(LaidOutDotOp)
def _product(replica: Replica, op: LaidOutDotOp) -> Running:
    replica.start_product(op)
    return
    yield


@STEPS.register(AsyncCopyOp)
def _copy(replica: Replica, op: AsyncCopyOp) -> Running:
    replica.start_copy(op)
    return
    yield


@EVENTS.register(RingAcquireOp)
def _acquire(replica: Replica, op: RingAcquireOp) -> Running:
    yield from _enter(replica, op, "empty", replica.ring(op).empty, 1)
    for other in replica.rings_beside(op):
        if slots := other.unread():
            raise Broken(f"is filled while ring {other.name}, whose memory it has, uses {slots}")


@EVENTS.register(RingWaitOp)
def _wait(replica: Replica, op: RingWaitOp) -> Running:
    yield from _enter(replica, op, "full", replica.ring(op).full, 0)


def _enter(
    replica: Replica, op: RingAcquireOp | RingWaitOp, kind: str, phases: list[Phases], behind: int
) -> Running:
    """Wait for a phase of a slot, `behind` those that were filled, and hold the slot then."""
    if len(op.position) != 2:
        raise Broken("the op names no slot")
    number = replica.slot_number(op, op.position[0])
    phase = replica.integer(op.position[1], "the number of a fill") - behind
    replica.awaits = f"phase {phase} of {kind}[{number}] of ring {replica.ring(op).name}"
    while not phases[number].has_ended(phase):
        yield
    replica.awaits = ""
    replica.hold(op, number, is_filled=kind == "full")


@EVENTS.register(RingCommitOp)
def _commit(replica: Replica, op: RingCommitOp) -> Running:
    number = replica.slot_number(op, op.slot)
    replica.hand_copies(op, number)
    replica.let_go(op, number, is_filled=False)
    announced = 0 if op.announced_bytes is None else op.announced_bytes.value.data
    replica.ring(op).full[number].arrive(announced)
    return
    yield


@EVENTS.register(RingReleaseOp)
def _release(replica: Replica, op: RingReleaseOp) -> Running:
    if op.condition is None or replica.integer(op.condition, "the condition of a release"):
        number = replica.slot_number(op, op.slot)
        replica.let_go(op, number, is_filled=True)
        for ring in replica.shared_rings(op):
            ring.empty[number].arrive()
    return
    yield


@EVENTS.register(RingLandedOp, RingDrainedOp)
def _settled(replica: Replica, op: RingSettled) -> Running:
    """Wait for what ends the last fill of each slot that a role has started."""
    if len(op.position) != 2:
        raise Broken("the op names no slot")
    ring = replica.ring(op)
    kind, sides = ("empty", ring.empty) if op.IS_EMPTY else ("full", ring.full)
    slot, fill = (replica.integer(v, "where a role stands") for v in op.position)
    for number, phases in enumerate(sides):
        phase = fill - (number >= slot)
        replica.awaits = f"phase {phase} of {kind}[{number}] of ring {ring.name}"
        while not phases.has_ended(phase):
            yield
    replica.awaits = ""


@EVENTS.register(RingSeekOp)
def _seek(replica: Replica, op: RingSeekOp) -> Running:
    if len(op.before) != 2:
        raise Broken("the op names no slot")
    slots = len(replica.ring(op).full)
    slot, fill = (replica.integer(v, "where a role stands") for v in op.before)
    count = replica.integer(op.count, "how far a role goes")
    if count < 0:
        raise Broken(f"goes {-count} fills back")
    fills, number = divmod(fill * slots + slot + count, slots)
    replica.values.update(zip(op.after, (number, fills), strict=True))
    return
    yield


def _fill(replica: Replica, op: RingFill) -> Running:
    number, tile = replica.slot_number(op, op.slot), replica.values.get(op.dst)
    if not isinstance(tile, Slot) or (tile.ring, tile.number) != (ring_of(op), number):
        raise Broken(f"slot {number} is told of a copy that goes to another place")
    replica.require_held(tile, op)
    if tile.is_filled:
        raise Broken(f"slot {number} is filled by who has to read it")
    is_shared = op.shared is not None and replica.values.get(op.shared)
    rings = replica.shared_rings(op) if is_shared else [replica.ring(op)]
    for ring in rings:
        if ring.full[number].ended != ring.empty[number].ended:
            raise Broken(f"slot {number} of a program of the cluster is filled before it is empty")
        ring.full[number].bring(op.num_bytes() // len(rings))
    return
    yield


@EVENTS.register(ClusterWaitOp)
def _cluster_wait(replica: Replica, _: ClusterWaitOp) -> Running:
    """What it waits for is the end of the run."""
    return
    yield


@EVENTS.register(TurnWaitOp)
def _take_turn(replica: Replica, op: TurnWaitOp) -> Running:
    turns = replica.turns(op.turns.data)
    replica.awaits = f"its turn at {op.turns.data}"
    while not turns.take(replica.index):
        yield
    replica.awaits = ""


@EVENTS.register(TurnPassOp)
def _pass_turn(replica: Replica, op: TurnPassOp) -> Running:
    replica.turns(op.turns.data).hand_on(replica.index)
    return
    yield


@EVENTS.register(DotWaitOp)
def _dot_wait(replica: Replica, op: DotWaitOp) -> Running:
    replica.wait_products(op)
    return
    yield
