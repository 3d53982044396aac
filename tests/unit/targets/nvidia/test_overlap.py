"""Blocks that the copy engine brings from where the program then stores."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.descriptor_kernels import described, numbers
from tests.unit.targets.nvidia.descriptor_launching import check


@tilewright.jit
def transpose_in_place(x, A: tl.constexpr):
    x.store([0, 0], x.load([0, 0]).T)


@tilewright.jit
def swap_blocks(x, A: tl.constexpr):
    """Two blocks that overlap by half change places, again and again."""
    for i in range(3):
        first = x.load([i, 0])
        second = x.load([i + A // 2, 0])
        x.store([i, 0], second)
        x.store([i + A // 2, 0], first)


@tilewright.jit
def made_in_place(p, n, A: tl.constexpr):
    source = tl.make_tensor_descriptor(p, [n, n], [n, 1], [A, A])
    r, c = tl.arange(0, A)[:, None], tl.arange(0, A)[None, :]
    first = source.load([0, 0])
    second = source.load([1, 4])
    tl.store(p + r + c * n, first + 1)
    tl.debug_barrier()
    tl.store(p + 1 + r * n + c, second)


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize(("size", "dtype"), [(16, "float32"), (32, "int8"), (64, "float16")])
def test_a_block_is_read_before_it_is_overwritten(size: int, dtype: str, num_warps: int) -> None:
    x = numbers((size, size), dtype)
    check(transpose_in_place, (1,), described(x, (size, size)), size, num_warps=num_warps)
    x = numbers((2 * size, size), dtype)
    check(swap_blocks, (1,), described(x, (size, size)), size, num_warps=num_warps)
    x = np.ascontiguousarray(numbers((size + 16, size + 16), dtype))
    check(made_in_place, (1,), x, size + 16, size, num_warps=num_warps)
