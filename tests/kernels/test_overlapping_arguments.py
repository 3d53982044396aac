"""Arguments that overlap: programs load and store in the order of their text all the same."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl

M = 16


@tilewright.jit
def products(a, b, c, n, M: tl.constexpr):
    """Tiles of a product, each stored before the next one is computed."""
    i = tl.arange(0, M)
    low, across = i[:, None], i[None, :]
    for tile in range(n):
        acc = tl.zeros((M, M), tl.float32)
        for k in range(n):
            left = tl.load(a + (tile * M + low) * (n * M) + k * M + across)
            acc += tl.dot(left, tl.load(b + (k * M + low) * M + across))
        tl.store(c + (tile * M + low) * M + across, acc % 8)


@tilewright.jit
def rows(x, y, out, n, stride, B: tl.constexpr):
    """Rows less their sums, and a row that is loaded for each of them."""
    at = tl.arange(0, B)
    for row in range(n):
        values = tl.load(x + row * stride + at, mask=at < stride, other=0.0)
        more = tl.load(y + at, mask=at < stride, other=0.0)
        total = (values - tl.sum(values, 0)) % 16 + more
        tl.store(out + row * stride + at, total, mask=at < stride)


@tilewright.jit
def transposed(x, out, M: tl.constexpr):
    """A tile to where its transposed one lies."""
    i = tl.arange(0, M)
    tile = tl.load(x + i[:, None] * M + i[None, :])
    tl.store(out + i[None, :] * M + i[:, None], tile + 1.0)


@tilewright.jit
def taken_apart(x, y, out, n, d, DIVISOR: tl.constexpr, SHIFT: tl.constexpr, B: tl.constexpr):
    """Rows plus what repeats along them: indices that are quotients and remainders."""
    for row in range(tl.cdiv(n + SHIFT, B)):
        i = row * B + tl.arange(0, B) - SHIFT
        seen = (i < n) & (i >= 0)
        repeated = tl.load(y + i % DIVISOR + i // d * 7, mask=seen, other=0.0)
        each = tl.load(y + 4 * tl.minimum(i // 100 % 8, 5), mask=seen, other=0.0)
        total = tl.load(x + i, mask=seen, other=0.0) % 16 + repeated % 8 - each
        tl.store(out + i, total, mask=seen)


@tilewright.jit
def hashed(x, out, factor, FACTOR: tl.constexpr, WIDE: tl.constexpr, B: tl.constexpr):
    """What lies at places that products which wrap around lead to: 128 before or behind x."""
    j = tl.arange(0, B)
    if WIDE:
        j = j.to(tl.int64)
    if FACTOR is None:
        tl.store(out + j, tl.load(x + j * factor % 129))
    else:
        tl.store(out + j, tl.load(x + j * FACTOR % 129))


def memory() -> np.ndarray:
    return np.random.default_rng(1).integers(-3, 4, 8192).astype(np.float32)


@pytest.mark.parametrize(
    "first", [(0, 0, 0), (0, 5, 1), (256, 0, 300), (16, 2048, 0), (0, 0, 4096)]
)
def test_products_into_their_operands(first: tuple[int, int, int]) -> None:
    expected, found = memory(), memory()
    products.interpret[(1,)](*(expected[at:] for at in first), 2, M=M)
    products[(1,)](*(found[at:] for at in first), 2, M=M)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("first", [(0, 7, 0), (0, 0, 3), (64, 2, 61), (200, 130, 0), (1, 70, 64)])
@pytest.mark.parametrize("stride", [61, 32, 77])
def test_rows_over_rows(first: tuple[int, int, int], stride: int) -> None:
    expected, found, simulated = memory(), memory(), memory()
    rows.interpret[(1,)](*(expected[at:] for at in first), 6, stride, B=128)
    rows[(1,)](*(found[at:] for at in first), 6, stride, B=128)
    options = {"B": 128, "num_warps": 1, "may_overlap": True}
    rows.simulate[(1,)](*(simulated[at:] for at in first), 6, stride, **options)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(simulated, expected)


@pytest.mark.parametrize("first", [(0, 0), (0, 1), (32, 0), (0, 33), (100, 256)])
def test_a_tile_over_itself(first: tuple[int, int]) -> None:
    expected, found = memory(), memory()
    transposed.interpret[(1,)](*(expected[at:] for at in first), M=M)
    transposed[(1,)](*(found[at:] for at in first), M=M)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("first", [(0, 3000, 0), (0, 0, 3), (0, 0, 256), (0, 5, 216), (9, 900, 1)])
@pytest.mark.parametrize(("divisor", "d"), [(129, 500), (33, 2000), (16, 33)])
@pytest.mark.parametrize("shift", [0, 40])
def test_indices_taken_apart(first: tuple[int, int, int], divisor: int, d: int, shift: int) -> None:
    expected, found = memory(), memory()
    taken_apart.interpret[(1,)](*(expected[at:] for at in first), 1000, d, divisor, shift, B=512)
    taken_apart[(1,)](*(found[at:] for at in first), 1000, d, divisor, shift, B=512)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("factor", "is_wide"), [(1103515245, False), (481406483, False), (0x1E3779B97F4A7C15, True)]
)
@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("first", [(128, 0), (200, 100), (128, 256)])
def test_indices_that_wrap_around(
    first: tuple[int, int], factor: int, is_wide: bool, is_constant: bool
) -> None:
    found = memory()
    expected = found.copy()
    x, out = first
    numbers = np.arange(128, dtype=np.int64 if is_wide else np.int32)
    with np.errstate(over="ignore"):
        places = np.fmod(numbers * numbers.dtype.type(factor), 129)
    expected[out : out + 128] = expected[x + places]
    hashed[(1,)](found[x:], found[out:], factor, factor if is_constant else None, is_wide, B=128)
    np.testing.assert_array_equal(found, expected)
