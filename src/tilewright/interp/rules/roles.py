"""Roles and rings: each replica of a role runs until it has to wait for another one.

One order of running them is enough to find what no wait has ordered: the clocks of shared memory
tell what happens before what, whichever ran first.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

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
from tilewright.interp.rules.staging import STAGED_RULES, located, shared_memory_of, slot_bytes
from tilewright.interp.shared_memory import SharedMemory
from tilewright.ir.encoding import SharedType
from tilewright.ir.op import Array
from tilewright.ops.roles import (
    RingAcquireOp,
    RingCommitOp,
    RingOp,
    RingReleaseOp,
    RingWaitOp,
    RolesOp,
)
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import Deadlock, InternalError


@dataclass(frozen=True)
class Ring:
    """A ring as its ops have it: where its tiles begin, and the names of its mbarriers."""

    name: str
    starts: tuple[int, ...]
    num_slots: int

    def full(self, slot: int) -> str:
        """The mbarrier that tells that a slot is full."""
        return f"full[{slot}] of ring {self.name}"

    def empty(self, slot: int) -> str:
        """The mbarrier that tells that a slot is empty."""
        return f"empty[{slot}] of ring {self.name}"


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
    operands = preparation.slots(operation.operands)
    results = preparation.slots(operation.results)
    types = [tile.type for tile in operation.ring_of().tiles]
    steps = [slot_bytes(type_) for type_ in types if isinstance(type_, SharedType)]

    def run(program: Program) -> Running:
        ring, slot, fill = _read(program, operands)
        barrier, phase = (ring.empty(slot), fill - 1) if is_acquire else (ring.full(slot), fill)
        program.awaits = f"phase {phase} of {barrier}"
        while True:
            program.operation = operation
            with located(program):
                has_ended = shared_memory_of(program).has_ended(barrier, phase)
            if has_ended:
                break
            if not program.role:
                raise program.fault(Deadlock, f"nobody else ends {program.awaits}")
            yield Pause.RING
        program.awaits = ""
        for result, start, step in zip(results, ring.starts, steps, strict=True):
            program.values[result] = np.array(start + slot * step, np.int64)
            program.poison[result] = None

    return run


@STAGED_RULES.control.register(RingCommitOp, RingReleaseOp)
def _arrive(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, RingCommitOp | RingReleaseOp)
    is_commit = isinstance(operation, RingCommitOp)
    operands = preparation.slots(operation.operands)

    def run(program: Program) -> Running:
        program.operation = operation
        ring, slot, _ = _read(program, operands)
        with located(program):
            memory = shared_memory_of(program)
            memory.arrive(ring.full(slot) if is_commit else ring.empty(slot))
        return
        yield

    return run


def _read(program: Program, operands: tuple[int, ...]) -> tuple[Ring, int, int]:
    """The ring of an op, its slot, and the fill where it names one."""
    ring, *numbers = (program.values[operand] for operand in operands)
    assert isinstance(ring, Ring)
    for operand in operands[1:]:
        require_defined(program, "the slot of a ring", program.poison[operand])
    plain = [int(n) for n in numbers if isinstance(n, np.ndarray | np.generic)]
    slot, fill = (*plain, 0)[:2]
    if not 0 <= slot < ring.num_slots:
        raise InternalError(f"slot {slot} of ring {ring.name}, which has {ring.num_slots}")
    return ring, slot, fill


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
        (name, index, code)
        for role, body in zip(operation.described(), operation.bodies, strict=True)
        for code in (preparation.region(body),)
        for index, name in enumerate(role.replica_names())
    ]

    def run(program: Program) -> Running:
        program.operation = operation
        memory = shared_memory_of(program)
        columns = memory.fork([name for name, _, _ in parts])
        live: list[_Live] = []
        for (name, index, code), column in zip(parts, columns, strict=True):
            role = program.as_role(name)
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


def _advance(memory: SharedMemory, part: _Live, live: list[_Live]) -> Running:
    """Run a replica to its end or until it waits for a ring; for others only it is left alone."""
    with memory.acting(part.column):
        for pause in part.running:
            if pause is Pause.RING:
                return
            yield pause
    live.remove(part)
