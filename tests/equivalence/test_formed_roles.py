"""A program of roles computes what the program does that it was made of, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from tests.corpus.case import Array, check
from tests.corpus.forming import formed, run_formed, run_tiles
from tests.corpus.partitioned import (
    AB,
    ATTENTIONS,
    GEMMS,
    PARTITIONED,
    Partitioned,
    gemm,
    gemm_case,
)
from tilewright.ops.channels import GetOp, PutOp
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import RolesOp


def over(cases: list[Partitioned]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def require_same(case: Partitioned, found: dict[str, Array], what: str) -> None:
    before = run_tiles(case.case)
    check(case.case, before, case.case.expected(), "T0 against NumPy")
    for name, array in before.items():
        np.testing.assert_array_equal(found[name], array, f"{what}: {name}")


@over(PARTITIONED)
@pytest.mark.parametrize("slots", [1, 3])
def test_one_role_of_products_computes_the_same(case: Partitioned, slots: int) -> None:
    require_same(case, run_formed(case.case, case.text(1, slots=slots)), "load | math")


@over(PARTITIONED)
def test_replicas_that_share_rows_compute_the_same(case: Partitioned) -> None:
    require_same(case, run_formed(case.case, case.text(2)), "math x2 split m")


@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_that_share_columns_compute_the_same(replicas: int) -> None:
    case = Partitioned(gemm_case(gemm, 200, 300, 192, "gemm-columns", N=256), AB)
    require_same(case, run_formed(case.case, case.text(replicas, "n")), "split n")


def test_columns_that_are_no_whole_panels_are_not_shared() -> None:
    _, remarks = formed(GEMMS[0].case, GEMMS[0].text(2, "n"))
    assert "a part of a slot is no view of it: rows of 64 bytes are not whole panels" in remarks[0]


@over(ATTENTIONS[:1])
def test_columns_of_scores_are_not_shared(case: Partitioned) -> None:
    """The maximum of a row needs all of its columns."""
    module, remarks = formed(case.case, case.text(2, "n"))
    assert "partitioned.py" in remarks[0]
    assert not any(isinstance(op, RolesOp) for op in module.walk())


@over(PARTITIONED)
def test_each_end_of_a_channel_stands_in_its_role(case: Partitioned) -> None:
    module, _ = formed(case.case, case.text(2))
    *_, roles, _ = find_kernel(module).body.block.ops
    assert isinstance(roles, RolesOp)
    load, math = roles.bodies
    puts = [op.channel for op in load.walk() if isinstance(op, PutOp)]
    gets = [op.channel for op in math.walk() if isinstance(op, GetOp)]
    assert puts == gets and puts
    assert not any(isinstance(op, GetOp) for op in load.walk())
