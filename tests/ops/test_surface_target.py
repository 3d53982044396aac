"""What kernels may ask about their target, and what only NVIDIA GPUs have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.harness import interpret
from tilewright.compiler.build import make_request
from tilewright.compiler.request import CompileRequest
from tilewright.frontend.lower import lower_kernel
from tilewright.ir.text import print_module
from tilewright.machine.cpus import MADE_UP_CPU
from tilewright.machine.gpus import GPUS
from tilewright.machine.model import MachineModel
from tilewright.support.errors import UnsupportedError
from tilewright.support.options import CompileOptions


@tilewright.jit
def asking(out):
    if tl.target_info.is_cuda():
        tl.store(out, tl.extra.cuda.smid() + tl.target_info.current_target().arch)
        tl.extra.cuda.gdc_wait()
    else:
        tl.static_assert(tl.target_info.current_target().warp_size == 1)
        tl.store(out, 7)
    if tl.target_info.cuda_capability_geq(9):
        tl.store(out, tl.extra.cuda.num_threads())
    tl.static_assert(not tl.target_info.is_hip())


@tilewright.jit
def timed(out):
    start = tl.extra.cuda.globaltimer()
    tl.store(out, tl.extra.cuda.globaltimer() - start)


@tilewright.jit
def misplaced(out):
    tl.store(out, tl.extra.cuda.smid())


def request_for(kernel: tilewright.JITFunction, out: np.ndarray) -> CompileRequest:
    """The request that a launch of the kernel with `out` makes."""
    call = kernel.specialize_call((out,), {})
    return make_request(call.source, call.specialization, CompileOptions())


def text_for(target: str, machine: MachineModel) -> str:
    """The T0 of `asking` for a target."""
    request = request_for(asking, np.zeros(1, np.int32))
    request = replace(request, target=target, machine=machine, options={"num_warps": 8})
    return print_module(lower_kernel(request))


def test_branches_on_the_target_are_decided_at_compile_time() -> None:
    hopper, ampere = (text_for("nvidia", GPUS[name]) for name in ("sm_90a", "sm_80"))
    assert "%smid" in hopper and "griddepcontrol.wait" in hopper and "256" in hopper
    assert "%smid" in ampere and "griddepcontrol" not in ampere and "256" not in ampere
    assert "inline_asm" not in text_for("cpu", MADE_UP_CPU)


def test_the_other_branch_runs_without_a_gpu() -> None:
    compiled, interpreted = (np.zeros(1, np.int32) for _ in range(2))
    asking[(1,)](compiled)
    interpret(asking, (1,), interpreted)
    assert compiled[0] == interpreted[0] == 7


def test_a_clock_does_not_go_back() -> None:
    compiled, interpreted = np.full(1, -1, np.int64), np.full(1, -1, np.int64)
    timed[(1,)](compiled)
    interpret(timed, (1,), interpreted)
    assert compiled[0] >= 0
    assert interpreted[0] == 1_000_000


def test_what_only_gpus_have_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"smid\(\)") as caught:
        misplaced.warmup(np.zeros(1, np.int32))
    assert caught.value.span is not None and "is_cuda" in caught.value.hint


def test_types_have_names_in_signatures() -> None:
    assert tl.str_to_ty("*kfp32") == tl.pointer_type(tl.float32, const=True)
    assert tl.str_to_ty("u1") == tl.int1
    assert tl.str_to_ty("constexpr", 3) == tl.constexpr_type(3)
    described = tl.tensor_descriptor_type(tl.block_type(tl.float16, [64, 32]))
    assert tl.str_to_ty("tensordesc<fp16[64,32]>") == described
    pair = tl.tuple_type([tl.int32, tl.float32], ["a", "b"])
    assert pair == tl.tuple_type((tl.int32, tl.float32), ("a", "b")) != tl.tuple_type([tl.int32])
    with pytest.raises(ValueError, match="i33"):
        tl.str_to_ty("i33")
