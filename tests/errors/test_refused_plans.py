"""Annotated decisions that cannot be carried out: why, in the kernel's line, and what would do."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from tests.errors.wrong import relative
from tests.plugins.goldens import Golden
from tests.unit.nvidia.test_product_plans import annotate, lower_for_gpu, product
from tests.unit.nvidia.test_products import product_kernel
from tilewright.support.errors import PlanRefused

PRODUCTS = {
    "plan_of_an_unknown_instruction": "wmma 64x64x16, warps 4x1, a shared, b shared",
    "plan_with_too_few_warps": "wgmma 64x64x16, warps 2x1, a shared, b shared",
    "plan_without_whole_warp_groups": "wgmma 64x64x16, warps 2x2, a shared, b shared",
    "plan_with_b_in_registers": "wgmma 64x64x16, warps 4x1, a shared, b registers",
    "plan_with_rows_of_another_instruction": "wgmma 16x64x16, warps 4x1, a shared, b shared",
    "plan_with_another_depth": "wgmma 64x64x32, warps 4x1, a shared, b shared",
    "plan_with_columns_in_between": "wgmma 64x12x16, warps 4x1, a shared, b shared",
    "plan_with_columns_that_do_not_divide": "wgmma 64x48x16, warps 4x1, a shared, b shared",
    "plan_without_columns": "wgmma 64x0x16, warps 4x1, a shared, b shared",
    "plan_with_too_many_columns": "wgmma 64x512x16, warps 4x1, a shared, b shared",
    "plan_of_mma_in_shared_memory": "mma 16x8x16, warps 4x1, a shared, b registers",
    "plan_of_a_wide_mma": "mma 16x16x16, warps 4x1, a registers, b registers",
    "plan_of_fma_in_registers": "fma 1x1x1, warps 4x1, a registers, b shared",
    "plan_of_fma_across": "fma 1x1x1, warps 2x2, a shared, b shared",
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_message_of_a_refused_product(name: str, golden: Golden) -> None:
    case = product(np.float16, (64, 64, 32), "nn")
    with pytest.raises(PlanRefused) as caught:
        lower_for_gpu(case, annotate(PRODUCTS[name]))
    lines, first = inspect.getsourcelines(product_kernel.fn)
    file = Path(product_kernel.fn.__code__.co_filename)
    text = relative(str(caught.value), file, range(first, first + len(lines)))
    golden(f"golden/{name}", text)
