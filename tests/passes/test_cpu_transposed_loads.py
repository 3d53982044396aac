"""Tiles that are written across the rows in which they were read, and rows read backwards."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import count, nests

F32 = np.zeros(1, np.float32)


@tilewright.jit
def transpose(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    """out[c, r] = x[r, c] + 1."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    tile = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=0)
    tl.store(out + c[None, :] * rows + r[:, None], tile + 1, mask=mask)


@tilewright.jit
def transpose_tile(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    """The same with a transposed tile and a bias for each row that is written."""
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.program_id(1) * N + tl.arange(0, N)
    mask = (r[:, None] < rows) & (c[None, :] < columns)
    tile = tl.load(x + r[:, None] * columns + c[None, :], mask=mask, other=0)
    mask = (c[:, None] < columns) & (r[None, :] < rows)
    tl.store(out + c[:, None] * rows + r[None, :], tl.trans(tile) + 1, mask=mask)


@tilewright.jit
def add_bias(x, bias, out, M: tl.constexpr, N: tl.constexpr):
    """out[r, c] = x[r, c] + bias[r]: written as it is read."""
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + r * N + c, tl.load(x + r * N + c) + tl.load(bias + r))


@tilewright.jit
def turn(x, out, n, BLOCK: tl.constexpr):
    """out[i] = x[n - 1 - i]."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + n - 1 - i, mask=i < n, other=0), mask=i < n)


@tilewright.jit
def turn_stored(x, out, n, BLOCK: tl.constexpr):
    """out[n - 1 - i] = x[i], even i only."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i < n) & (i % 2 == 0)
    tl.store(out + n - 1 - i, tl.load(x + i, mask=mask, other=0), mask=mask)


@tilewright.jit
def every(x, out, n, step, BLOCK: tl.constexpr):
    """out[i] = x[i * step]."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * step, mask=i < n, other=0), mask=i < n)


@pytest.mark.parametrize("kernel", [transpose, transpose_tile])
def test_a_tile_that_is_transposed_is_read_along_its_rows(kernel: tilewright.JITFunction) -> None:
    module, report = nests(kernel, x=F32, out=F32, rows=100, columns=100, M=64, N=64)
    assert [nest.accesses[0].kind for nest in report.nests if nest.accesses] == ["contiguous"] * 2
    assert count(module, "cpu.alloc") >= 1


@pytest.mark.parametrize("kernel", [transpose, transpose_tile])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_a_transposed_tile_is_written_in_whole_vectors(
    kernel: tilewright.JITFunction, dtype: str
) -> None:
    x = np.zeros(1, dtype)
    module, _ = nests(kernel, x=x, out=x, rows=100, columns=100, M=64, N=64)
    assert count(module, "cpu.scatter") == count(module, "cpu.gather") == 0
    assert count(module, "cpu.shuffle") > 0


@tilewright.jit
def transpose_twice(x, out, along, M: tl.constexpr, N: tl.constexpr):
    """out[c, r] = along[r, c] = x[r, c]."""
    r, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(x + r * N + c)
    tl.store(out + c * M + r, tile)
    tl.store(along + r * N + c, tile)
    tl.store(along + M * N + r * N + c, tl.reshape(tl.reshape(tile, [M * N]), [M, N]))


def test_a_transposed_tile_that_others_read_by_rows(rng: np.random.Generator) -> None:
    x = rng.standard_normal((32, 64)).astype(np.float32)
    out, along = np.zeros((64, 32), np.float32), np.zeros((2, 32, 64), np.float32)
    transpose_twice[(1,)](x, out, along, M=32, N=64)
    np.testing.assert_array_equal(out, x.T)
    np.testing.assert_array_equal(along, np.stack((x, x)))


def test_a_number_for_each_row_needs_no_detour() -> None:
    _, report = nests(add_bias, x=F32, bias=F32, out=F32, M=16, N=64)
    assert len(report.nests) == 1


@pytest.mark.parametrize("kernel", [transpose, transpose_tile])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(64, 64), (100, 33), (257, 130), (1, 70)])
def test_transposes(
    kernel: tilewright.JITFunction, dtype: str, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    rows, columns = shape
    x = rng.integers(-50, 50, shape).astype(dtype)
    out = np.zeros((columns, rows), dtype)
    for m, n in ((64, 64), (16, 32), (4, 128)):
        grid = (tilewright.cdiv(rows, m), tilewright.cdiv(columns, n))
        kernel[grid](x, out, rows, columns, M=m, N=n)
        np.testing.assert_array_equal(out, x.T + np.ones((), dtype))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("size", [1, 17, 1000, 4096, 4097])
def test_rows_are_turned_round(dtype: str, size: int, rng: np.random.Generator) -> None:
    x = rng.integers(0, 2, size).astype(dtype)
    out, stored = np.zeros_like(x), np.zeros_like(x)
    turn[(tilewright.cdiv(size, 1024),)](x, out, size, BLOCK=1024)
    np.testing.assert_array_equal(out, x[::-1])
    turn_stored[(tilewright.cdiv(size, 1024),)](x, stored, size, BLOCK=1024)
    expected = np.zeros_like(x)
    expected[::-1][::2] = x[::2]
    np.testing.assert_array_equal(stored, expected)


def test_nothing_beyond_the_ends_of_a_turned_row_is_touched() -> None:
    memory = np.full(4096, 5, np.float32)
    turn_stored[(2,)](np.ones(1500, np.float32), memory[1000:], 1500, BLOCK=1024)
    assert (memory[:1000] == 5).all()
    assert (memory[2500:] == 5).all()


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("step", [1, 2, 3, 7, 64])
def test_every_so_many_elements(dtype: str, step: int, rng: np.random.Generator) -> None:
    for size in (17, 1000, 2048):
        x = rng.integers(-50, 50, (size - 1) * step + 1).astype(dtype)
        out = np.zeros(size, dtype)
        every[(tilewright.cdiv(size, 1024),)](x, out, size, step, BLOCK=1024)
        np.testing.assert_array_equal(out, x[::step])
