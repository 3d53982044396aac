"""Replicas that wait for each other's parts at barriers: as many as a program has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from tests.corpus.gathered import CHAINS
from tests.equivalence.test_rings import lowered
from tilewright.ir.op import build
from tilewright.ir.types import i32
from tilewright.machine.gpus import SM_90A
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.function import find_kernel
from tilewright.ops.ring_queries import barriers_of, meetings_in
from tilewright.ops.rings import RingCommitOp, RingWaitOp, slot_types
from tilewright.ops.roles import find_roles
from tilewright.schedule.partition.meet_at_barriers import MeetAtBarriers, meeting_problem
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


@pytest.mark.parametrize("is_inside", [True, False])
def test_no_fill_comes_between_a_commit_and_its_wait(is_inside: bool) -> None:
    """A loop of both that stands between them would shift every wait by a fill."""
    module, _ = with_barriers(16)
    roles = find_roles(find_kernel(module))
    assert roles is not None
    (wait,) = (w for body in roles.bodies for w in meetings_in(body.block))
    ring, loop = wait.ring_of(), wait.parent_op()
    assert isinstance(loop, ForOp) and loop.parent is not None and not meeting_problem(ring)
    slot = build(ConstantOp, (), [i32], {"value": IntegerAttr(0, i32)})
    commit = build(RingCommitOp, [ring.result, slot.results[0]])
    last = build(RingWaitOp, [ring.result, slot.results[0], slot.results[0]], slot_types(ring))
    loop.parent.insert_ops_before([slot, commit], loop)
    if is_inside:
        loop.parent.insert_op_after(last, loop)
    else:
        loop.parent.insert_op_before(last, loop)
    assert bool(meeting_problem(ring)) == is_inside
