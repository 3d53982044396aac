"""What `explain` says of the corpus: sectors that the simulator agrees with, few conflicts."""

from __future__ import annotations

from collections import defaultdict

from tests.corpus.case import Case
from tests.corpus.everything import FAMILIES, over
from tests.corpus.threads import lower_for_gpu
from tilewright.interp.simt.simulate import simulate
from tilewright.interp.simt.statistics import Report
from tilewright.ops.function import find_kernel
from tilewright.runtime.grid import check_grid
from tilewright.targets.nvidia.explain.accesses import AccessSummary, explain_accesses
from tilewright.targets.nvidia.explain.conversions import explain_conversions

_FAMILIES = ("reductions", "shapes", "matmul", "memory", "indexing")
_CASES = [case for name in _FAMILIES for case in FAMILIES[name] if not case.is_slow][::11]


def explained_and_simulated(case: Case) -> tuple[dict[int, list[AccessSummary]], Report]:
    """The summaries by line, and what the simulator counted."""
    threads = lower_for_gpu(case)
    kernel = find_kernel(threads.scheduled.module)
    by_line: dict[int, list[AccessSummary]] = defaultdict(list)
    for access in explain_accesses(kernel):
        by_line[int(access.line.rpartition(":")[2])].append(access)
    grid = check_grid(case.name, case.grid, threads.memory.values)
    shared = int(str(threads.scheduled.metadata["shared_bytes"]))
    name = threads.request.name
    report = simulate(threads.text, name, grid, threads.num_threads, threads.arguments, shared)
    return by_line, report


@over([case for case in _CASES if case.name != "loaded-pointers"])
def test_no_request_touches_more_sectors_than_are_explained(case: Case) -> None:
    explained, report = explained_and_simulated(case)
    for access in report.global_accesses():
        assert access.site.source is not None
        most = max(summary.sectors for summary in explained[access.site.source.line])
        assert access.transactions_per_request <= most, access


@over(_CASES[::2])
def test_conversions_through_shared_memory_have_no_bank_conflicts(case: Case) -> None:
    kernel = find_kernel(lower_for_gpu(case).scheduled.module)
    assert all(conversion.conflicts == 0 for conversion in explain_conversions(kernel))
