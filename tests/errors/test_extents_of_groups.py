"""Tiles of multiples of 16: shared by groups of warps, and refused elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.corpus.partitioned import gemm, gemm_case
from tests.corpus.threads import lower_for_gpu
from tests.errors.test_refused_plans import positionless
from tests.plugins.goldens import Golden
from tilewright.support.errors import NotPowerOfTwo, SharedMemoryExceeded


@tilewright.jit
def add_one(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at) + 1)


def test_a_program_without_groups_has_no_such_tile(golden: Golden) -> None:
    with pytest.raises(NotPowerOfTwo) as caught:
        add_one.simulate[(1,)](np.zeros(192, np.float32), BLOCK=192, num_consumer_groups=0)
    golden("golden/tile_of_192_without_groups", positionless(caught.value, add_one))


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_tiles_that_the_groups_do_not_share_are_refused(groups: int, golden: Golden) -> None:
    with pytest.raises(NotPowerOfTwo) as caught:
        add_one.simulate[(1,)](np.zeros(192, np.float32), BLOCK=192, num_consumer_groups=groups)
    golden("golden/tile_of_192_without_products", positionless(caught.value, add_one))


def test_a_cpu_has_no_groups() -> None:
    with pytest.raises(NotPowerOfTwo, match="192 of `end`"):
        add_one[(1,)](np.zeros(192, np.float32), BLOCK=192, num_consumer_groups=3)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (24, "dimension 24 of `block_shape` is not a power of two"),
        (96, "32 rows of a product are no multiple of 64"),
        (320, "are not shared by 3 replicas"),
        (80, "are not shared by 3 replicas"),
    ],
)
def test_rows_are_shared_by_64_for_each_group(rows: int, reason: str) -> None:
    case = gemm_case(gemm, 200, 64, 64, f"gemm-{rows}", M=rows)
    with pytest.raises(NotPowerOfTwo) as caught:
        lower_for_gpu(case, None, num_consumer_groups=3)
    assert reason in str(caught.value)


def test_columns_are_a_multiple_of_16() -> None:
    case = gemm_case(gemm, 128, 192, 64, "gemm-columns", M=192, N=200)
    with pytest.raises(NotPowerOfTwo, match="dimension 200 of `block_shape`"):
        lower_for_gpu(case, None, num_consumer_groups=3)


@tilewright.jit
def sorted_rows(x, y, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(x, [M, n], [n, 1], [M, K])
    right = tl.make_tensor_descriptor(y, [N, n], [n, 1], [N, K])
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, n, K):
        acc = tl.dot(left.load([0, start]), right.load([0, start]).T, acc)
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + places, tl.sort(acc, 1))


def test_what_moves_elements_by_halves_takes_powers_of_two(golden: Golden) -> None:
    x, y = (np.zeros((rows, 64), np.float16) for rows in (128, 80))
    out = np.zeros((128, 80), np.float32)
    with pytest.raises(NotPowerOfTwo) as caught:
        sorted_rows.simulate[(1,)](x, y, out, 64, M=128, N=80, K=64, num_consumer_groups=2)
    golden("golden/sort_of_80", positionless(caught.value, sorted_rows))


def test_rows_of_bytes_are_a_multiple_of_32() -> None:
    x, y = (np.zeros((rows, 160), np.int8) for rows in (128, 64))
    out = np.zeros((128, 64), np.int32)
    with pytest.raises(NotPowerOfTwo, match="rows of 80 bytes are no multiple of 32"):
        bytes_of(x, y, out, 80)


def bytes_of(x: np.ndarray, y: np.ndarray, out: np.ndarray, depth: int) -> None:
    """A product of bytes, by two groups."""
    sizes = {"M": 128, "N": 64, "K": depth, "num_consumer_groups": 2}
    product_of_bytes.simulate[(1,)](x, y, out, x.shape[1], **sizes)


@tilewright.jit
def product_of_bytes(x, y, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.int32)
    for start in range(0, n, K):
        left = tl.load(x + i[:, None] * n + (start + k)[None, :])
        right = tl.load(y + j[:, None] * n + (start + k)[None, :])
        acc = tl.dot(left, right.T, acc)
    tl.store(out + i[:, None] * N + j[None, :], acc)


def test_threads_multiply_powers_of_two() -> None:
    x, y = (np.zeros((rows, 64), np.float32) for rows in (128, 80))
    reason = "no matrix instruction takes f32 x f32"
    with pytest.raises(NotPowerOfTwo, match=reason):
        exact_product.simulate[(1,)](
            x, y, np.zeros((128, 80), np.float32), M=128, N=80, K=32, num_consumer_groups=2
        )


@tilewright.jit
def exact_product(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, 64, K):
        left = tl.load(x + i[:, None] * 64 + (start + k)[None, :])
        right = tl.load(y + j[:, None] * 64 + (start + k)[None, :])
        acc = tl.dot(left, right.T, acc, input_precision="ieee")
    tl.store(out + i[:, None] * N + j[None, :], acc)


@tilewright.jit
def of_single_precision(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, 192, K):
        left = tl.load(x + i[:, None] * 192 + (start + k)[None, :])
        right = tl.load(y + (start + k)[:, None] * N + j[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(out + i[:, None] * N + j[None, :], acc)


@pytest.mark.parametrize(("depth", "columns"), [(96, 64), (64, 80), (96, 128)])
def test_panels_of_rows_are_where_bits_of_threads_say(
    depth: int, columns: int, golden: Golden
) -> None:
    """Four panels of 96 rows are 3, 6 and 9 times 32 apart, which no XOR of bits is."""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((128, 192), (192, columns)))
    out = np.zeros((128, columns), np.float32)
    sizes = {"M": 128, "N": columns, "K": depth, "num_consumer_groups": 2}
    if columns < 128:
        of_single_precision.simulate[(1,)](x, y, out, **sizes)
        np.testing.assert_array_equal(out, x @ y)
        return
    with pytest.raises(NotPowerOfTwo) as caught:
        of_single_precision.simulate[(1,)](x, y, out, **sizes)
    golden("golden/panels_of_96_rows", positionless(caught.value, of_single_precision))


def test_rows_of_96_bytes_are_multiplied() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-5, 6, (rows, 192), np.int8) for rows in (128, 64))
    out = np.zeros((128, 64), np.int32)
    bytes_of(x, y, out, 96)
    np.testing.assert_array_equal(out, x.astype(np.int32) @ y.astype(np.int32).T)


def test_groups_that_shared_memory_does_not_hold_are_a_question_of_configuration() -> None:
    """A tuner leaves such a choice out and takes another one."""
    case = gemm_case(gemm, 192, 256, 256, "gemm-large", M=192, N=256, K=256)
    with pytest.raises(SharedMemoryExceeded, match="the groups of warps do not share it") as caught:
        lower_for_gpu(case, None, num_consumer_groups=3)
    assert "of shared memory, of 232448" in str(caught.value)
    assert caught.value.is_of_configuration


@tilewright.jit
def tile_after_tile(
    x, y, out, rows, columns, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    left = tl.make_tensor_descriptor(x, [rows, depth], [depth, 1], [M, K])
    right = tl.make_tensor_descriptor(y, [depth, columns], [columns, 1], [K, N])
    wide = tl.cdiv(columns, N)
    for tile in range(tl.program_id(0), tl.cdiv(rows, M) * wide, 2):
        acc = tl.zeros((M, N), tl.float32)
        for start in range(0, depth, K):
            acc = tl.dot(
                left.load([tile // wide * M, start]), right.load([start, tile % wide * N]), acc
            )
        i, j = tile // wide * M + tl.arange(0, M), tile % wide * N + tl.arange(0, N)
        tl.store(
            out + i[:, None] * columns + j[None, :], acc, mask=(i < rows)[:, None] & (j < columns)
        )


def test_a_store_that_the_copy_engine_does_not_make_says_why() -> None:
    """Threads of two groups would store what may be one element; the engine has no room to."""
    x, y = np.ones((384, 128), np.float16), np.ones((128, 512), np.float16)
    out = np.zeros((384, 512), np.float32)
    sizes = {"M": 192, "N": 256, "K": 64, "num_consumer_groups": 3}
    with pytest.raises(NotPowerOfTwo, match="two replicas may write one element") as caught:
        tile_after_tile.simulate[(2,)](x, y, out, 384, 512, 128, **sizes)
    assert "the store stays plain: 196608 bytes are much for shared memory" in str(caught.value)
    tile_after_tile.simulate[(2,)](x, y, out, 384, 512, 128, **{**sizes, "N": 128})
    np.testing.assert_array_equal(out, np.full((384, 512), 128, np.float32))
