"""Every kernel of the corpus as a GPU program: simulated, it agrees with NumPy.

The simulator runs what is emitted for one thread for all threads of a program, with bounds,
races between warps and reads of nothing checked; it stands where a machine has no GPU.
"""

from __future__ import annotations

import pytest

from tests.corpus.case import Case, check
from tests.corpus.everything import FAMILIES, over, sample
from tests.corpus.threads import lower_for_gpu, run_threads
from tilewright.ops.function import find_kernel
from tilewright.schedule.check_ordering import check_ordering
from tilewright.targets.nvidia.ptx import to_ptx

# Pointers that a program reads from memory lead nowhere in the simulator.
NOT_SIMULATED = ("loaded-pointers",)
_SIMULATED = [case for case in sample(3) if case.name not in NOT_SIMULATED]
_FAMILIES = ("reductions", "shapes", "matmul", "indexing", "atomics", "blocks")
_MOVING = [case for name in _FAMILIES for case in FAMILIES[name] if not case.is_slow]


@over(_SIMULATED)
def test_the_simulated_kernel_agrees_with_numpy(case: Case) -> None:
    check(case, run_threads(case), case.expected(), "simulated threads against NumPy")


@pytest.mark.parametrize("num_warps", [1, 8])
@over(_MOVING[::6])
def test_any_number_of_warps_agrees_with_numpy(case: Case, num_warps: int) -> None:
    got = run_threads(case, num_warps=num_warps)
    check(case, got, case.expected(), f"{num_warps} warps against NumPy")


@over(sample(2))
def test_every_kernel_compiles_to_ptx(case: Case) -> None:
    threads = lower_for_gpu(case)
    check_ordering(find_kernel(threads.scheduled.module))
    ptx = to_ptx(threads.text, threads.request.machine)
    assert f".entry {threads.request.name}" in ptx
    assert "call" not in ptx.replace("vprintf", "")
