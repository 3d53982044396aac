"""Attention backward in roles as machine code: no spills, and its products run on."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from benchmarks import gpu_peers
from tests.ptxas.machine_code import PRODUCT, TO_UNIFORM, machine_code
from tests.unit.targets.nvidia.attention_cases import KERNELS, Attention, backward_arguments
from tests.unit.targets.nvidia.descriptor_launching import MACHINE, lowered
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.targets.nvidia.assembler import assemble_ptx
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas
ROLES = {"num_consumer_groups": 2, "reg_inc_consumer": 240, "reg_dec_producer": 24}
LENGTH, KEYS = 256, 128


@pytest.mark.parametrize(
    ("depth", "queries", "is_causal"),
    [*((*case, causal) for case in ((64, 128), (128, 64)) for causal in (0, 1)), (128, 80, False)],
)
def test_gradients_assemble_for_roles(depth: int, queries: int, is_causal: bool) -> None:
    padded = -(-LENGTH // queries) * queries
    numbers = [TensorDescriptor.from_tensor(np.zeros(padded, np.float32), [queries])] * 2
    halves = np.zeros((LENGTH, depth), ml_dtypes.bfloat16)
    keys = TensorDescriptor.from_tensor(halves, [KEYS, depth])
    rows = TensorDescriptor.from_tensor(halves[None], [1, queries, depth])
    acc = TensorDescriptor.from_tensor(
        np.zeros((1, LENGTH, depth), np.float32), [1, queries, depth]
    )
    numbers_of = (LENGTH, padded, 0.125, 0.18)
    arguments = [rows, keys, keys, rows, *numbers, acc, keys, keys, *numbers_of]
    sizes = {"CAUSAL": is_causal, "HEAD_DIM": depth, "BLOCK_M": queries, "BLOCK_N": KEYS}
    kernel = gpu_peers.ours().attention_gradients
    ptx = to_ptx(lowered(kernel, arguments, {**sizes, **ROLES}).text, MACHINE)
    assert "stmatrix.sync.aligned.m8n8.x4" in ptx and "cp.reduce.async.bulk.tensor" in ptx
    result = assemble_ptx(ptx, "sm_90a")
    assert not result.resources.has_spills and result.remarks() == ()


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_pointers_run_as_roles_unasked(is_causal: bool) -> None:
    case = Attention("pointers", "float16", is_causal, 128, 128, 32, 4, n=LENGTH)
    arguments = backward_arguments(case)
    program = lowered(KERNELS["backward"], arguments, case.options())
    ptx = to_ptx(program.text, MACHINE)
    assert "setmaxnreg.inc.sync.aligned.u32" in ptx
    result = assemble_ptx(ptx, "sm_90a")
    assert not result.resources.has_spills and result.remarks() == ()


@pytest.mark.parametrize("is_causal", [False, True])
def test_every_loop_has_its_descriptors_in_uniform_registers(is_causal: bool) -> None:
    case = Attention("pointers", "float16", is_causal, 64, 128, 32, 4, n=LENGTH)
    arguments = backward_arguments(case)
    ptx = to_ptx(lowered(KERNELS["backward"], arguments, case.options()).text, MACHINE)
    assert "setmaxnreg" not in ptx
    code = machine_code(assemble_ptx(ptx, "sm_90a").cubin, entry_of(ptx))
    loops = [loop for loop in code.loops() if 8 <= loop.count(PRODUCT) <= 24]
    assert len(loops) >= (4 if is_causal else 2)
    assert all(loop.count(TO_UNIFORM) <= 4 for loop in loops)


def entry_of(ptx: str) -> str:
    """The name of the kernel."""
    return ptx.split(".visible .entry ")[1].split("(")[0]
