"""Roles and rings: each replica of a role runs until it has to wait for another one.

One order of running them is enough to find what no wait has ordered: the clocks of shared memory
tell what happens before what, whichever ran first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue

from tilewright.interp.access import require_defined
from tilewright.interp.code import (
    Code,
    ControlFunction,
    Pause,
    PlainFunction,
    Preparation,
    Running,
    execute,
)
from tilewright.interp.program import Program
from tilewright.interp.rules.channels import has_channels, run_roles
from tilewright.interp.rules.staging import STAGED_RULES, located, shared_memory_of
from tilewright.interp.shared_memory import SharedMemory
from tilewright.ir.encoding import SharedType, slot_bytes
from tilewright.ir.op import Array
from tilewright.ops.rings import (
    RingAcquireOp,
    RingCommitOp,
    RingDrainedOp,
    RingLandedOp,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingSettled,
    RingWaitOp,
    slot_side,
)
from tilewright.ops.roles import ClusterWaitOp, RolesOp, TurnPassOp, TurnWaitOp
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import Deadlock, KernelFault


@dataclass(frozen=True)
class Ring:
    """A ring as its ops have it: where its tiles begin, and the names of its mbarriers."""

    name: str
    starts: tuple[int, ...]
    num_slots: int

    def full(self, slot: int) -> str:
        """The mbarrier that tells that a slot is full."""
        return slot_side(self.name, slot, is_empty=False)

    def empty(self, slot: int) -> str:
        """The mbarrier that tells that a slot is empty."""
        return slot_side(self.name, slot, is_empty=True)


@STAGED_RULES.plain.register(RingOp)
def _ring(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, RingOp)
    producers, consumers = operation.producers.value.data, operation.consumers.value.data
    name, slots = operation.ring_name.data, operation.num_slots

    def evaluate(program: Program, *starts: Array) -> Ring:
        ring = Ring(name, tuple(map(int, starts)), slots)
        memory = shared_memory_of(program)
        for slot in range(slots):
            memory.make_barrier(ring.full(slot), producers)
            memory.make_barrier(ring.empty(slot), consumers)
        return ring

    return evaluate


@STAGED_RULES.control.register(RingAcquireOp, RingWaitOp)
def _wait(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, RingAcquireOp | RingWaitOp)
    is_acquire = isinstance(operation, RingAcquireOp)
    place = _Place(preparation, operation, operation.position)
    results = preparation.slots(operation.results)
    types = [tile.type for tile in operation.ring_of().tiles]
    steps = [slot_bytes(type_) for type_ in types if isinstance(type_, SharedType)]

    def run(program: Program) -> Running:
        ring, slot, fill = place.next(program)
        barrier, phase = (ring.empty(slot), fill - 1) if is_acquire else (ring.full(slot), fill)
        what = f"phase {phase} of {barrier}"
        yield from _until(program, operation, lambda m: m.has_ended(barrier, phase), what)
        for result, start, step in zip(results, ring.starts, steps, strict=True):
            program.values[result] = np.array(start + slot * step, np.int64)
            program.poison[result] = None

    return run


def _until(
    program: Program, operation: Operation, is_over: Callable[[SharedMemory], bool], what: str
) -> Running:
    """Let others run until something is over. *Raises*: Deadlock where there are no others."""
    program.awaits = what
    while True:
        program.operation = operation
        with located(program):
            if is_over(shared_memory_of(program)):
                break
        if not program.role:
            raise program.fault(Deadlock, f"nobody else ends {what}")
        yield Pause.RING
    program.awaits = ""


@STAGED_RULES.control.register(RingCommitOp, RingReleaseOp)
def _arrive(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, RingCommitOp | RingReleaseOp)
    is_commit = isinstance(operation, RingCommitOp)
    place = _Place(preparation, operation, [] if operation.slot is None else [operation.slot])
    announced = operation.announced_bytes if isinstance(operation, RingCommitOp) else None
    num_bytes = 0 if announced is None else announced.value.data
    by_copies = isinstance(operation, RingCommitOp) and operation.by_copies is not None
    condition = operation.condition if isinstance(operation, RingReleaseOp) else None
    when = None if condition is None else preparation.slot(condition)

    def run(program: Program) -> Running:
        program.operation = operation
        if when is not None:
            require_defined(program, "the condition of a release", program.poison[when])
        if when is None or bool(program.values[when]):
            ring, slot, _ = place.next(program)
            with located(program):
                memory = shared_memory_of(program)
                if by_copies:
                    memory.arrive_behind_copies(ring.full(slot))
                else:
                    memory.arrive(ring.full(slot) if is_commit else ring.empty(slot), num_bytes)
        return
        yield

    return run


class _Place:
    """Where an op on a ring is: its slot and fill, or the role's next ones of its kind (T1)."""

    def __init__(
        self, preparation: Preparation, operation: Operation, position: Sequence[SSAValue]
    ) -> None:
        self._ring = preparation.slot(operation.operands[0])
        self._numbers = preparation.slots(position)
        self._kind = type(operation)

    def next(self, program: Program) -> tuple[Ring, int, int]:
        """The ring, the slot and the fill (0 where a slot alone is given)."""
        ring = program.values[self._ring]
        assert isinstance(ring, Ring)
        if not self._numbers:
            count = program.ring_places.get((ring.name, self._kind), 0)
            program.ring_places[ring.name, self._kind] = count + 1
            return ring, count % ring.num_slots, count // ring.num_slots
        for operand in self._numbers:
            require_defined(program, "the slot of a ring", program.poison[operand])
        slot, fill = (*(_integer(program, operand) for operand in self._numbers), 0)[:2]
        if not 0 <= slot < ring.num_slots:
            summary = f"slot {slot} of ring {ring.name}, which has {ring.num_slots}"
            raise program.fault(KernelFault, summary)
        return ring, slot, fill


