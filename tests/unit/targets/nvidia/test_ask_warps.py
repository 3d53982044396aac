"""Gradients at a head of 64 run with two groups of warps, with the bits that one group has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.targets.nvidia.attention_cases import KERNELS, Attention, backward_arguments
from tests.unit.targets.nvidia.test_bulk_access import scheduled

CASE = Attention("pointers", "float16", False, 64, 128, 32, 4)
REMARK = "8 warps, as these products are faster so; num_consumer_groups=0 keeps 4"
RESULTS = (4, 5, 6)


def warps_and_remarks(case: Attention, **options: object) -> tuple[int, str]:
    """The warps of a launch, and what was said of them."""
    arguments = backward_arguments(case)
    chosen = {**case.options(), **options}
    found, _ = scheduled(KERNELS["backward"], tuple(arguments), **chosen)
    return int(str(found.metadata["num_warps"])), "\n".join(found.remarks)


def test_four_warps_that_are_asked_for_become_eight() -> None:
    warps, remarks = warps_and_remarks(CASE)
    assert warps == 8 and REMARK in remarks


@pytest.mark.parametrize(
    "options", [{"num_consumer_groups": 0}, {"plan": "load#1 copy registers"}, {"maxnreg": 255}]
)
def test_who_says_how_it_runs_keeps_the_warps(options: dict[str, object]) -> None:
    warps, remarks = warps_and_remarks(CASE, **options)
    assert warps == 4 and REMARK not in remarks


def test_roles_have_warps_of_their_own() -> None:
    warps, remarks = warps_and_remarks(CASE, num_consumer_groups=2)
    assert warps == 12 and REMARK not in remarks


def test_the_bits_are_those_of_four_warps() -> None:
    found: list[list[Any]] = []
    for options in ({}, {"num_consumer_groups": 0}):
        arguments = backward_arguments(CASE)
        KERNELS["backward"].simulate[CASE.grid](*arguments, **CASE.options(), **options)
        found.append(arguments)
    for index in RESULTS:
        assert np.any(found[0][index])
        np.testing.assert_array_equal(found[0][index], found[1][index])
