"""Rings that threads fill, through every level, to threads: the bits of one program."""

from __future__ import annotations

import numpy as np
import pytest

from tests.corpus.case import Case, check
from tests.corpus.copied import COPIED, gathered, gathered_both, gathered_case, paged_case
from tests.corpus.forming import run_formed, run_tiles
from tests.corpus.partitioned import Partitioned
from tests.corpus.run import run_module
from tests.corpus.threads import lower_for_gpu, run_plain_threads, run_threads
from tests.equivalence.test_rings import lowered, require_same
from tilewright.ir.schedule_attributes import annotate_schedule, pipelining_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.control_flow import ForOp
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import RingCommitOp, RingWaitOp
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.partition.form import partition_remarks

over = pytest.mark.parametrize("case", COPIED, ids=lambda case: case.name)


@over
@pytest.mark.parametrize(("replicas", "slots"), [(1, 1), (2, 3)])
def test_roles_and_rings_compute_what_one_program_does(
    case: Partitioned, replicas: int, slots: int
) -> None:
    expected, text = run_tiles(case.case), case.text(replicas, slots=slots)
    require_same(run_formed(case.case, text), expected)
    for level in ("T1", "T2"):
        module = lowered(case, text, level)
        require_same(run_module(case.case, module, NVIDIA_INTERPRETATION), expected)


@over
@pytest.mark.parametrize(("replicas", "slots"), [(1, 2), (2, 1), (2, 3)])
def test_threads_compute_the_bits_of_one_program(
    case: Partitioned, replicas: int, slots: int
) -> None:
    schedule = parse_schedule(case.text(replicas, slots=slots))
    found = run_threads(case.case, lambda m: annotate_schedule(find_kernel(m), schedule))
    require_same(found, run_plain_threads(case.case))


@over
def test_an_option_makes_them(case: Partitioned) -> None:
    threads = lower_for_gpu(case.case, None, num_consumer_groups=2)
    kernel = find_kernel(threads.scheduled.module)
    assert not partition_remarks(kernel)
    assert any(isinstance(op, RingCommitOp) and op.by_copies for op in kernel.walk())
    found = run_threads(case.case, None, num_consumer_groups=2)
    check(case.case, found, case.case.expected(), "roles")


UNASKED = {
    "roles": [
        gathered_case(gathered_both, 200, 136, 200, "gathered", N=128),
        gathered_case(gathered, 200, 136, 200, "boxes-beside-rows", N=128),
        paged_case(200, 128, 128, 128),
    ],
    "one program": [
        gathered_case(gathered_both, 200, 72, 200, "narrow-tiles"),
        gathered_case(gathered_both, 200, 136, 100, "copies-of-8-bytes", N=128),
        paged_case(200, 128, 64, 128),
        paged_case(200, 128, 128, 64),
    ],
}


@pytest.mark.parametrize("case", UNASKED["roles"], ids=lambda case: case.name)
def test_roles_are_formed_unasked_where_they_were_measured_to_be_faster(case: Case) -> None:
    kernel = find_kernel(lower_for_gpu(case, None).scheduled.module)
    assert any(isinstance(op, RingCommitOp) and op.by_copies for op in kernel.walk())
    found = run_threads(case, None)
    require_same(found, run_threads(case, None, num_consumer_groups=0))
    check(case, found, case.expected(), "roles")


@pytest.mark.parametrize("case", UNASKED["one program"], ids=lambda case: case.name)
def test_others_stay_one_program(case: Case) -> None:
    kernel = find_kernel(lower_for_gpu(case, None).scheduled.module)
    assert not any(isinstance(op, RingCommitOp) for op in kernel.walk())


@pytest.mark.parametrize(
    ("keys", "skipped", "reason"),
    [
        (64, 0, "copies of threads pay from 16 bytes at once, 128 keys and columns of a head on"),
        (128, 1, "threads do not copy it: 2 bytes are known to be adjacent"),
    ],
)
def test_attention_says_why_its_threads_do_not_copy(keys: int, skipped: int, reason: str) -> None:
    case = paged_case(17, 128, keys, 128)
    values = case.values()
    room = np.zeros(17 * 128 + 16, np.float16)
    first = -room.ctypes.data % 16 // 2 + skipped
    values["keys"] = room[first : first + 17 * 128].reshape(17, 128)
    remarks = "\n".join(case.kernel.simulate[case.grid](**values).remarks)
    assert "no roles, which attention is faster in: the copy engine does not make" in remarks
    assert reason in remarks


def test_products_a_stage_apart_each_stand_behind_the_fence_of_their_slot() -> None:
    case = COPIED[-1]
    kernel = find_kernel(lowered(case, case.text(2, slots=3), "T1"))
    accounts = [pipelining_of(op) for op in kernel.walk() if isinstance(op, ForOp)]
    assert not [account for account in accounts if account.startswith("not")]
    waits = [op for op in kernel.walk() if isinstance(op, RingWaitOp)]
    # The queries' slot, and two of keys and of values each: a body and what is around it.
    assert [isinstance(wait.next_op, FenceAsyncSharedOp) for wait in waits] == [True] * 5
