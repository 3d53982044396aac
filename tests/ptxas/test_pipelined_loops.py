"""Pipelined loops as machine code: products in flight, no spills, no product that waits alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ptxas.kernels import ptx_of, request_of
from tests.unit.targets.nvidia import pipelined_kernels as kernels
from tests.unit.targets.nvidia.pipelined_kernels import halves
from tilewright import JITFunction
from tilewright.targets.nvidia.assembler import assemble_ptx

pytestmark = pytest.mark.ptxas

FLOATS = np.zeros((128, 256), np.float32)
MATMUL = (halves(1, 128, 256), halves(2, 256, 256), FLOATS, 4096, 4096, 4096)
ATTENTION = (*(halves(seed, 256, 64) for seed in (1, 2, 3)), np.zeros((256, 64), np.float32), 4096)
LARGE = {"BM": 128, "BN": 256, "BK": 64, "num_warps": 8, "num_consumer_groups": 0}
SMALL = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 4, "num_consumer_groups": 0}
HEAD = {"S": 64, "D": 64, "num_warps": 4}

CASES: dict[str, tuple[JITFunction, tuple[object, ...], dict[str, object]]] = {
    "matmul, 4 slots": (kernels.matmul, MATMUL, {**LARGE, "num_stages": 4}),
    "matmul, 2 slots": (kernels.matmul, MATMUL, {**SMALL, "num_stages": 2}),
    "descriptors, 4 slots": (kernels.described_matmul, MATMUL, {**LARGE, "num_stages": 4}),
    "descriptors, 2 slots": (kernels.described_matmul, MATMUL, {**SMALL, "num_stages": 2}),
    "attention": (kernels.attention, ATTENTION, {**HEAD, "CAUSAL": True, "num_stages": 2}),
    "attention through descriptors": (
        kernels.described_attention,
        ATTENTION,
        {**HEAD, "num_stages": 2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pipelined_loop_assembles_without_spills_or_serialized_products(name: str) -> None:
    kernel, args, meta = CASES[name]
    ptx = ptx_of(request_of(kernel, args, meta))
    result = assemble_ptx(ptx, "sm_90a")
    assert not result.resources.has_spills and result.resources.stack_bytes == 0
    assert result.remarks() == ()
    runs_on = "wgmma.wait_group.sync.aligned 1" in ptx
    assert runs_on == name.endswith("4 slots")
