"""Shared memory of whole kernels for Hopper: their places, and how few barriers order them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tilewright.compiler.compile import to_schedule, to_tiles
from tilewright.compiler.request import CompileRequest
from tilewright.jit import JITFunction
from tilewright.machine.gpus import SM_90A
from tilewright.ops.control_flow import ForOp
from tilewright.ops.function import FuncOp
from tilewright.schedule.check_ordering import check_ordering
from tilewright.support.errors import SharedMemoryExceeded
from tilewright.support.options import option_names
from tilewright.targets.target import load_target

HALVES = np.zeros(1 << 16, np.float16)
FLOATS = np.zeros(1 << 16, np.float32)


def scheduled(kernel: JITFunction, arguments: Sequence[object], **options: object) -> FuncOp:
    """A kernel at T2 for Hopper, its barriers checked."""
    call = kernel.specialize_call(tuple(arguments), options)
    fields = {name: getattr(call.options, name) for name in option_names()}
    source = call.source
    request = CompileRequest(
        source.functions,
        source.kernel,
        call.specialization,
        fields,
        "nvidia",
        SM_90A,
    )
    target = load_target("nvidia")
    module = to_schedule(request, target, to_tiles(request, target, None), None).module
    (function,) = module.body.block.ops
    assert isinstance(function, FuncOp)
    check_ordering(function)
    return function


def count(top: Operation, name: str) -> int:
    """How many ops of one name stand inside of an op."""
    return sum(op.name == name for op in top.walk())


def loop_of(kernel: FuncOp) -> ForOp:
    """The one loop of a kernel."""
    (loop,) = [op for op in kernel.walk() if isinstance(op, ForOp)]
    return loop


@tilewright.jit
def matmul(a, b, c, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A block of a product."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    left = a + rm[:, None] * sa + rk[None, :]
    right = b + rk[:, None] * sb + rn[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * sb
    tl.store(c + rm[:, None] * sc + rn[None, :], total.to(tl.float16))


PRODUCT = (HALVES, HALVES, HALVES, 512, 512, 512, 512)


def test_an_iteration_of_a_product_has_one_fence_and_two_barriers() -> None:
    loop = loop_of(scheduled(matmul, PRODUCT, BM=128, BN=128, BK=64, num_stages=1))
    assert count(loop, "ttng.fence_async_shared") == 1
    assert count(loop, "ttg.barrier") == 2


def test_too_large_a_block_is_an_error_that_names_the_line_and_what_fits() -> None:
    with pytest.raises(SharedMemoryExceeded) as caught:
        scheduled(matmul, PRODUCT, BM=256, BN=256, BK=512, num_warps=8)
    assert "left), tl.load(right)" in str(caught.value)
    assert caught.value.hint == "blocks of a quarter of the size fit, such as 128 for 512"


@tilewright.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    """Rows of a softmax, two reductions each."""
    columns = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), n, tl.num_programs(0)):
        values = tl.load(x + row * BLOCK + columns)
        values = tl.exp(values - tl.max(values, 0))
        tl.store(y + row * BLOCK + columns, values / tl.sum(values, 0))


def test_reductions_that_follow_each_other_need_no_barrier_of_their_own() -> None:
    kernel = scheduled(softmax, (FLOATS, FLOATS, 8), BLOCK=4096, num_warps=8)
    assert count(kernel, "tt.reduce") == 2
    assert count(kernel, "ttg.barrier") == 0
