"""Matrix products by wgmma, mma and threads, simulated: every dtype, either order of operands."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.case import Case, Close
from tests.corpus.threads import lower_for_gpu, run_threads
from tilewright.ops import arguments
from tilewright.ops.staging import LaidOutDotOp
from tilewright.targets.nvidia.partition import form


@tilewright.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, a_m, a_k, b_k, b_n,
    PRECISION: tl.constexpr, OUT: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """c = a @ b in `STEPS` steps over K; operands with any strides."""
    rows = tl.arange(0, M)[:, None]
    columns = tl.arange(0, N)[None, :]
    acc = tl.zeros((M, N), dtype=OUT)
    for step in range(STEPS):
        k = step * K + tl.arange(0, K)
        a = tl.load(a_ptr + rows * a_m + k[None, :] * a_k)
        b = tl.load(b_ptr + k[:, None] * b_k + columns * b_n)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=OUT)
    tl.store(c_ptr + rows * N + columns, acc)


def product(
    dtype: type[np.generic],
    shape: tuple[int, int, int],
    orders: str = "nn",
    precision: str = "ieee",
    out: tl.dtype = tl.float32,
    tolerance: float = 1e-5,
    steps: int = 2,
    options: Mapping[str, object] | None = None,
) -> Case:
    """A product as a case; `orders` says of a and b whether the last dim is contiguous (n)."""
    m, n, k = shape
    total = k * steps
    result = {tl.float32: np.float32, tl.float16: np.float16, tl.int32: np.int32}

    def operand(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
        if np.dtype(dtype).kind == "i":
            return rng.integers(-9, 9, (rows, columns)).astype(dtype)
        return rng.standard_normal((rows, columns)).astype(np.float32).astype(dtype)

    def inputs(rng: np.random.Generator) -> dict[str, object]:
        a = operand(rng, m, total) if orders[0] == "n" else operand(rng, total, m)
        b = operand(rng, total, n) if orders[1] == "n" else operand(rng, n, total)
        return {
            "a_ptr": a, "b_ptr": b, "c_ptr": np.zeros((m, n), result.get(out, np.float64)),
            "M": m, "N": n, "K": k, "PRECISION": precision, "OUT": out, "STEPS": steps,
            "a_m": total if orders[0] == "n" else 1, "a_k": 1 if orders[0] == "n" else m,
            "b_k": n if orders[1] == "n" else 1, "b_n": 1 if orders[1] == "n" else total,
        }  # fmt: skip

    def reference(values: SimpleNamespace) -> None:
        wide = np.int64 if np.dtype(dtype).kind == "i" else np.float64
        a = values.a_ptr if orders[0] == "n" else values.a_ptr.T
        b = values.b_ptr if orders[1] == "n" else values.b_ptr.T
        values.c_ptr[:] = a.astype(wide) @ b.astype(wide)

    name = f"{np.dtype(dtype).name}-{orders}-{'x'.join(map(str, shape))}-{precision}-{out}"
    scale = tolerance * np.sqrt(total)
    close, given = Close(tolerance, scale), dict(options or {})
    return Case(name, product_kernel, (1,), inputs, reference, close, options=given)


def instruction_of(case: Case, **options: object) -> str:
    """The instruction that the first product of a case became."""
    module = lower_for_gpu(case, **options).scheduled.module
    return next(op.product.data.instruction for op in module.walk() if isinstance(op, LaidOutDotOp))


def check_product(case: Case, **options: object) -> None:
    """Simulate a case and compare it with NumPy."""
    got, expected = run_threads(case, **options)["c_ptr"], case.expected()["c_ptr"]
    wide = got.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_allclose(*wide, case.tolerance.rtol, case.tolerance.atol)


HALVES = (np.float16, ml_dtypes.bfloat16)


@pytest.mark.parametrize("orders", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", HALVES)
def test_wgmma_reads_halves_in_either_order(dtype: type[np.generic], orders: str) -> None:
    case = product(dtype, (64, 64, 32), orders)
    assert instruction_of(case) == "wgmma"
    check_product(case)


@pytest.mark.parametrize("orders", ["nt", "nn"])
@pytest.mark.parametrize(
    ("dtype", "precision", "out", "tolerance"),
    [
        (np.float32, "tf32", tl.float32, 3e-3),
        (ml_dtypes.float8_e4m3fn, "ieee", tl.float32, 1e-5),
        (ml_dtypes.float8_e5m2, "ieee", tl.float32, 1e-5),
        (np.int8, "ieee", tl.int32, 0.0),
    ],
)
def test_wgmma_takes_other_dtypes_along_k(
    dtype: type[np.generic], precision: str, out: tl.dtype, tolerance: float, orders: str
) -> None:
    case = product(dtype, (64, 32, 64), orders, precision, out, tolerance)
    assert instruction_of(case) == "wgmma"
    check_product(case)


@pytest.mark.parametrize("shape", [(128, 128, 64), (128, 32, 128), (64, 256, 16), (256, 64, 16)])
@pytest.mark.parametrize("num_warps", [4, 8])
def test_warp_groups_share_rows_then_columns(shape: tuple[int, int, int], num_warps: int) -> None:
    case = product(np.float16, shape, "nn", steps=1)
    assert instruction_of(case, num_warps=num_warps) == "wgmma"
    check_product(case, num_warps=num_warps)


def test_half_accumulators_are_halves() -> None:
    case = product(np.float16, (64, 64, 32), "nn", out=tl.float16, tolerance=2e-2)
    assert instruction_of(case) == "wgmma"
    check_product(case)


@pytest.mark.parametrize("precision", ["tf32x3", "bf16x3", "bf16x6", "ieee"])
def test_float32_products_are_as_precise_as_they_say(precision: str) -> None:
    tolerance = {"tf32x3": 2e-6, "bf16x3": 1e-4, "bf16x6": 2e-6, "ieee": 1e-6}[precision]
    case = product(np.float32, (64, 32, 32), "nn", precision, tolerance=tolerance)
    assert instruction_of(case) == ("fma" if precision == "ieee" else "wgmma")
    check_product(case)


@tilewright.jit
def dot_of_rows(a, b, c, PRECISION: tl.constexpr):
    rows, columns, depth = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :], tl.arange(0, 32)
    x = tl.load(a + rows * 32 + depth[None, :])
    y = tl.load(b + depth[:, None] * 64 + columns)
    tl.store(c + rows * 64 + columns, tl.dot(x, y, input_precision=PRECISION))


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"])
def test_infinities_and_nans_are_those_of_float32(precision: str) -> None:
    """Times numbers whose parts are zero, positive, or of the other sign."""
    a, b = np.ones((64, 32), np.float32), np.ones((32, 64), np.float32)
    a[0, 0], a[1, 3], a[2, 5], a[3, 0] = np.inf, -np.inf, np.nan, 0
    b[:, 1], b[0, 2], b[0, 3], b[7, 4], b[:, 5] = 0.1, -0.3, 0, np.inf, 1.0039
    c = np.zeros((64, 64), np.float32)
    dot_of_rows.simulate[(1,)](a, b, c, PRECISION=precision)
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=2e-3)


@pytest.mark.parametrize(
    ("dtype", "shape", "out"),
    [
        (np.float64, (32, 32, 16), tl.float64),
        (np.float32, (16, 16, 16), tl.float32),
        (np.float16, (16, 16, 16), tl.float32),
        (np.int8, (16, 16, 32), tl.int32),
    ],
)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_small_products_and_doubles(
    dtype: type[np.generic], shape: tuple[int, int, int], out: tl.dtype, num_warps: int
) -> None:
    check_product(product(dtype, shape, "nn", out=out), num_warps=num_warps)


# The narrowest: a row of B is a chunk of 16 bytes, which nothing swizzles.
NARROW = [(64, 8, 16), (64, 8, 64), (128, 8, 32), (128, 16, 32)]


@pytest.mark.parametrize("shape", NARROW)
@pytest.mark.parametrize("orders", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", HALVES)
def test_few_columns_are_read_in_either_order(
    dtype: type[np.generic], orders: str, shape: tuple[int, int, int]
) -> None:
    case = product(dtype, shape, orders)
    assert instruction_of(case) == "wgmma"
    check_product(case)


@pytest.fixture
def any_extent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of any extent, which the surface refuses and what is below must not."""
    monkeypatch.setattr(arguments, "is_tile_extent", lambda extent, _: extent > 0)
    monkeypatch.setattr(form, "require_extents", lambda *_: None)


