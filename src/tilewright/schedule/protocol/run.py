"""Runs what roles do to rings and turns, with scalars alone: tiles are never computed.

Programs of a cluster run at once. Every replica of every role is a coroutine that stops where it
has to wait. Their events have no choice in them, so that one order tells whether some order goes
wrong: a wait is for a phase by its number, not by its parity, and a slot is read, filled and given
back by who holds it.

    load  acquire ab[0] fill 0 · fill · commit          math  wait ab[0] fill 0 · dot · release …
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from tilewright.ir.types import PointerType
from tilewright.ops.function import FuncOp
from tilewright.ops.program.persistence import cluster_of
from tilewright.ops.ring_queries import rings_of
from tilewright.ops.roles import RolesOp, find_roles
from tilewright.schedule.protocol.acts import GivenUp, Running, run_role
from tilewright.schedule.protocol.replica import Replica, SharedState
from tilewright.schedule.protocol.scalars import Launch
from tilewright.schedule.protocol.state import Ring
from tilewright.support.dataclass import replace


def run_protocol(kernel: FuncOp, launch: Launch, num_steps: int | None = None) -> int:
    """Run the roles of a kernel to their ends; how many ring ops and turns they went through.

    With `num_steps` a role that is not at its end after so many ops proves nothing, and the run
    ends there. *Raises*: ProtocolBroken that names the role, the ring, the slot and the line.
    """
    roles = find_roles(kernel)
    if roles is None:
        return 0
    programs = [SharedState(own, num_steps) for own in _cluster(launch, cluster_of(kernel))]
    for shared in programs:
        shared.programs = programs
    with suppress(GivenUp):
        _run([(shared, _before_roles(shared, kernel)) for shared in programs], roles)
    return sum(shared.events for shared in programs)


def _cluster(launch: Launch, size: int) -> list[Launch]:
    """The launch as each program of the program's cluster sees it."""
    if size == 1:
        return [launch]
    first, *others = launch.program
    count, *axes = launch.programs
    programs = (-(-count // size) * size, *axes)
    return [
        replace(launch, program=(first // size * size + rank, *others), programs=programs)
        for rank in range(size)
    ]


def _before_roles(shared: SharedState, kernel: FuncOp) -> Replica:
    """What the program does before its roles begin: the rings, and scalars that all know."""
    common = Replica(shared, "", 0, 1)
    for number, argument in enumerate(kernel.body.block.args):
        is_address = isinstance(argument.type, PointerType)
        given = shared.launch.arguments.get(number)
        common.values[argument] = shared.launch.address_of(number) if is_address else given
    for ring in rings_of(kernel):
        sides = ring.producers.value.data, ring.programs * ring.consumers.value.data
        shared.rings[ring] = Ring.of(ring.ring_name.data, ring.num_slots, *sides)
    for op in kernel.body.block.ops:
        if not op.regions:
            common.evaluate(op)
    return common


def _run(programs: Sequence[tuple[SharedState, Replica]], roles: RolesOp) -> None:
    """Run all replicas of all programs, one after another, until all have ended."""
    live = [
        (replica, run_role(replica, body.block))
        for shared, common in programs
        for role, body in zip(roles.described(), roles.bodies, strict=True)
        for index, name in enumerate(role.replica_names())
        for replica in (Replica(shared, name, index, role.replicas, common.values),)
    ]
    while live:
        before = sum(shared.events for shared, _ in programs)
        still = [(replica, running) for replica, running in live if _advance(running)]
        events = sum(shared.events for shared, _ in programs)
        if still and events == before and len(still) == len(live):
            waits = "; ".join(f"{r.name} waits for {r.awaits}" for r, _ in still)
            raise still[0][0].error(f"every role that is left waits: {waits}")
        live = still
    for shared, common in programs:
        for op, ring in shared.rings.items():
            slots = ring.unread()
            if slots:
                raise common.error(
                    f"ring {ring.name}: all roles have ended, and slots {slots} were filled and "
                    "not emptied as often, or have arrivals of a phase that did not end",
                    op,
                )


def _advance(running: Running) -> bool:
    """Run a replica until it waits; whether it has not ended."""
    try:
        next(running)
    except StopIteration:
        return False
    return True
