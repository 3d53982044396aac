"""Replicas that wait for each other's parts at barriers: as many as a program has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.corpus.gathered import CHAINS
from tests.equivalence.test_rings import lowered
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.ops.ring_queries import barriers_of, meetings_in
from tilewright.ops.roles import find_roles
from tilewright.schedule.partition.meet_at_barriers import MeetAtBarriers
from tilewright.schedule.protocol.check import check_protocol
from tilewright.support.errors import ProtocolBroken


def with_barriers(count: int) -> tuple[ModuleOp, int]:
    """A chain of products on a machine of so many barriers, and how many rings meet at one."""
    case = CHAINS[0]
    module = lowered(case, case.text(2), "T2")
    roles = find_roles(find_kernel(module))
    assert roles is not None
    waits = [wait for body in roles.bodies for wait in meetings_in(body.block)]
    rings = {wait.ring_of() for wait in waits}
    assert rings and sum(barriers_of(roles)) == 3 + len(rings)  # one that loads, two that compute
    for wait in waits:
        del wait.properties["meets"]
    MeetAtBarriers(replace(SM_90A, num_barriers=count)).apply(module)
    return module, len({w.ring_of() for body in roles.bodies for w in meetings_in(body.block)})


@pytest.mark.parametrize(("count", "expected"), [(16, 1), (5, 1), (4, 0), (1, 0)])
def test_rings_meet_as_far_as_there_are_barriers(count: int, expected: int) -> None:
    module, found = with_barriers(count)
    assert found == expected
    check_protocol(find_kernel(module), SM_90A)


def test_a_barrier_too_many_is_refused() -> None:
    module, _ = with_barriers(16)
    with pytest.raises(ProtocolBroken, match="make 5 barriers of 4"):
        check_protocol(find_kernel(module), replace(SM_90A, num_barriers=4))
