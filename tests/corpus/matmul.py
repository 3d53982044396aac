"""`dot`: every dtype, transposed operands, batches, small and odd sizes, epilogues."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.corpus.case import (
    BF16,
    E4M3,
    E5M2,
    EXACT,
    Case,
    Close,
    Values,
    blank,
    is_float,
    normal,
    short,
    whole,
    wide,
)  # fmt: skip


@tilewright.jit
def matmul(
    a, b, c, m, n, k, sam, sak, sbk, sbn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    acc = tl.zeros((M, N), ACC)
    for start in range(0, k, K):
        kk = start + tl.arange(0, K)
        x = tl.load(
            a + i[:, None] * sam + kk[None, :] * sak,
            mask=(i < m)[:, None] & (kk < k)[None, :], other=0,
        )  # fmt: skip
        y = tl.load(
            b + kk[:, None] * sbk + j[None, :] * sbn,
            mask=(kk < k)[:, None] & (j < n)[None, :], other=0,
        )  # fmt: skip
        acc = tl.dot(x, y, acc, input_precision="ieee")
    mask = (i < m)[:, None] & (j < n)[None, :]
    tl.store(c + i[:, None] * n + j[None, :], acc, mask=mask)


@tilewright.jit
def matmul_by_pointers(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = (tl.program_id(0) * M + tl.arange(0, M)) % m
    j = (tl.program_id(1) * N + tl.arange(0, N)) % n
    kk = tl.arange(0, K)
    x = a + i[:, None] * k + kk[None, :]
    y = b + kk[:, None] * n + j[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for step in range(0, tl.cdiv(k, K)):
        p = tl.load(x, mask=kk[None, :] < k - step * K, other=0.0)
        q = tl.load(y, mask=kk[:, None] < k - step * K, other=0.0)
        acc += tl.dot(p, q, input_precision="ieee")
        x += K
        y += K * n
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    mask = (i < m)[:, None] & (j < n)[None, :]
    tl.store(c + i[:, None] * n + j[None, :], acc, mask=mask)


@tilewright.jit
def one_dot(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TA: tl.constexpr,
            TB: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if TA:
        x = tl.trans(tl.load(a + p * M * K + k[:, None] * M + i[None, :]))
    else:
        x = tl.load(a + p * M * K + i[:, None] * K + k[None, :])
    if TB:
        y = tl.load(b + p * K * N + j[:, None] * K + k[None, :]).T
    else:
        y = tl.load(b + p * K * N + k[:, None] * N + j[None, :])
    z = tl.dot(x, y, input_precision="ieee")
    tl.store(c + p * M * N + i[:, None] * N + j[None, :], z)


@tilewright.jit
def batched_dot(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    p = tl.program_id(0)
    h = tl.arange(0, B)[:, None, None]
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + ((p * B + h) * M + i[None, :, None]) * K + k[None, None, :])
    y = tl.load(b + ((p * B + h) * K + k[None, :, None]) * N + j[None, None, :])
    z = tl.dot(x, y, input_precision="ieee")
    tl.store(c + ((p * B + h) * M + i[None, :, None]) * N + j[None, None, :], z)


@tilewright.jit
def dot_of_computed(a, b, bias, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    p = tl.program_id(0)
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + p * M * K + i[:, None] * K + k[None, :]) * 2.0 + 1.0
    y = tl.load(b + p * K * N + k[:, None] * N + j[None, :])
    z = tl.dot(x, y - 0.5, input_precision="ieee") + tl.load(bias + j)[None, :]
    z = tl.where(z > 0, z, z * 0.1)
    tl.store(c + p * M * N + i[:, None] * N + j[None, :], z)


@tilewright.jit
def two_dots(a, b, c, out, M: tl.constexpr, K: tl.constexpr):
    p = tl.program_id(0)
    i, k = tl.arange(0, M), tl.arange(0, K)
    x = tl.load(a + p * M * K + i[:, None] * K + k[None, :])
    y = tl.load(b + p * M * K + i[:, None] * K + k[None, :])
    v = tl.load(c + p * M * K + i[:, None] * K + k[None, :])
    s = tl.dot(x, tl.trans(y), input_precision="ieee")
    s = tl.exp(s - tl.max(s, axis=1)[:, None])
    o = tl.dot(s, v, input_precision="ieee") / tl.sum(s, axis=1)[:, None]
    tl.store(out + p * M * K + i[:, None] * K + k[None, :], o)


@tilewright.jit
def attention(q, k, v, out, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
              CAUSAL: tl.constexpr):  # fmt: skip
    base = tl.program_id(1) * n * D
    i = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    x = tl.load(q + base + i[:, None] * D + d[None, :], mask=(i < n)[:, None], other=0.0)
    m = tl.full((M,), float("-inf"), tl.float32)
    s = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    last = tl.minimum(n, (tl.program_id(0) + 1) * M) if CAUSAL else n
    for start in range(0, last, N):
        j = start + tl.arange(0, N)
        y = tl.load(k + base + j[None, :] * D + d[:, None], mask=(j < n)[None, :], other=0.0)
        w = tl.dot(x, y, input_precision="ieee") * scale
        keep = (j < n)[None, :] & (i >= 0)[:, None]
        if CAUSAL:
            keep = keep & (i[:, None] >= j[None, :])
        w = tl.where(keep, w, float("-inf"))
        new = tl.maximum(m, tl.max(w, axis=1))
        p = tl.exp(w - new[:, None])
        alpha = tl.exp(m - new)
        s = s * alpha + tl.sum(p, axis=1)
        z = tl.load(v + base + j[:, None] * D + d[None, :], mask=(j < n)[:, None], other=0.0)
        acc = tl.dot(p, z, acc * alpha[:, None], input_precision="ieee")
        m = new
    tl.store(out + base + i[:, None] * D + d[None, :], acc / s[:, None], mask=(i < n)[:, None])


ACCUMULATOR = {np.dtype(np.float64): tl.float64, np.dtype(np.int8): tl.int32}
TOLERANCE = {
    np.dtype(np.float32): Close(1e-5, 1e-4),
    np.dtype(np.float16): Close(1e-4, 1e-3),
    BF16: Close(1e-4, 1e-3),
    np.dtype(np.float64): Close(1e-12, 1e-12),
    np.dtype(np.int8): EXACT,
    E4M3: Close(1e-5, 1e-4),
    E5M2: Close(1e-5, 1e-4),
}


def _operand(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return normal(rng, shape, dtype) if is_float(dtype) else whole(rng, shape, dtype)


def _result(dtype: np.dtype) -> np.dtype:
    if not is_float(dtype):
        return np.dtype(np.int32)
    return np.dtype(np.float64) if dtype.itemsize == 8 else np.dtype(np.float32)


def _exactly(x: np.ndarray) -> np.ndarray:
    return wide(x) if is_float(x.dtype) else x.astype(np.int64)


def _matmul_case(
    size: tuple[int, int, int], tile: tuple[int, int, int], dtype: DTypeLike = np.float32,
    layout: str = "nn", is_slow: bool = False,
) -> Case:  # fmt: skip
    m, n, k = size
    kind = np.dtype(dtype)

    def inputs(rng: np.random.Generator) -> Values:
        a = _operand(rng, (m, k) if layout[0] == "n" else (k, m), kind)
        b = _operand(rng, (k, n) if layout[1] == "n" else (n, k), kind)
        return {
            "a": a, "b": b, "c": blank((m, n), _result(kind)), "m": m, "n": n, "k": k,
            "sam": k if layout[0] == "n" else 1, "sak": 1 if layout[0] == "n" else m,
            "sbk": n if layout[1] == "n" else 1, "sbn": 1 if layout[1] == "n" else k,
            "M": tile[0], "N": tile[1], "K": tile[2], "ACC": ACCUMULATOR.get(kind, tl.float32),
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        x = _exactly(a.a) if layout[0] == "n" else _exactly(a.a).T
        y = _exactly(a.b) if layout[1] == "n" else _exactly(a.b).T
        a.c[:] = x @ y

    text = "x".join(map(str, (*size, *tile)))
    name = f"matmul-{short(kind)}-{layout}-{text}"
    grid = (-(-m // tile[0]), -(-n // tile[1]))
    return Case(name, matmul, grid, inputs, reference, TOLERANCE[kind], is_slow)


def _pointers_case() -> Case:
    m, n, k = 70, 50, 45

    def inputs(rng: np.random.Generator) -> Values:
        return {
            "a": normal(rng, (m, k)), "b": normal(rng, (k, n)), "c": blank((m, n)), "m": m,
            "n": n, "k": k, "M": 32, "N": 16, "K": 16,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.c[:] = wide(a.a) @ wide(a.b)

    return Case("matmul-by-pointers", matmul_by_pointers, (3, 4), inputs, reference,
                Close(1e-5, 1e-4))  # fmt: skip


def _one_dot_case(
    tile: tuple[int, int, int], dtype: DTypeLike, a_is_transposed: bool = False,
    b_is_transposed: bool = False,
) -> Case:  # fmt: skip
    (m, n, k), kind, programs = tile, np.dtype(dtype), 3

    def inputs(rng: np.random.Generator) -> Values:
        a_shape = (programs, k, m) if a_is_transposed else (programs, m, k)
        b_shape = (programs, n, k) if b_is_transposed else (programs, k, n)
        return {
            "a": _operand(rng, a_shape, kind), "b": _operand(rng, b_shape, kind),
            "c": blank((programs, m, n), _result(kind)), "M": m, "N": n, "K": k,
            "TA": a_is_transposed, "TB": b_is_transposed,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        x, y = _exactly(a.a), _exactly(a.b)
        x = x.transpose(0, 2, 1) if a_is_transposed else x
        y = y.transpose(0, 2, 1) if b_is_transposed else y
        a.c[:] = x @ y

    sides = f"{'t' if a_is_transposed else 'n'}{'t' if b_is_transposed else 'n'}"
    name = f"dot-{short(kind)}-{sides}-{m}x{n}x{k}"
    return Case(name, one_dot, (programs,), inputs, reference, TOLERANCE[kind])


def _batched_case(dtype: DTypeLike) -> Case:
    kind = np.dtype(dtype)

    def inputs(rng: np.random.Generator) -> Values:
        return {
            "a": _operand(rng, (2, 4, 16, 32), kind), "b": _operand(rng, (2, 4, 32, 8), kind),
            "c": blank((2, 4, 16, 8), _result(kind)), "B": 4, "M": 16, "N": 8, "K": 32,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        a.c[:] = _exactly(a.a) @ _exactly(a.b)

    return Case(f"batched-dot-{short(kind)}", batched_dot, (2,), inputs, reference, TOLERANCE[kind])


def _computed_inputs(rng: np.random.Generator) -> Values:
    return {
        "a": normal(rng, (3, 16, 32)), "b": normal(rng, (3, 32, 16)), "bias": normal(rng, 16),
        "c": blank((3, 16, 16)), "M": 16, "N": 16, "K": 32,
    }  # fmt: skip


def _computed(a: SimpleNamespace) -> None:
    z = (wide(a.a) * 2 + 1) @ (wide(a.b) - 0.5) + wide(a.bias)
    a.c[:] = np.where(z > 0, z, z * 0.1)


def _two_dots_inputs(rng: np.random.Generator) -> Values:
    arrays = {name: normal(rng, (3, 32, 16)) for name in "abc"}
    return {**arrays, "out": blank((3, 32, 16)), "M": 32, "K": 16}


def _softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _two_dots(a: SimpleNamespace) -> None:
    a.out[:] = _softmax(wide(a.a) @ wide(a.b).transpose(0, 2, 1)) @ wide(a.c)


def _attention_case(n: int, is_causal: bool) -> Case:
    heads, d = 2, 16

    def inputs(rng: np.random.Generator) -> Values:
        arrays = {name: normal(rng, (heads, n, d)) for name in "qkv"}
        return {
            **arrays, "out": blank((heads, n, d)), "n": n, "scale": 0.25, "M": 32, "N": 16,
            "D": d, "CAUSAL": is_causal,
        }  # fmt: skip

    def reference(a: SimpleNamespace) -> None:
        s = wide(a.q) @ wide(a.k).transpose(0, 2, 1) * a.scale
        if is_causal:
            s = np.where(np.tril(np.ones((n, n), np.bool_)), s, -np.inf)
        a.out[:] = _softmax(s) @ wide(a.v)

    name = f"attention-{n}{'-causal' if is_causal else ''}"
    return Case(name, attention, (-(-n // 32), heads), inputs, reference, Close(1e-5, 1e-5))


_TYPES = (np.float16, BF16, np.float64, np.int8, E4M3, E5M2)
CASES = [
    _matmul_case((70, 45, 33), (32, 32, 16)),
    *(_matmul_case((70, 45, 33), (32, 32, 16), layout=layout) for layout in ("nt", "tn", "tt")),
    *(_matmul_case((50, 37, 70), (16, 32, 32), dtype) for dtype in _TYPES),
    *(_matmul_case((50, 37, 70), (16, 32, 32), d, "nt") for d in (BF16, np.int8)),
    *(_matmul_case((50, 37, 70), (16, 32, 32), d, "tn") for d in (np.float16, np.int8, np.float64)),
    _matmul_case((129, 130, 131), (64, 64, 32), is_slow=True),
    _matmul_case((256, 256, 256), (128, 128, 64), BF16, is_slow=True),
    _matmul_case((5, 3, 200), (8, 4, 64)),
    _matmul_case((1, 100, 64), (1, 32, 32)),
    _matmul_case((100, 1, 64), (32, 1, 32)),
    _pointers_case(),
    *(_one_dot_case(tile, np.float32) for tile in
      ((1, 1, 1), (2, 4, 8), (16, 16, 1), (4, 64, 2), (64, 2, 16), (128, 64, 32))),
    *(_one_dot_case((16, 32, 8), np.float32, ta, tb)
      for ta, tb in ((True, False), (False, True), (True, True))),
    *(_one_dot_case((16, 32, 16), d, ta, not ta) for d in _TYPES for ta in (False, True)),
    *(_batched_case(dtype) for dtype in (np.float32, np.float16, np.int8, np.float64)),
    Case("dot-of-computed", dot_of_computed, (3,), _computed_inputs, _computed, Close(1e-5, 1e-4)),
    Case("two-dots", two_dots, (3,), _two_dots_inputs, _two_dots, Close(1e-5, 1e-5)),
    _attention_case(75, False),
    _attention_case(75, True),
]  # fmt: skip
