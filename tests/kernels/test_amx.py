"""Kernels whose products AMX computes: on the hardware where it is, else on the model of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.asm.amx_host import has_amx, use_modelled_amx
from tilewright.jit import JITFunction
from tilewright.runtime.kernel import CompiledKernel

BF16, F16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
Jit = Callable[[Callable[..., object]], JITFunction]


@pytest.fixture(params=["model", *(["hardware"] if has_amx() else [])])
def amx_jit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jit]:
    """What makes a kernel that is compiled for AMX; it checks that AMX multiplies."""
    if request.param == "model":
        use_modelled_amx(monkeypatch)
    made: list[JITFunction] = []

    def make(function: Callable[..., object]) -> JITFunction:
        made.append(tilewright.jit(function))
        return made[-1]

    yield make


def units(compiled: object) -> list[str]:
    """The unit of each product of a compiled kernel, in order."""
    assert isinstance(compiled, CompiledKernel)
    text = compiled.asm["nests"]
    return ["amx" if 'unit = "amx' in x else "vectors" for x in text.splitlines() if "cpu.dot" in x]


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype == np.int8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    # Quarters: sums of a hundred products are exact in f32, in whatever order.
    return (rng.integers(-8, 9, shape) / 4).astype(dtype)


def matmul(
    a, b, c, M, N, K, am, ak, bk, bn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    """c = a @ b with masks; any strides."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), ACC)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * am + k[None, :] * ak, (m < M)[:, None] & (k < K)[None, :], 0)
        y = tl.load(b + k[:, None] * bk + n[None, :] * bn, (k < K)[:, None] & (n < N)[None, :], 0)
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc, (m < M)[:, None] & (n < N)[None, :])


SIZES = [(1, 1, 1), (8, 130, 33), (130, 1, 64), (65, 127, 130), (128, 64, 96), (33, 100, 0)]
TILES = [(8, 16, 32), (16, 64, 64), (32, 32, 16), (64, 128, 32), (32, 256, 64)]


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("dtype", [BF16, F16, np.dtype(np.int8)], ids=str)
def test_masked_products_of_any_size_and_order_are_exact(
    dtype: np.dtype, tile: tuple[int, int, int], amx_jit: Jit, rng: np.random.Generator
) -> None:
    kernel = amx_jit(matmul)
    bm, bn, bk = tile
    acc = np.dtype(np.int32 if dtype == np.int8 else np.float32)
    first = TILES.index(tile)
    for number, (m, n, k) in enumerate(SIZES):
        # Every order of the operands meets every size, if not with every tile.
        for a_turned, b_turned in [divmod((number + first) % 4, 2)]:
            a = random(rng, (k, m) if a_turned else (m, k), dtype)
            b = random(rng, (n, k) if b_turned else (k, n), dtype)
            a, b = (a.T if a_turned else a), (b.T if b_turned else b)
            c = np.full((m + 1, n), 77, acc)
            grid = (tilewright.cdiv(m, bm), tilewright.cdiv(n, bn))
            strides = [s // a.itemsize for s in (*a.strides, *b.strides)]
            compiled = kernel[grid](
                *(a, b, c, m, n, k, *strides),
                **{"BM": bm, "BN": bn, "BK": bk},
                ACC=tl.int32 if dtype == np.int8 else tl.float32,
            )
            # An f16 is packed in three parts, which pays from 24 rows on.
            is_amx = dtype != F16 or bm >= 24
            assert set(units(compiled)) == {"amx" if is_amx else "vectors"}
            np.testing.assert_array_equal(c[:m], a.astype(acc) @ b.astype(acc), str((m, n, k)))
            assert (c[m] == 77).all()


def attention(q, k, v, out, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """One head of attention, keys in steps of BN; `n` keys."""
    d, m = tl.arange(0, D), tl.program_id(0) * BM + tl.arange(0, BM)
    x = tl.load(q + m[:, None] * D + d[None, :])
    acc, total = tl.zeros((BM, D), tl.float32), tl.zeros((BM,), tl.float32)
    most = tl.full((BM,), float("-inf"), tl.float32)
    for start in range(0, n, BN):
        keys = start + tl.arange(0, BN)
        y = tl.load(k + keys[:, None] * D + d[None, :], keys[:, None] < n, 0)
        scores = tl.dot(x, tl.trans(y)) * scale + tl.where(keys < n, 0, float("-inf"))[None, :]
        following = tl.maximum(most, tl.max(scores, 1))
        p = tl.exp(scores - following[:, None])
        shrink = tl.exp(most - following)
        total = total * shrink + tl.sum(p, 1)
        z = tl.load(v + keys[:, None] * D + d[None, :], keys[:, None] < n, 0)
        acc = tl.dot(p.to(v.dtype.element_ty), z, acc * shrink[:, None])
        most = following
    tl.store(out + m[:, None] * D + d[None, :], acc / total[:, None])


@pytest.mark.parametrize("n", [1, 64, 100])
def test_attention_multiplies_probabilities_on_amx(
    n: int, amx_jit: Jit, rng: np.random.Generator
) -> None:
    q, k, v = (rng.standard_normal((rows, 64)).astype(BF16) for rows in (64, n, n))
    out = np.zeros((64, 64), np.float32)
    compiled = amx_jit(attention)[(2,)](q, k, v, out, n, 0.125, D=64, BM=32, BN=32)
    assert units(compiled) == ["amx", "amx"]
    x, y, z = (each.astype(np.float64) for each in (q, k, v))
    scores = x @ y.T * 0.125
    p = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, p / p.sum(1, keepdims=True) @ z, rtol=0, atol=8e-3)


def batched(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """c[i] = a[i] @ b[i]."""
    i, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None, None] * (M * K) + m[None, :, None] * K + k[None, None, :])
    y = tl.load(b + i[:, None, None] * (K * N) + k[None, :, None] * N + n[None, None, :])
    tl.store(c + i[:, None, None] * (M * N) + m[None, :, None] * N + n[None, None, :], tl.dot(x, y))


