"""Runs the protocol of a kernel for launches around the number of its slots.

What goes wrong with a ring goes wrong where it wraps: with as many fills as it has slots, one
less, one more, and one more than twice as many. Nobody says what the arguments of a kernel mean,
so all of them are as many steps of its loops. Roles that meet where addresses overlap run with
arrays that lie apart, and with one array for all.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerType

from tilewright.ir.regions import counter_of
from tilewright.ir.schedule_attributes import COMMON
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.function import FuncOp
from tilewright.ops.program.persistence import most_programs
from tilewright.ops.ring_queries import rings_of
from tilewright.ops.roles import find_roles, shared_by_roles
from tilewright.schedule.protocol.run import run_protocol
from tilewright.schedule.protocol.scalars import Launch
from tilewright.support.dataclass import replace

NUM_STEPS = 20_000
"""Ops of a role after which a launch is too large to tell. Chosen, not measured: a tenth of a
second."""


def run_around(kernel: FuncOp) -> int:
    """Run the roles of a kernel for each of its launches; how many ring ops and turns they did.

    *Raises*: ProtocolBroken.
    """
    return sum(run_protocol(kernel, launch, NUM_STEPS) for launch in launches_around(kernel))


def launches_around(kernel: FuncOp) -> Iterator[Launch]:
    """Launches in which every integer argument is the same number of steps of a loop."""
    if find_roles(kernel) is None:
        return
    apart = _launches_apart(kernel)
    if not any(COMMON in op.attributes for op in kernel.walk()):
        yield from apart
        return
    for launch in apart:
        yield launch
        yield replace(launch, overlaps=True)


def _launches_apart(kernel: FuncOp) -> Iterator[Launch]:
    slots = {ring.num_slots for ring in rings_of(kernel)} or {1}
    counts = sorted({c for n in slots for c in (0, 1, n - 1, n, n + 1, 2 * n + 1)})
    numbers = [
        index
        for index, argument in enumerate(kernel.body.block.args)
        if isinstance(argument.type, IntegerType)
    ]
    for size in sorted({count * step for count in counts for step in _steps(kernel)}):
        arguments = dict.fromkeys(numbers, size)
        if most_programs(kernel):
            # A program without a tile, with one, and with more than it has slots.
            for tiles in (1, 2, 2 * max(slots) + 3):
                yield Launch(arguments, (1, 0, 0), (2, 1, 1), (tiles, 1, 1))
            continue
        yield Launch(arguments)
        yield Launch(arguments, program=(1, 0, 0), programs=(2, 1, 1))


def _steps(kernel: FuncOp) -> set[int]:
    """The constant steps of loops that go through rings."""
    steps = {1}
    for op in kernel.walk():
        counter = counter_of(op)
        if counter is not None and any(map(shared_by_roles, counter.value.block.ops)):
            step = constant_of(counter.step)
            steps.add(1 if step is None else int(step))
    return steps
