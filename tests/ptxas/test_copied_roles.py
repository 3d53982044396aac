"""What ptxas makes of rings that threads fill: copies, and arrivals when they are there."""

from __future__ import annotations

import pytest

from tests.corpus.case import Case
from tests.corpus.copied import gathered, gathered_both, gathered_case, paged_case
from tests.corpus.threads import lower_for_gpu
from tests.ptxas.machine_code import (
    ARRIVAL_BEHIND_COPIES,
    ELECT,
    PRODUCT,
    THREAD_COPY,
    WARPSYNC,
    MachineCode,
    machine_code,
)
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.targets.nvidia.assembler import Assembled, assemble_ptx
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.nvidia.symbols import entry_symbol

pytestmark = pytest.mark.ptxas

A_LOADING_ROLE = 128
"""The threads of one, which copy a tile."""


def rows_of_a(columns: int, groups: int = 2, rows: int = 128) -> Case:
    """Rows of A that indices name, B in boxes."""
    name = f"gathered-{rows}-{columns}-{groups}"
    return gathered_case(gathered, 256, 256, 192, name, M=rows, N=columns)


CASES: dict[str, tuple[Case, int, list[int]]] = {
    "128 x 64": (rows_of_a(64), 2, [128 * 64 * 2 // 16]),
    "128 x 128": (rows_of_a(128), 2, [128 * 64 * 2 // 16]),
    "128 x 256": (rows_of_a(256), 2, [128 * 64 * 2 // 16]),
    "64 x 256, one group": (rows_of_a(256, rows=64), 1, [64 * 64 * 2 // 16]),
    # Rows of 42 halves: copies of 4 bytes, of both operands.
    "rows of 84 bytes": (
        gathered_case(gathered_both, 200, 72, 42, "rows-of-84", K=32),
        2,
        [128 * 32 * 2 // 4, 64 * 32 * 2 // 4],
    ),
    "pages": (paged_case(200), 2, [64 * 64 * 2 // 16] * 2),
}
"""A kernel, its groups, and the copies of each ring that threads fill, by all threads together."""
WATCHED = {"deadlock_seconds": 10, "jitter": 5}


def assembled(name: str, **options: object) -> tuple[Assembled, MachineCode]:
    """What ptxas makes of a case, and its instructions."""
    case, groups, _ = CASES[name]
    made = lower_for_gpu(case, None, num_consumer_groups=groups, **options)
    result = assemble_ptx(to_ptx(made.text, SM_90A), "sm_90a")
    symbol = entry_symbol(find_kernel(made.scheduled.module).sym_name.data)
    return result, machine_code(result.cubin, symbol)


@pytest.mark.parametrize("options", [{}, WATCHED], ids=["plain", "watched"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_spills_and_nothing_is_serialized(name: str, options: dict[str, int]) -> None:
    """setmaxnreg is heard (no C7508), and products run on (no C7510 to C7518)."""
    result, _ = assembled(name, **options)
    assert not result.resources.has_spills and result.resources.stack_bytes == 0
    assert [str(message) for message in result.messages] == []
    assert result.ptx.count("setmaxnreg") == 2
    # Without roles a group of copies is waited for by who made them.
    assert "cp.async.wait" not in result.ptx and "cp.async.commit" not in result.ptx


@pytest.mark.parametrize("name", CASES)
def test_threads_arrive_behind_their_copies_as_they_are_counted(name: str) -> None:
    result, code = assembled(name)
    rings = CASES[name][2]
    assert code.arrivals_that_count() == [True] * len(rings)
    assert code.kinds().count(THREAD_COPY) == sum(rings) // A_LOADING_ROLE
    assert result.ptx.count("cp.async.mbarrier.arrive.noinc.shared::cta.b64") == len(rings)


@pytest.mark.parametrize("name", CASES)
def test_the_loop_that_copies_multiplies_nothing(name: str) -> None:
    """And the one that multiplies copies nothing: its first wait is for the ring."""
    _, code = assembled(name)
    copies = sum(CASES[name][2]) // A_LOADING_ROLE
    # The smallest loop around the last copy has those of both rings.
    copying = next(loop for loop in code.loops() if loop.count(THREAD_COPY) == copies)
    multiplying = code.loop_with(PRODUCT)
    assert copying.count(ARRIVAL_BEHIND_COPIES) >= 1 and PRODUCT not in copying
    assert THREAD_COPY not in multiplying
    assert WARPSYNC not in (*copying, *multiplying) and ELECT not in multiplying