@pytest.mark.parametrize("dtype", [BF16, F16, np.dtype(np.int8)], ids=str)
def test_batched_products_are_exact(
    dtype: np.dtype, amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, b = random(rng, (4, 32, 64), dtype), random(rng, (4, 64, 16), dtype)
    acc = np.dtype(np.int32 if dtype == np.int8 else np.float32)
    c = np.zeros((4, 32, 16), acc)
    compiled = amx_jit(batched)[(1,)](a, b, c, B=4, M=32, N=16, K=64)
    assert units(compiled) == ["amx"]
    np.testing.assert_array_equal(c, a.astype(acc) @ b.astype(acc))


def operands_of_two_units(
    a, b, c, few, out, narrow, short,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FEW: tl.constexpr,
):  # fmt: skip
    """Products that share operands: AMX's beside those with too few rows or columns for it."""
    m, n, k, r = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, FEW)
    x = tl.load(a + m[:, None] * K + k[None, :])
    x = (x.to(tl.float32) * 2).to(a.dtype.element_ty)
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(x, y))
    z = tl.load(c + k[:, None] * FEW + r[None, :])
    tl.store(narrow + m[:, None] * FEW + r[None, :], tl.dot(x, z))
    w = tl.load(few + r[:, None] * K + k[None, :])
    tl.store(short + r[:, None] * N + n[None, :], tl.dot(w, y))


