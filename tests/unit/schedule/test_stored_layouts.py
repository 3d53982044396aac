"""In which layout a tile is stored: where it is, unless that writes sectors in parts."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.unit.targets.nvidia.test_pipelined_loops import at_t2
from tilewright.ir.encoding import layout_of
from tilewright.layout.build import coalesced
from tilewright.layout.linear import LinearLayout
from tilewright.ops.memory.ir import StoreOp
from tilewright.schedule.layout.anchors import (
    fastest_dim,
    registers_in_a_row,
    run_of_instruction,
)


@tilewright.jit
def product(a, b, c, stride, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + rows[:, None] * K + depth[None, :])
    y = tl.load(b + depth[:, None] * N + columns[None, :])
    z = tl.dot(x, y).to(c.dtype.element_ty)
    tl.store(c + rows[:, None] * stride + columns[None, :], z)


def stored_layout(dtype: type, stride: int, rows: int = 64) -> LinearLayout:
    """The layout of what `product` stores, with two warps."""
    a, b = np.zeros((rows, 32), np.float16), np.zeros((32, 64), np.float16)
    c = np.zeros((rows, stride), dtype)
    module = at_t2(product, (a, b, c, stride), dict(M=rows, N=64, K=32))
    (store,) = [op for op in module.walk() if isinstance(op, StoreOp)]
    return layout_of(store.value.type)


@pytest.mark.parametrize(
    ("dtype", "stride", "run"),
    [
        (np.float32, 64, 8),  # 32 bytes of a row at once, as the product has them
        (np.float16, 64, 64),  # 16 bytes there: moved to whole rows first
        (np.float16, 70, 64),  # two elements a lane
        (np.float32, 65, 32),  # one element a lane
    ],
)
def test_what_one_instruction_stores_of_a_row(dtype: type, stride: int, run: int) -> None:
    layout = stored_layout(dtype, stride)
    vector = min(registers_in_a_row(layout, 1), 1 if stride % 2 else 2 if stride % 8 else 8)
    assert run_of_instruction(layout, 1, vector) == run


@pytest.mark.parametrize(
    ("shape", "order", "vector", "dim"),
    [
        ((64, 32), (1, 0), 8, 1),
        ((64, 32), (1, 0), 1, 1),  # registers are rows apart, lanes are neighbours
        ((32, 64), (0, 1), 1, 0),
        ((256, 8), (1, 0), 8, 1),  # a row a lane
        ((64, 1), (1, 0), 1, 0),
    ],
)
def test_neighbours_are_in_registers_or_else_in_lanes(
    shape: tuple[int, int], order: tuple[int, int], vector: int, dim: int
) -> None:
    """Operands were staged across their rows: each lane wrote a line of banks of its own."""
    assert fastest_dim(coalesced(shape, order, vector, 4)) == dim
