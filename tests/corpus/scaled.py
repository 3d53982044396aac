"""Products of scaled formats: every format and scale, against the values that the codes mean."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import tilewright
import tilewright.language as tl
from tests.corpus.case import BF16, E4M3, Array, Case, Close, Values, blank
from tests.fp8 import FORMATS

M, N, K = 16, 32, 64
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
CODES = {"e4m3": "float8e4nv", "e5m2": "float8e5"}


@tilewright.jit
def scaled_product(
    a, a_scale, b, b_scale, out, A: tl.constexpr, B: tl.constexpr, K_A: tl.constexpr,
    K_B: tl.constexpr, G: tl.constexpr, M: tl.constexpr, N: tl.constexpr, HAS_B: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(a + rows[:, None] * K_A + tl.arange(0, K_A)[None, :])
    y = tl.load(b + tl.arange(0, K_B)[:, None] * N + columns[None, :])
    s = tl.load(a_scale + rows[:, None] * G + tl.arange(0, G)[None, :])
    t = None
    if HAS_B:
        t = tl.load(b_scale + columns[:, None] * G + tl.arange(0, G)[None, :])
    product = tl.dot_scaled(x, s, A, y, t, B)
    tl.store(out + rows[:, None] * N + columns[None, :], product)


def _data(rng: np.random.Generator, name: str, shape: tuple[int, int], axis: int) -> Array:
    """Codes or numbers of a format; e2m1 packs pairs along `axis`."""
    if name in ("fp16", "bf16"):
        return rng.standard_normal(shape).astype(np.float16 if name == "fp16" else BF16)
    if name == "e2m1":
        shape = tuple(n // 2 if dim == axis else n for dim, n in enumerate(shape))
        return rng.integers(0, 256, shape).astype(np.uint8)
    return rng.integers(0, 0x58, shape).astype(np.uint8) | rng.choice([0, 0x80], shape).astype(
        np.uint8
    )


def _values(x: Array, name: str, axis: int) -> Array:
    if name in ("fp16", "bf16"):
        return x.astype(np.float64)
    if name == "e2m1":
        codes = np.stack([x.view(np.uint8) & 15, x.view(np.uint8) >> 4], axis + 1)
        shape = tuple(2 * n if dim == axis else n for dim, n in enumerate(x.shape))
        return E2M1[codes].reshape(shape)
    return FORMATS[CODES[name]].values()[x.view(np.uint8)]


def _scales(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, int]) -> Array:
    if dtype == E4M3:
        return rng.choice([0.5, 1.0, 1.125, 3.5, 12.0], shape).astype(E4M3)
    return rng.integers(122, 133, shape).astype(np.uint8).view(dtype)


def _numbers(scale: Array) -> Array:
    if scale.dtype == E4M3:
        return scale.astype(np.float64)
    return 2.0 ** (scale.view(np.uint8).astype(np.float64) - 127)


def _case(left: str, right: str, dtype: np.dtype, size: int = 32, kind: type = np.uint8) -> Case:
    has_right = right not in ("fp16", "bf16")
    groups = K // size
    to = np.dtype(np.float16) if "fp16" in (left, right) else BF16

    def inputs(rng: np.random.Generator) -> Values:
        a, b = _data(rng, left, (M, K), 1), _data(rng, right, (K, N), 0)
        a, b = (x.view(kind) if x.dtype == np.uint8 else x for x in (a, b))
        return {
            "a": a, "a_scale": _scales(rng, dtype, (M, groups)), "b": b,
            "b_scale": _scales(rng, dtype, (N, groups)), "out": blank((M, N)), "A": left,
            "B": right, "K_A": a.shape[1], "K_B": b.shape[0], "G": groups, "M": M, "N": N,
            "HAS_B": has_right,
        }  # fmt: skip

    def read(x: Array) -> Array:
        return x.view(np.uint8) if x.dtype == np.int8 else x

    def reference(a: SimpleNamespace) -> None:
        x = _values(read(a.a), left, 1) * np.repeat(_numbers(a.a_scale), size, 1)
        y = _values(read(a.b), right, 0)
        if has_right:
            y = y * np.repeat(_numbers(a.b_scale), size, 1).T
        x, y = (v.astype(np.float32).astype(to).astype(np.float64) for v in (x, y))
        a.out[:] = x @ y

    name = f"scaled-{left}-{right}-{dtype.name}-{size}-{np.dtype(kind).name}"
    return Case(name, scaled_product, (1,), inputs, reference, Close(1e-4, 1e-2))


_E8M0, _SIGNED = np.dtype(np.uint8), np.dtype(np.int8)
CASES = [
    _case("e4m3", "e4m3", _E8M0),
    _case("e5m2", "e2m1", _SIGNED, kind=np.int8),
    _case("e2m1", "fp16", _E8M0),
    _case("fp16", "e4m3", _E8M0),
    _case("fp16", "bf16", _SIGNED),
    _case("e2m1", "e2m1", E4M3, size=16),
    _case("e2m1", "bf16", E4M3, size=16),
    _case("e4m3", "fp16", E4M3, size=32),
]
