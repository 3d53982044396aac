"""Small kernels as machine code: which instructions, how many, how many registers, no spills."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.everything import sample
from tests.corpus.threads import lower_for_gpu
from tests.ptxas.kernels import F16, F32, LAUNCHES, compiled, launch_ptx, ptx_of, request_of
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.assembler import assemble_ptx
from tilewright.targets.nvidia.fit import assemble_for_occupancy
from tilewright.targets.nvidia.host import named_machine
from tilewright.targets.nvidia.ptx import to_ptx

pytestmark = pytest.mark.ptxas

I8 = np.zeros(256, np.int8)


def count(ptx: str, instruction: str) -> int:
    """How often an instruction, or one that begins so, stands in PTX."""
    return len(re.findall(rf"(?<![\w.]){re.escape(instruction)}(?!\w)", ptx))


@pytest.mark.parametrize("name", LAUNCHES)
def test_benchmark_kernels_assemble_without_spills_or_serialized_products(name: str) -> None:
    assembled = compiled(name)
    assert not assembled.resources.has_spills and assembled.resources.stack_bytes == 0
    assert assembled.remarks() == ()


# What lets as many warps run as the kernel is meant for: 64 on an SM, 16 of layer norm, …
MOST_REGISTERS = {
    "add": 32,
    "softmax": 32,
    "layer_norm": 64,
    "layer_norm_backward": 128,
    "matmul": 168,
    "attention": 168,
    "attention_causal": 128,
    # At the start of its 384 threads, which share them out by role.
    "attention_unasked": 168,
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_registers_let_the_warps_run_that_the_kernel_is_meant_for(name: str) -> None:
    # As production assembles: again below a boundary of the register file where one is near.
    fitted = assemble_for_occupancy(launch_ptx(name), named_machine("sm_90a"), CompileOptions())
    assert not fitted.resources.has_spills
    assert fitted.resources.registers <= MOST_REGISTERS[name]


@pytest.mark.parametrize(
    ("name", "loads", "stores"), [("add", 4, 2), ("softmax", 4, 4), ("layer_norm", 12, 4)]
)
def test_rows_are_moved_16_bytes_a_lane(name: str, loads: int, stores: int) -> None:
    ptx = launch_ptx(name)
    assert count(ptx, "ld.global.v4.b32") == loads == count(ptx, "ld.global")
    assert count(ptx, "st.global.v4.b32") == stores


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_a_reduction_of_a_row_takes_one_barrier_and_five_shuffles(name: str) -> None:
    ptx = launch_ptx(name)
    assert count(ptx, "bar.sync") == 2
    assert count(ptx, "shfl.sync.bfly.b32") == 10


def test_a_step_of_a_matrix_product_is_eight_wgmma_under_one_wait() -> None:
    ptx = launch_ptx("matmul")
    assert count(ptx, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16") == 8
    assert count(ptx, "wgmma.commit_group.sync.aligned") == 1
    assert count(ptx, "wgmma.wait_group.sync.aligned") == 1
    assert count(ptx, "fence.proxy.async.shared") == 1
    assert count(ptx, "bar.sync") == 3  # the last one turns the result to whole rows


def test_operands_of_a_matrix_product_are_copied_16_bytes_a_lane_past_the_registers() -> None:
    ptx = launch_ptx("matmul")
    copies = re.findall(r"cp\.async\.cg\.shared\.global \[.*?\], \[.*?\], (\d+)", ptx)
    assert copies == ["16"] * 16
    until_the_last = ptx[: ptx.rindex("wgmma.wait_group")]
    assert count(ptx, "ld.global") == 0 == count(until_the_last, "st.shared")
    # Rows of the result leave 16 bytes a lane.
    assert count(ptx, "st.global.v4.b32") == 16 == count(ptx, "st.global")


def test_attention_keeps_its_weights_in_registers() -> None:
    ptx = launch_ptx("attention")
    # 4 steps of 16 over 64 keys for the values, 8 over 128 dims for the scores.
    assert count(ptx, "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16") == 8
    assert count(ptx, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16") == 4
    assert count(ptx, "st.shared") == 0
    assert count(ptx, "bar.sync") <= 5  # one of them for the rows of the result


@tilewright.jit
def square(a, b, c, SIZE: tl.constexpr):
    """c = a @ b of one tile."""
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    acc = tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(c + at, acc.to(c.dtype.element_ty))


@tilewright.jit
def turned(a, c, SIZE: tl.constexpr):
    """The transpose of a tile of halves."""
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(c + i * SIZE + j, tl.trans(tl.load(a + i * SIZE + j)))


def test_small_products_load_fragments_with_ldmatrix() -> None:
    ptx = ptx_of(request_of(square, (F16, F16, F16), {"SIZE": 32}))
    assert count(ptx, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") > 0
    assert count(ptx, "ldmatrix.sync.aligned.m8n8.x4.shared.b16") > 0
    assert count(ptx, "wgmma.mma_async") == 0
    assert not assemble_ptx(ptx, "sm_90a").resources.has_spills


@pytest.mark.parametrize(
    ("array", "instruction"),
    [
        (F32, "wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32"),
        (I8, "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8"),
    ],
)
def test_other_dtypes_have_their_matrix_instructions(array: np.ndarray, instruction: str) -> None:
    out = F32 if array is F32 else np.zeros(256, np.int32)
    ptx = ptx_of(request_of(square, (array, array, out), {"SIZE": 64}))
    assert count(ptx, instruction) > 0
    assert assemble_ptx(ptx, "sm_90a").remarks() == ()


def test_a_transpose_goes_through_shared_memory_once() -> None:
    ptx = ptx_of(request_of(turned, (F16, F16), {"SIZE": 64}))
    assert count(ptx, "bar.sync") == 1
    assert count(ptx, "ld.global.v4.b32") == count(ptx, "st.global.v4.b32") == 4


CORPUS = [case for case in sample(8) if not case.name.startswith("large-")][::8]


@pytest.mark.parametrize("case", CORPUS, ids=[case.name for case in CORPUS])
def test_kernels_of_the_corpus_assemble(case) -> None:
    threads = lower_for_gpu(case)
    assembled = assemble_ptx(to_ptx(threads.text, threads.request.machine), "sm_90a")
    assert assembled.cubin[:4] == b"\x7fELF"