UNEVEN = [
    ((192, 128, 32), 8, "wgmma"),
    ((192, 64, 32), 16, "wgmma"),
    ((320, 32, 32), 8, "wgmma"),
    ((384, 48, 16), 8, "wgmma"),
    ((384, 24, 16), 16, "mma"),
    ((192, 96, 48), 4, "wgmma"),
    ((128, 176, 16), 8, "wgmma"),
    ((64, 80, 16), 8, "wgmma"),
    ((128, 80, 32), 8, "wgmma"),
    ((64, 40, 16), 8, "mma"),
    ((64, 40, 32), 4, "wgmma"),
    ((128, 24, 48), 4, "wgmma"),
    ((64, 8, 16), 4, "wgmma"),
    ((48, 24, 16), 4, "mma"),
    ((80, 40, 48), 8, "mma"),
    ((112, 8, 16), 2, "mma"),
    ((20, 32, 16), 4, "fma"),
    ((36, 8, 4), 8, "fma"),
]


@pytest.mark.usefixtures("any_extent")
@pytest.mark.parametrize(("shape", "num_warps", "instruction"), UNEVEN)
def test_rows_and_columns_of_uneven_products_are_all_computed(
    shape: tuple[int, int, int], num_warps: int, instruction: str
) -> None:
    case = product(np.float16, shape, "nn", steps=1)
    assert instruction_of(case, num_warps=num_warps) == instruction
    check_product(case, num_warps=num_warps)
    if instruction == "wgmma":
        check_product(product(np.float16, shape, "tt", steps=1), num_warps=num_warps)


@pytest.mark.usefixtures("any_extent")
@pytest.mark.parametrize("shape", [(192, 64, 64), (48, 24, 32)])
@pytest.mark.parametrize("dtype", [np.int8, ml_dtypes.float8_e5m2, np.float32])
def test_uneven_products_are_right_in_every_width(
    dtype: type[np.generic], shape: tuple[int, int, int]
) -> None:
    out = tl.int32 if dtype is np.int8 else tl.float32
    precision, tolerance = ("tf32", 3e-3) if dtype is np.float32 else ("ieee", 1e-5)
    case = product(dtype, shape, "nt", precision, out, tolerance, steps=1)
    check_product(case, num_warps=8)
