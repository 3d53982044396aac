"""Kernels whose loops and loads follow from numbers in memory: the bits of one program."""

from __future__ import annotations

import pytest

from tests.corpus.case import Case, check
from tests.corpus.forming import run_formed, run_tiles
from tests.corpus.partitioned import Partitioned
from tests.corpus.run import run_module
from tests.corpus.served import EXPERTS, SERVED, blocks_of_pages_case, sequences_case
from tests.corpus.threads import lower_for_gpu, run_threads
from tests.equivalence.test_rings import lowered, require_same
from tilewright.ir.schedule_attributes import COMMON, annotate_schedule
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.roles import find_roles
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.partition.form import partition_remarks

over = pytest.mark.parametrize("case", SERVED, ids=lambda case: case.name)


@over
@pytest.mark.parametrize(("replicas", "slots"), [(1, 1), (2, 3)])
def test_roles_compute_what_one_program_does(case: Partitioned, replicas: int, slots: int) -> None:
    expected, text = run_tiles(case.case), case.text(replicas, slots=slots)
    require_same(run_formed(case.case, text), expected)
    for level in ("T1", "T2"):
        module = lowered(case, text, level)
        require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), expected)


@over
@pytest.mark.parametrize(("replicas", "slots"), [(1, 2), (2, 3)])
def test_threads_compute_the_bits_of_one_program(
    case: Partitioned, replicas: int, slots: int
) -> None:
    schedule = parse_schedule(case.text(replicas, slots=slots))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, run_threads(case.case, None, num_consumer_groups=0))
    check(case.case, found, case.case.expected(), "roles")


@pytest.mark.parametrize("case", EXPERTS, ids=lambda case: case.name)
@pytest.mark.parametrize("groups", [1, 2])
def test_weights_with_adjacent_columns_are_turned_on_the_way_to_their_ring(
    case: Case, groups: int
) -> None:
    kernel = find_kernel(lower_for_gpu(case, None, num_consumer_groups=groups).scheduled.module)
    assert not partition_remarks(kernel)
    assert find_roles(kernel) is not None
    found = run_threads(case, None, num_consumer_groups=groups)
    require_same(found, run_threads(case, None, num_consumer_groups=0))
    check(case, found, case.expected(), "roles")


UNASKED = [
    sequences_case((300, 0, 130), 1, 128, 128, "sequences-wide", causal=True),
    blocks_of_pages_case((200, 1), 128, 128, "pages-of-128"),
]


@pytest.mark.parametrize("case", UNASKED, ids=lambda case: case.name)
def test_attention_to_what_tables_name_runs_as_roles_unasked(case: Case) -> None:
    kernel = find_kernel(lower_for_gpu(case, None).scheduled.module)
    assert find_roles(kernel) is not None
    found = run_threads(case, None)
    require_same(found, run_threads(case, None, num_consumer_groups=0))
    check(case, found, case.expected(), "roles")


def test_a_number_that_steers_is_read_once_in_front_of_the_roles() -> None:
    kernel = find_kernel(lowered(SERVED[0], SERVED[0].text(2), "T0"))
    roles = find_roles(kernel)
    assert roles is not None
    reads = [op for op in kernel.walk() if isinstance(op, LoadOp) and COMMON in op.attributes]
    assert [read.parent for read in reads] == [kernel.body.block] * 2
    assert not [op for op in roles.walk() if isinstance(op, LoadOp) and COMMON in op.attributes]
