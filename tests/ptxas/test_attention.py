"""Every form of attention assembles for Hopper, on the matrix units."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.ptxas.kernels import benchmark_kernels, ptx_of, request_of
from tests.unit.targets.nvidia.attention_cases import ARGUMENTS, KERNELS, LISTED, Attention
from tests.unit.targets.nvidia.descriptor_launching import MACHINE, lowered
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.targets.nvidia.assembler import assemble_ptx
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas
# Accumulated elements of a thread that leave no registers for the rest; people launch these, too.
_MAY_SPILL_FROM = 128


@pytest.mark.parametrize(("name", "case"), LISTED, ids=str)
def test_attention_assembles(name: str, case: Attention) -> None:
    program = lowered(KERNELS[name], ARGUMENTS[name](case), case.options())
    ptx = to_ptx(program.text, MACHINE)
    assert "wgmma.mma_async" in ptx
    result = assemble_ptx(ptx, "sm_90a")
    elements = case.rows * case.depth * (2 if name == "backward" else 1)
    if elements < _MAY_SPILL_FROM * 32 * case.num_warps:
        assert not result.resources.has_spills and result.remarks() == ()


@pytest.mark.parametrize("is_causal", [False, True])
def test_roles_of_small_heads_leave_registers_for_a_second_program(is_causal: bool) -> None:
    x = np.zeros((1024, 64), ml_dtypes.bfloat16)
    tiles = [TensorDescriptor.from_tensor(x, [rows, 64]) for rows in (128, 64, 64, 128)]
    options = {"CAUSAL": is_causal, "HEAD_DIM": 64, "BLOCK_M": 128, "BLOCK_N": 64}
    request = request_of(benchmark_kernels().attention_tiles, (*tiles, 512, 0.1), options)
    result = assemble_ptx(ptx_of(request), "sm_90a")
    assert result.resources.registers == 80 and not result.resources.has_spills
    assert result.remarks() == ()
