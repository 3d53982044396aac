"""Long sums, products and scans of narrow floats: wide accumulation, one rounding a result."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import BF16, E5M2, EXACT, Array, Case, Close, Values, blank, short

FP16 = np.dtype(np.float16)


@tilewright.jit
def running_sums(
    x, out, totals, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    place = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + place)
    tl.store(out + place, tl.cumsum(a, AXIS, reverse=REVERSE))
    K: tl.constexpr = M if AXIS == 1 else N
    tl.store(totals + tl.arange(0, K), tl.sum(a, AXIS))


@tilewright.jit
def running_products(x, out, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.cumprod(tl.load(x + i), 0, reverse=REVERSE))


@tilewright.jit
def _plus(a, b):
    return a + b


@tilewright.jit
def narrow_scan(x, out, M: tl.constexpr, N: tl.constexpr, REVERSE: tl.constexpr):
    place = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + place, tl.associative_scan(tl.load(x + place), 0, _plus, REVERSE))


def _along(x: Array, axis: int, is_reverse: bool) -> Array:
    """The running sums in float64."""
    wide = np.flip(x, axis) if is_reverse else x
    sums = np.cumsum(wide.astype(np.float64), axis)
    return np.flip(sums, axis) if is_reverse else sums


def _rounded(wide: Array, dtype: np.dtype) -> Array:
    if dtype.itemsize == 1:  # 8-bit floats saturate
        limit = float(ml_dtypes.finfo(dtype).max)
        wide = np.clip(wide, -limit, limit)
    return wide.astype(np.float32).astype(dtype)


def _sums_case(
    dtype: np.dtype, shape: tuple[int, int], axis: int, is_reverse: bool, is_slow: bool = False
) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        # Whole numbers, of which fp32 holds every sum; the greater part is positive.
        x = rng.integers(-1, 4, shape).astype(dtype)
        return {
            "x": x, "out": blank(shape, dtype), "totals": blank(shape[1 - axis], dtype),
            "M": shape[0], "N": shape[1], "AXIS": axis, "REVERSE": is_reverse,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = _rounded(_along(a.x, axis, is_reverse), dtype)
        a.totals[:] = _rounded(a.x.astype(np.float64).sum(axis), dtype)

    way = "backward" if is_reverse else "forward"
    name = f"running-sums-{short(dtype)}-{shape[0]}x{shape[1]}-axis{axis}-{way}"
    return Case(name, running_sums, (1,), inputs, reference, is_slow=is_slow)


def _products_case(dtype: np.dtype, size: int, is_reverse: bool) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        # Half of the way up beyond the range of fp16, then down again.
        x = np.where(np.arange(size) < size // 2, 2.0, 0.5) * rng.choice([-1, 1], (3, size))
        x[:, 40:-40] = 1
        return {"x": x.astype(dtype), "out": blank((3, size), dtype), "N": size,
                "REVERSE": is_reverse}  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        wide = np.flip(a.x, 1) if is_reverse else a.x
        products = np.cumprod(wide.astype(np.float64), 1)
        a.out[:] = (np.flip(products, 1) if is_reverse else products).astype(dtype)

    way = "backward" if is_reverse else "forward"
    return Case(
        f"running-products-{short(dtype)}-{size}-{way}", running_products, (3,), inputs, reference
    )


def _narrow_case(dtype: np.dtype, size: int, is_reverse: bool, close: Close) -> Case:
    def inputs(rng: np.random.Generator) -> Values:
        return {"x": np.ones((size, 4), dtype), "out": blank((size, 4), dtype), "M": 4, "N": size,
                "REVERSE": is_reverse}  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = _along(a.x, 0, is_reverse).astype(np.float32).astype(dtype)

    way = "backward" if is_reverse else "forward"
    name = f"narrow-scan-{short(dtype)}-{size}-{way}"
    return Case(name, narrow_scan, (1,), inputs, reference, close)


CASES = [
    *(
        _sums_case(dtype, shape, axis, is_reverse, is_slow=is_reverse != (axis == 1))
        for dtype in (BF16, FP16)
        for shape, axis in (((1, 4096), 1), ((2048, 4), 0), ((8, 512), 1), ((1, 16), 1))
        for is_reverse in (False, True)
    ),
    _sums_case(E5M2, (1, 1024), 1, False),
    *(
        _products_case(dtype, 1024, is_reverse)
        for dtype, is_reverse in ((FP16, False), (BF16, True))
    ),
    *(
        # A run of 64 is exact in bfloat16; the rest of the way is a tree.
        _narrow_case(dtype, size, is_reverse, EXACT if size < 256 else Close(2.0**-7))
        for dtype, size, is_reverse in ((BF16, 4096, False), (BF16, 128, True), (FP16, 8192, True))
    ),
]
