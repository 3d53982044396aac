"""Annotated decisions that cannot be carried out: why, in the kernel's line, and what would do."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case
from tests.errors.wrong import relative
from tests.passes.laid_out import named
from tests.plugins.goldens import Golden
from tests.unit.targets.nvidia.test_product_plans import lower_for_gpu, planning, product
from tests.unit.targets.nvidia.test_products import product_kernel
from tilewright.ir.annotations import annotate
from tilewright.ir.plans import AccessAttr, AccessPlan
from tilewright.jit import JITFunction
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


def positionless(error: PlanRefused, kernel: JITFunction) -> str:
    """What a user sees, with lines counted from the kernel's decorator."""
    lines, first = inspect.getsourcelines(kernel.fn)
    file = Path(kernel.fn.__code__.co_filename)
    return relative(str(error), file, range(first, first + len(lines)))


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_message_of_a_refused_product(name: str, golden: Golden) -> None:
    case = product(np.float16, (64, 64, 32), "nn")
    with pytest.raises(PlanRefused) as caught:
        lower_for_gpu(case, planning(PRODUCTS[name]))
    golden(f"golden/{name}", positionless(caught.value, product_kernel))


ACCESSES = {
    "plan_of_a_vector_that_is_not_known_to_be_aligned": AccessPlan(4, (1, 0)),
    "plan_of_a_vector_along_the_wrong_dim": AccessPlan(2, (0, 1)),
    "plan_of_a_vector_of_three": AccessPlan(3, (1, 0)),
    "plan_of_an_order_of_three_dims": AccessPlan(1, (2, 1, 0)),
}


@tilewright.jit
def scale(x, stride, B: tl.constexpr):
    """x *= 2, where nothing is known of the rows."""
    i = tl.arange(0, B)
    at = x + i[:, None] * stride + i[None, :]
    tl.store(at, 2.0)


@pytest.mark.parametrize("name", ACCESSES)
def test_the_message_of_a_refused_access(name: str, golden: Golden) -> None:
    def write(module: ModuleOp) -> None:
        for op in named(module, "tt.store"):
            annotate(op, AccessAttr(ACCESSES[name]))

    def inputs(_: np.random.Generator) -> dict[str, object]:
        return {"x": np.zeros(1 << 12, np.float32), "stride": 49, "B": 32}

    case = Case("scale", scale, (1,), inputs, lambda values: None)
    with pytest.raises(PlanRefused) as caught:
        lower_for_gpu(case, write)
    golden(f"golden/{name}", positionless(caught.value, scale))
