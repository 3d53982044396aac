"""The structure of index and pointer tiles."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import written
from tilewright.analysis.pointers import PointerStructure, Strides, split_groups
from tilewright.jit import JITFunction
from tilewright.ops.memory import LoadOp

F32 = np.zeros(1 << 12, np.float32)
I32 = np.zeros(1 << 12, np.int32)


@tilewright.jit
def matrix(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """A row-major block."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    tl.store(x, tl.sum(tl.load(x + m[:, None] * s + n[None, :])))


@tilewright.jit
def wrapped(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """A block whose rows wrap."""
    m, n = (tl.program_id(0) * M + tl.arange(0, M)) % s, tl.arange(0, N)
    tl.store(x, tl.sum(tl.load(x + m[:, None] * 4 + n[None, :] * 2)))


@tilewright.jit
def looked_up(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """Rows that are looked up."""
    m, n = tl.load(idx + tl.arange(0, M)), tl.arange(0, N)
    tl.store(x, tl.sum(tl.load(x + m[:, None] * s + n[None, :])))


@tilewright.jit
def clamped(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """Columns that saturate."""
    m, n = tl.arange(0, M), tl.minimum(tl.arange(0, N), s)
    tl.store(x, tl.sum(tl.load(x + (m[:, None] << 3) + n[None, :])))


def strides_of(kernel: JITFunction) -> Strides:
    """The strides of the kernel's last tile load."""
    module = written(kernel, x=F32, idx=I32, s=77, M=16, N=32)
    loads = [op for op in module.walk() if isinstance(op, LoadOp)]
    return PointerStructure().strides(loads[-1].ptr)


def test_a_row_stride_is_the_scalar_argument() -> None:
    rows, columns = strides_of(matrix)
    assert rows is not None and rows.as_int() is None and len(rows.terms) == 1
    assert columns is not None and columns.as_int() == 1


def test_a_wrapping_index_is_affine_but_for_jumps() -> None:
    rows, columns = strides_of(wrapped)
    assert rows is not None and rows.as_int() == 4 and rows.jumps
    assert columns is not None and columns.as_int() == 2 and not columns.jumps


def test_a_loaded_index_is_general_along_its_own_dimension_only() -> None:
    rows, columns = strides_of(looked_up)
    assert rows is None
    assert columns is not None and columns.as_int() == 1


def test_a_saturating_index_is_affine_but_for_jumps() -> None:
    rows, columns = strides_of(clamped)
    assert rows is not None and rows.as_int() == 8 and not rows.jumps
    assert columns is not None and columns.as_int() == 1 and columns.jumps


@pytest.mark.parametrize(
    ("source", "target", "splits"),
    [
        ((64,), (8, 8), True),
        ((8, 8), (64,), False),
        ((4, 1, 8), (4, 8), True),
        ((16, 4), (2, 8, 4), True),
        ((6, 4), (4, 6), False),
    ],
)
def test_a_reshape_is_inline_when_it_only_splits(
    source: tuple[int, ...], target: tuple[int, ...], splits: bool
) -> None:
    groups = split_groups(source, target)
    assert (groups is not None) is splits