def _integer(program: Program, slot: int) -> int:
    value = program.values[slot]
    assert isinstance(value, np.ndarray | np.generic)
    return int(value)


@STAGED_RULES.control.register(RingLandedOp, RingDrainedOp)
def _settled(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, RingSettled)
    side = Ring.empty if operation.IS_EMPTY else Ring.full
    (ring_slot,) = preparation.slots([operation.ring])
    position = preparation.slots(operation.position)

    def run(program: Program) -> Running:
        ring = program.values[ring_slot]
        assert isinstance(ring, Ring)
        for operand in position:
            require_defined(program, "where a role stands in a ring", program.poison[operand])
        if position:
            slot, fill = (_integer(program, operand) for operand in position)
        else:
            count = program.ring_places.get((ring.name, RingAcquireOp), 0)
            fill, slot = divmod(count, ring.num_slots)
        for number in range(ring.num_slots):
            barrier, phase = side(ring, number), fill - (number >= slot)
            what = f"phase {phase} of {barrier}"
            yield from _until(program, operation, _has_ended(barrier, phase), what)

    return run


def _has_ended(barrier: str, phase: int) -> Callable[[SharedMemory], bool]:
    return lambda memory: memory.has_ended(barrier, phase)


@STAGED_RULES.control.register(RingSeekOp)
def _seek(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, RingSeekOp)
    ring_slot, count_slot = preparation.slots(operation.operands[:2])
    before, after = preparation.slots(operation.before), preparation.slots(operation.after)

    def run(program: Program) -> Running:
        program.operation = operation
        ring, count = program.values[ring_slot], _integer(program, count_slot)
        assert isinstance(ring, Ring)
        for operand in (count_slot, *before):
            require_defined(program, "where a role stands in a ring", program.poison[operand])
        if count < 0:
            raise program.fault(KernelFault, f"a seek of ring {ring.name} by {count}")
        if before:
            slot, fill = (_integer(program, operand) for operand in before)
            fills, behind = divmod(fill * ring.num_slots + slot + count, ring.num_slots)
            for result, number in zip(after, (behind, fills), strict=True):
                program.values[result] = np.array(number, np.int32)
                program.poison[result] = None
        else:
            for kind in (RingAcquireOp, RingCommitOp, RingWaitOp, RingReleaseOp):
                place = ring.name, kind
                program.ring_places[place] = program.ring_places.get(place, 0) + count
        return
        yield

    return run


