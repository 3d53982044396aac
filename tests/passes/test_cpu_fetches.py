"""Row kernels: what is fetched beside arithmetic, and chunks that start at a line of a store."""

from __future__ import annotations

import math
import mmap

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from examples.fused_softmax import softmax_kernel
from examples.layer_norm import forward_kernel
from tests.passes.lowered import count, named, nests

F32 = np.zeros(1 << 16, np.float32)
CANARY = 7777.0


@tilewright.jit
def double(x, out, n, BLOCK: tl.constexpr):
    """One nest: nothing to fetch beside."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@tilewright.jit
def column_sums(x, out, rows, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The sums of some columns, a tile of rows at a time."""
    c = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for first in range(0, rows, ROWS):
        r = first + tl.arange(0, ROWS)
        mask = (r[:, None] < rows) & (c[None, :] < width)
        total += tl.sum(tl.load(x + r[:, None] * width + c[None, :], mask=mask, other=0.0), axis=0)
    tl.store(out + c, total, mask=c < width)


@tilewright.jit
def picked_sums(x, rows, out, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """The sums over rows that a table names: where the next ones lie is in memory."""
    c, r = tl.arange(0, WIDTH), tl.load(rows + tl.arange(0, ROWS))
    tl.store(out + c, tl.sum(tl.load(x + r[:, None] * width + c[None, :]), axis=0))


@tilewright.jit
def same_row(x, out, n, BLOCK: tl.constexpr):
    """Every program reads the same row; only its result moves."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + tl.program_id(0) * n + i, row / tl.sum(tl.exp(row), 0), mask=i < n)


@tilewright.jit
def row_of_a_table(x, rows, out, n, BLOCK: tl.constexpr):
    """Which row the next program reads is in memory."""
    i = tl.arange(0, BLOCK)
    start = tl.load(rows + tl.program_id(0)) * n
    row = tl.load(x + start + i, mask=i < n, other=0.0)
    tl.store(out + start + i, row / tl.sum(tl.exp(row), 0), mask=i < n)


@tilewright.jit
def divided_row(x, out, n, d, BLOCK: tl.constexpr):
    """The next program's row may be a quotient by zero."""
    i = tl.arange(0, BLOCK)
    start = n // (d - tl.program_id(0)) * 0 + tl.program_id(0) * n
    row = tl.load(x + start + i, mask=i < n, other=0.0)
    tl.store(out + start + i, row / tl.sum(tl.exp(row), 0), mask=i < n)


@tilewright.jit
def flipped_quotients(x, out, n, BLOCK: tl.constexpr):
    """The last nest reads a tile of the arena from its end."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    e = tl.exp(row)
    tl.store(out + tl.program_id(0) * BLOCK + i, tl.flip(e) / tl.sum(e, 0))


@tilewright.jit
def gathered_quotients(x, out, n, BLOCK: tl.constexpr):
    """The last nest reads a tile of the arena at computed places."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    e = tl.exp(row)
    shuffled = tl.gather(e, (i * 5 + 3) % BLOCK, axis=0)
    tl.store(out + tl.program_id(0) * BLOCK + i, shuffled / tl.sum(e, 0))


@tilewright.jit
def expensive_first(x, residual, out, n, BLOCK: tl.constexpr):
    """What is normalised is expensive itself; the nests after it are not."""
    i = tl.arange(0, BLOCK)
    start = tl.program_id(0) * n
    h = tl.erf(tl.load(x + start + i, mask=i < n, other=0.0))
    h += tl.load(residual + start + i, mask=i < n, other=0.0)
    tl.store(out + start + i, h / tl.sum(h * h, 0), mask=i < n)


@tilewright.jit
def expensive_alone(x, out, n, BLOCK: tl.constexpr):
    """One nest, however expensive."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.erf(tl.load(x + i, mask=i < n)), mask=i < n)


def test_a_nest_that_reads_rows_first_fetches_the_next_ones_where_it_is_expensive() -> None:
    module, report = nests(expensive_first, x=F32, residual=F32, out=F32, n=1000, BLOCK=1024)
    first, *later = named(module, "cpu.nest")
    assert len(report.nests) == 1 + len(later) == 2
    inside = {id(op) for op in first.walk()}
    fetches = named(module, "cpu.prefetch")
    assert all(id(op) in inside for op in fetches)
    loops = {id(op.parent_op()) for op in fetches}
    # Both rows that are read and the one that is written, in full chunks and in masked ones.
    assert sorted("is_write" in op.properties for op in fetches) == [False] * 4 + [True] * 2
    assert len(loops) == 2


def test_rows_fetched_beside_their_own_arithmetic_change_no_result(
    rng: np.random.Generator,
) -> None:
    for width in (1000, 1024):
        x, residual = rng.standard_normal((2, 9, width), dtype=np.float32)
        out = np.empty_like(x)
        expensive_first[(9,)](x, residual, out, width, BLOCK=1024)
        h = np.vectorize(math.erf)(x.astype(np.float64)) + residual
        expected = h / (h * h).sum(1, keepdims=True)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-7)


def fetched(module: ModuleOp) -> list[list[bool]]:
    """Of each nest, whether each of its fetches is of what will be written."""
    made = named(module, "cpu.nest")
    inside = [[op for op in nest.walk() if op.name == "cpu.prefetch"] for nest in made]
    return [sorted("is_write" in op.properties for op in each) for each in inside]


def test_exponentials_fetch_this_row_s_place_and_quotients_the_next_row() -> None:
    """In the loop of full chunks and the masked one.

    The next row is fetched beside the exponentials where the quotients bypass the cache.
    """
    module, _ = nests(softmax_kernel, **softmax_arguments(1000))
    assert fetched(module) == [[], [False, False, True, True], [False, False]]
    assert not any("is_far" in op.properties for op in named(module, "cpu.prefetch"))


def test_a_row_larger_than_half_the_first_cache_is_fetched_into_the_second() -> None:
    module, _ = nests(softmax_kernel, **softmax_arguments(32000))
    assert all("is_far" in op.properties for op in named(module, "cpu.prefetch"))


def test_layer_norm_fetches_beside_each_of_its_nests() -> None:
    row = {"x_ptr": F32, "weight_ptr": F32, "bias_ptr": F32, "y_ptr": F32}
    sums = {"mean_ptr": F32, "rstd_ptr": F32, "stride": 1000, "width": 1000}
    module, report = nests(forward_kernel, **row, **sums, EPSILON=1e-5, BLOCK=1024)
    assert len(report.nests) == 3
    # The place of the result, the next row where the result bypasses the cache, and where not.
    found = [each for each in fetched(module) if each]
    assert found == [[True, True], [False, False], [False, False]]


@pytest.mark.parametrize("kernel", [double, expensive_alone, row_of_a_table, divided_row])
def test_nothing_is_fetched_where_nothing_is_known_or_nothing_waits(
    kernel: tilewright.JITFunction,
) -> None:
    more = {"rows": {"rows": np.zeros(8, np.int32)}, "d": {"d": 4}}
    known = {key: value for key, value in more.items() if key in kernel.arg_names}
    arguments = {name: value for part in known.values() for name, value in part.items()}
    module, _ = nests(kernel, x=F32, out=F32, n=1000, **arguments, BLOCK=1024)
    assert count(module, "cpu.prefetch") == 0


def test_a_row_that_all_programs_read_is_not_fetched() -> None:
    module, _ = nests(same_row, x=F32, out=F32, n=1000, BLOCK=1024)
    assert count(module, "cpu.prefetch") == 0


def softmax_arguments(width: int) -> dict[str, object]:
    strides = {"x_stride": width, "out_stride": width, "width": width}
    return {"x_ptr": F32, "out_ptr": F32, **strides, "BLOCK": tilewright.next_power_of_2(width)}


@pytest.mark.parametrize("width", [193, 255, 256, 1000, 1023, 1024])
@pytest.mark.parametrize("skipped", range(0, 17, 5))
def test_where_lines_begin_changes_no_bit_and_nothing_beside_a_row(
    width: int, skipped: int, rng: np.random.Generator
) -> None:
    rows = 5
    x = rng.standard_normal((rows, width), dtype=np.float32)
    expected = shifted(x, 0, width)
    np.testing.assert_array_equal(shifted(x, skipped, width), expected)
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(expected, exact / exact.sum(1, keepdims=True), rtol=2e-6)


def shifted(x: np.ndarray, skipped: int, width: int) -> np.ndarray:
    """The softmax of rows, written `skipped` elements after a line; canaries between rows."""
    rows, stride = len(x), width + 3
    memory = np.full(rows * stride + 64 + 16, CANARY, np.float32)
    line = -memory.ctypes.data % 64 // 4 + skipped
    out = memory[line : line + rows * stride].reshape(rows, stride)
    block = tilewright.next_power_of_2(width)
    softmax_kernel[(rows,)](x, out, width, stride, width, BLOCK=block)
    assert (out[:, width:] == CANARY).all()
    assert (memory[:line] == CANARY).all()
    assert (memory[line + rows * stride :] == CANARY).all()
    return out[:, :width].copy()


@pytest.mark.parametrize("kernel", [flipped_quotients, gathered_quotients])
@pytest.mark.parametrize("skipped", [0, 1, 4, 15])
def test_a_masked_rest_reads_no_tile_beyond_its_end(
    kernel: tilewright.JITFunction, skipped: int, rng: np.random.Generator
) -> None:
    size = 512
    x = rng.standard_normal(2 * size, dtype=np.float32)
    memory = np.full(2 * size + 64, CANARY, np.float32)
    first = -memory.ctypes.data % 64 // 4 + skipped
    out = memory[first : first + 2 * size]
    kernel[(2,)](x, out, size, BLOCK=size)
    e = np.exp(x.reshape(2, size).astype(np.float64))
    places = (
        np.arange(size)[::-1] if kernel is flipped_quotients else (np.arange(size) * 5 + 3) % size
    )
    expected = e[:, places] / e.sum(1, keepdims=True)
    np.testing.assert_allclose(out.reshape(2, size), expected, rtol=2e-6)
    assert (memory[:first] == CANARY).all() and (memory[first + 2 * size :] == CANARY).all()


def test_the_row_after_the_last_need_not_exist() -> None:
    rows, width = 4, 1024
    pages = mmap.mmap(-1, rows * width * 4)
    x = np.frombuffer(pages, np.float32).reshape(rows, width)
    out = np.empty((rows, width), np.float32)
    softmax_kernel[(rows,)](x, out, width, width, width, BLOCK=width)
    np.testing.assert_allclose(out, 1 / width, rtol=1e-6)


@tilewright.jit
def masked_loads(x, out, n, BLOCK: tl.constexpr):
    """Beyond n the store writes what the load is filled with."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=5.0) * 2)


@tilewright.jit
def two_stores(x, out, other, n, BLOCK: tl.constexpr):
    """One store is masked, one is not."""
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i) * 2
    tl.store(out + i, value, mask=i < n)
    tl.store(other + i, value)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 300, 511, 512, 600])
