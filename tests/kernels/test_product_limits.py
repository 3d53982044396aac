"""Products at the edges: what nobody sees is not computed, what lies beyond is not read."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from examples.matmul import matmul_kernel
from tests.holes import before_a_hole
from tests.passes.lowered import named, nests
from tilewright.targets.cpu.ops import DotOp

SHAPES = [
    (1, 1, 1),
    (64, 64, 32),
    (65, 63, 33),
    (5, 129, 17),
    (130, 3, 300),
    (7, 7, 64),
    (61, 97, 0),
]
BLOCKS = {"BM": 64, "BN": 64, "BK": 32}
F32 = np.zeros(1 << 16, np.float32)


@tilewright.jit
def masked(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows and columns beyond the ends are masked in the loads."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        steps = k + tl.arange(0, BK)
        inside_a = (rows[:, None] < M) & (steps[None, :] < K)
        inside_b = (steps[:, None] < K) & (columns[None, :] < N)
        x = tl.load(a + rows[:, None] * K + steps[None, :], mask=inside_a, other=0.0)
        y = tl.load(b + steps[:, None] * N + columns[None, :], mask=inside_b, other=0.0)
        acc = tl.dot(x, y, acc)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], tl.maximum(acc, 0.0) * 2, mask=inside)


@tilewright.jit
def and_its_sum(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The last row of the tile sees all rows of the product: their sum is stored in it."""
    rows, columns, steps = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    x = tl.load(a + (rows % M)[:, None] * K + steps[None, :], mask=steps[None, :] < K, other=0.0)
    y = tl.load(
        b + steps[:, None] * N + columns[None, :],
        mask=(steps[:, None] < K) & (columns[None, :] < N),
        other=0.0,
    )
    product = tl.dot(x, y)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    total = tl.sum(product, axis=0)
    tl.store(c + rows[:, None] * N + columns[None, :], product + total[None, :], mask=inside)


