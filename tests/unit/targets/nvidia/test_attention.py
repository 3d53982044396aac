"""Attention in every form, forward and backward, in the simulator beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.attention_cases import (
    ARGUMENTS,
    EXPECTED,
    KERNELS,
    LISTED,
    Attention,
    require_close,
)
from tests.unit.targets.nvidia.descriptor_kernels import described, numbers
from tests.unit.targets.nvidia.descriptor_launching import check, count, simulated
from tilewright.ops.staging import LocalAllocOp

# Every other form is compiled for the GPU in the tests of ptxas, and runs in those of the GPU.
SIMULATED = [*LISTED[:18:2], *LISTED[18::4]]


@pytest.mark.parametrize(("name", "case"), SIMULATED, ids=str)
def test_attention_is_what_numpy_computes(name: str, case: Attention) -> None:
    arguments, options = ARGUMENTS[name](case), case.options()
    found, _ = simulated(KERNELS[name], case.grid, arguments, **options)
    require_close(name, case, found, EXPECTED[name](case))


@pytest.mark.parametrize("dtype", ["float16", "float8_e5m2"])
def test_heads_and_long_rows_are_walked(dtype: str) -> None:
    case = Attention("host", dtype, n=192, columns=32, heads=2)
    found, _ = simulated(KERNELS["forward"], case.grid, ARGUMENTS["forward"](case))
    require_close("forward", case, found, EXPECTED["forward"](case))


@tilewright.jit
def walk(acc, q, k, lo, hi, B: tl.constexpr):
    for j in tl.range(lo, hi, B):
        acc += tl.dot(q, k.load([j, 0]).T)
    return acc


@tilewright.jit
def two_walks(q, k, out, B: tl.constexpr):
    i = tl.program_id(0) * B
    x = q.load([i, 0])
    acc = tl.zeros((B, B), tl.float32)
    acc = walk(acc, x, k, 0, i, B)
    acc = walk(acc, x, k, i, i + B, B)
    out.store([i, 0], acc)


@tilewright.jit
def three_products(q, k, out, B: tl.constexpr):
    """One operand of products before, in and behind control flow."""
    x = q.load([0, 0])
    acc = tl.dot(x, k.load([0, 0]).T)
    if tl.program_id(0) == 1:
        acc += tl.dot(x, k.load([B, 0]).T)
    else:
        acc -= tl.dot(x, k.load([0, 0]).T)
    for j in range(0, 2 * B, B):
        for _ in range(0, 2):
            acc += tl.dot(x, k.load([j, 0]).T)
    out.store([tl.program_id(0) * B, 0], tl.dot(x, k.load([B, 0]).T, acc))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2", "float32"])
@pytest.mark.parametrize("kernel", [two_walks, three_products])
def test_an_operand_of_several_products_is_brought_once(kernel: object, dtype: str) -> None:
    q, k = (numbers((128, 64), dtype, 3 + i) for i in range(2))
    out = np.zeros((128, 64), np.float32)
    arguments = [described(q, (64, 64)), described(k, (64, 64)), described(out, (64, 64)), 64]
    check(kernel, (2,), *arguments)
    if kernel is two_walks and dtype == "float16":
        # One for q, one for each loop's k, and one for what is stored.
        assert count(kernel, arguments, LocalAllocOp) == 4
