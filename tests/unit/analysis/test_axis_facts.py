"""Axis facts: what kernels that people write let the compiler know about their accesses."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

import tilewright
import tilewright.language as tl
from tests.passes.lowered import written
from tilewright.analysis.facts import AxisFacts
from tilewright.jit import JITFunction
from tilewright.ops.memory.ir import LoadOp, StoreOp

F16 = np.zeros(1 << 12, np.float16)
F32 = np.zeros(1 << 12, np.float32)
I32 = np.zeros(1 << 12, np.int32)


def accesses(kernel: JITFunction, **values: object) -> tuple[AxisFacts, list[Operation]]:
    """The facts of a kernel and its tile loads and stores, in order."""
    module = written(kernel, **values)
    found = [op for op in module.walk() if isinstance(op, LoadOp | StoreOp)]
    return AxisFacts(module), found


@tilewright.jit
def vector(x, n, BLOCK: tl.constexpr):
    """A masked block of a vector."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def test_a_block_of_a_vector_is_read_in_16_bytes() -> None:
    facts, (load, store) = accesses(vector, x=F32, n=1024, BLOCK=256)
    assert facts.vector_width(load, 8, 0) == 4
    assert facts.vector_width(store, 2, 0) == 2
    pointer = facts.of(load.operands[0])
    assert (pointer.contiguity, pointer.divisibility) == ((256,), (16,))


def test_a_mask_of_any_length_splits_the_access() -> None:
    facts, (load, _) = accesses(vector, x=F32, n=1023, BLOCK=256)
    assert facts.mask_alignment(load.operands[1], 0) == 1
    assert facts.vector_width(load, 4, 0) == 1


def test_a_misaligned_base_splits_the_access() -> None:
    facts, (load, _) = accesses(vector, x=F32[1:], n=1024, BLOCK=256)
    assert facts.vector_width(load, 4, 0) == 1


