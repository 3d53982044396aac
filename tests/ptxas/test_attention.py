"""Every form of attention assembles for Hopper, on the matrix units."""

from __future__ import annotations

import pytest

from tests.unit.targets.nvidia.attention_cases import ARGUMENTS, KERNELS, LISTED, Attention
from tests.unit.targets.nvidia.descriptor_launching import MACHINE, lowered
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
