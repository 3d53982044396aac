"""A kernel of the corpus as the body of a role agrees with NumPy.

What is emitted may ask for nothing but its scope's warps, barrier and shared memory: warps behind
the first run it here, beside warps that are not there to wait.
"""

from __future__ import annotations

import pytest

from tests.corpus.case import Case, check
from tests.corpus.everything import FAMILIES, over
from tests.corpus.roles import run_in_role

_FAMILIES = ("reductions", "shapes", "matmul", "indexing", "atomics", "blocks", "memory")
_MOVING = [
    case
    for name in _FAMILIES
    for case in FAMILIES[name]
    if not case.is_slow and case.name != "loaded-pointers"
]
# Run twice, they leave something else.
_ATOMIC = {case.name for case in FAMILIES["atomics"]} | {"descriptor-adds"}
_TWICE = [case for case in _MOVING if case.name not in _ATOMIC]


@over(_MOVING[::7])
def test_a_body_runs_in_warps_behind_others(case: Case) -> None:
    check(case, run_in_role(case, 4), case.expected(), "a role against NumPy")


@over(_MOVING[2::17])
def test_the_first_warp_need_not_be_a_multiple(case: Case) -> None:
    check(case, run_in_role(case, 1), case.expected(), "a role against NumPy")


@over(_TWICE[3::15])
@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_keep_out_of_each_others_way(case: Case, replicas: int) -> None:
    check(case, run_in_role(case, 4, replicas), case.expected(), "replicas against NumPy")
