"""masked_ends: which k loops may take a last step that is longer, and that it adds nothing."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from examples.matmul import matmul_kernel
from tests.holes import before_a_hole
from tests.passes.lowered import named, tiles
from tilewright.ir.types import shape_of
from tilewright.jit import JITFunction
from tilewright.passes.fold_additions import FoldAdditions
from tilewright.targets.cpu.schedule.widen_k_loops import Reads, widen_k_loops

F32 = np.zeros(1 << 16, np.float32)


@tilewright.jit
def masked(
    a, b, c, K, L, BLOCK: tl.constexpr, STEP: tl.constexpr, FORM: tl.constexpr, OTHER: tl.constexpr
):
    """c = a @ b; FORM says how the masks know where K ends."""
    i, s = tl.arange(0, BLOCK), tl.arange(0, STEP)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    last = 0
    for k in range(0, K, STEP):
        if FORM == "left":
            inside, inside_b = s < K - k, s < K - k
        elif FORM == "greater":
            inside, inside_b = K - k > s, K - k > s
        elif FORM == "at most":
            inside, inside_b = s <= K - k - 1, s <= K - k - 1
        elif FORM == "one more":
            inside, inside_b = s <= K - k, s <= K - k
        elif FORM == "sum":
            inside, inside_b = s + k < K, s + k < K
        elif FORM == "other end":
            inside, inside_b = s < L - k, s < L - k
        elif FORM == "one side":
            inside, inside_b = s < K - k, s < L - k
        else:
            inside, inside_b = s < K - k, s < K - k
        x = tl.load(a + i[:, None] * L + k + s[None, :], mask=inside[None, :], other=OTHER)
        y = tl.load(b + (k + s)[:, None] * BLOCK + i[None, :], mask=inside_b[:, None], other=0.0)
        acc = tl.dot(x, y, acc)
        last += STEP
    if FORM == "used":
        acc += last
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


@tilewright.jit
def counted(a, b, c, K, N, BLOCK: tl.constexpr, STEP: tl.constexpr, COUNT: tl.constexpr):
    """c = a @ b in `COUNT` steps, or as many as K has."""
    i, s = tl.arange(0, BLOCK), tl.arange(0, STEP)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, tl.cdiv(K, STEP) if COUNT == 0 else K // COUNT):
        x = tl.load(
            a + i[:, None] * K + k * STEP + s[None, :], mask=s[None, :] < K - k * STEP, other=0.0
        )
        y = tl.load(
            b + (k * STEP + s)[:, None] * BLOCK + i[None, :],
            mask=(s[:, None] < K - k * STEP) & (i[None, :] < N),
            other=0.0,
        )
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


def depths(kernel: JITFunction, **values: object) -> list[int]:
    """The depth of every product where a longer last step costs nothing."""
    module = tiles(kernel, a=F32, b=F32, c=F32, **values)
    FoldAdditions(adds_last=True).apply(module)
    widen_k_loops(module, reads_of=lambda product: Reads.ROWS)
    module.verify()
    return [shape_of(op.operands[0].type)[1] for op in named(module, "tt.dot")]


LONG = ["left", "greater", "at most"]
SHORT = ["one more", "sum", "other end", "one side", "used"]


@pytest.mark.parametrize("form", LONG)
def test_masks_that_end_with_the_loop_leave_one_loop(form: str) -> None:
    assert depths(masked, K=1000, L=1001, BLOCK=32, STEP=32, FORM=form, OTHER=0.0) == [128]


@pytest.mark.parametrize("form", SHORT)
def test_other_masks_leave_the_rest_to_a_second_loop(form: str) -> None:
    assert depths(masked, K=1000, L=1001, BLOCK=32, STEP=32, FORM=form, OTHER=0.0) == [128, 32]


def test_what_a_mask_fills_with_ones_is_no_end() -> None:
    assert depths(masked, K=1000, L=1001, BLOCK=32, STEP=32, FORM="left", OTHER=1.0) == [128, 32]


def test_a_count_of_steps_that_is_rounded_up_is_an_end() -> None:
    assert depths(counted, K=1000, N=9, BLOCK=32, STEP=32, COUNT=0) == [128]


@pytest.mark.parametrize("count", [16, 64])
def test_a_count_of_other_steps_is_none(count: int) -> None:
    assert depths(counted, K=1000, N=9, BLOCK=32, STEP=32, COUNT=count) == [128, 32]


@pytest.mark.parametrize("depth", [0, 1, 15, 16, 31, 32, 33, 127, 128, 129, 161, 1000])
@pytest.mark.parametrize("form", [*LONG, "sum"])
def test_every_depth_gives_the_product_and_reads_nothing_beyond(form: str, depth: int, rng) -> None:
    a, b = (rng.standard_normal(size, dtype=np.float32) for size in ((32, depth), (depth, 32)))
    x, y = (before_a_hole(each) if depth else each for each in (a, b))
    c = before_a_hole(np.full((32, 32), np.nan, np.float32))
    masked[(1,)](x, y, c, K=depth, L=depth, BLOCK=32, STEP=16, FORM=form, OTHER=0.0)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("depth", [1, 40, 127, 250])
@pytest.mark.parametrize("columns", [0, 1, 17, 32])
def test_counted_steps_give_the_product(depth: int, columns: int, rng) -> None:
    a, b = (rng.standard_normal(size, dtype=np.float32) for size in ((32, depth), (depth, 32)))
    c = np.full((32, 32), np.nan, np.float32)
    counted[(1,)](a, before_a_hole(b), c, K=depth, N=columns, BLOCK=32, STEP=16, COUNT=0)
    exact = a.astype(np.float64) @ np.where(np.arange(32) < columns, b, 0)
    np.testing.assert_allclose(c, exact, rtol=1e-4, atol=1e-3)


def test_an_infinity_beyond_the_end_is_not_seen(rng) -> None:
    a, b = rng.standard_normal((2, 33, 64), dtype=np.float32)
    b = np.ascontiguousarray(b.T)
    a[:, 40:], b[40:] = np.inf, np.nan
    c = np.empty((33, 33), np.float32)
    matmul_kernel[(4,)](
        *(a, b, c, 33, 33, 40, 64, 1, 33, 1, 33, 1),
        **{"ACTIVATION": "", "BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16, "GROUP_M": 1},
    )
    np.testing.assert_allclose(c, a[:, :40].astype(np.float64) @ b[:40], rtol=1e-4, atol=1e-3)
