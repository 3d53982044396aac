"""What ptxas finds slow in a kernel, in words."""

from __future__ import annotations

import json

import pytest

from tilewright.runtime.artifact import RESOURCES_SECTION
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.partition.other_forms import problem_of

WAIT = "ptxas: wgmma.mma_async instructions are serialized (C7511)"


def sections(spilled: int, *remarks: str) -> dict[str, bytes]:
    counts = {"spill_store_bytes": spilled, "spill_load_bytes": 0, "remarks": remarks}
    return {RESOURCES_SECTION: json.dumps(counts).encode()}


@pytest.mark.parametrize(
    ("spilled", "remarks", "problem"),
    [
        (0, (), ""),
        (32, ("a fence was added (C7519)",), ""),
        (48, (), "48 bytes of registers a thread go through memory"),
        (0, (WAIT,), "ptxas serializes its products (C7511)"),
        (
            64,
            (WAIT, WAIT),
            "ptxas serializes its products (C7511) and 64 bytes of registers a thread go through "
            "memory",
        ),
    ],
)
def test_a_problem_is_what_costs_speed(spilled: int, remarks: tuple[str, ...], problem: str):
    assert problem_of(sections(spilled, *remarks)) == problem


def test_what_nobody_assembled_has_none() -> None:
    assert problem_of({}) == ""


def test_a_kernel_without_roles_has_the_warps_of_its_groups() -> None:
    plain = CompileOptions().replaced({"num_consumer_groups": 3, "num_warps": 4}).without_roles()
    assert plain.num_consumer_groups == 0 and plain.num_warps >= 8
    assert plain.bulk_access == "auto"
