"""Tensor descriptors by the copy engine, in the simulator beside the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.nvidia.descriptor_launching import check, lowered
from tilewright.ir.op import Array
from tilewright.ops.staging import ConvertLayoutOp, LocalBarrierOp, LocalLoadOp
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.support.errors import ArgumentNotSupported
from tilewright.targets.nvidia.emit import find_kernel
from tilewright.targets.nvidia.tma_ops import (
    MakeTensorMapOp,
    TmaLoadOp,
    TmaStoreOp,
    TmaStoreWaitOp,
)

DTYPES = ["int8", "float16", "bfloat16", "float32", "int32", "float64", "int64", "float8_e5m2"]


def numbers(shape: Sequence[int], dtype: str = "float32", span: int = 50) -> Array:
    """Whole numbers that every dtype holds exactly."""
    kind = getattr(ml_dtypes, dtype, None) or dtype
    generator = np.random.default_rng(len(shape) + sum(shape))
    return generator.integers(-span, span, tuple(shape)).astype(kind)


def described(array: Array, block: Sequence[int]) -> TensorDescriptor:
    """The descriptor of an array, padded with zeros."""
    return TensorDescriptor.from_tensor(array, tuple(block))


def count(kernel: object, arguments: Sequence[object], *kinds: type, **options: object) -> int:
    """How many ops of some kinds a kernel has at T2."""
    function = find_kernel(lowered(kernel, arguments, options).scheduled.module)
    return sum(isinstance(op, kinds) for op in function.walk())


# --- blocks -----------------------------------------------------------------------------------


@tilewright.jit
def copy_block(source, target, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([i, j], source.load([i, j]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_block_of_any_dtype_is_copied(dtype: str) -> None:
    x = numbers((16, 64), dtype, 15)
    check(copy_block, (1, 1), described(x, (16, 64)), described(0 * x, (16, 64)), 16, 64)


@pytest.mark.parametrize("size", [(32, 128), (33, 120), (7, 8), (64, 196)])
def test_blocks_are_cut_off_at_the_bounds(size: tuple[int, int]) -> None:
    x = numbers(size)
    grid = (-(-size[0] // 32), -(-size[1] // 64))
    check(copy_block, grid, described(x, (32, 64)), described(0 * x, (32, 64)), 32, 64)


@pytest.mark.parametrize(
    "block", [(1, 4), (1, 1024), (4, 256), (8, 4), (8, 256), (512, 8), (1024, 4), (2, 512)]
)
def test_blocks_that_take_several_boxes_are_whole(block: tuple[int, int]) -> None:
    x = numbers((block[0] + 3, block[1] + 4))
    check(copy_block, (2, 2), described(x, block), described(0 * x, block), *block)


@tilewright.jit
def scale_row(source, target, B: tl.constexpr):
    i = tl.program_id(0) * B
    target.store([i], source.load([i]) * 3)


@pytest.mark.parametrize("block", [16, 256, 2048])
def test_one_dimension_is_copied(block: int) -> None:
    x = numbers((3 * block - 8,), "float16", 9)
    check(scale_row, (3,), described(x, (block,)), described(0 * x, (block,)), block)


@tilewright.jit
def add_one(source, target, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.program_id(0) * A, tl.program_id(1) * B, tl.program_id(2) * C
    target.store([i, j, k], source.load([i, j, k]) + 1)


@pytest.mark.parametrize("block", [(1, 16, 32), (4, 4, 16), (2, 8, 64)])
def test_three_dimensions_are_copied(block: tuple[int, int, int]) -> None:
    x = numbers((5, 20, 72), "float16")
    grid = tuple(-(-n // b) for n, b in zip(x.shape, block, strict=True))
    check(add_one, grid, described(x, block), described(0 * x, block), *block)


@tilewright.jit
def add_five(source, target):
    target.store([0, 1, 0, 1, 0], source.load([0, 0, 1, 0, 0]))


def test_five_dimensions_are_copied() -> None:
    x = numbers((2, 3, 4, 3, 16))
    block = (1, 2, 2, 2, 16)
    check(add_five, (1,), described(x, block), described(0 * x, block))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_is_out_of_bounds_reads_as_nan_where_asked(dtype: str) -> None:
    x = numbers((24, 40), dtype)
    source = TensorDescriptor.from_tensor(x, (32, 64), "nan")
    arguments = [source, described(numbers((32, 64), dtype), (32, 64)), 32, 64]
    check(copy_block, (1, 1), *arguments)
    assert count(copy_block, arguments, TmaLoadOp) == 1


@tilewright.jit
def made_with_nan(x, out, first, B: tl.constexpr):
    start = tl.load(first)
    source = tl.make_tensor_descriptor(x + start, [8, B], [B, 1], [B, B], padding_option="nan")
    target = tl.make_tensor_descriptor(out, [B, B], [B, 1], [B, B])
    target.store([0, 0], source.load([0, 0]))


def test_a_made_map_fills_with_nan_too() -> None:
    x = numbers((32, 16))
    check(made_with_nan, (1,), x, 0 * x, np.array([16], np.int32), 16)


@tilewright.jit
def shift(source, target, i, j):
    target.store([j, i], source.load([i, j]))


def test_negative_indices_are_out_of_bounds() -> None:
    x = numbers((24, 24), "float16")
    check(shift, (1,), described(x, (16, 16)), described(0 * x, (16, 16)), -5, -8)


@tilewright.jit
def transpose(source, target, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([j, i], source.load([i, j]).T)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_a_transposed_block_is_stored(dtype: str) -> None:
    x = numbers((48, 80), dtype)
    out = numbers((80, 48), dtype) * 0
    check(transpose, (2, 2), described(x, (32, 64)), described(out, (64, 32)), 32, 64)


# --- loops and branches -----------------------------------------------------------------------


@tilewright.jit
def row_sums(source, out, n, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM
    acc = tl.zeros((BM,), tl.float32)
    for j in range(0, n, BN):
        acc += tl.sum(source.load([i, j]), axis=1)
    tl.store(out + i + tl.arange(0, BM), acc)


@pytest.mark.parametrize("n", [32, 64, 160])
def test_a_loop_waits_for_phase_after_phase(n: int) -> None:
    x = numbers((32, n))
    check(row_sums, (2,), described(x, (16, 32)), np.zeros(32, np.float32), n, 16, 32)


@tilewright.jit
def nested(source, out, n, m, B: tl.constexpr):
    acc = tl.zeros((B, B), tl.float32)
    for i in range(0, n):
        acc += source.load([i, 0])
        for j in range(i, m):
            if (i + j) % 2 == 0:
                acc += source.load([0, j])
            else:
                acc -= source.load([i, j]) * 2
        if i == 1:
            acc += source.load([m, i])
    k = 0
    while k < m:
        acc += source.load([k, k])
        k += 2
    out.store([0, 0], acc)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (1, 1), (2, 4)])
def test_phases_go_through_nested_loops_and_branches(n: int, m: int) -> None:
    x = numbers((24, 24))
    check(nested, (1,), described(x, (16, 16)), described(np.zeros_like(x), (16, 16)), n, m, 16)


@tilewright.jit
def persistent(source, target, rows, BM: tl.constexpr, BN: tl.constexpr):
    for i in range(tl.program_id(0), tl.cdiv(rows, BM), tl.num_programs(0)):
        x = source.load([i * BM, 0])
        target.store([i * BM, 0], x * 2)
        target.store([i * BM, BN], x + 1)


def test_stores_in_a_loop_read_their_tiles_before_they_are_reused() -> None:
    x = numbers((70, 64), "float16")
    out = numbers((70, 128), "float16") * 0
    check(persistent, (2,), described(x, (16, 64)), described(out, (16, 64)), 70, 16, 64)


# --- products ---------------------------------------------------------------------------------


@tilewright.jit
def matmul(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for l in range(0, k, BK):
        acc = tl.dot(a.load([i, l]), b.load([l, j]), acc)
    c.store([i, j], acc.to(c.dtype))


@tilewright.jit
def matmul_transposed(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for l in range(0, k, BK):
        acc = tl.dot(a.load([i, l]), b.load([j, l]).T, acc)
    c.store([i, j], acc.to(c.dtype))


def operands(m: int, n: int, k: int, dtype: str, blocks: tuple[int, int, int]) -> list[object]:
    bm, bn, bk = blocks
    a, b = numbers((m, k), dtype, 4), numbers((k, n), dtype, 4)
    c = np.zeros((m, n), np.float32)
    tensors = [described(a, (bm, bk)), described(b, (bk, bn)), described(c, (bm, bn))]
    return [*tensors, k, *blocks]


def transposed(arguments: list[object]) -> list[object]:
    b = arguments[1]
    assert isinstance(b, TensorDescriptor) and isinstance(b.base, np.ndarray)
    block = tuple(reversed(b.block_shape))
    return [arguments[0], described(b.base.T.copy(), block), *arguments[2:]]


SHAPES = [
    ((64, 64, 64), (64, 64, 32)),
    ((128, 72, 80), (128, 64, 64)),
    ((64, 256, 128), (64, 256, 64)),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("size", "blocks"), SHAPES)
def test_products_of_loaded_blocks_are_right(
    size: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str
) -> None:
    grid = (-(-size[0] // blocks[0]), -(-size[1] // blocks[1]))
    arguments = operands(*size, dtype, blocks)
    check(matmul, grid, *arguments, tolerance=1e-6)
    check(matmul_transposed, grid, *transposed(arguments), tolerance=1e-6)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "float32"])
def test_products_along_k_are_right_for_every_width(dtype: str) -> None:
    arguments = operands(64, 64, 128, dtype, (64, 64, 64))
    check(matmul_transposed, (1, 1), *transposed(arguments), tolerance=1e-6)
    check(matmul, (1, 1), *arguments, tolerance=1e-6)


@pytest.mark.parametrize("num_warps", [4, 8])
def test_operands_of_wgmma_land_where_it_reads_them(num_warps: int) -> None:
    arguments = operands(128, 128, 128, "float16", (128, 128, 64))
    for kernel, given in ((matmul, arguments), (matmul_transposed, transposed(arguments))):
        options = {"num_warps": num_warps}
        assert count(kernel, given, TmaLoadOp, **options) == 2
        assert count(kernel, given, LocalLoadOp, ConvertLayoutOp, **options) == 0


def test_small_products_are_right() -> None:
    arguments = operands(16, 32, 48, "float16", (16, 32, 16))
    check(matmul, (1, 1), *arguments, tolerance=1e-6)


# --- reductions -------------------------------------------------------------------------------


def reducing(kind: str) -> object:
    """A kernel that combines blocks into one of `target` by `kind`."""

    @tilewright.jit
    def reduce_add(source, target, B: tl.constexpr):
        target.atomic_add([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_min(source, target, B: tl.constexpr):
        target.atomic_min([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_max(source, target, B: tl.constexpr):
        target.atomic_max([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_and(source, target, B: tl.constexpr):
        target.atomic_and([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_or(source, target, B: tl.constexpr):
        target.atomic_or([1, 0], source.load([tl.program_id(0) * B, 0]))

    @tilewright.jit
    def reduce_xor(source, target, B: tl.constexpr):
        target.atomic_xor([1, 0], source.load([tl.program_id(0) * B, 0]))

    kernels = (reduce_add, reduce_min, reduce_max, reduce_and, reduce_or, reduce_xor)
    return next(k for k in kernels if k.__name__ == f"reduce_{kind}")


REDUCED = [("add", t) for t in ("int32", "uint32", "float32", "float16", "uint64")] + [
    (kind, t)
    for kind in ("min", "max", "and", "or", "xor")
    for t in ("int32", "uint32", "int64", "uint64")
]


@pytest.mark.parametrize(("kind", "dtype"), REDUCED)
def test_blocks_are_combined_atomically(kind: str, dtype: str) -> None:
    span = 50
    x = (
        np.abs(numbers((24, 16), dtype, span))
        if dtype[0] == "u"
        else numbers((24, 16), dtype, span)
    )
    out = (np.zeros((8, 16)) + 7).astype(dtype)
    arguments = [described(x, (8, 16)), described(out, (8, 16)), 8]
    check(reducing(kind), (3,), *arguments)
    assert count(reducing(kind), arguments, TmaStoreOp) == 1


# --- descriptors made in the kernel -----------------------------------------------------------


@tilewright.jit
def made_here(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [BM, BN])
    target = tl.make_tensor_descriptor(out + 8, [rows - 1, columns // 2], [columns, 1], [BM, BN])
    target.store([0, 0], source.load([BM, 0]))


def test_a_descriptor_made_of_arguments_is_made_by_the_launch() -> None:
    x = numbers((40, 64), "int32")
    arguments = [x, 0 * x, 40, 64, 16, 32]
    check(made_here, (1,), *arguments)
    assert count(made_here, arguments, TmaLoadOp, TmaStoreOp) == 2


@tilewright.jit
def made_by_program(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    source = tl.make_tensor_descriptor(
        x + pid * rows * columns, [rows, columns], [columns, 1], [BM, BN]
    )
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [BM, BN])
    target.store([pid * BM, 0], source.load([0, 0]))


def test_a_descriptor_that_differs_between_programs_is_made_by_them() -> None:
    x = numbers((64, 32))
    arguments = [x, 0 * x, 32, 32, 16, 32]
    check(made_by_program, (2,), *arguments)
    assert count(made_by_program, arguments, MakeTensorMapOp) == 1
    assert count(made_by_program, arguments, TmaLoadOp, TmaStoreOp) == 2


@tilewright.jit
def grouped(sizes, a, b, c, groups, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of several sizes, one behind the other in three arrays."""
    first_a = 0
    first_b = 0
    first_c = 0
    for g in range(groups):
        m, n, k = tl.load(sizes + 3 * g), tl.load(sizes + 3 * g + 1), tl.load(sizes + 3 * g + 2)
        left = tl.make_tensor_descriptor(a + first_a, [m, k], [k, 1], [BM, BK])
        right = tl.make_tensor_descriptor(b + first_b, [k, n], [n, 1], [BK, BN])
        out = tl.make_tensor_descriptor(c + first_c, [m, n], [n, 1], [BM, BN])
        columns = tl.cdiv(n, BN)
        for t in range(tl.program_id(0), tl.cdiv(m, BM) * columns, tl.num_programs(0)):
            i, j = t // columns * BM, t % columns * BN
            acc = tl.zeros((BM, BN), tl.float32)
            for l in range(0, k, BK):
                acc = tl.dot(left.load([i, l]), right.load([l, j]), acc)
            out.store([i, j], acc)
        first_a += m * k
        first_b += k * n
        first_c += m * n


