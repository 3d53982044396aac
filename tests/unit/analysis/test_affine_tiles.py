"""The structure of index and pointer tiles."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
import tilewright.language as tl
from tests.passes.lowered import written
from tilewright.analysis.affine.expression import MAX_TERMS
from tilewright.analysis.affine.scalars import Scalars
from tilewright.analysis.affine.tile import Strides
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.analysis.reshapes import split_groups
from tilewright.ir.types import is_integer, shape_of
from tilewright.jit import JITFunction
from tilewright.ops.memory.ir import LoadOp

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


@tilewright.jit
def middle_out(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """One row in the middle is another one."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    m = tl.where(m != s, m, 0)
    tl.store(x, tl.sum(tl.load(x + m[:, None] * 4 + n[None, :])))


@tilewright.jit
def chosen(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """One of two constants on each side of a bound, added to the index."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    m, n = tl.where(m < s, 7, 2) + m, tl.where(n < s, n, 0)
    tl.store(x, tl.sum(tl.load(x + m[:, None] * 4 + n[None, :])))


@tilewright.jit
def rounded_down(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """Rows in groups, two kinds of jumps along the columns."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    m, n = m - m % s, (n + 4) % 16 * 2 - n % 32
    tl.store(x, tl.sum(tl.load(x + m[:, None] * 4 + n[None, :])))


@tilewright.jit
def bytes_widened(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """Indices of 8 bits, unsigned ones of 32, and signed ones of 32."""
    m, n = (tl.arange(0, M) * 1000).to(tl.uint8), tl.arange(0, N).to(tl.uint32)
    tl.store(x, tl.sum(tl.load(x + m[:, None] + (n + s)[None, :])))


@tilewright.jit
def assumed(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """Signed indices of 32 bits, widened, and their difference with themselves."""
    m, n = s + tl.arange(0, M), tl.arange(0, N)
    m = m.to(tl.int64) - tl.arange(0, M)
    tl.store(x, tl.sum(tl.load(x + m[:, None] + (n + s).to(tl.int64)[None, :])))


def strides_of(kernel: JITFunction) -> Strides:
    """The strides of the kernel's last tile load."""
    module = written(kernel, x=F32, idx=I32, s=77, M=16, N=32)
    loads = [op for op in module.walk() if isinstance(op, LoadOp)]
    return AffineTiles().strides(loads[-1].ptr)


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


def test_a_choice_by_equality_is_general() -> None:
    rows, columns = strides_of(middle_out)
    assert rows is None
    assert columns is not None and columns.as_int() == 1


def test_a_choice_of_two_constants_is_general_and_of_an_index_affine_but_for_a_jump() -> None:
    rows, columns = strides_of(chosen)
    assert rows is None
    assert columns is not None and columns.as_int() == 1 and columns.jumps


def test_what_only_jumps_is_not_constant_and_two_kinds_of_jumps_are_general() -> None:
    assert strides_of(rounded_down) == (None, None)


def test_narrow_and_unsigned_indices_jump_when_they_are_widened() -> None:
    rows, columns = strides_of(bytes_widened)
    assert rows is not None and rows.as_int() == 1000 - 1024 and rows.jumps
    assert columns is not None and columns.as_int() == 1 and columns.jumps


def test_signed_32_bit_indices_are_assumed_not_to_overflow() -> None:
    rows, columns = strides_of(assumed)
    assert rows is None
    assert columns is not None and columns.as_int() == 1
    assert columns.is_assumed and not columns.jumps


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


@tilewright.jit
def squared(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """A polynomial of more terms than anybody can write down, as scalar and as tile."""
    m, n = tl.full((M,), 1, tl.int32) + s, s
    for _ in tl.static_range(40):
        m, n = m * m + s, n * n + 3
    p = x + m[:, None] * tl.arange(0, M)[:, None] + (tl.arange(0, N) + n)[None, :]
    tl.store(x, tl.sum(tl.load(p)))


def test_products_of_long_sums_are_not_multiplied_out() -> None:
    rows, columns = strides_of(squared)
    assert rows is None
    assert columns is not None and columns.as_int() == 1


def test_a_long_sum_of_scalars_is_a_symbol() -> None:
    module = written(squared, x=F32, idx=I32, s=77, M=16, N=32)
    scalars = Scalars()
    sizes = [
        len(scalars.of(result).terms)
        for op in module.walk()
        for result in op.results
        if is_integer(result.type) and not shape_of(result.type)
    ]
    assert len(sizes) > 80 and max(sizes) <= MAX_TERMS


@tilewright.jit
def quotients(x, idx, s, M: tl.constexpr, N: tl.constexpr):
    """A number that steps of 32 divide, one that they do not, and a divisor below zero."""
    whole = tl.program_id(0) * 96 // 32 + 5
    rest = tl.program_id(0) * 100 // 32 + 6
    negative = tl.program_id(0) * 96 // -32 + 7
    tl.store(x + whole + rest + negative, 1.0)


def test_a_quotient_without_a_rest_is_taken_apart() -> None:
    module = written(quotients, x=F32, idx=I32, s=77, M=16, N=32)
    scalars = Scalars()
    sums = [op.results[0] for op in module.walk() if op.name == "arith.addi"][:3]
    whole, rest, negative = (scalars.of(value) for value in sums)
    (program,) = whole.symbols()
    assert whole.terms == ((3, (program,)), (5, ())) and whole.is_assumed
    for number in (rest, negative):
        assert program not in number.symbols() and len(number.symbols()) == 1
