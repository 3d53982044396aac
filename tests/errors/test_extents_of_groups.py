"""Tiles of three times a power of two: shared by groups of warps, and refused elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.partitioned import gemm, gemm_case
from tests.corpus.threads import lower_for_gpu
from tests.errors.test_refused_plans import positionless
from tests.plugins.goldens import Golden
from tilewright.support.errors import NotPowerOfTwo


@tilewright.jit
def add_one(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1)


def test_a_program_without_groups_has_no_such_tile(golden: Golden) -> None:
    x = np.zeros(192, np.float32)
    for groups in (0, 1, 2):
        with pytest.raises(NotPowerOfTwo) as caught:
            add_one.simulate[(1,)](x, BLOCK=192, num_consumer_groups=groups)
    golden("golden/tile_of_192_without_groups", positionless(caught.value, add_one))


def test_tiles_that_the_groups_do_not_share_are_refused(golden: Golden) -> None:
    with pytest.raises(NotPowerOfTwo) as caught:
        add_one.simulate[(1,)](np.zeros(192, np.float32), BLOCK=192, num_consumer_groups=3)
    golden("golden/tile_of_192_without_products", positionless(caught.value, add_one))


def test_a_cpu_has_no_groups() -> None:
    with pytest.raises(NotPowerOfTwo, match="192 of `end`"):
        add_one[(1,)](np.zeros(192, np.float32), BLOCK=192, num_consumer_groups=3)


@pytest.mark.parametrize("rows", [24, 96, 320, 576, 80])
def test_only_three_times_a_power_of_two_is_shared(rows: int) -> None:
    """96 rows are 32 for each group, fewer than a product of a warp group has."""
    case = gemm_case(gemm, 200, 64, 64, f"gemm-{rows}", M=rows)
    with pytest.raises(NotPowerOfTwo):
        lower_for_gpu(case, None, num_consumer_groups=3)


def test_columns_are_not_shared() -> None:
    case = gemm_case(gemm, 128, 192, 64, "gemm-columns", M=192, N=192)
    with pytest.raises(NotPowerOfTwo):
        lower_for_gpu(case, None, num_consumer_groups=3)