def grouped_arguments(sizes: Sequence[tuple[int, int, int]]) -> list[object]:
    num_a, num_b, num_c = (
        sum(m * k for m, _, k in sizes), sum(k * n for _, n, k in sizes),
        sum(m * n for m, n, _ in sizes),
    )  # fmt: skip
    a, b = numbers((num_a,), "float16", 4), numbers((num_b,), "float16", 4)
    c = np.zeros(num_c, np.float32)
    return [np.array(sizes, np.int32).ravel(), a, b, c, len(sizes), 64, 32, 32]


def test_a_program_makes_maps_again_and_again() -> None:
    arguments = grouped_arguments([(64, 32, 32), (72, 40, 48), (8, 64, 64)])
    check(grouped, (3,), *arguments, tolerance=1e-6)
    assert count(grouped, arguments, MakeTensorMapOp) == 3


@tilewright.jit
def made_of_three(x, out, first, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    start = tl.load(first)
    source = tl.make_tensor_descriptor(x + start, [3, 8, 16], [8 * 16, 16, 1], [A, B, C])
    line = tl.make_tensor_descriptor(out + start, [384 - start], [1], [A * B * C])
    line.store([0], tl.reshape(source.load([1, 0, 0]), (A * B * C,)))
    line.atomic_add([0], tl.full((A * B * C,), 5, tl.int32))


def test_made_maps_have_any_rank_and_are_combined_through() -> None:
    x = numbers((392,), "int32")
    check(made_of_three, (1,), x, 0 * x, np.array([8], np.int32), 2, 4, 16)


@tilewright.jit
def chosen(x, y, out, flag, B: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [B, B], [B, 1], [B, B])
    if tl.load(flag) != 0:
        desc = tl.make_tensor_descriptor(y, [B, B], [B, 1], [B, B])
    target = tl.make_tensor_descriptor(out, [B, B], [B, 1], [B, B])
    target.store([0, 0], desc.load([0, 0]))


@pytest.mark.parametrize("flag", [0, 1])
def test_a_descriptor_that_control_flow_chooses_is_made_of_pointers(flag: int) -> None:
    x = numbers((16, 16))
    arguments = [x, x + 100, 0 * x, np.array([flag], np.int32), 16]
    check(chosen, (1,), *arguments)
    (remark,) = lowered(chosen, arguments, {}).scheduled.remarks
    assert "the load through a descriptor is made of pointers" in remark
    assert "depends on control flow" in remark


@tilewright.jit
def chosen_rows(source, target, rows, out, N: tl.constexpr):
    chosen = tl.load(rows + tl.arange(0, 8))
    block = source.gather(chosen, 4)
    target.scatter(block, chosen - 1, 0)
    out.store([0, 0], block)


def test_rows_by_their_numbers_are_made_of_pointers() -> None:
    x = numbers((20, 32))
    rows = np.array([3, 1, 4, 19, 5, 9, 2, 6], np.int32)
    arguments = [described(x, (1, 16)), described(0 * x, (1, 16)), rows]
    arguments.append(described(numbers((8, 16)), (8, 16)))
    check(chosen_rows, (1,), *arguments, 16)
    remarks = lowered(chosen_rows, [*arguments, 16], {}).scheduled.remarks
    assert sum("no rows by their numbers" in remark for remark in remarks) == 2


def test_the_option_makes_every_access_of_pointers() -> None:
    arguments = operands(64, 64, 64, "float16", (64, 64, 32))
    assert count(matmul, arguments, TmaLoadOp, TmaStoreOp, descriptors="pointers") == 0
    check(matmul, (1, 1), *arguments, tolerance=1e-6, descriptors="pointers")


def test_an_unaligned_tensor_is_refused_by_name() -> None:
    x = numbers((40, 66), "int32")
    arguments = [x, 0 * x, 40, 66, 16, 32]
    with pytest.raises(ArgumentNotSupported, match=r"argument 0.*stride 0 of 264 bytes"):
        check(made_here, (1,), *arguments)
    check(made_here, (1,), *arguments, descriptors="pointers")


# --- waits ------------------------------------------------------------------------------------


@tilewright.jit
def store_then_load(x, out, n, B: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [n, n], [n, 1], [B, B])
    desc.store([0, 0], desc.load([B, 0]) + 1)
    tl.debug_barrier()
    offsets = tl.arange(0, B)[:, None] * n + tl.arange(0, B)[None, :]
    tl.store(out + offsets, tl.load(x + offsets) * 2)


def test_a_stored_block_can_be_read_behind_a_barrier() -> None:
    x = numbers((32, 32))
    check(store_then_load, (1,), x, 0 * x, 32, 16)


def test_stores_one_after_the_other_are_waited_for_once() -> None:
    x = numbers((70, 64), "float16")
    out = numbers((70, 128), "float16") * 0
    arguments = [described(x, (16, 64)), described(out, (16, 64)), 70, 16, 64]
    assert count(persistent, arguments, TmaStoreWaitOp) == 1


@tilewright.jit
def overwritten(source, target, n, B: tl.constexpr):
    for i in range(n):
        target.store([0, 0], source.load([i, 0]))


def test_only_stores_that_are_read_or_overwritten_are_waited_for_until_they_are_complete() -> None:
    def is_complete(kernel: object, *arguments: object) -> list[bool]:
        function = find_kernel(lowered(kernel, arguments, {}).scheduled.module)
        waits = [op for op in function.walk() if isinstance(op, TmaStoreWaitOp)]
        return [op.is_complete is not None for op in waits]

    x = numbers((32, 64), "float16")
    tensor, out = described(x, (16, 64)), described(0 * x, (16, 64))
    assert is_complete(copy_block, tensor, out, 16, 64) == [False]
    assert is_complete(persistent, tensor, out, 70, 16, 64) == [False]
    assert is_complete(overwritten, tensor, out, 3, 16) == [True]
    assert is_complete(store_then_load, x, x, 32, 16) == [True]
    check(overwritten, (1,), tensor, out, 3, 16)


def test_a_store_needs_no_more_barriers_than_its_tile() -> None:
    x = numbers((32, 64), "float16")
    arguments = [described(x, (16, 64)), described(0 * x, (16, 64)), 16, 64]
    # The mbarriers are made, and the tile is written.
    assert count(copy_block, arguments, LocalBarrierOp) == 1


@tilewright.jit
def sum_blocks(a, b, c, out, BM: tl.constexpr, BN: tl.constexpr):
    out.store([0, 0], a.load([0, 0]) + b.load([0, 0]) + c.load([0, 0]))
    out.store([0, BN], a.load([0, BN]))


def test_blocks_that_do_not_fit_together_are_made_of_pointers() -> None:
    x = numbers((64, 512))
    tensors = [described(array, (64, 256)) for array in (x, x + 1, x + 2, 0 * x)]
    arguments = [*tensors, 64, 256]
    check(sum_blocks, (1,), *arguments)
    remarks = lowered(sum_blocks, arguments, {}).scheduled.remarks
    assert len([r for r in remarks if "other blocks take the shared memory" in r]) == 2


@pytest.mark.parametrize("num_warps", [1, 2, 16])
def test_any_number_of_warps_waits_for_one_copy(num_warps: int) -> None:
    x = numbers((33, 120))
    tensors = [described(x, (32, 64)), described(0 * x, (32, 64))]
    check(copy_block, (2, 2), *tensors, 32, 64, num_warps=num_warps)
    arguments = operands(64, 64, 64, "float16", (64, 64, 32))
    check(matmul, (1, 1), *arguments, tolerance=1e-6, num_warps=num_warps)


@tilewright.jit
def attention(q, k, v, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    i = tl.program_id(0) * BM
    x = q.load([i, 0])
    acc = tl.zeros((BM, D), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for j in range(0, n, BN):
        p = tl.dot(x, k.load([j, 0]).T) * 0.01
        p = tl.exp2(p)
        total += tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v.load([j, 0]), acc)
    out.store([i, 0], acc / total[:, None])


def attention_arguments(n: int) -> list[object]:
    q, k, v = (numbers((n, 64), "float16", 3 + i) for i in range(3))
    blocks = ((64, 64), (32, 64), (32, 64), (64, 64))
    arrays = (q, k, v, np.zeros((n, 64), np.float32))
    tensors = [described(a, b) for a, b in zip(arrays, blocks, strict=True)]
    return [*tensors, n, 64, 32, 64]


def test_attention_over_descriptors_is_right() -> None:
    arguments = attention_arguments(128)
    check(attention, (2,), *arguments, tolerance=2e-3)
    assert count(attention, arguments, LocalLoadOp) == 0


def test_loads_of_one_iteration_start_together() -> None:
    function = find_kernel(lowered(attention, attention_arguments(128), {}).scheduled.module)
    names = [op.name for op in function.walk()]
    first = names.index("scf.for")
    loop = [name for name in names[first:] if name in ("ttng.tma_load", "ttng.tma_wait")]
    assert loop == ["ttng.tma_load", "ttng.tma_load", "ttng.tma_wait", "ttng.tma_wait"]
