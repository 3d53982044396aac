"""The machine code of loops that decide how fast a kernel is: how much, and of what kinds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ptxas.machine_code import BRANCH, COPY, ELECT, PRODUCT, WARPSYNC, machine_code
from tests.unit.targets.nvidia import descriptor_kernels as cases
from tests.unit.targets.nvidia.attention_cases import ARGUMENTS, KERNELS, Attention
from tests.unit.targets.nvidia.descriptor_launching import MACHINE, lowered
from tilewright.targets.nvidia.assembler import assemble_ptx
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas


def step(kernel: object, arguments: list[object], **options: object) -> list[int]:
    """The kinds of instructions in the smallest loop of a kernel that has a product."""
    ptx = to_ptx(lowered(kernel, arguments, options).text, MACHINE)
    result = assemble_ptx(ptx, "sm_90a")
    assert not result.resources.has_spills and result.remarks() == ()
    code = machine_code(result.cubin, kernel.__name__)
    assert all(PRODUCT in loop for loop in code.loops() if COPY in loop)
    return code.loop_with(PRODUCT)


@pytest.mark.parametrize("is_persistent", [False, True])
def test_a_step_of_a_product_of_descriptors_is_short(is_persistent: bool) -> None:
    a, b, _, k, *blocks = cases.operands(512, 512, 512, "bfloat16", (128, 256, 64))
    c = cases.described(np.zeros((512, 512), a.base.dtype), (128, 256))
    sizes = [512, 512, k] if is_persistent else [k]
    kernel = cases.matmul_persistent if is_persistent else cases.matmul
    kinds = step(kernel, [a, b, c, *sizes, *blocks], num_warps=8, num_stages=1)
    # 127 before warps were uniform, threads elected and mbarriers shared.
    assert len(kinds) <= 88
    assert kinds.count(PRODUCT) == 4 and kinds.count(COPY) == 5
    # One elected part behind one branch; the others are for the wait and for the loop.
    assert kinds.count(ELECT) == 1 and kinds.count(BRANCH) <= 3 and WARPSYNC not in kinds


@pytest.mark.parametrize("way", ["host", "pointers"])
def test_a_step_of_attention_is_short(way: str) -> None:
    case = Attention(way, "bfloat16", False, depth=128, rows=128, columns=128, num_warps=8, n=256)
    arguments = ARGUMENTS["forward"](case)
    kinds = step(KERNELS["forward"], arguments, num_warps=8, num_consumer_groups=0)
    # 610 and 605 before.
    assert len(kinds) <= 588
    assert kinds.count(PRODUCT) == 16 and WARPSYNC not in kinds
