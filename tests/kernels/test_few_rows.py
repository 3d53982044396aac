"""Products of few rows with weights that lie as `[outputs, inputs]`: every size, every dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.holes import before_a_hole
from tests.passes.lowered import named, nests
from tilewright.targets.cpu.ops import DotOp

DTYPES = [np.dtype(x) for x in (np.float32, np.float64, ml_dtypes.bfloat16, np.float16, np.int8)]
SIZES = [(1, 64, 128), (1, 65, 4097), (4, 130, 17), (7, 63, 127), (8, 1, 1), (16, 64, 300)]
BLOCKS = {"BM": 16, "BN": 64, "BK": 32}


@tilewright.jit
def linear(
    x, w, out, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """out = x @ w.T, everything masked."""
    m, n = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), ACC)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], (m < M)[:, None] & (k < K)[None, :], 0)
        b = tl.load(w + n[None, :] * K + k[:, None], (n < N)[None, :] & (k < K)[:, None], 0)
        acc = tl.dot(a, b, acc)
    tl.store(out + m[:, None] * N + n[None, :], acc, (m < M)[:, None] & (n < N)[None, :])


@tilewright.jit
def turned(
    x, w, out, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """The same: rows of the weights are loaded and transposed, indices wrap."""
    m, n = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), ACC)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x + (m % M)[:, None] * K + k[None, :], (k < K)[None, :], 0)
        b = tl.load(w + (n % N)[:, None] * K + k[None, :], (k < K)[None, :], 0)
        acc = tl.dot(a, tl.trans(b), acc)
    tl.store(out + m[:, None] * N + n[None, :], acc, (m < M)[:, None] & (n < N)[None, :])


@tilewright.jit
def gated(
    x, w, out, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """The sum of two products of the same rows, and a mask that is no prefix."""
    m, n = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    one, two = tl.zeros((BM, BN), ACC), tl.zeros((BM, BN), ACC)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], (m < M)[:, None] & (k < K)[None, :], 0)
        place = w + n[None, :] * K + k[:, None]
        inside = (n < N)[None, :] & (k < K)[:, None]
        one = tl.dot(a, tl.load(place, inside & (n[None, :] % 2 == 0), 0), one)
        two = tl.dot(a, tl.load(place, inside & (n[None, :] % 2 == 1), 0), two)
    tl.store(out + m[:, None] * N + n[None, :], one + two, (m < M)[:, None] & (n < N)[None, :])


@tilewright.jit
def of_an_expert(
    x, w, out, rows, experts, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """Rows that are looked up meet the weights that are looked up for them."""
    m, k = tl.program_id(1) * BM + tl.arange(0, BM), tl.arange(0, BK)
    n = (tl.program_id(0) * BN + tl.arange(0, BN).to(tl.int64)) % N
    row = tl.load(rows + m)
    expert = tl.load(experts + tl.program_id(1)).to(tl.int64)
    x += row[:, None] // 2 * K + k[None, :]
    w += expert * N * K + (k[:, None] + n[None, :] * K)
    acc = tl.zeros((BM, BN), ACC)
    for step in range(0, tl.cdiv(K, BK)):
        left = K - step * BK
        a = tl.load(x, (row < M)[:, None] & (k[None, :] < left), 0)
        b = tl.load(w, k[:, None] < left, 0)
        acc += tl.dot(a, b)
        x += BK
        w += BK
    column = tl.program_id(0) * BN + tl.arange(0, BN)
    kept = (row < M)[:, None] & (column < N)[None, :]
    tl.store(out + row[:, None] * N + column[None, :], acc, kept)


def random(rng: np.random.Generator, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    if dtype == np.int8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    # Quarters: sums of thousands of products are exact in f32, in whatever order.
    return (rng.integers(-8, 9, shape) / 4).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kernel", [linear, turned, gated], ids=["masked", "wrapped", "gated"])
def test_products_of_any_size_are_exact_and_read_nothing_beyond(
    kernel: tilewright.JITFunction, dtype: np.dtype, rng: np.random.Generator
) -> None:
    acc = np.dtype({"int8": np.int32, "float64": np.float64}.get(dtype.name, np.float32))
    tile = {np.dtype(np.int32): tl.int32, np.dtype(np.float64): tl.float64}.get(acc, tl.float32)
    for m, n, k in SIZES:
        x = before_a_hole(random(rng, (m, k), dtype))
        w = before_a_hole(random(rng, (n, k), dtype))
        out = before_a_hole(np.full((m, n), 77, acc))
        kernel[(tilewright.cdiv(n, 64),)](x, w, out, m, n, k, **BLOCKS, ACC=tile)
        np.testing.assert_array_equal(out, x.astype(acc) @ w.astype(acc).T, str((m, n, k)))


def products(kernel: tilewright.JITFunction, **blocks: int) -> list[DotOp]:
    x = np.zeros(1 << 12, np.float32)
    arguments = {"x": x, "w": x, "out": x, "M": 3, "N": 64, "K": 64, "ACC": tl.float32}
    module, _ = nests(kernel, **arguments, **{**BLOCKS, **blocks})
    return [op for op in named(module, "cpu.dot") if isinstance(op, DotOp)]


def test_few_rows_read_the_weights_where_they_lie_and_many_pack_them() -> None:
    for op in products(linear):
        assert op.transposed_b is not None and op.rows is not None and op.next_b is not None
    assert all(op.transposed_b is not None for op in products(turned))
    assert all(op.transposed_b is None for op in products(linear, BM=32))


def test_an_infinity_of_a_row_that_is_hidden_does_not_show(rng: np.random.Generator) -> None:
    x, w = np.ones((2, 40), np.float32), rng.standard_normal((20, 48)).astype(np.float32)
    x[1], w[:, 40:], w[19] = np.inf, np.nan, np.nan
    out = np.full((1, 19), 77, np.float32)
    linear[(1,)](x, np.ascontiguousarray(w[:, :40]), out, 1, 19, 40, **BLOCKS, ACC=tl.float32)
    np.testing.assert_allclose(out[0], w[:19, :40].astype(np.float64).sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("N", "K"), [(200, 104), (64, 128), (1, 17), (130, 4097)])
def test_rows_that_are_looked_up_meet_the_weights_of_their_expert(
    N: int, K: int, dtype: np.dtype, rng: np.random.Generator
):
    """Address and mask of the weights are dear; they are read in place, not kept."""
    rows = np.concatenate([rng.permutation(74), np.full(6, 74)]).astype(np.int32)
    experts = np.array([1, 0, 2, 2, 1], np.int32)
    x, w = random(rng, (37, K), dtype), random(rng, (3 * N, K), dtype)
    wide = np.dtype(np.int32 if dtype == np.int8 else np.float64 if dtype == np.float64 else "f4")
    out = np.zeros((74, N), wide)
    acc = {"int32": tl.int32, "float64": tl.float64, "float32": tl.float32}[str(wide)]
    grid = (-(-N // BLOCKS["BN"]), len(experts))
    of_an_expert[grid](x, w, out, rows, experts, 74, N, K, ACC=acc, **BLOCKS)
    exact = np.float64 if wide.kind == "f" else np.int64
    weights = w.astype(exact).reshape(3, N, K)
    for place, row in enumerate(rows[:74]):
        np.testing.assert_array_equal(
            out[row], weights[experts[place // 16]] @ x[row // 2].astype(exact)
        )