@tilewright.jit
def matrix(a, s, K, BM: tl.constexpr, BK: tl.constexpr):
    """Blocks of a row-major matrix, whose pointers a loop moves."""
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)) % s
    columns = tl.arange(0, BK)
    pointers = a + rows[:, None] * s + columns[None, :]
    total = tl.zeros((BM, BK), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        total += tl.load(pointers, mask=columns[None, :] < K - k * BK, other=0.0)
        pointers += BK
    tl.store(a + rows[:, None] + columns[None, :] * s, total.to(tl.float16))


def test_pointers_that_a_loop_moves_stay_aligned() -> None:
    facts, (load, _) = accesses(matrix, a=F16, s=512, K=512, BM=64, BK=32)
    assert facts.vector_width(load, 8, 1) == 8
    assert facts.coalesce_order(load.operands[0]) == (1, 0)


def test_an_odd_row_stride_splits_the_access() -> None:
    facts, (load, _) = accesses(matrix, a=F16, s=511, K=512, BM=64, BK=32)
    assert facts.vector_width(load, 8, 1) == 1
    assert facts.of(load.operands[0]).contiguity == (1, 32)


def test_a_column_major_access_runs_along_its_columns() -> None:
    facts, (_, store) = accesses(matrix, a=F16, s=512, K=512, BM=64, BK=32)
    pointer = store.operands[0]
    assert facts.coalesce_order(pointer) == (0, 1)
    # Rows wrap at `s`, a multiple of 16.
    assert facts.of(pointer).contiguity == (16, 1)
    assert facts.vector_width(store, 8, 0) == 8


@tilewright.jit
def grouped(b, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    """The columns of a product whose programs are numbered in groups of rows."""
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (G * num_n)
    size = min(num_m - group * G, G)
    columns = ((pid % (G * num_n)) // size * BN + tl.arange(0, BN)) % N
    rows = tl.arange(0, BK)
    pointers = b + rows[:, None] * N + columns[None, :]
    for k in range(0, tl.cdiv(K, BK)):
        tile = tl.load(pointers, mask=rows[:, None] < K - k * BK, other=0.0)
        tl.store(b + columns, tl.sum(tile, 0).to(tl.float16))
        pointers += BK * N


def test_wrapped_columns_of_a_grouped_product_keep_their_runs() -> None:
    facts, (load, _) = accesses(grouped, b=F16, M=96, N=512, K=64, BM=32, BN=64, BK=32, G=8)
    assert facts.vector_width(load, 8, 1) == 8


@tilewright.jit
def promised(x, idx, n, BLOCK: tl.constexpr):
    """An access whose facts are promises."""
    tl.assume(n % 8 == 0)
    i = tl.max_contiguous(tl.multiple_of(tl.load(idx + tl.arange(0, BLOCK)), 8), 8)
    tl.store(x + i + n, tl.load(x + tl.multiple_of(i, 4) + 3 * n))


def test_promises_of_the_author_count() -> None:
    facts, (_, load, store) = accesses(promised, x=F16, idx=I32, n=7, BLOCK=64)
    assert facts.vector_width(load, 8, 0) == 8
    assert facts.vector_width(store, 8, 0) == 8


@tilewright.jit
def multiples(x, idx, BLOCK: tl.constexpr):
    """Divisors are promised, runs are not."""
    i = tl.multiple_of(tl.load(idx + tl.arange(0, BLOCK)), 8)
    tl.store(x + i, tl.load(x + i * 2))


def test_a_promised_divisor_counts_for_runs_that_are_known_only() -> None:
    facts, (_, load, _) = accesses(multiples, x=F16, idx=I32, BLOCK=64)
    assert facts.of(load.operands[0]).divisibility == (4,)


@tilewright.jit
def decoded(x, BLOCK: tl.constexpr, N: tl.constexpr):
    """A flat index taken apart and put together."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + (i // N) * 128 + i % N, mask=i // N < 7))


def test_a_flat_index_that_is_taken_apart_keeps_its_runs() -> None:
    facts, (load, _) = accesses(decoded, x=F32, BLOCK=256, N=48)
    assert facts.of(load.operands[0]).contiguity == (16,)
    assert facts.mask_alignment(load.operands[1], 0) == 16
    assert facts.vector_width(load, 8, 0) == 4


@tilewright.jit
def shifted(x, BLOCK: tl.constexpr):
    """An index that may be negative."""
    i = tl.arange(0, BLOCK) - 8
    tl.store(x + i + 8, tl.load(x + i // 4 + 2))


def test_division_of_negative_indices_is_not_constant_in_groups() -> None:
    facts, (load, _) = accesses(shifted, x=F32, BLOCK=64)
    assert facts.of(load.operands[0]).constancy == (1,)


@tilewright.jit
def divided(x, sizes, n, B: tl.constexpr, IS_LOADED: tl.constexpr):
    """Columns of a block whose number is a quotient, around the end of a row."""
    size = tl.load(sizes) if IS_LOADED else tl.minimum(n - tl.program_id(0), 8)
    columns = (tl.program_id(1) // size * B + tl.arange(0, B)) % n
    tl.store(x + columns, columns)


def test_a_divisor_of_arguments_and_programs_counts_as_positive() -> None:
    facts, (store,) = accesses(divided, x=I32, sizes=I32, n=1024, B=64, IS_LOADED=False)
    assert facts.vector_width(store, 4, 0) == 4


def test_a_divisor_that_is_loaded_may_be_negative() -> None:
    facts, found = accesses(divided, x=I32, sizes=I32, n=1024, B=64, IS_LOADED=True)
    assert facts.vector_width(found[-1], 4, 0) == 1


@tilewright.jit
def of_extent(x, sizes, B: tl.constexpr, IN_BRANCH: tl.constexpr):
    """Columns by a loaded number that a descriptor has as an extent, perhaps elsewhere."""
    size = tl.load(sizes)
    if IN_BRANCH:
        if tl.program_id(0) > 2:
            tl.make_tensor_descriptor(x, [size, 8], [8, 1], [8, 8]).store(
                [0, 0], tl.zeros((8, 8), x.dtype.element_ty)
            )
    else:
        tl.make_tensor_descriptor(x, [size, 8], [8, 1], [8, 8]).store(
            [0, 0], tl.zeros((8, 8), x.dtype.element_ty)
        )
    columns = (tl.program_id(1) // size * B + tl.arange(0, B)) % 1024
    tl.store(x + columns, columns)


def test_an_extent_of_a_descriptor_is_positive_where_it_is_made() -> None:
    for in_branch, width in ((False, 4), (True, 1)):
        facts, found = accesses(of_extent, x=I32, sizes=I32, B=64, IN_BRANCH=in_branch)
        assert facts.vector_width(found[-1], 4, 0) == width


@tilewright.jit
def parallel(x, n, B: tl.constexpr):
    """Two runs, and how far they are apart."""
    i = tl.arange(0, B)
    tl.store(x + ((n + i) - i), i)


def test_two_runs_are_as_much_apart_all_along() -> None:
    facts, (store,) = accesses(parallel, x=I32, n=1024, B=64)
    assert facts.of(store.operands[0]).constancy == (64,)


@tilewright.jit
def from_the_last(x, n, WAY: tl.constexpr):
    """A number of each program."""
    program, count = tl.program_id(0), tl.num_programs(0)
    if WAY == "last":
        at = count - 1 - program
    elif WAY == "behind":
        at = count - (program + 1)
    elif WAY == "count":
        at = count - program
    elif WAY == "too far":
        at = count - 2 - program
    elif WAY == "other axis":
        at = tl.num_programs(1) - 1 - program
    elif WAY == "twice":
        at = count - 1 - program - program
    else:
        at = n - 1 - program
    tl.store(x + at, 1)


def test_programs_that_count_from_the_last_one_are_not_negative() -> None:
    for way in ("last", "behind", "count"):
        assert is_nonnegative(way), way
    for way in ("too far", "other axis", "twice", "argument"):
        assert not is_nonnegative(way), way


def is_nonnegative(way: str) -> bool:
    """Whether the index of a store is known not to be negative."""
    facts, (store,) = accesses(from_the_last, x=F32, n=16, WAY=way)
    return facts.of(store.operands[0].owner.operands[1]).is_nonnegative


@tilewright.jit
def cast_in_branch(x, y, n, B: tl.constexpr):
    """One of two arrays as another type, of which the first is better aligned."""
    if n > 100:
        pointer = x.to(tl.pointer_type(tl.int32), bitcast=True)
    else:
        pointer = y.to(tl.pointer_type(tl.int32), bitcast=True)
    i = tl.arange(0, B)
    tl.store(pointer + i, tl.load(pointer + i) + 1)


def test_what_is_known_of_one_of_two_pointers_is_known_of_both() -> None:
    facts, (load, _) = accesses(cast_in_branch, x=F32, y=F32[1:], n=1000, B=32)
    assert facts.vector_width(load, 4, 0) == 1
    facts, (load, _) = accesses(cast_in_branch, x=F32, y=F32, n=1000, B=32)
    assert facts.vector_width(load, 4, 0) == 4