def slot_of_fill(program: Program, ring: Ring) -> int:
    """The slot that a role acquired last (T1)."""
    acquired = program.ring_places.get((ring.name, RingAcquireOp), 0)
    if acquired == 0:
        raise program.fault(KernelFault, f"a fill of ring {ring.name} before a slot is acquired")
    return (acquired - 1) % ring.num_slots


# --- turns --------------------------------------------------------------------------------------


@STAGED_RULES.plain.register(ClusterWaitOp)
def _cluster_wait(_: Operation, __: Preparation) -> PlainFunction:
    """Programs run by themselves here, each with whole blocks of its own."""
    return lambda program: None


@STAGED_RULES.control.register(TurnWaitOp)
def _turn_wait(operation: Operation, _: Preparation) -> ControlFunction:
    assert isinstance(operation, TurnWaitOp)
    name = operation.turns.data

    def run(program: Program) -> Running:
        shared_memory_of(program).make_turns(name, program.num_replicas)
        yield from _until(
            program,
            operation,
            lambda memory: memory.take_turn(name, program.replica),
            f"its turn at {name}",
        )

    return run


@STAGED_RULES.control.register(TurnPassOp)
def _turn_pass(operation: Operation, _: Preparation) -> ControlFunction:
    assert isinstance(operation, TurnPassOp)
    name = operation.turns.data

    def run(program: Program) -> Running:
        program.operation = operation
        with located(program):
            shared_memory_of(program).make_turns(name, program.num_replicas)
            shared_memory_of(program).pass_turn(name, program.replica)
        return
        yield

    return run


# --- roles --------------------------------------------------------------------------------------


@dataclass
class _Live:
    """A replica of a role that has not ended: where it stands, and its clock."""

    program: Program
    running: Running
    column: int


@STAGED_RULES.control.register(RolesOp)
def _roles(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, RolesOp)
    if has_channels(operation):
        return run_roles(operation, preparation)
    parts = [
        (name, index, role.replicas, role.shared_start + index * role.shared_bytes, code)
        for role, body in zip(operation.described(), operation.bodies, strict=True)
        for code in (preparation.region(body),)
        for index, name in enumerate(role.replica_names())
    ]

    def run(program: Program) -> Running:
        program.operation = operation
        memory = shared_memory_of(program)
        columns = memory.fork([name for name, *_ in parts])
        live: list[_Live] = []
        for (name, index, *where, code), column in zip(parts, columns, strict=True):
            role = program.as_role(name, index, *where)
            live.append(_Live(role, _body(role, code, index), column))
        while live:
            before = memory.num_arrivals
            for part in tuple(live):
                yield from _advance(memory, part, live)
            if live and memory.num_arrivals == before:
                waits = "; ".join(f"{p.program.role} waits for {p.program.awaits}" for p in live)
                raise live[0].program.fault(Deadlock, f"every role that is left waits: {waits}")

    return run


def _body(role: Program, code: Code, index: int) -> Running:
    (replica,) = code.arguments
    role.values[replica] = np.array(index, np.int32)
    yield from execute(code, role)
    with located(role):
        shared_memory_of(role).require_idle()


def _advance(memory: SharedMemory, part: _Live, live: list[_Live]) -> Running:
    """Run a replica to its end or until it waits for a ring; for others only it is left alone."""
    with memory.acting(part.column):
        for pause in part.running:
            if pause is Pause.RING:
                return
            yield pause
    live.remove(part)