@pytest.mark.parametrize("few", [1, 2])
@pytest.mark.parametrize("dtype", [BF16, F16, np.dtype(np.int8)], ids=str)
def test_operands_of_two_units_are_packed_for_both(
    dtype: np.dtype, few: int, amx_jit: Jit, rng: np.random.Generator
) -> None:
    acc = np.dtype(np.int32 if dtype == np.int8 else np.float32)
    a, b = random(rng, (32, 64), dtype), random(rng, (64, 32), dtype)
    if dtype == np.int8:
        a //= 2
    c, w = random(rng, (64, few), dtype), random(rng, (few, 64), dtype)
    out, narrow = np.zeros((32, 32), acc), np.zeros((32, few), acc)
    short = np.zeros((few, 32), acc)
    compiled = amx_jit(operands_of_two_units)[(1,)](
        a, b, c, w, out, narrow, short, M=32, N=32, K=64, FEW=few
    )
    assert units(compiled) == ["amx", "vectors", "vectors"]
    x, y = 2 * a.astype(acc), b.astype(acc)
    np.testing.assert_array_equal(out, x @ y)
    np.testing.assert_array_equal(narrow, x @ c.astype(acc))
    np.testing.assert_array_equal(short, w.astype(acc) @ y)


def powers(a, out, n, SIZE: tl.constexpr):
    """a squared n times, modulo 8: both operands are what the loop carries."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    x = tl.load(a + here)
    for _ in range(n):
        x = (tl.dot(x, x) & 7).to(tl.int8)
    tl.store(out + here, x)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_carried_operands_are_multiplied_as_they_were(
    n: int, amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, out = random(rng, (64, 64), np.dtype(np.int8)), np.zeros((64, 64), np.int8)
    compiled = amx_jit(powers)[(1,)](a, out, n, SIZE=64)
    assert units(compiled) == ["amx"]
    want = a
    for _ in range(n):
        want = (want.astype(np.int32) @ want.astype(np.int32) & 7).astype(np.int8)
    np.testing.assert_array_equal(out, want)


def overwritten(a, b, c, SIZE: tl.constexpr):
    """c = a @ b, where `a` is overwritten between its load and the product."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    x, y = tl.load(a + here), tl.load(b + here)
    tl.store(a + here, y)
    tl.store(c + here, tl.dot(x, y))


