"""Block pointers and descriptors lowered to plain pointers do what they did before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import tilewright
import tilewright.language as tl
from tests.ops.harness import tile_module
from tilewright.interp.evaluate import run_kernel
from tilewright.jit import JITFunction
from tilewright.passes.lower_block_pointers import LowerBlockPointers
from tilewright.passes.lower_descriptors import LowerDescriptors
from tilewright.support.errors import BranchTypeMismatch

STRUCTURED = ("tt.make_tensor_ptr", "tt.advance", "tt.make_tensor_descriptor", "tt.descriptor_")


def run_both(
    kernel: JITFunction, arguments: Sequence[object], **constants: object
) -> tuple[ModuleOp, list[np.ndarray]]:
    """Interpret a kernel before and after the passes; equal memory, as it is afterwards."""
    module = tile_module(kernel, arguments, **constants)
    memories: list[list[np.ndarray]] = []
    for is_lowered in (False, True):
        if is_lowered:
            for tile_pass in (LowerBlockPointers(), LowerDescriptors()):
                tile_pass.apply(module)
            module.verify()
            names = [op.name for op in module.walk()]
            assert not [name for name in names if name.startswith(STRUCTURED)]
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        run_kernel(module, copies, (1,))  # type: ignore[arg-type]
        memories.append([a for a in copies if isinstance(a, np.ndarray)])
    for before, after in zip(*memories, strict=True):
        assert np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
    return module, memories[1]


@tilewright.jit
def advance_kernel(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    source = tl.make_block_ptr(x, (M, N), (N, 1), (0, -1), (BM, BN), (1, 0))
    target = tl.make_block_ptr(out, (M, N), (N, 1), (0, 0), (BM, BN), (1, 0))
    column = 0
    while column < N:
        tile = tl.load(source, boundary_check=(0, 1), padding_option="nan")
        tl.store(target, tile, boundary_check=(0, 1))
        source = tl.advance(source, (0, BN))
        if column >= 0:
            target = tl.advance(target, (0, BN))
        column += BN


def test_block_pointers_move_in_loops_and_branches() -> None:
    x = np.arange(3 * 11, dtype=np.float32).reshape(3, 11)
    out = np.zeros_like(x)
    _, (_, after) = run_both(advance_kernel, (x, out, 3, 11), BM=4, BN=4)
    assert np.isnan(after[:, 0]).all()
    assert np.array_equal(after[:, 1:], x[:, :-1])


@tilewright.jit
def swap_kernel(x, y, out, n, SIZE: tl.constexpr):
    first = tl.make_tensor_descriptor(x, [n], [1], [SIZE], padding_option="nan")
    second = tl.make_tensor_descriptor(y, [n + 1], [1], [SIZE], padding_option="nan")
    zero = tl.make_tensor_descriptor(x, [n], [1], [SIZE])
    at = tl.arange(0, SIZE)
    for i in range(3):
        tl.store(out + i * SIZE + at, first.load([i]) + zero.load([2 * i]))
        first, second = second, first
        zero = tl.make_tensor_descriptor(x + 4, [n - 4], [1], [SIZE])
    tl.store(out + 3 * SIZE + at, second.load([0]))
    tl.store(out + 4 * SIZE + at, zero.load([0]))


def test_descriptors_of_two_paddings_swap_in_a_loop() -> None:
    x, y = np.arange(5, dtype=np.float32), np.arange(10, 16, dtype=np.float32)
    _, (_, _, out) = run_both(swap_kernel, (x, y, np.zeros((5, 8), np.float32), 5), SIZE=8)
    assert np.isnan(out[0, 5:]).all()
    assert np.array_equal(out[0, :5], 2 * x)
    assert out[4].tolist() == [4.0] + [0.0] * 7


@tilewright.jit
def rows_kernel(x, rows, out, counts, M, N, R: tl.constexpr, BN: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, BN])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, BN])
    chosen = tl.load(rows + tl.arange(0, R))
    target.scatter(source.gather(chosen, 2), chosen, 2)
    tally = tl.make_tensor_descriptor(counts, [N], [1], [BN])
    tally.atomic_max([3], tl.arange(0, BN))
    tally.atomic_add([-1], tl.arange(0, BN))


def test_rows_and_reductions_keep_their_bounds() -> None:
    x = np.arange(16 * 8, dtype=np.float32).reshape(16, 8)
    rows = np.array([3, 1, 15, 0, 7, 9, 20, -1], np.int32)
    counts = np.zeros(8, np.int32)
    _, memory = run_both(rows_kernel, (x, rows, np.zeros_like(x), counts, 16, 8), R=8, BN=8)
    assert memory[3].tolist() == [1, 2, 3, 4, 6, 8, 10, 4]


@tilewright.jit
def mixed_kernel(x, out, flag, SIZE: tl.constexpr):
    chosen = tl.make_tensor_descriptor(x, [5], [1], [SIZE])
    if flag > 3:
        chosen = tl.make_tensor_descriptor(x, [5], [1], [SIZE], padding_option="nan")
    tl.store(out + tl.arange(0, SIZE), chosen.load([0]))


def test_different_paddings_do_not_meet_in_one_variable() -> None:
    x = np.zeros(8, np.float32)
    with pytest.raises(BranchTypeMismatch, match="nan"):
        tile_module(mixed_kernel, (x, x, 5), SIZE=8)