@tilewright.jit
def one_mask(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Only `a` is masked along k: what `b` holds beyond is multiplied with zeros all the same."""
    rows, columns, steps = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    x = tl.load(a + rows[:, None] * BK + steps[None, :], mask=steps[None, :] < K, other=0.0)
    y = tl.load(b + steps[:, None] * BN + columns[None, :])
    tl.store(c + rows[:, None] * BN + columns[None, :], tl.dot(x, y))


@tilewright.jit
def filled(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Beyond K both operands are one, not zero."""
    rows, columns, steps = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    x = tl.load(a + rows[:, None] * BK + steps[None, :], mask=steps[None, :] < K, other=1.0)
    y = tl.load(b + steps[:, None] * BN + columns[None, :], mask=steps[:, None] < K, other=1.0)
    tl.store(c + rows[:, None] * BN + columns[None, :], tl.dot(x, y))


@tilewright.jit
def two_ends(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The operands are masked along k in different places."""
    rows, columns, steps = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    x = tl.load(a + rows[:, None] * BK + steps[None, :], mask=steps[None, :] < K, other=0.0)
    y = tl.load(b + steps[:, None] * BN + columns[None, :], mask=steps[:, None] <= K, other=0.0)
    tl.store(c + rows[:, None] * BN + columns[None, :], tl.dot(x, y))


@tilewright.jit
def of_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Where the columns begin is computed behind the load of `a`."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(left.load([row, k]), right.load([k, column * BN]), acc)
    out.store([row, column * BN], acc)


def operands(shape: tuple[int, int, int], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Matrices of m x k and k x n at the ends of their memory."""
    m, n, k = shape
    a, b = (rng.standard_normal(size).astype(np.float32) for size in ((m, k), (k, n)))
    return (before_a_hole(a) if k else a), (before_a_hole(b) if k else b)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_masked_product_is_right_and_reads_nothing_beyond_its_operands(
    shape: tuple[int, int, int], rng: np.random.Generator
) -> None:
    m, n, k = shape
    a, b = operands(shape, rng)
    c = before_a_hole(np.full((m, n), np.nan, np.float32))
    masked[(tilewright.cdiv(m, 64), tilewright.cdiv(n, 64))](a, b, c, m, n, k, **BLOCKS)
    exact = np.maximum(a.astype(np.float64) @ b, 0) * 2
    np.testing.assert_allclose(c, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("blocks", [(64, 64, 32), (32, 32, 32), (16, 64, 128)], ids=str)
@pytest.mark.parametrize("shape", [(129, 72, 200), (1, 4, 4), (65, 132, 36)], ids=str)
def test_a_product_of_descriptors_is_right(
    shape: tuple[int, int, int], blocks: tuple[int, int, int], rng: np.random.Generator
) -> None:
    m, n, k = shape
    a, b = (rng.standard_normal(size).astype(np.float32) for size in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    sizes = dict(zip(("BM", "BN", "BK"), blocks, strict=True))
    grid = (tilewright.cdiv(m, blocks[0]), tilewright.cdiv(n, blocks[1]))
    of_descriptors[grid](a, b, c, m, n, k, **sizes)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("blocks", [(64, 64, 32), (16, 128, 16), (128, 32, 64)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_wrapped_product_is_right_and_reads_nothing_beyond_its_operands(
    shape: tuple[int, int, int], blocks: tuple[int, int, int], rng: np.random.Generator
) -> None:
    m, n, k = shape
    a, b = operands(shape, rng)
    c = before_a_hole(np.full((m, n), np.nan, np.float32))
    sizes = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), blocks, strict=True))
    grid = (tilewright.cdiv(m, blocks[0]) * tilewright.cdiv(n, blocks[1]),)
    strides = (k, 1, n, 1, n, 1)
    matmul_kernel[grid](a, b, c, m, n, k, *strides, ACTIVATION="leaky_relu", **sizes, GROUP_M=2)
    exact = a.astype(np.float64) @ b
    np.testing.assert_allclose(c, np.where(exact >= 0, exact, 0.01 * exact), rtol=1e-4, atol=1e-4)


def test_beside_infinities_that_are_not_seen_nothing_changes(rng: np.random.Generator) -> None:
    m, n, k = 70, 70, 40
    a, b = (rng.standard_normal(size).astype(np.float32) for size in ((m, k), (k, n)))
    a[3, 5], b[39, 69] = np.inf, -np.inf
    c = np.empty((m, n), np.float32)
    masked[(2, 2)](a, b, c, m, n, k, **BLOCKS)
    with np.errstate(invalid="ignore"):
        exact = np.fmax(a.astype(np.float64) @ b.astype(np.float64), 0) * 2
    assert np.isinf(exact[3]).any() and np.isinf(exact[:, 69]).any()
    np.testing.assert_allclose(c, exact, rtol=1e-4, atol=1e-4)


def test_a_product_whose_sum_is_seen_is_computed_in_full(rng: np.random.Generator) -> None:
    m, n, k = 5, 33, 17
    a, b = operands((m, n, k), rng)
    c = np.empty((m, n), np.float32)
    and_its_sum[(1,)](a, b, c, m, n, k, **BLOCKS)
    wrapped = a[np.arange(64) % m].astype(np.float64) @ b
    np.testing.assert_allclose(c, wrapped[:m] + wrapped.sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("blocks", [(16, 64, 32), (64, 64, 32)], ids=str)
@pytest.mark.parametrize("shape", [(1, 130, 70), (7, 64, 33), (13, 63, 0), (65, 5, 129)], ids=str)
def test_rows_of_narrow_operands_that_are_not_seen_change_nothing(
    shape: tuple[int, int, int], blocks: tuple[int, int, int], dtype: type, rng: np.random.Generator
) -> None:
    m, n, k = shape
    a, b = (rng.integers(-8, 9, size).astype(dtype) for size in ((m, k), (k, n)))
    c = before_a_hole(np.full((m, n), np.nan, np.float32))
    sizes = dict(zip(("BM", "BN", "BK"), blocks, strict=True))
    grid = (tilewright.cdiv(m, blocks[0]), tilewright.cdiv(n, blocks[1]))
    given = (before_a_hole(a), before_a_hole(b)) if k else (a, b)
    masked[grid](*given, c, m, n, k, **sizes)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(c, np.maximum(exact, 0) * 2)


def test_narrow_rows_whose_sum_is_seen_are_all_computed(rng: np.random.Generator) -> None:
    a, b = (rng.integers(-8, 9, size).astype(np.float16) for size in ((5, 17), (17, 33)))
    c = np.empty((5, 33), np.float32)
    and_its_sum[(1,)](a, b, c, 5, 33, 17, **BLOCKS)
    whole = a[np.arange(64) % 5].astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(c, whole[:5] + whole.sum(0))


def test_zeros_are_multiplied_with_what_no_mask_hides(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((64, 32)).astype(np.float32), np.ones((32, 64), np.float32)
    b[20, 7] = np.inf
    c = np.empty((64, 64), np.float32)
    one_mask[(1,)](a, b, c, 64, 64, 10, **BLOCKS)
    assert np.isnan(c[:, 7]).all()
    assert np.isfinite(np.delete(c, 7, axis=1)).all()


@pytest.mark.parametrize("kernel", [filled, two_ends])
@pytest.mark.parametrize("k", [1, 10, 31, 32])
def test_only_zeros_of_both_operands_are_left_out(
    kernel: tilewright.JITFunction, k: int, rng: np.random.Generator
) -> None:
    a, b = rng.standard_normal((64, 32)), rng.standard_normal((32, 64))
    a, b = a.astype(np.float32), b.astype(np.float32)
    c = np.empty((64, 64), np.float32)
    kernel[(1,)](a, b, c, 64, 64, k, **BLOCKS)
    beyond = 1.0 if kernel is filled else 0.0
    x, y = a.copy(), b.copy()
    x[:, k:], y[k + (kernel is two_ends) :] = beyond, beyond
    np.testing.assert_allclose(c, x.astype(np.float64) @ y, rtol=1e-4, atol=1e-4)


def products(kernel: tilewright.JITFunction, dtype: type = np.float32) -> list[DotOp]:
    """The products of a kernel of operands of a dtype."""
    x = F32.astype(dtype)
    module, _ = nests(kernel, a=x, b=x, c=F32, M=70, N=70, K=40, **BLOCKS)
    dots = [dot for dot in named(module, "cpu.dot") if isinstance(dot, DotOp)]
    assert dots
    return dots


def limited(kernel: tilewright.JITFunction) -> bool:
    """Whether the products of a kernel have limits."""
    return any(dot.depth is not None for dot in products(kernel))


def test_who_has_limits() -> None:
    assert limited(masked)
    assert not limited(one_mask)
    assert not limited(filled)


def test_the_rows_alone_are_limited_where_operands_are_packed() -> None:
    for dot in products(masked, np.float16):
        assert dot.rows is not None
        assert dot.columns is None and dot.depth is None
    assert all(dot.rows is None for dot in products(filled, np.float16))
    assert all(dot.rows is None for dot in products(and_its_sum, np.float16))
