"""Block pointers and tensor descriptors in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.ops.harness import interpret
from tilewright.interp.evaluate import DescriptorArgument, run_kernel
from tilewright.ir.text import parse_module
from tilewright.ops.dialects import tile_context
from tilewright.support.errors import OutOfBoundsAccess, UndefinedValue


@tilewright.jit
def copy_block(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr, PADDING: tl.constexpr):
    source = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (BM, BN), (1, 0))
    tile = tl.load(source, boundary_check=(0, 1), padding_option=PADDING)
    offsets = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(y + offsets, tile)


@tilewright.jit
def row_sums(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    block = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    total = tl.zeros((BM,), tl.float32)
    for _ in range(0, N, BN):
        total += tl.sum(tl.load(block, boundary_check=(0, 1), padding_option="zero"), axis=1)
        block = tl.advance(block, (0, BN))
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    tl.store(y + rows, total, mask=rows < M)


@tilewright.jit
def negate_block(x, M, N, BM: tl.constexpr, BN: tl.constexpr):
    block = tl.make_block_ptr(x, (M, N), (N, 1), (4, 4), (BM, BN), (1, 0))
    tile = tl.load(block, boundary_check=(0, 1), padding_option="zero")
    tl.store(block, -tile, boundary_check=(0, 1))


def test_out_of_bounds_elements_read_as_the_padding() -> None:
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    for padding, fill in (("zero", 0), ("nan", np.nan)):
        y = np.ones((4, 8), np.float32)
        interpret(copy_block, (1,), x, y, 3, 5, BM=4, BN=8, PADDING=padding)
        want = np.full((4, 8), fill, np.float32)
        want[:3, :5] = x
        assert np.array_equal(y, want, equal_nan=True)


def test_elements_out_of_bounds_are_undefined_without_padding() -> None:
    x, y = np.ones((3, 5), np.float32), np.zeros((4, 8), np.float32)
    with pytest.raises(UndefinedValue):
        interpret(copy_block, (1,), x, y, 3, 5, BM=4, BN=8, PADDING="")


def test_block_pointer_advances_in_a_loop() -> None:
    x = np.random.default_rng(1).standard_normal((10, 37)).astype(np.float32)
    y = np.zeros(10, np.float32)
    interpret(row_sums, (3,), x, y, 10, 37, BM=4, BN=16)
    assert np.allclose(y, x.sum(1), atol=1e-5)


def test_store_through_a_block_pointer_stays_in_bounds() -> None:
    x = np.ones((6, 7), np.float32)
    interpret(negate_block, (1,), x, 6, 7, BM=4, BN=4)
    want = np.ones((6, 7), np.float32)
    want[4:, 4:] = -1
    assert np.array_equal(x, want)


def test_bounds_that_lie_about_the_array_are_found() -> None:
    x, y = np.ones((3, 5), np.float32), np.zeros((4, 8), np.float32)
    with pytest.raises(OutOfBoundsAccess, match="`x`"):
        interpret(copy_block, (1,), x, y, 4, 5, BM=4, BN=8, PADDING="zero")


@tilewright.jit
def descriptor_copy(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    target.store([row, column], source.load([row, column]) * 2)


@tilewright.jit
def descriptor_add(x, M, N, BM: tl.constexpr, BN: tl.constexpr):
    target = tl.make_tensor_descriptor(x, [M, N], [N, 1], [BM, BN])
    target.atomic_add([0, 0], tl.full((BM, BN), 1, tl.int32))


def test_descriptors_cut_blocks_at_the_bounds() -> None:
    x = np.arange(60, dtype=np.float32).reshape(5, 12)
    y = np.zeros_like(x)
    interpret(descriptor_copy, (2, 2), x, y, 5, 12, BM=4, BN=8)
    assert np.array_equal(y, 2 * x)


def test_descriptor_reductions_are_atomic() -> None:
    x = np.zeros((3, 5), np.int32)
    interpret(descriptor_add, (7,), x, 3, 5, BM=4, BN=8)
    assert (x == 7).all()


GATHER = """
"builtin.module"() ({
  "tt.func"() <{sym_name = "k", function_type =
      (!tt.tensordesc<tensor<1x4xf32>>, !tt.tensordesc<tensor<1x4xf32>>, !tt.ptr<i32>) -> ()}> ({
  ^bb0(%src: !tt.tensordesc<tensor<1x4xf32>>, %dst: !tt.tensordesc<tensor<1x4xf32>>,
       %rows: !tt.ptr<i32>):
    %i = "tt.make_range"() <{start = 0 : i32, end = 4 : i32}> : () -> tensor<4xi32>
    %p = "tt.splat"(%rows) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
    %a = "tt.addptr"(%p, %i) :
      (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
    %x = "tt.load"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0>}> :
      (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
    %two = "arith.constant"() <{value = 2 : i32}> : () -> i32
    %zero = "arith.constant"() <{value = 0 : i32}> : () -> i32
    %v = "tt.descriptor_gather"(%src, %x, %two) :
      (!tt.tensordesc<tensor<1x4xf32>>, tensor<4xi32>, i32) -> tensor<4x4xf32>
    "tt.descriptor_scatter"(%dst, %i, %zero, %v) :
      (!tt.tensordesc<tensor<1x4xf32>>, tensor<4xi32>, i32, tensor<4x4xf32>) -> ()
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()"""


def test_descriptors_of_the_caller_gather_and_scatter_rows() -> None:
    src = np.arange(25, dtype=np.float32).reshape(5, 5)
    dst = np.full((3, 4), -1, np.float32)
    rows = np.array([4, 0, 9, 2], np.int32)
    run_kernel(
        parse_module(GATHER, tile_context()),
        [
            DescriptorArgument(src, (5, 5), (5, 1), "nan"),
            DescriptorArgument(dst, (3, 4), (4, 1)),
            rows,
        ],
        (1,),
    )
    want = np.full((4, 4), np.nan, np.float32)
    want[[0, 1, 3], :3] = src[[4, 0, 2], 2:]
    assert np.array_equal(dst, want[:3], equal_nan=True)
