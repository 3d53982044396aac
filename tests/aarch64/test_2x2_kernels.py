"""Kernels whose products take two rows by two columns on AArch64: operands from everywhere."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from ml_dtypes import bfloat16
from numpy.typing import DTypeLike

import tilewright
import tilewright.language as tl
from tests.aarch64.emulator import compile_case, emitted_assembly, run_emulated
from tests.aarch64.machines import NEOVERSE_V2
from tests.corpus.case import Case, Values, blank, check
from tests.corpus.matmul import batched_dot, one_dot

pytestmark = pytest.mark.aarch64

PRODUCTS = {"smmla", "ummla", "usmmla", "bfmmla", "sdot", "udot", "usdot", "bfdot"}
WORDS = {np.dtype(np.int8): "smmla", np.dtype(bfloat16): "bfmmla"}
each_dtype = pytest.mark.parametrize("dtype", WORDS, ids=str)


@tilewright.jit
def one_matrix_for_two(a, few, b, c, d, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    y = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(tl.load(a + i[:, None] * K + k[None, :]), y))
    tl.store(d + j[None, :], tl.dot(tl.load(few + k[None, :]), y))


@tilewright.jit
def product_of_a_product(a, b, c, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    p = tl.dot(x, tl.load(b + k[:, None] * N + j[None, :])).to(x.dtype)
    z = tl.dot(p, tl.load(c + j[:, None] * K + k[None, :]))
    tl.store(out + i[:, None] * K + k[None, :], z)


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Whole numbers whose sums are exact in every type on the way."""
    return rng.integers(-1, 2, shape).astype(dtype)


def result(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return blank(shape, np.int32 if dtype == np.int8 else np.float32)


def exact(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def run(case: Case, words: set[str]) -> None:
    """The kernel's products are those of `words`, and what it stores is NumPy's."""
    prepared, _ = compile_case(case, NEOVERSE_V2)
    assert set(emitted_assembly(prepared).split()) & PRODUCTS == words
    check(case, run_emulated(case, NEOVERSE_V2), case.expected(), "neoverse-v2 against NumPy")


@each_dtype
@pytest.mark.parametrize("ways", list(itertools.product((False, True), repeat=2)), ids=str)
@pytest.mark.parametrize("tile", [(32, 16, 8), (4, 32, 64), (64, 2, 2)], ids=str)
def test_transposed_operands(
    tile: tuple[int, int, int], ways: tuple[bool, bool], dtype: np.dtype
) -> None:
    m, n, k = tile

    def inputs(rng: np.random.Generator) -> Values:
        a = numbers(rng, (2, k, m) if ways[0] else (2, m, k), dtype)
        b = numbers(rng, (2, n, k) if ways[1] else (2, k, n), dtype)
        more = {"M": m, "N": n, "K": k, "TA": ways[0], "TB": ways[1]}
        return {"a": a, "b": b, "c": result((2, m, n), dtype), **more}

    def reference(a: SimpleNamespace) -> None:
        x, y = exact(a.a), exact(a.b)
        a.c[:] = (x.swapaxes(1, 2) if ways[0] else x) @ (y.swapaxes(1, 2) if ways[1] else y)

    run(Case("transposed", one_dot, (2,), inputs, reference), {WORDS[dtype]})


@each_dtype
def test_batches(dtype: np.dtype) -> None:
    def inputs(rng: np.random.Generator) -> Values:
        a, b = numbers(rng, (2, 4, 32, 16), dtype), numbers(rng, (2, 4, 16, 8), dtype)
        c = result((2, 4, 32, 8), dtype)
        return {"a": a, "b": b, "c": c, "B": 4, "M": 32, "N": 8, "K": 16}

    def reference(a: SimpleNamespace) -> None:
        a.c[:] = exact(a.a) @ exact(a.b)

    run(Case("batches", batched_dot, (2,), inputs, reference), {WORDS[dtype]})


@each_dtype
def test_a_matrix_for_many_rows_and_for_one_is_packed_for_each(dtype: np.dtype) -> None:
    def inputs(rng: np.random.Generator) -> Values:
        a, few, b = (numbers(rng, size, dtype) for size in ((32, 16), (1, 16), (16, 32)))
        c, d = result((32, 32), dtype), result((1, 32), dtype)
        return {"a": a, "few": few, "b": b, "c": c, "d": d, "M": 32, "N": 32, "K": 16}

    def reference(a: SimpleNamespace) -> None:
        a.c[:], a.d[:] = exact(a.a) @ exact(a.b), exact(a.few) @ exact(a.b)

    pair = {np.dtype(np.int8): "sdot", np.dtype(bfloat16): "bfdot"}[dtype]
    run(Case("two", one_matrix_for_two, (1,), inputs, reference), {WORDS[dtype], pair})


@each_dtype
def test_a_product_is_packed_as_an_operand(dtype: np.dtype) -> None:
    def inputs(rng: np.random.Generator) -> Values:
        a, b, c = (numbers(rng, size, dtype) for size in ((32, 8), (8, 16), (16, 8)))
        return {"a": a, "b": b, "c": c, "out": result((32, 8), dtype), "M": 32, "N": 16, "K": 8}

    def reference(a: SimpleNamespace) -> None:
        a.out[:] = exact(a.a) @ exact(a.b) @ exact(a.c)

    run(Case("chain", product_of_a_product, (1,), inputs, reference), {WORDS[dtype]})
