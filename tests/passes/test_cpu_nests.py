"""The shape of C2: what fuses, what is kept, what is tested at run time."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from benchmarks.long_kernels import sort_rows
from tests.corpus.exchanges import butterfly, exchange_neighbours
from tests.passes.lowered import count, named, nests, packing_products

F32 = np.zeros(1 << 16, np.float32)


@tilewright.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    """out = x + y."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@tilewright.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    """One row of softmax."""
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + tl.program_id(0) * n + i, e / tl.sum(e, 0), mask=i < n)


@tilewright.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a @ b with one tile of c."""
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a + m[:, None] * K + k[None, :]
    b_ptrs = b + k[:, None] * BN + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BK
        b_ptrs += BK * BN
    tl.store(c + m[:, None] * BN + n[None, :], acc)


@tilewright.jit
def rescale(x, out, n, BLOCK: tl.constexpr):
    """A carried tile that is updated element by element."""
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(n):
        total = total * 0.5 + tl.load(x + step * BLOCK + i)
    tl.store(out + i, total)


@tilewright.jit
def shift(x, BLOCK: tl.constexpr):
    """Every element moves down by one."""
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i + 1))


@tilewright.jit
def scale(x, BLOCK: tl.constexpr):
    """Every element is doubled in place."""
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)


def test_vector_add_is_one_nest_of_contiguous_accesses() -> None:
    _, report = nests(add, x=F32, y=F32, out=F32, n=1000, BLOCK=1024)
    (nest,) = report.nests
    assert nest.vector == 64
    assert [access.kind for access in nest.accesses] == ["contiguous"] * 3


def test_code_size_does_not_grow_with_the_tile() -> None:
    sizes = []
    for block in (512, 1 << 20):
        module, _ = nests(add, x=F32, y=F32, out=F32, n=1000, BLOCK=block)
        sizes.append(sum(1 for _ in module.walk()))
    # A large tile may share a constant that a small one has for itself.
    assert sizes[1] <= sizes[0]


def test_softmax_is_three_nests_and_keeps_the_exponentials_only() -> None:
    module, report = nests(softmax, x=F32, out=F32, n=1000, BLOCK=1024)
    assert [nest.fused for nest in report.nests] == [
        ("tt.reduce",),
        ("materialize", "tt.reduce"),
        ("tt.store",),
    ]
    exponentials = {op.location for op in named(module, "math.exp")}
    assert len(exponentials) == 1
    assert report.arena_bytes == 4096


def test_operands_stay_in_memory_and_the_sum_stays_in_place() -> None:
    module, report = nests(matmul, a=F32, b=F32, c=F32, K=128, BM=64, BN=64, BK=32)
    dot, *_ = packing_products(module)
    choice = dot.parent_op()
    loop = None if choice is None else choice.parent_op()
    assert loop is not None and loop.name == "scf.for"
    inside = [op.name for op in loop.regions[0].block.ops]
    assert inside.count("cpu.pack") == 0
    assert [op.name for op in choice.regions[1].block.ops] == ["cpu.dot", "scf.yield"]
    assert "cpu.nest" not in inside
    assert [nest.fused for nest in report.nests] == [("copy",), ("tt.store",)]


def test_a_carried_tile_is_updated_in_its_own_buffer() -> None:
    module, report = nests(rescale, x=F32, out=F32, n=4, BLOCK=256)
    assert count(module, "cpu.alloc") == 1
    assert report.arena_bytes == 1024


def test_a_store_that_could_overtake_a_load_is_tested_at_run_time() -> None:
    module, _ = nests(shift, x=F32, BLOCK=1024)
    assert count(module, "arith.select") >= 1
    assert count(module, "scf.if") >= 1


def test_a_store_to_the_loaded_place_needs_no_test() -> None:
    module, _ = nests(scale, x=F32, BLOCK=1024)
    assert count(module, "arith.select") == 0
    assert count(module, "cpu.alloc") == 0


def test_a_tile_of_one_vector_needs_no_test_and_no_loop() -> None:
    module, _ = nests(shift, x=F32, BLOCK=64)
    assert count(module, "scf.if") == 0
    assert count(module, "scf.for") == 0


def test_full_chunks_run_without_masks_and_the_rest_with_them() -> None:
    module, _ = nests(softmax, x=F32, out=F32, n=1000, BLOCK=1024)
    loads = [len(op.operands) for op in named(module, "cpu.load") if len(op.operands) > 2]
    plain = [op for op in named(module, "cpu.load") if len(op.operands) == 1]
    assert len(loads) == 2
    assert len(plain) >= 2


def test_every_op_of_a_nest_knows_its_line() -> None:
    module, _ = nests(softmax, x=F32, out=F32, n=1000, BLOCK=1024)
    unknown = {op.name for op in module.walk() if "unknown" in str(op.location).lower()}
    assert unknown <= {"builtin.module", "cpu.alloc"}


@pytest.mark.parametrize("rows", [1, 4])
def test_a_step_of_a_sort_with_indices_is_two_nests(rows: int) -> None:
    keys, at = np.zeros((rows, 32), np.float32), np.zeros((rows, 32), np.int64)
    sizes = {"rows": rows, "columns": 32, "ROWS": rows, "AXIS_LOG2": 5}
    _, report = nests(sort_rows, x=keys, values=keys, indices=at, **sizes)
    steps = 5 * 6 // 2
    assert len(report.nests) <= 2 * steps + 12


def test_folds_of_pairs_in_a_row_are_evaluated_once_a_step_and_not_twice_as_often_each() -> None:
    cells = np.zeros(1 << 12, np.int32)
    _, report = nests(butterfly, x=cells, out=cells.copy(), n=4096, LOG2=12)
    assert len(report.nests) <= 2 * 12 + 2
    # Elements times ops: each of 12 steps is a few ops an element.
    assert sum(nest.flops for nest in report.nests) < 12 * 20 * 4096


def test_a_fold_of_pairs_that_are_loaded_reads_them_in_a_nest_of_its_own() -> None:
    cells = np.zeros(1 << 12, np.float32)
    _, report = nests(exchange_neighbours, x=cells, out=cells.copy(), N=512, W=2)
    fused = [name for nest in report.nests for name in nest.fused]
    assert fused.count("tt.reduce") == 3


@tilewright.jit
def hinted_rows(x, at, out, BLOCK: tl.constexpr):
    """Elements whose places are loaded, through addresses with a promise."""
    i = tl.arange(0, BLOCK)
    p = tl.multiple_of(x + tl.load(at + i), 1)
    tl.store(out + i, tl.load(p))


def test_a_promise_about_addresses_leaves_them_a_base_with_offsets() -> None:
    at = np.zeros(1 << 12, np.int32)
    module, _ = nests(hinted_rows, x=F32, at=at, out=F32.copy(), BLOCK=256)
    assert count(module, "cpu.gather") == 1
    assert count(module, "cpu.load_pointers") == 0