def test_a_store_between_load_and_product_is_not_seen(
    amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, b = random(rng, (2, 32, 32), BF16)
    want, c = a.astype(np.float32) @ b.astype(np.float32), np.zeros((32, 32), np.float32)
    compiled = amx_jit(overwritten)[(1,)](a, b, c, SIZE=32)
    assert units(compiled) == ["amx"]
    np.testing.assert_array_equal(c, want)
    np.testing.assert_array_equal(a, b)


def test_deep_loops_take_512_of_bf16_at_once_and_the_rest_in_a_last_step(
    amx_jit: Jit, rng: np.random.Generator
) -> None:
    kernel = amx_jit(matmul)
    for k in (512, 1024 + 64, 40, 700):
        a, b = random(rng, (32, k), BF16), random(rng, (k, 32), BF16)
        c = np.zeros((32, 32), np.float32)
        compiled = kernel[(1, 1)](
            a, b, c, 32, 32, k, k, 1, 32, 1, BM=32, BN=32, BK=64, ACC=tl.float32
        )
        text = compiled.asm["nests"]
        assert "k = 512 : i64" in text and "k = 64 : i64" not in text
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_many_programs_on_many_threads_do_not_disturb_each_other(
    amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, b = random(rng, (512, 64), BF16), random(rng, (64, 512), BF16)
    c = np.zeros((512, 512), np.float32)
    kernel = amx_jit(matmul)
    for _ in range(3):
        c[...] = -1
        kernel[(32, 16)](a, b, c, 512, 512, 64, 64, 1, 512, 1, BM=16, BN=32, BK=32, ACC=tl.float32)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def wide_results(
    a, b, c, out, turned, n,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, VIEWED: tl.constexpr,
):  # fmt: skip
    """Accumulators a KiB wide: scaled, chosen between, reduced, stored turned, or reshaped."""
    m, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    here = m[:, None] * N + j[None, :]
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    acc = tl.load(c + here)
    for step in range(n):
        acc = tl.dot(x, y, acc)
        if step % 2 == 0:
            acc = acc * 0.5
        else:
            acc = tl.dot(x, y, acc)
    if VIEWED:
        acc = tl.reshape(tl.reshape(acc, (M * N // 2, 2)), (M, N))
    tl.store(out + here, acc)
    tl.store(turned + j[:, None] * M + m[None, :], tl.trans(acc))


@pytest.mark.parametrize("viewed", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_results_with_gaps_between_their_rows_are_those_without(
    n: int, viewed: bool, amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, b = random(rng, (16, 64), BF16), random(rng, (64, 256), BF16)
    c = random(rng, (16, 256), np.dtype(np.float32))
    out, turned = np.zeros((16, 256), np.float32), np.zeros((256, 16), np.float32)
    compiled = amx_jit(wide_results)[(1,)](
        a, b, c, out, turned, n, M=16, N=256, K=64, VIEWED=viewed
    )
    assert units(compiled) == ["amx", "amx"]
    text = compiled.asm["nests"]
    assert ("acc_stride = 272" in text) == (not viewed)
    product, want = a.astype(np.float32) @ b.astype(np.float32), c.copy()
    for step in range(n):
        want = want + product
        want = want * 0.5 if step % 2 == 0 else want + product
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(turned, want.T)


def counted(
    a, b, out, low, high, STEP: tl.constexpr, SIZE: tl.constexpr, TWICE: tl.constexpr
):  # fmt: skip
    """As many products as there are steps from low to high, or twice as many."""
    i = tl.arange(0, SIZE)
    here = i[:, None] * SIZE + i[None, :]
    x, y = tl.load(a + here), tl.load(b + here)
    acc = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(low, high, STEP):
        acc = tl.dot(x, y, acc)
    tl.store(out + here, acc * 2 if TWICE else acc)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(
    ("low", "high", "count"),
    [
        *[(0, 0, 0), (5, -5, 0), (3, 4, 1), (-100, 29, 3), (0, 64, 1), (0, 65, 2)],
        *[(2**31 - 20, 2**31 - 1, 1), (-(2**31), 10 - 2**31, 1)],
    ],
)
def test_every_step_of_a_loop_is_multiplied_once(
    low: int, high: int, count: int, twice: bool, amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, b = random(rng, (2, 32, 32), BF16)
    out = np.full((32, 32), -1, np.float32)
    compiled = amx_jit(counted)[(1,)](a, b, out, low, high, STEP=64, SIZE=32, TWICE=twice)
    # What is done with a sum keeps it from being stored by the product: the first is peeled.
    assert units(compiled) == ["amx"] * (1 + twice)
    times = count * (1 + twice)
    np.testing.assert_array_equal(out, times * (a.astype(np.float32) @ b.astype(np.float32)))


@pytest.mark.parametrize("shape", [(32, 64, 64), (64, 256, 128), (32, 16, 16)], ids=str)
def test_halves_are_multiplied_exactly_and_summed_in_float32(
    shape: tuple[int, int, int], amx_jit: Jit, rng: np.random.Generator
) -> None:
    m, n, k = shape
    a = (rng.standard_normal((m, k)) * np.exp2(rng.integers(-20, 8, (m, k)))).astype(np.float16)
    b = rng.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    compiled = amx_jit(matmul)[(1, 1)](
        a, b, c, m, n, k, k, 1, n, 1, BM=m, BN=n, BK=k, ACC=tl.float32
    )
    assert set(units(compiled)) == {"amx"}
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert (np.abs(c - x @ y) <= (4 * k + 2) * 2.0**-24 * (np.abs(x) @ np.abs(y))).all()
    # One place of f16 more or less in an operand would show.
    one = np.float16(1 + 2**-10)
    a[...], b[...] = 0, 0
    a[0, 0], b[0, 0] = one, one
    amx_jit(matmul)[(1, 1)](a, b, c, m, n, k, k, 1, n, 1, BM=m, BN=n, BK=k, ACC=tl.float32)
    assert c[0, 0] == np.float32(one) * np.float32(one) and np.count_nonzero(c) == 1


def test_infinite_halves_make_infinities_and_nans_where_arithmetic_does(amx_jit: Jit) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((32, 32)).astype(np.float16) for _ in range(2))
    a[:, 4:8], b[4:8] = np.round(a[:, 4:8] * 4) / 4, np.round(b[4:8] * 4) / 4
    a[1, 4], a[2, 5], a[3, 6], b[7, 9], a[4, 7] = np.inf, -np.inf, np.nan, np.inf, 0
    a[5], b[:, 3] = np.float16(2.0**-24), np.float16(2.0**-24)  # the smallest numbers
    c = np.zeros((32, 32), np.float32)
    compiled = amx_jit(matmul)[(1, 1)](
        a, b, c, 32, 32, 32, 32, 1, 32, 1, BM=32, BN=32, BK=32, ACC=tl.float32
    )
    assert set(units(compiled)) == {"amx"}
    with np.errstate(invalid="ignore"):
        want = (a[:, :, None].astype(np.float64) * b[None].astype(np.float64)).sum(1)
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-5)
    assert np.isnan(c[4, 9]) and np.isinf(c[1]).any() and c[5, 3] == 32 * 2.0**-48


def precise_matmul(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, P: tl.constexpr
):
    """c = a @ b of f32 in an input precision, with masks."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], (m < M)[:, None] & (k < K)[None, :], 0)
        y = tl.load(b + k[:, None] * N + n[None, :], (k < K)[:, None] & (n < N)[None, :], 0)
        acc = tl.dot(x, y, acc, input_precision=P)
    tl.store(c + m[:, None] * N + n[None, :], acc, (m < M)[:, None] & (n < N)[None, :])


@pytest.mark.parametrize("size", [(64, 64, 64), (33, 70, 100), (1, 17, 513), (65, 33, 0)], ids=str)
@pytest.mark.parametrize("tile", [(256, 256, 32), (512, 256, 64)], ids=str)
def test_bf16x3_takes_three_products_within_its_bound(
    tile: tuple[int, int, int], size: tuple[int, int, int], amx_jit: Jit, rng: np.random.Generator
) -> None:
    (m, n, k), (bm, bn, bk) = size, tile
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    c = np.full((m + 1, n), 77, np.float32)
    grid = (tilewright.cdiv(m, bm), tilewright.cdiv(n, bn))
    kernel = amx_jit(precise_matmul)
    compiled = kernel[grid](a, b, c, m, n, k, BM=bm, BN=bn, BK=bk, P="bf16x3")
    assert set(units(compiled)) == {"amx"}
    assert len(units(compiled)) % 3 == 0
    wide = a.astype(np.float64) @ b.astype(np.float64)
    # Parts of 8 bits each, and sums in f32 of all three products.
    bound = (3 * 2.0**-18 + (3 * k + 3) * 2.0**-24) * (np.abs(a) @ np.abs(b))
    assert (np.abs(c[:m] - wide) <= bound).all()
    assert (c[m] == 77).all()


def test_infinities_and_nans_of_bf16x3_are_those_of_f32(
    amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    a[3, 5], a[7, 9], b[11, 2] = np.inf, np.nan, -np.inf
    # Beyond the largest bfloat16: infinity, not NaN.
    a[5], a[5, 0], b[0] = 0, 3.4e38, np.abs(b[0]) + 2
    c = np.zeros((64, 64), np.float32)
    kernel = amx_jit(precise_matmul)
    compiled = kernel[(1, 1)](a, b, c, 64, 64, 64, BM=256, BN=256, BK=32, P="bf16x3")
    assert set(units(compiled)) == {"amx"}
    with np.errstate(invalid="ignore", over="ignore"):
        want = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(c[~finite], want[~finite])
    np.testing.assert_allclose(c[finite], want[finite], rtol=0, atol=1e-3)


@pytest.mark.parametrize("precision", ["ieee", "tf32", "bf16x6"])
def test_other_precisions_of_f32_stay_with_vectors(precision: str, amx_jit: Jit) -> None:
    a, c = np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)
    kernel = amx_jit(precise_matmul)
    compiled = kernel[(1, 1)](a, a, c, 32, 32, 32, BM=256, BN=256, BK=32, P=precision)
    assert set(units(compiled)) == {"vectors"}
    np.testing.assert_array_equal(c, 32)


def told_targets(compiled: object) -> list[str]:
    """The element type that each product is told to store its sum as; "" where it is not told."""
    assert isinstance(compiled, CompiledKernel)
    text = compiled.asm["nests"]
    found = []
    for line in text.splitlines():
        if "cpu.dot" in line:
            types = line.rsplit(" : (", 1)[1].split(")")[0].split(", ")
            found.append(types[-4] if types[-2:] == ["i1", "i1"] else "")
    return found


def stored(
    a, b, c, M, N, K, pitch, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    ACC: tl.constexpr, TWICE: tl.constexpr,
):  # fmt: skip
    """c = a @ b rounded to c's type, one program a tile; TWICE: doubled before."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), ACC)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        x = tl.load(a + m[:, None] * K + k[None, :], (m < M)[:, None] & (k < K)[None, :], 0)
        y = tl.load(b + k[:, None] * N + n[None, :], (k < K)[:, None] & (n < N)[None, :], 0)
        acc = tl.dot(x, y, acc)
    if TWICE:
        acc *= 2
    inside = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * pitch + n[None, :], acc.to(c.dtype.element_ty), inside)


RESULTS = [
    *[(BF16, np.dtype(np.float32)), (BF16, BF16), (BF16, F16), (F16, F16)],
    *[(np.dtype(np.int8), np.dtype(np.int32)), (F16, BF16)],
]
# Whole tiles, ragged ones, no k, one k, more than a deep step of bf16 and a part of one.
STORED_SIZES = [(64, 128, 64), (33, 70, 100), (32, 64, 0), (17, 64, 1), (40, 64, 1100)]


@pytest.mark.parametrize("tile", [(32, 64, 32), (32, 8, 16), (32, 256, 512), (8, 8, 16)], ids=str)
@pytest.mark.parametrize(("dtype", "result"), RESULTS, ids=str)
def test_products_store_their_own_sums_rounded_once(
    dtype: np.dtype, result: np.dtype, tile: tuple[int, int, int], amx_jit: Jit,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    (bm, bn, bk), kernel = tile, amx_jit(stored)
    acc = np.dtype(np.int32 if dtype == np.int8 else np.float32)
    for m, n, k in STORED_SIZES:
        a, b = random(rng, (m, k), dtype), random(rng, (k, n), dtype)
        c = np.full((m + 1, n + 3), 77, result)
        grid = (tilewright.cdiv(m, bm), tilewright.cdiv(n, bn))
        compiled = kernel[grid](
            *(a, b, c, m, n, k, n + 3),
            **{"BM": bm, "BN": bn, "BK": bk, "TWICE": False},
            ACC=tl.int32 if dtype == np.int8 else tl.float32,
        )
        want = (a.astype(acc) @ b.astype(acc)).astype(result)
        np.testing.assert_array_equal(c[:m, :n], want, str((m, n, k)))
        assert (c[m] == 77).all() and (c[:, n:] == 77).all()
        names = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "int32": "i32"}
        told = f"!tt.ptr<{names[result.name]}>" if bm > 16 else ""
        assert set(told_targets(compiled)) == {told}


def test_what_is_done_with_a_sum_keeps_it_in_its_place(
    amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, b = random(rng, (32, 64), BF16), random(rng, (64, 32), BF16)
    c = np.zeros((32, 32), np.float32)
    compiled = amx_jit(stored)[(1, 1)](
        a, b, c, 32, 32, 64, 32, BM=32, BN=32, BK=32, ACC=tl.float32, TWICE=True
    )
    assert set(told_targets(compiled)) == {""}
    np.testing.assert_array_equal(c, 2 * (a.astype(np.float32) @ b.astype(np.float32)))


def test_stored_sums_are_rounded_to_nearest_even_denormals_included(amx_jit: Jit) -> None:
    # Row by row one number: ties, just beyond, overflow, infinities, NaN, numbers that are
    # denormal as bf16 and as f32, each times one.
    halves = [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-16, -(1 + 2.0**-8), 3.4e38]
    numbers = np.array([*halves, np.inf, -np.inf, np.nan, 2.0**-126, 2.0**-120], np.float32)
    upper = numbers.astype(BF16)
    with np.errstate(invalid="ignore"):
        rest = np.where(np.isfinite(numbers), numbers - upper.astype(np.float32), 0).astype(BF16)
    a, b = np.zeros((32, 32), BF16), np.zeros((32, 16), BF16)
    a[: len(numbers), 0], a[: len(numbers), 2] = upper, rest
    b[0], b[2] = 1, 1
    exact = np.zeros((32, 16), np.float32)
    jit = amx_jit(stored)
    sizes = {"BM": 32, "BN": 16, "BK": 32, "ACC": tl.float32, "TWICE": False}
    jit[(1, 1)](a, b, exact, 32, 16, 32, 16, **sizes)
    rounded = np.zeros((32, 16), BF16)
    compiled = jit[(1, 1)](a, b, rounded, 32, 16, 32, 16, **sizes)
    assert set(told_targets(compiled)) == {"!tt.ptr<bf16>"}
    want = exact.astype(BF16)
    np.testing.assert_array_equal(np.isnan(rounded), np.isnan(want))
    kept = ~np.isnan(want)
    np.testing.assert_array_equal(rounded.view(np.uint16)[kept], want.view(np.uint16)[kept])
    assert rounded[0, 0] == 1 and rounded[1, 0] == 1 + 2.0**-6 and rounded[2, 0] > 1


@pytest.mark.parametrize("shift", [0, 2, 64, 2046, 2048, 4094, 4096, 4098])
@pytest.mark.parametrize("operand", ["a", "b"])
@pytest.mark.parametrize("result", [BF16, np.dtype(np.float32)], ids=str)
def test_a_result_over_an_operand_is_stored_when_that_is_read(
    operand: str, shift: int, result: np.dtype, amx_jit: Jit, rng: np.random.Generator
) -> None:
    memory = np.zeros(16384, np.uint8)
    mine = memory[6144:8192].view(BF16).reshape(32, 32)
    mine[...] = random(rng, (32, 32), BF16)
    other = random(rng, (32, 32), BF16)
    size = 1024 * result.itemsize
    start = 6144 + shift - size // 2
    c = memory[start - start % result.itemsize :][:size].view(result).reshape(32, 32)
    a, b = (mine, other) if operand == "a" else (other, mine)
    want = (a.astype(np.float32) @ b.astype(np.float32)).astype(result)
    compiled = amx_jit(stored)[(1, 1)](
        a, b, c, 32, 32, 32, 32, BM=32, BN=32, BK=32, ACC=tl.float32, TWICE=False
    )
    assert set(told_targets(compiled)) != {""}
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize("pitch", [0, 1, 31, 32, 33])
def test_rows_that_overlap_are_stored_in_order(
    pitch: int, amx_jit: Jit, rng: np.random.Generator
) -> None:
    a, b = random(rng, (32, 32), BF16), random(rng, (32, 32), BF16)
    memory, want = np.zeros(1200, BF16), np.zeros(1200, BF16)
    amx_jit(stored)[(1, 1)](
        a, b, memory, 32, 32, 32, pitch, BM=32, BN=32, BK=32, ACC=tl.float32, TWICE=False
    )
    for row, values in enumerate(a.astype(np.float32) @ b.astype(np.float32)):
        want[row * pitch : row * pitch + 32] = values.astype(BF16)
    np.testing.assert_array_equal(memory, want)