@pytest.mark.parametrize("skipped", [0, 1, 15])
def test_a_masked_load_ends_no_store_and_a_masked_store_no_other(
    n: int, skipped: int, rng: np.random.Generator
) -> None:
    size = 512
    x = rng.standard_normal(size, dtype=np.float32)
    memory = np.full(2 * size + 64, CANARY, np.float32)
    first = -memory.ctypes.data % 64 // 4 + skipped
    out, other = memory[first : first + size], memory[first + size : first + 2 * size]
    masked_loads[(1,)](x, out, n, BLOCK=size)
    np.testing.assert_array_equal(out, np.where(np.arange(size) < n, x, 5) * 2)
    out[:] = CANARY
    two_stores[(1,)](x, out, other, n, BLOCK=size)
    np.testing.assert_array_equal(out, np.where(np.arange(size) < n, x * 2, CANARY))
    np.testing.assert_array_equal(other, x * 2)
    assert (memory[:first] == CANARY).all() and (memory[first + 2 * size :] == CANARY).all()


def test_a_fold_across_rows_fetches_its_piece_of_those_that_come() -> None:
    given = {"x": F32, "out": F32, "rows": 4096, "width": 1000}
    module, _ = nests(column_sums, **given, ROWS=64, WIDTH=64)
    (fetched,) = named(module, "cpu.prefetch")
    assert fetched.properties["num_lines"].value.data == 5
    assert not count(nests(column_sums, **given, ROWS=8, WIDTH=64)[0], "cpu.prefetch")


def test_rows_that_a_table_names_are_not_fetched() -> None:
    rows = np.arange(64, dtype=np.int32)
    module, _ = nests(picked_sums, x=F32, rows=rows, out=F32, width=100, ROWS=64, WIDTH=64)
    assert not count(module, "cpu.prefetch")


@pytest.mark.parametrize("width", [17, 64, 1000])
def test_columns_at_the_end_of_memory_are_summed(width: int, rng: np.random.Generator) -> None:
    """What is fetched behind an array may lie on a page that does not exist."""
    with mmap.mmap(-1, 300 * width * 4) as memory:
        x = np.frombuffer(memory, np.float32)[-300 * width :].reshape(300, width)
        x[...] = rng.standard_normal((300, width))
        out = np.zeros(width, np.float32)
        column_sums[(tilewright.cdiv(width, 64),)](x, out, 300, width, ROWS=64, WIDTH=64)
        np.testing.assert_allclose(out, x.astype(np.float64).sum(0), rtol=1e-4, atol=1e-4)
        del x
