"""A tile load completes before a later tile store, whatever aliases."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl


@tilewright.jit
def shift_down(x, n, BLOCK: tl.constexpr):
    """x[i] = x[i + 1]."""
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i + 1, mask=i < n - 1)
    tl.store(x + i, value, mask=i < n - 1)


@tilewright.jit
def shift_up(x, n, BLOCK: tl.constexpr):
    """x[i + 1] = x[i]."""
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n - 1)
    tl.store(x + i + 1, value, mask=i < n - 1)


@tilewright.jit
def two_stores(x, y, z, BLOCK: tl.constexpr):
    """A load, a store, the load again, a store of both."""
    i = tl.arange(0, BLOCK)
    first = tl.load(x + i)
    tl.store(y + i, first + 1)
    second = tl.load(x + i)
    tl.store(z + i, second + first)


@tilewright.jit
def reverse(x, BLOCK: tl.constexpr):
    """x reversed in place."""
    i = tl.arange(0, BLOCK)
    tl.store(x + BLOCK - 1 - i, tl.load(x + i))


@tilewright.jit
def carried_mask(x, y, step, BLOCK: tl.constexpr):
    """A store that may hit what it was computed from, under a mask that the loop changes."""
    i = tl.arange(0, BLOCK)
    bound = tl.full((BLOCK,), 0, tl.int32) + step
    for k in range(3):
        tl.store(x + i, tl.load(y + i) + k, mask=i % 8 >= bound)
        bound = bound * 2 - k


@tilewright.jit
def carried_place(x, y, step, BLOCK: tl.constexpr):
    """A store whose addresses are swapped with the values that it stores."""
    place = tl.load(y + tl.arange(0, BLOCK))
    value = BLOCK - 1 - tl.arange(0, BLOCK)
    for _ in range(3):
        kept = tl.load(x + tl.arange(0, BLOCK) + step)
        tl.store(x + place, value + kept)
        place, value = value, place


@tilewright.jit
def permute(x, order, BLOCK: tl.constexpr):
    """x[order[i]] = x[i]; the addresses come from memory that the store may hit."""
    i = tl.arange(0, BLOCK)
    tl.store(x + tl.load(order + i), tl.load(x + i))


@tilewright.jit
def count_up(x, BLOCK: tl.constexpr):
    """Atomics whose operand is loaded from the words that they change."""
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + i + 1, tl.load(x + i))


@tilewright.jit
def matrix_moved(x, y, S: tl.constexpr, T: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """A tile loaded with the strides S and stored with the strides T, in the type of y."""
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    value = tl.load(x + r * S[0] + c * S[1])
    tl.store(y + r * T[0] + c * T[1], value.to(y.dtype.element_ty))


@tilewright.jit
def cube_moved(x, s0, s1, s2, t0, t1, t2, M: tl.constexpr, N: tl.constexpr, masked: tl.constexpr):
    """Three dimensions loaded and stored in one array, with distances that are arguments."""
    a = tl.arange(0, M)[:, None, None]
    b, c = tl.arange(0, N)[None, :, None], tl.arange(0, M)[None, None, :]
    mask = (a + b + c) % 3 != 0 if masked else None
    value = tl.load(x + a * s0 + b * s1 + c * s2, mask=mask)
    tl.store(x + a * t0 + b * t1 + c * t2, value, mask=mask)


@tilewright.jit
def rows_rolled(x, N: tl.constexpr, STEPS: tl.constexpr):
    """Columns of the transposed tile move on by one, several times."""
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    for _ in range(STEPS):
        tl.store(x + r + ((c + 1) % N) * N, tl.load(x + r + c * N))


@tilewright.jit
def block_transposed(x, N: tl.constexpr):
    """A transposition in place by way of block pointers."""
    rows = tl.make_block_ptr(x, (N, N), (N, 1), (0, 0), (N, N), (1, 0))
    columns = tl.make_block_ptr(x, (N, N), (1, N), (0, 0), (N, N), (0, 1))
    tl.store(columns, tl.load(rows))


@tilewright.jit
def counted_once(x, s, M: tl.constexpr, N: tl.constexpr):
    """Elements that occur several times in a tile of pointers, each read before any is written."""
    place = x + tl.arange(0, M)[:, None] * s + tl.arange(0, N)[None, :]
    tl.store(place, tl.load(place) + 1)


@pytest.mark.parametrize("strides", [(64, 1), (1, 16), (1, 64), (3, 64), (64, 2)])
@pytest.mark.parametrize("stored", [(1, 16), (64, 1), (1, 64), (2, 48), (-1, 32)])
@pytest.mark.parametrize("shift", [0, 1, -40, 700])
def test_a_matrix_is_read_before_it_is_written_in_another_order(
    strides: tuple[int, int], stored: tuple[int, int], shift: int
) -> None:
    memory = np.arange(1 << 14, dtype=np.int32)
    expected, start = memory.copy(), 4000
    r, c = np.arange(16)[:, None], np.arange(16)[None, :]
    value = expected[start + r * strides[0] + c * strides[1]]
    expected[start + shift + r * stored[0] + c * stored[1]] = value
    views = memory[start:], memory[start + shift :]
    matrix_moved[(1,)](*views, S=strides, T=stored, M=16, N=16)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [("float16", "float32"), ("int8", "int64"), ("float64", "float16"), ("int32", "int16")],
)
@pytest.mark.parametrize("stored", [(128, 1), (1, 32)])
@pytest.mark.parametrize("shift", [0, 64, -64])
def test_a_cast_in_place_reads_before_it_writes_elements_of_another_size(
    source: str, target: str, stored: tuple[int, int], shift: int, rng: np.random.Generator
) -> None:
    memory = np.zeros(1 << 16, np.uint8)
    start = 1 << 12
    memory[start:].view(source)[: 32 * 128] = rng.integers(-99, 99, 32 * 128)
    expected = memory.copy()
    value = expected[start:].view(source)[: 32 * 128].reshape(32, 128).astype(target)
    places = np.arange(32)[:, None] * stored[0] + np.arange(128)[None, :] * stored[1]
    expected[start + shift :].view(target)[places] = value
    views = memory[start:].view(source), memory[start + shift :].view(target)
    matrix_moved[(1,)](*views, S=(128, 1), T=stored, M=32, N=128)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_a_cube_is_permuted_in_place(order: tuple[int, int, int], masked: bool) -> None:
    shape = (8, 16, 8)
    memory = np.arange(8 * 16 * 8 + 64, dtype=np.float32)
    expected, places = memory.copy(), np.indices(shape)
    row_major = (128, 8, 1)
    stored = [0, 0, 0]
    step = 1
    for dim in order:  # the first one of `order` is contiguous
        stored[dim], step = step, step * shape[dim]
    at, to = (sum(p * s for p, s in zip(places, st, strict=True)) for st in (row_major, stored))
    held = places.sum(0) % 3 != 0 if masked else np.ones(shape, bool)
    expected[to[held]] = memory[at[held]]
    cube_moved[(1,)](memory, *row_major, *stored, M=8, N=16, masked=masked)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("size", [2, 4, 16, 64])
def test_columns_roll_in_a_loop(size: int) -> None:
    x = np.arange(size * size, dtype=np.int16).reshape(size, size)
    expected = np.roll(x, 3, axis=0)
    rows_rolled[(1,)](x.reshape(-1), size, 3)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_block_pointers_transpose_in_place(dtype: str) -> None:
    x = (np.arange(64 * 64) % 100).astype(dtype).reshape(64, 64)
    expected = x.T.copy()
    block_transposed[(1,)](x.reshape(-1), 64)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("stride", [0, 1, 7, 63, 64, 100, -1, -64])
def test_elements_that_coincide_are_all_read_before_one_is_written(stride: int) -> None:
    memory, start = np.zeros(1 << 14, np.int32), 1 << 13
    expected = memory.copy()
    expected[start + np.arange(32)[:, None] * stride + np.arange(64)[None, :]] = 1
    counted_once[(1,)](memory[start:], stride, 32, 64)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("n", [2, 63, 65, 1000, 4096])
def test_a_shift_within_one_array_reads_before_it_writes(n: int, rng: np.random.Generator) -> None:
    start = rng.standard_normal(4097, dtype=np.float32)
    down, up = start.copy(), start.copy()
    shift_down[(1,)](down, n, BLOCK=4096)
    shift_up[(1,)](up, n, BLOCK=4096)
    np.testing.assert_array_equal(down[: n - 1], start[1:n])
    np.testing.assert_array_equal(up[1:n], start[: n - 1])


@pytest.mark.parametrize("offsets", [(0, 0), (1, 3), (3, 1), (0, 7), (500, 0), (-1, -2)])
def test_stores_and_loads_of_overlapping_views_keep_their_order(
    offsets: tuple[int, int], rng: np.random.Generator
) -> None:
    size, start = 4096, 16
    memory = rng.standard_normal(8192, dtype=np.float32)
    expected = memory.copy()
    x, y, z = (expected[start + o : start + o + size] for o in (0, *offsets))
    first = x.copy()
    y[:] = first + 1
    z[:] = x.copy() + first
    views = [memory[start + o :] for o in (0, *offsets)]
    two_stores[(1,)](*views, BLOCK=size)
    np.testing.assert_array_equal(memory, expected)


def test_a_reversal_in_place_is_complete(rng: np.random.Generator) -> None:
    x = rng.standard_normal(2048, dtype=np.float32)
    expected = x[::-1].copy()
    reverse[(1,)](x, BLOCK=2048)
    np.testing.assert_array_equal(x, expected)


def test_a_scatter_over_its_own_indices_uses_the_old_ones(rng: np.random.Generator) -> None:
    order = rng.permutation(512).astype(np.int32)
    expected = np.zeros_like(order)
    expected[order] = order
    permute[(1,)](order, order, BLOCK=512)
    np.testing.assert_array_equal(order, expected)


@pytest.mark.parametrize("size", [2, 16, 64, 1024])
@pytest.mark.parametrize("shift", [0, 1, 2, 5])
def test_a_mask_that_a_loop_changes_is_that_of_the_step(
    size: int, shift: int, rng: np.random.Generator
) -> None:
    memory = rng.integers(-1000, 1000, size + 16).astype(np.int32)
    expected, bound = memory.copy(), np.full(size, shift)
    for k in range(3):
        mask = np.arange(size) % 8 >= bound
        expected[shift : shift + size][mask] = (expected[:size] + k)[mask]
        bound = bound * 2 - k
    carried_mask[(1,)](memory[shift:], memory, shift, BLOCK=size)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("size", [2, 16, 64, 1024])
def test_addresses_that_a_loop_changes_are_those_of_the_step(
    size: int, rng: np.random.Generator
) -> None:
    order = rng.permutation(size).astype(np.int32)
    memory = rng.integers(-1000, 1000, size + 8).astype(np.int32)
    expected, place, value = memory.copy(), order, size - 1 - np.arange(size)
    for _ in range(3):
        expected[place] = value + expected[1 : size + 1]
        place, value = value, place
    carried_place[(1,)](memory, order, 1, BLOCK=size)
    np.testing.assert_array_equal(memory, expected)
