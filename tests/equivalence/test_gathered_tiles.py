"""Replicas that show each other their parts of a tile: the bits of one program, at every level."""

from __future__ import annotations

import pytest

from tests.corpus.case import check
from tests.corpus.forming import run_formed, run_tiles
from tests.corpus.gathered import CHAINS, GATHERED, GRADIENTS, gradients_case
from tests.corpus.partitioned import AB, Partitioned, pointer_case
from tests.corpus.run import run_module
from tests.corpus.threads import run_plain_threads, run_threads
from tests.equivalence.test_rings import lowered, over, require_same
from tests.roles.test_formed_protocols import launches
from tilewright.ir.schedule_attributes import annotate_schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.channels import PutPartOp
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingOp
from tilewright.ops.staging import DotWaitOp, LaidOutDotOp
from tilewright.schedule.protocol.run import run_protocol
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION


@over(GATHERED)
def test_gathered_tiles_are_those_of_one_program(case: Partitioned) -> None:
    expected = run_tiles(case.case)
    check(case.case, expected, case.case.expected(), "T0 against NumPy")
    require_same(run_formed(case.case, case.text(2)), expected)
    for level in ("T1", "T2"):
        module = lowered(case, case.text(2), level)
        require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), expected)


@over([GRADIENTS[1], GRADIENTS[3], *CHAINS])
def test_threads_gather_tiles(case: Partitioned) -> None:
    schedule = parse_schedule(case.text(2))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, run_plain_threads(case.case))


@over(GATHERED)
@pytest.mark.parametrize("slots", [1, 2, 3])
def test_gathering_replicas_keep_to_their_protocol(case: Partitioned, slots: int) -> None:
    kernel = find_kernel(lowered(case, case.text(2, slots=slots), "T2"))
    events = [run_protocol(kernel, launch) for launch in launches(kernel, case.case.values())]
    assert max(events) > 0


@over([GRADIENTS[0]])
def test_both_replicas_fill_and_read_the_ring_of_parts(case: Partitioned) -> None:
    module = lowered(case, case.text(2), "T2")
    assert not any(isinstance(op, PutPartOp) for op in module.walk())
    rings = {op.ring_name.data: op for op in module.walk() if isinstance(op, RingOp)}
    parts = rings["parts0"]
    assert (parts.producers.value.data, parts.consumers.value.data, parts.num_slots) == (2, 2, 2)


@over(GRADIENTS)
def test_products_of_gradients_run_beside_what_is_computed(case: Partitioned) -> None:
    """Five products; the values of four are waited for while another one runs, or not at all."""
    ops = list(lowered(case, case.text(2), "T2").walk())
    assert [op.is_async is not None for op in ops if isinstance(op, LaidOutDotOp)] == [True] * 5
    assert [op.pending.value.data for op in ops if isinstance(op, DotWaitOp)] == [1, 0, 1, 0]


def test_a_launch_with_two_groups_gathers_by_itself() -> None:
    case = gradients_case(128, 128, False)
    require_same(run_threads(case, None, num_consumer_groups=2), run_threads(case))


def test_a_part_of_several_panels_is_seen_transposed() -> None:
    """Rows of a slot lie as far apart as the whole slot has them, and not as a part's."""
    case = Partitioned(pointer_case(128, 128, 256, columns=128, depth=128), AB)
    schedule = parse_schedule(case.text(2, "n"))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    check(case.case, found, case.case.expected(), "threads against NumPy")
