"""widen_k_loops: which k loops are taken several steps at a time, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tests.passes.lowered import named, tiles
from tilewright.ir.types import shape_of
from tilewright.jit import JITFunction
from tilewright.passes.fold_additions import FoldAdditions
from tilewright.targets.cpu.schedule.widen_k_loops import widen_k_loops

F32 = np.zeros(1 << 16, np.float32)


@tilewright.jit
def moving(a, b, c, K, stride, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """c = a @ b; pointers move, the tail is masked by what remains of K."""
    i, k = tl.arange(0, BLOCK), tl.arange(0, STEP)
    a_ptrs = a + i[:, None] * K + k[None, :]
    b_ptrs = b + k[:, None] * stride + i[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, STEP):
        x = tl.load(a_ptrs, mask=k[None, :] < K - start, other=0.0)
        y = tl.load(b_ptrs, mask=k[:, None] < K - start, other=0.0)
        acc = tl.dot(x, y, acc)
        a_ptrs += STEP
        b_ptrs += STEP * stride
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


@tilewright.jit
def indexed(a, b, c, K, stride, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """c = a @ b; indices are computed anew in each step, and operands are rounded."""
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for step in range(0, tl.cdiv(K, STEP)):
        k = step * STEP + tl.arange(0, STEP)
        x = tl.load(a + i[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        y = tl.load(b + k[:, None] * stride + i[None, :], mask=k[:, None] < K, other=0.0)
        acc += tl.dot(x.to(tl.float16), y.to(tl.float16))
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


@tilewright.jit
def overlapping(a, b, c, K, stride, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """The tiles of following steps overlap."""
    i, k = tl.arange(0, BLOCK), tl.arange(0, STEP)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K - STEP, STEP // 2):
        x = tl.load(a + i[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k)[:, None] * stride + i[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


@tilewright.jit
def scaled(a, b, c, K, stride, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """The accumulator is halved in every step."""
    i, k = tl.arange(0, BLOCK), tl.arange(0, STEP)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, STEP):
        x = tl.load(a + i[:, None] * K + start + k[None, :])
        y = tl.load(b + (start + k)[:, None] * stride + i[None, :])
        acc = tl.dot(x, y, acc * 0.5)
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


@tilewright.jit
def shared_row(a, b, c, K, stride, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """Every step multiplies the same tile of a."""
    i, k = tl.arange(0, BLOCK), tl.arange(0, STEP)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, STEP):
        x = tl.load(a + i[:, None] * K + k[None, :])
        y = tl.load(b + (start + k)[:, None] * stride + i[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


def depths(module: ModuleOp) -> list[int]:
    """The depth of every product, in order."""
    return [shape_of(op.operands[0].type)[1] for op in named(module, "tt.dot")]


def lowered(kernel: JITFunction, **values: object) -> ModuleOp:
    """T0 with folded additions and deep products, verified."""
    module = tiles(kernel, a=F32, b=F32, c=F32, **values)
    FoldAdditions(adds_last=True).apply(module)
    widen_k_loops(module)
    module.verify()
    return module


@pytest.mark.parametrize("kernel", [moving, indexed])
@pytest.mark.parametrize(("step", "want"), [(16, [128, 16]), (64, [128, 64]), (128, [128])])
def test_operands_that_continue_are_taken_128_deep(kernel, step: int, want: list[int]) -> None:
    assert depths(lowered(kernel, K=1000, stride=32, BLOCK=32, STEP=step)) == want


@pytest.mark.parametrize("kernel", [overlapping, scaled, shared_row])
def test_other_loops_stay_as_they_are(kernel) -> None:
    assert depths(lowered(kernel, K=1000, stride=32, BLOCK=32, STEP=32)) == [32]


def reference(kernel: JITFunction, a: np.ndarray, b: np.ndarray, step: int) -> np.ndarray:
    """What a kernel computes, in double precision."""
    x, y, depth = a.astype(np.float64), b.astype(np.float64), a.shape[1]
    if kernel is moving:
        return x @ y
    if kernel is indexed:
        return a.astype(np.float16).astype(np.float64) @ b.astype(np.float16).astype(np.float64)
    total = np.zeros((a.shape[0], b.shape[1]))
    if kernel is overlapping:
        for start in range(0, depth - step, step // 2):
            total += x[:, start : start + step] @ y[start : start + step]
        return total
    for start in range(0, depth, step):
        left = x[:, :step] if kernel is shared_row else x[:, start : start + step]
        total = total * (0.5 if kernel is scaled else 1) + left @ y[start : start + step]
    return total


@pytest.mark.parametrize("depth", [0, 16, 48, 128, 144, 272, 1040])
@pytest.mark.parametrize("kernel", [moving, indexed, overlapping, scaled, shared_row])
def test_every_number_of_steps_gives_the_product(kernel, depth: int, rng) -> None:
    a = rng.standard_normal((32, depth), dtype=np.float32)
    b = rng.standard_normal((depth, 32), dtype=np.float32)
    c = np.empty((32, 32), np.float32)
    kernel[(1,)](a, b, c, K=depth, stride=32, BLOCK=32, STEP=16)
    np.testing.assert_allclose(c, reference(kernel, a, b, 16), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("depth", [5, 122, 133, 253])
def test_a_masked_tail_is_left_to_the_shallow_loop(depth: int, rng) -> None:
    a = rng.standard_normal((32, depth), dtype=np.float32)
    b = rng.standard_normal((depth, 32), dtype=np.float32)
    c = np.empty((32, 32), np.float32)
    moving[(1,)](a, b, c, K=depth, stride=32, BLOCK=32, STEP=16)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)
