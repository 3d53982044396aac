"""Promises as bare statements: which uses of a value take them."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from benchmarks.compile_growth import emit
from tests.passes.lowered import written
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.memory.ir import LoadOp, StoreOp

CELLS = np.zeros(4096, np.float32)


@tilewright.jit
def bare(x, out, stride, BLOCK: tl.constexpr):
    tl.multiple_of(stride, 4)
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + stride + i))


@tilewright.jit
def assigned(x, out, stride, BLOCK: tl.constexpr):
    stride = tl.multiple_of(stride, 4)
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + stride + i))


@tilewright.jit
def unpromised(x, out, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + stride + i))


@tilewright.jit
def member_and_two(x, out, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) * stride
    i.multiple_of(4)
    tl.max_contiguous(i, 4)
    tl.store(out + i, tl.load(x + i))


@tilewright.jit
def after_a_use(x, out, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + stride + i)
    tl.multiple_of(stride, 4)
    tl.store(out + stride + i, v)


@tilewright.jit
def in_a_loop(x, out, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        v = tl.load(x + stride + i)
        tl.multiple_of(stride, 4)
        tl.store(out + stride + k * BLOCK + i, v)
    tl.store(out + stride + i, tl.load(x + i))


@tilewright.jit
def in_a_branch(x, out, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if n > 0:
        tl.multiple_of(stride, 4)
        tl.store(out + stride + i, tl.load(x + i))
    else:
        tl.store(out + 1 + stride + i, tl.load(x + i))


@tilewright.jit
def of_a_name_that_changes(x, out, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for _ in range(n):
        tl.multiple_of(stride, 4)
        tl.store(out + stride + i, tl.load(x + i))
        stride += 3
    tl.store(out + stride + i, tl.load(x + i))


def promised(module: ModuleOp, cls: type) -> list[bool]:
    """Whether the address of each access of a class comes from a promised value."""
    found: list[bool] = []
    for op in module.walk():
        if not isinstance(op, cls):
            continue
        pending, seen = [op.operands[0]], set()
        while pending:
            value = pending.pop()
            if value not in seen and not hasattr(value, "block"):
                seen.add(value)
                pending.extend(value.op.operands)
        found.append(any(isinstance(value.op, HintOp) for value in seen))
    return found


def wide_loads(kernel: tilewright.JITFunction) -> int:
    arguments = {"x": CELLS, "out": CELLS.copy(), "stride": 1002, "BLOCK": 512}
    return emit(kernel, arguments, "sm_90a")[1].count("load <4 x i32>, ptr addrspace(1)")


def test_a_bare_promise_widens_a_load_as_an_assigned_one_does() -> None:
    assert wide_loads(bare) == wide_loads(assigned) == 1
    assert wide_loads(unpromised) == 0


def test_promises_as_methods_and_several_of_one_value_add_up() -> None:
    module = written(member_and_two, x=CELLS, out=CELLS, stride=6, BLOCK=64)
    kinds = {name for op in module.walk() if isinstance(op, HintOp) for name in op.properties}
    assert kinds == {"divisibility", "contiguity"}
    assert promised(module, LoadOp) == promised(module, StoreOp) == [True]


@pytest.mark.parametrize(
    ("kernel", "loads", "stores"),
    [
        (after_a_use, [False], [True]),
        (in_a_loop, [False, False], [True, False]),
        (in_a_branch, [False, False], [True, False]),
        (of_a_name_that_changes, [False, False], [True, False]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_promise_holds_for_uses_after_it_in_its_scope(
    kernel: tilewright.JITFunction, loads: list[bool], stores: list[bool]
) -> None:
    more = {} if kernel is after_a_use else {"n": 3}
    module = written(kernel, x=CELLS, out=CELLS, stride=6, BLOCK=64, **more)
    module.verify()
    assert promised(module, LoadOp) == loads
    assert promised(module, StoreOp) == stores


@pytest.mark.parametrize("stride", [8, 12])
def test_kernels_with_promises_give_what_they_give_without(stride: int) -> None:
    x = np.arange(1024, dtype=np.float32)
    for kernel, more in ((in_a_loop, {"n": 3}), (in_a_branch, {"n": 1}), (after_a_use, {})):
        got = np.zeros(1024, np.float32)
        kernel[(1,)](x, got, stride, BLOCK=64, **more)
        assert np.array_equal(got[stride : stride + 64], x[:64] if more else x[stride:][:64])
