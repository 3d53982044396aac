"""Matrix products on a GPU in the shapes at the edges of its instructions, beside NumPy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.gpu.test_fuzz import run_on_gpu
from tests.unit.targets.nvidia.test_products import NARROW, UNEVEN, any_extent, product

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]
__all__ = ["any_extent"]


def check(dtype: type[np.generic], shape: tuple[int, int, int], orders: str, warps: int) -> None:
    """Compare a product with NumPy."""
    case = product(dtype, shape, orders, options={"num_warps": warps})
    got, expected = run_on_gpu(case)["c_ptr"], case.expected()["c_ptr"]
    np.testing.assert_allclose(got, expected, case.tolerance.rtol, case.tolerance.atol)


@pytest.mark.parametrize("shape", [*NARROW, (64, 64, 64), (128, 256, 32)])
@pytest.mark.parametrize("orders", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_operands_lie_in_either_order(
    dtype: type[np.generic], orders: str, shape: tuple[int, int, int]
) -> None:
    for warps in (4, 8):
        check(dtype, shape, orders, warps)


@pytest.mark.usefixtures("any_extent")
@pytest.mark.parametrize(("shape", "num_warps", "instruction"), UNEVEN)
def test_uneven_products_are_right(
    shape: tuple[int, int, int], num_warps: int, instruction: str
) -> None:
    assert instruction in ("wgmma", "mma", "fma")
    for orders in ("nn", "tt"):
        check(np.float16, shape, orders, num_warps)
