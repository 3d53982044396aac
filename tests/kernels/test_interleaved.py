"""Tiles that are interleaved and split again in the program's own memory, two to four apart."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl

SHAPES = [(1, 16), (4, 8), (3, 200), (70, 17), (64, 64)]


@tilewright.jit
def repeat(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Each element eight times side by side, as packed words of 4 bits are unpacked."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    inside = (r < rows)[:, None] & (c < columns)[None, :]
    tile = tl.load(x + r[:, None] * columns + c[None, :], mask=inside, other=0)
    tile = tl.interleave(tile, tile)
    tile = tl.interleave(tile, tile)
    tile = tl.interleave(tile, tile)
    c = tl.arange(0, 8 * COLUMNS)
    inside = (r < rows)[:, None] & (c < 8 * columns)[None, :]
    tl.store(out + r[:, None] * 8 * columns + c[None, :], tile, mask=inside)


@tilewright.jit
def deal(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Every fourth column side by side, their sums with the row's first behind them."""
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, 4 * COLUMNS)
    inside = (r < rows)[:, None] & (c < 4 * columns)[None, :]
    tile = tl.load(x + r[:, None] * 4 * columns + c[None, :], mask=inside, other=0)
    total = tl.sum(tile, 1)
    even, odd = tl.split((tile + total[:, None]).reshape(ROWS, 2 * COLUMNS, 2))
    first, third = tl.split(even.reshape(ROWS, COLUMNS, 2))
    second, fourth = tl.split(odd.reshape(ROWS, COLUMNS, 2))
    c = tl.arange(0, COLUMNS)
    inside = (r < rows)[:, None] & (c < columns)[None, :]
    at = out + r[:, None] * 4 * columns + c[None, :]
    tl.store(at, first, mask=inside)
    tl.store(at + columns, second, mask=inside)
    tl.store(at + 2 * columns, third, mask=inside)
    tl.store(at + 3 * columns, fourth, mask=inside)


@tilewright.jit
def unpack_and_multiply(
    x, packed, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WORDS: tl.constexpr
):
    """Products by weights of 4 bits, eight of a row in a word in AWQ's order."""
    m, n, k, word = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, WORDS)
    words = tl.load(packed + k[:, None] * WORDS + word[None, :])
    words = tl.interleave(words, words)
    words = tl.interleave(words, words)
    words = tl.interleave(words, words)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shifts = tl.broadcast_to(order[None, :] * 4, (K * WORDS, 8)).reshape(K, N)
    weights = ((words >> shifts) & 15) - 8
    left = tl.load(x + m[:, None] * K + k[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(left, weights.to(left.dtype)))


def blocks(rows: int, columns: int) -> dict[str, int]:
    return {"ROWS": 4, "COLUMNS": tilewright.next_power_of_2(columns)}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int64", "bool"])
@pytest.mark.parametrize("shape", SHAPES)
def test_elements_are_repeated(
    shape: tuple[int, int], dtype: str, rng: np.random.Generator
) -> None:
    x = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    out = np.zeros((shape[0], 8 * shape[1]), dtype)
    repeat[(tilewright.cdiv(shape[0], 4),)](x, out, *shape, **blocks(*shape))
    np.testing.assert_array_equal(out, np.repeat(x, 8, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_columns_are_dealt_out(
    shape: tuple[int, int], dtype: str, rng: np.random.Generator
) -> None:
    rows, columns = shape
    x = rng.integers(0, 9, (rows, 4 * columns)).astype(dtype)
    out = np.zeros_like(x)
    deal[(tilewright.cdiv(rows, 4),)](x, out, *shape, **blocks(*shape))
    with_sums = x + x.sum(1, keepdims=True, dtype=x.dtype)
    expected = np.concatenate([with_sums[:, first::4] for first in range(4)], 1)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_words_of_eight_weights_are_unpacked(dtype: str, rng: np.random.Generator) -> None:
    m, n, k = 16, 64, 32
    weights = rng.integers(0, 16, (k, n))
    order = np.array([0, 4, 1, 5, 2, 6, 3, 7])
    shifted = weights.reshape(k, n // 8, 8) << (4 * order)
    packed = shifted.sum(-1).astype(np.uint32).view(np.int32)
    x = rng.integers(-4, 5, (m, k)).astype(dtype)
    out = np.zeros((m, n), np.float32)
    unpack_and_multiply[(1,)](x, packed, out, M=m, N=n, K=k, WORDS=n // 8)
    np.testing.assert_array_equal(out, x.astype(np.float64) @ (weights - 8))
