"""`tl.math`, `tl.extra.libdevice` and scaled products against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.emission import Emission
from tests.ops.harness import interpret
from tilewright.language.core import (
    bfloat16,
    float16,
    float32,
    float64,
    int16,
    int32,
    uint8,
)
from tilewright.ops.library import SURFACE
from tilewright.support.errors import (
    DotDtypeMismatch,
    DotShapeMismatch,
    DtypeNotAllowed,
    InvalidOption,
)

SIZE = 64
MATH = (
    *("abs", "ceil", "cos", "div_rn", "erf", "exp", "exp2", "fdiv", "floor", "fma", "log"),
    *("log2", "rsqrt", "sin", "sqrt", "sqrt_rn", "tanh", "umulhi"),
)


def test_math_has_every_published_function() -> None:
    missing = [name for name in MATH if f"math.{name}" not in SURFACE]
    assert missing == []
    assert tl.math.tanh is not None
    assert tl.extra.libdevice.tanh is not None


@tilewright.jit
def unary_kernel(x, out, NAME: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    v = tl.load(x + at)
    if NAME == "tanh":
        r = tl.extra.libdevice.tanh(v)
    elif NAME == "sinh":
        r = tl.extra.libdevice.sinh(v)
    elif NAME == "cosh":
        r = tl.extra.libdevice.cosh(v)
    elif NAME == "log1p":
        r = tl.math.log1p(v)
    elif NAME == "expm1":
        r = tl.math.expm1(v)
    elif NAME == "atan":
        r = tl.extra.libdevice.atan(v)
    elif NAME == "cbrt":
        r = tl.extra.libdevice.cbrt(v)
    elif NAME == "trunc":
        r = tl.extra.libdevice.trunc(v)
    elif NAME == "rint":
        r = tl.extra.libdevice.rint(v)
    else:
        r = tl.extra.libdevice.abs(v)
    tl.store(out + at, r)


@pytest.mark.parametrize("element", ["float32", "float64"])
@pytest.mark.parametrize(
    "name", ["tanh", "sinh", "cosh", "log1p", "expm1", "atan", "cbrt", "trunc", "rint", "abs"]
)
def test_functions_of_one_operand_agree_with_numpy(
    name: str, element: str, rng: np.random.Generator
) -> None:
    x = rng.uniform(-0.9, 4, SIZE).astype(element)
    out = np.zeros(SIZE, element)
    interpret(unary_kernel, (1,), x, out, NAME=name, SIZE=SIZE)
    reference: Callable[[np.ndarray], np.ndarray] = getattr(np, {"atan": "arctan"}.get(name, name))
    np.testing.assert_allclose(out, reference(x), rtol=1e-6)


@tilewright.jit
def binary_kernel(x, y, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.extra.libdevice.pow(a, b))
    tl.store(out + SIZE + at, tl.extra.libdevice.atan2(a, b))
    tl.store(out + 2 * SIZE + at, tl.extra.libdevice.hypot(a, b))
    tl.store(out + 3 * SIZE + at, tl.extra.libdevice.fmod(a, b))
    tl.store(out + 4 * SIZE + at, tl.extra.libdevice.copysign(a, b))
    tl.store(out + 5 * SIZE + at, tl.extra.libdevice.fdim(a, b))
    tl.store(out + 6 * SIZE + at, tl.extra.libdevice.pow(a, 3))


def test_functions_of_two_operands_agree_with_numpy(rng: np.random.Generator) -> None:
    x, y = (rng.uniform(0.1, 3, SIZE).astype(np.float32) for _ in range(2))
    y[: SIZE // 2] *= -1
    out = np.zeros((7, SIZE), np.float32)
    interpret(binary_kernel, (1,), x, y, out, SIZE=SIZE)
    expected = [
        np.power(x, y),
        np.arctan2(x, y),
        np.hypot(x, y),
        np.fmod(x, y),
        np.copysign(x, y),
        np.maximum(x - y, 0),
        x**3,
    ]
    np.testing.assert_allclose(out, expected, rtol=2e-6, atol=1e-6)


def test_hypot_does_not_overflow_in_between() -> None:
    x = np.array([3e30, 0.0, np.inf, 1e-30], np.float32)
    y = np.array([4e30, 0.0, 1.0, 1e-30], np.float32)
    out = np.zeros((7, 4), np.float32)
    interpret(binary_kernel, (1,), x, y, out, SIZE=4)
    np.testing.assert_allclose(out[2], np.hypot(x, y), rtol=1e-6)


@tilewright.jit
def bits_kernel(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    v = tl.load(x + at)
    tl.store(out + at, tl.extra.libdevice.popc(v))
    tl.store(out + SIZE + at, tl.extra.libdevice.clz(v))
    tl.store(out + 2 * SIZE + at, tl.extra.libdevice.ffs(v))


@pytest.mark.parametrize("element", ["int32", "uint64"])
def test_bit_counts_agree_with_python(element: str) -> None:
    x = np.array([0, 1, 6, 96], element)
    width = 8 * x.dtype.itemsize
    out = np.zeros((3, 4), np.int32)
    interpret(bits_kernel, (1,), x, out, SIZE=4)
    assert out[0].tolist() == [0, 1, 2, 2]
    assert out[1].tolist() == [width, width - 1, width - 3, width - 7]
    assert out[2].tolist() == [0, 1, 2, 6]


@tilewright.jit
def kind_kernel(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    v = tl.load(x + at)
    tl.store(out + at, tl.extra.libdevice.isnan(v))
    tl.store(out + SIZE + at, tl.extra.libdevice.isinf(v))
    tl.store(out + 2 * SIZE + at, tl.extra.libdevice.finitef(v))
    tl.store(out + 3 * SIZE + at, tl.extra.libdevice.signbit(v))


def test_kinds_of_floats_agree_with_numpy() -> None:
    x = np.array([0.0, -0.0, np.nan, -np.inf], np.float32)
    out = np.zeros((4, 4), bool)
    interpret(kind_kernel, (1,), x, out, SIZE=4)
    expected = [np.isnan(x), np.isinf(x), np.isfinite(x), np.signbit(x)]
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("key", ["extra.libdevice.tanh", "math.tanh", "extra.libdevice.pow"])
@pytest.mark.parametrize("element", [float16, bfloat16, int32])
def test_narrow_operands_are_refused(key: str, element: object) -> None:
    emission = Emission()
    x = emission.value(element, 4)  # type: ignore[arg-type]
    operands = [x, x] if key.endswith("pow") else [x]
    with pytest.raises(DtypeNotAllowed):
        emission.call(key, *operands)


def test_bits_of_a_float_are_read_as_an_integer_of_its_width() -> None:
    emission = Emission()
    result = emission.call("extra.libdevice.float_as_int", emission.value(float32, 4))
    assert result.dtype == int32  # type: ignore[union-attr]
    with pytest.raises(DtypeNotAllowed):
        emission.call("extra.libdevice.float_as_int", emission.value(float64, 4))


@tilewright.jit
def scaled_kernel(
    a, sa, b, sb, out,
    FA: tl.constexpr, FB: tl.constexpr,
    KA: tl.constexpr, KB: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    AM: tl.constexpr, AK: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    x = tl.load(a + tl.arange(0, AM)[:, None] * AK + tl.arange(0, AK)[None, :])
    y = tl.load(b + tl.arange(0, BK)[:, None] * BN + tl.arange(0, BN)[None, :])
    groups = tl.arange(0, K // 32)[None, :]
    xs = tl.load(sa + tl.arange(0, M)[:, None] * (K // 32) + groups)
    ys = tl.load(sb + tl.arange(0, N)[:, None] * (K // 32) + groups)
    acc = tl.dot_scaled(x, xs, FA, y, ys, FB, lhs_k_pack=KA, rhs_k_pack=KB)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
FORMATS = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
}


def operand(
    rng: np.random.Generator, format_: str, shape: tuple[int, int], axis: int
) -> tuple[np.ndarray, np.ndarray]:
    """What is passed, and its values; e2m1 packs two along `axis`, low bits first."""
    if format_ != "e2m1":
        values = (rng.integers(-8, 9, shape) / 4).astype(FORMATS[format_])
        passed = values.view(np.uint8) if values.dtype.itemsize == 1 else values
        return passed, values.astype(np.float64)
    codes = rng.integers(0, 16, shape, np.uint8)
    low, high = (np.take(codes, range(i, shape[axis], 2), axis) for i in (0, 1))
    return low | high << 4, E2M1[codes]


M, N, K = 16, 32, 64


@pytest.mark.parametrize(
    ("left", "right", "packs_left", "packs_right"),
    [
        ("e2m1", "e2m1", True, True),
        ("e2m1", "e2m1", False, False),
        ("e4m3", "e2m1", True, True),
        ("e5m2", "e4m3", True, True),
        ("bf16", "fp16", True, True),
    ],
)
def test_scaled_products_agree_with_double_precision(
    left: str, right: str, packs_left: bool, packs_right: bool, rng: np.random.Generator
) -> None:
    a, x = operand(rng, left, (M, K), 1 if packs_left else 0)
    b, y = operand(rng, right, (K, N), 0 if packs_right else 1)
    sa, sb = (rng.integers(120, 134, (n, K // 32), np.uint8) for n in (M, N))
    out = np.zeros((M, N), np.float32)
    interpret(
        scaled_kernel, (1,), a, sa, b, sb, out,
        FA=left, FB=right, KA=packs_left, KB=packs_right, M=M, N=N, K=K,
        AM=a.shape[0], AK=a.shape[1], BK=b.shape[0], BN=b.shape[1],
    )  # fmt: skip
    scale_a = np.repeat(np.exp2(sa.astype(np.float64) - 127), 32, axis=1)
    scale_b = np.repeat(np.exp2(sb.astype(np.float64) - 127), 32, axis=1).T
    np.testing.assert_allclose(out, (x * scale_a) @ (y * scale_b), rtol=1e-5, atol=1e-4)


@tilewright.jit
def batched_scaled_kernel(a, sa, b, sb, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    batch = tl.arange(0, 2)[:, None, None]
    m, n = tl.arange(0, M)[None, :, None], tl.arange(0, N)[None, None, :]
    k = tl.arange(0, K // 2)
    groups = tl.arange(0, K // 32)[None, None, :]
    rows = tl.arange(0, N)[None, :, None]
    x = tl.load(a + batch * (M * K // 2) + m * (K // 2) + k[None, None, :])
    y = tl.load(b + batch * (K // 2 * N) + k[None, :, None] * N + n)
    xs = tl.load(sa + batch * (M * K // 32) + m * (K // 32) + groups)
    ys = tl.load(sb + batch * (N * K // 32) + rows * (K // 32) + groups)
    acc = tl.dot_scaled(x, xs, "e2m1", y, ys, "e2m1")
    tl.store(out + batch * (M * N) + m * N + n, acc)


def test_a_batch_of_scaled_products_is_one_product_each(rng: np.random.Generator) -> None:
    a, b = (
        rng.integers(0, 256, (2, M, K // 2), np.uint8),
        rng.integers(0, 256, (2, K // 2, N), np.uint8),
    )
    sa, sb = (rng.integers(120, 134, (2, n, K // 32), np.uint8) for n in (M, N))
    out, single = np.zeros((2, M, N), np.float32), np.zeros((M, N), np.float32)
    batched_scaled_kernel[(1,)](a, sa, b, sb, out, M=M, N=N, K=K)
    for index in range(2):
        interpret(
            scaled_kernel, (1,), a[index], sa[index], b[index], sb[index], single,
            FA="e2m1", FB="e2m1", KA=True, KB=True, M=M, N=N, K=K, AM=M, AK=K // 2, BK=K // 2, BN=N,
        )  # fmt: skip
        np.testing.assert_allclose(out[index], single, rtol=1e-5, atol=1e-4)


def test_a_scale_of_255_is_nan_and_of_0_the_least_power() -> None:
    a, b = (np.ones(s, ml_dtypes.bfloat16) for s in ((M, K), (K, N)))
    sa, sb = (np.full((n, K // 32), 127, np.uint8) for n in (M, N))
    sa[0, 0], sa[1, :], sb[:, :] = 255, 0, 240
    out = np.zeros((M, N), np.float32)
    interpret(
        scaled_kernel, (1,), a, sa, b, sb, out,
        FA="bf16", FB="bf16", KA=True, KB=True, M=M, N=N, K=K, AM=M, AK=K, BK=K, BN=N,
    )  # fmt: skip
    assert np.isnan(out[0]).all()
    np.testing.assert_allclose(out[1], K * 2.0**-14)
    np.testing.assert_allclose(out[2], K * 2.0**113)


def test_a_missing_scale_is_one() -> None:
    emission = Emission()
    x, y = emission.value(float16, M, K), emission.value(bfloat16, K, N)
    result = emission.call("dot_scaled", x, None, "fp16", y, None, "bf16")
    assert result.dtype == float32  # type: ignore[union-attr]
    assert "arith.mulf" not in emission.names()


def scaled(emission: Emission, **changes: object) -> object:
    arguments: dict[str, object] = {
        "lhs": emission.value(uint8, M, K // 2),
        "lhs_scale": emission.value(uint8, M, K // 32),
        "lhs_format": "e2m1",
        "rhs": emission.value(uint8, K, N),
        "rhs_scale": emission.value(uint8, N, K // 32),
        "rhs_format": "e4m3",
    }
    return emission.call("dot_scaled", **{**arguments, **changes})


def test_what_no_scaled_product_can_be_is_refused() -> None:
    emission = Emission()
    with pytest.raises(InvalidOption, match="lhs_format"):
        scaled(emission, lhs_format="e3m2")
    with pytest.raises(InvalidOption, match="rhs_k_pack"):
        scaled(emission, rhs_k_pack=False)
    with pytest.raises(InvalidOption, match="out_dtype"):
        scaled(emission, out_dtype=float16)
    with pytest.raises(DotDtypeMismatch, match="e2m1 is held in uint8"):
        scaled(emission, lhs=emission.value(int16, M, K // 2))
    with pytest.raises(DotShapeMismatch, match="`rhs_scale`"):
        scaled(emission, rhs_scale=emission.value(uint8, K // 32, N))
    with pytest.raises(DotShapeMismatch, match="2 dimensions"):
        scaled(emission, lhs=emission.value(uint8, K // 2))
