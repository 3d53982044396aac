"""Roles of which some warps run only when no other can: nobody waits for them, so they fall behind.

Hardware may do that to any warp. A warp that neither fills nor reads a slot, and waits for it all
the same, is two fills behind before long, and takes the parity of one phase for another.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.corpus.case import arrays_of, check
from tests.corpus.partitioned import PARTITIONED, RINGS, Partitioned, attention_case
from tilewright.codegen.simt import allotment
from tilewright.interp.simt.runner import Runner

CASES = [each for each in PARTITIONED if "no-step" not in each.name]
LONG = Partitioned(attention_case(200, False, keys=32), RINGS)


def starve(monkeypatch: pytest.MonkeyPatch, warps: range) -> None:
    """Let these warps run only when no other warp of the program can."""
    pick = Runner._pick
    threads = slice(32 * warps.start, 32 * warps.stop)

    def starving(runner: Runner) -> tuple[int, np.ndarray | None] | None:
        if runner.is_kernel:
            parked = runner.machine.synchronization.parked
            before = parked[threads].copy()
            parked[threads] = True
            found = pick(runner)
            parked[threads] = before
            if found is not None:
                return found
        return pick(runner)

    monkeypatch.setattr(Runner, "_pick", starving)


def run(case: Partitioned) -> None:
    """Simulate a case in roles with two groups, and compare it with NumPy."""
    values = case.case.values()
    options = {**case.case.options, "schedule": case.text(2)}
    case.case.kernel.simulate[case.case.grid](**values, **options)
    check(case.case, arrays_of(values), case.case.expected(), "starved")


@pytest.mark.parametrize("warps", [range(4), range(1, 4), range(4, 8), range(8, 12)])
@pytest.mark.parametrize("case", [*CASES, LONG], ids=lambda case: case.name)
def test_no_warp_that_falls_behind_loses_its_place(
    monkeypatch: pytest.MonkeyPatch, case: Partitioned, warps: range
) -> None:
    starve(monkeypatch, warps)
    run(case)


@pytest.mark.parametrize("warps", [range(1, 4), range(3, 4)])
@pytest.mark.parametrize("case", [CASES[0], CASES[2], LONG], ids=lambda case: case.name)
def test_so_it_is_where_a_role_that_loads_is_no_single_thread(
    monkeypatch: pytest.MonkeyPatch, case: Partitioned, warps: range
) -> None:
    monkeypatch.setattr(allotment, "runs_in_one_thread", lambda body: False)
    starve(monkeypatch, warps)
    run(case)


def test_an_assumption_leaves_a_role_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []
    ask = allotment.runs_in_one_thread
    monkeypatch.setattr(
        allotment, "runs_in_one_thread", lambda body: found.append(ask(body)) or found[-1]
    )
    run(LONG)  # its author assumes that the length is not negative
    assert found[0]
    assert not found[1]
