"""Blocks behind tensor descriptors by the copy engine, in the simulator beside the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.targets.nvidia.descriptor_kernels import (
    DTYPES,
    REDUCED,
    add_five,
    add_one,
    copy_block,
    described,
    matmul,
    nested,
    numbers,
    operands,
    overwritten,
    persistent,
    reducing,
    row_sums,
    scale_row,
    shift,
    sparse,
    store_then_load,
    transpose,
)
from tests.unit.targets.nvidia.descriptor_launching import check, count, lowered
from tilewright.ops.function import find_kernel
from tilewright.ops.staging import LocalBarrierOp
from tilewright.runtime.tensor_descriptor import TensorDescriptor
from tilewright.targets.nvidia.tma_ops import TmaLoadOp, TmaStoreOp, TmaStoreWaitOp


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


@pytest.mark.parametrize("block", [16, 256, 2048])
def test_one_dimension_is_copied(block: int) -> None:
    x = numbers((3 * block - 8,), "float16", 9)
    check(scale_row, (3,), described(x, (block,)), described(0 * x, (block,)), block)


@pytest.mark.parametrize("block", [(1, 16, 32), (4, 4, 16), (2, 8, 64)])
def test_three_dimensions_are_copied(block: tuple[int, int, int]) -> None:
    x = numbers((5, 20, 72), "float16")
    grid = tuple(-(-n // b) for n, b in zip(x.shape, block, strict=True))
    check(add_one, grid, described(x, block), described(0 * x, block), *block)


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


def test_negative_indices_are_out_of_bounds() -> None:
    x = numbers((24, 24), "float16")
    check(shift, (1,), described(x, (16, 16)), described(0 * x, (16, 16)), -5, -8)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_a_transposed_block_is_stored(dtype: str) -> None:
    x = numbers((48, 80), dtype)
    out = numbers((80, 48), dtype) * 0
    check(transpose, (2, 2), described(x, (32, 64)), described(out, (64, 32)), 32, 64)


@pytest.mark.parametrize("n", [32, 64, 160])
def test_a_loop_waits_for_phase_after_phase(n: int) -> None:
    x = numbers((32, n))
    check(row_sums, (2,), described(x, (16, 32)), np.zeros(32, np.float32), n, 16, 32)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (1, 1), (2, 4)])
def test_phases_go_through_nested_loops_and_branches(n: int, m: int) -> None:
    x = numbers((24, 24))
    check(nested, (1,), described(x, (16, 16)), described(np.zeros_like(x), (16, 16)), n, m, 16)


def test_stores_in_a_loop_read_their_tiles_before_they_are_reused() -> None:
    x = numbers((70, 64), "float16")
    out = numbers((70, 128), "float16") * 0
    check(persistent, (2,), described(x, (16, 64)), described(out, (16, 64)), 70, 16, 64)


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


def test_the_option_makes_every_access_of_pointers() -> None:
    arguments = operands(64, 64, 64, "float16", (64, 64, 32))
    assert count(matmul, arguments, TmaLoadOp, TmaStoreOp, descriptors="pointers") == 0
    check(matmul, (1, 1), *arguments, tolerance=1e-6, descriptors="pointers")


def test_a_stored_block_can_be_read_behind_a_barrier() -> None:
    x = numbers((32, 32))
    check(store_then_load, (1,), x, 0 * x, 32, 16)


def test_stores_one_after_the_other_are_waited_for_once() -> None:
    x = numbers((70, 64), "float16")
    out = numbers((70, 128), "float16") * 0
    arguments = [described(x, (16, 64)), described(out, (16, 64)), 70, 16, 64]
    assert count(persistent, arguments, TmaStoreWaitOp) == 1


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


@pytest.mark.parametrize("num_warps", [1, 2, 16])
def test_any_number_of_warps_waits_for_one_copy(num_warps: int) -> None:
    x = numbers((33, 120))
    tensors = [described(x, (32, 64)), described(0 * x, (32, 64))]
    check(copy_block, (2, 2), *tensors, 32, 64, num_warps=num_warps)
    arguments = operands(64, 64, 64, "float16", (64, 64, 32))
    check(matmul, (1, 1), *arguments, tolerance=1e-6, num_warps=num_warps)


def test_a_branch_without_results_carries_its_phase_out() -> None:
    x = numbers((80, 16))
    wanted = np.array([1, 0, 1, 1, 0], np.int32)
    check(sparse, (1,), described(x, (16, 16)), described(0 * x, (16, 16)), wanted, 5, 16)
