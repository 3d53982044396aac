"""What one block of a `dot` is, and where its rows and columns lie."""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.line_fetches import TURN_STEPS, LineFetch
from tilewright.targets.cpu.dot.panels import Multiply, PanelLayout
from tilewright.targets.cpu.dot.vectors import element_address, prefix_mask, scaled

UNROLL = 4
"""The steps of k that one turn of the loop takes, so that its own instructions do not show.

Measured on Emerald Rapids, 2026-11-22: a block of 6x4 vectors unrolled by 1 is 4 to 6 % slower
than one unrolled by 8."""


@dataclass(frozen=True)
class BlockVector:
    """A vector of a block's columns.

    *Units* `offset` in elements of B from the block's first panel; `column` in columns of the
    block; `valid` lanes that belong to the tile.
    """

    offset: int
    column: int
    valid: int


@dataclass(frozen=True)
class BlockSpec:
    """One microkernel; equal blocks of a module are one function.

    *Units* `lda`, `ldc` in elements; an `lda` of None comes as an argument at run time.
    `fetches`: what is fetched meanwhile. `source`: the
    block reads row-major B of that dtype, and packs it if it `keeps` it for other blocks, where it
    `has_pitch` at a distance from step to step that it is told; if it
    may wait for memory alone, it `fetches_ahead`, by as many rows as it is told.
    `is_limited`: rows, columns of the source and depth are limited at run time.
    `has_target`: where the sums go, and whether anything is added to them, is told at run time.
    `is_edge`: short code rather than the last percents, for the block at a result's right edge.
    """

    multiply: Multiply
    layout: PanelLayout
    k: int
    rows: int
    vectors: tuple[BlockVector, ...]
    lda: int | None
    ldc: int
    zero_init: bool
    fetches: tuple[LineFetch, ...] = ()
    source: str | None = None
    keeps: bool = False
    has_pitch: bool = False
    fetches_ahead: bool = False
    features: frozenset[str] = frozenset()
    is_limited: bool = False
    has_target: bool = False
    is_edge: bool = False

    @property
    def num_steps(self) -> int:
        """The number of k-groups."""
        return self.layout.num_groups(self.k)

    @property
    def num_sums(self) -> int:
        """The lanes of one accumulator: a row by the columns of a vector, or two rows by two."""
        return self.layout.lanes * self.multiply.rows

    @property
    def acc_type(self) -> str:
        """The LLVM type of one accumulator."""
        return f"<{self.num_sums} x {self.multiply.accumulator_type}>"

    @property
    def row_starts(self) -> range:
        """The first row of each accumulator that stands above others; the last may have one."""
        return range(0, self.rows, self.multiply.rows)

    @property
    def num_chains(self) -> int:
        """The number of accumulators, those of a biased A's excess included."""
        return (len(self.row_starts) + self.multiply.bias_a) * len(self.vectors)

    @property
    def unroll(self) -> int:
        """How many steps one turn of the loop takes; divides `num_steps`."""
        if self.source is not None or self.is_edge:
            return 1  # loads and stores are what it waits for, and few rows are packed with
        if self.fetches:
            return TURN_STEPS
        if self.is_limited:
            return min(UNROLL, self.num_steps)
        return next(factor for factor in (UNROLL, 2, 1) if self.num_steps % factor == 0)


def column_masks(fn: FunctionBuilder, spec: BlockSpec) -> list[str | None]:
    """Which lanes of each vector are before the limit of the columns."""
    if not spec.is_limited:
        return [None] * len(spec.vectors)
    return [
        prefix_mask(fn, spec.layout.lanes, "%columns", vector.column) for vector in spec.vectors
    ]


def strided_rows(
    fn: FunctionBuilder, spec: BlockSpec, type_: str, first: str, stride: str
) -> list[str]:
    """Where each row of a block is; from a limit on, the last row again.

    One choice a row between two addresses: a chain of strides that are chosen one by one is a sum
    of as many terms for LLVM, which tries all ways to split it (a fifth of a block's compile time).
    """
    rows = [first]
    while len(rows) < spec.rows:
        rows.append(element_address(fn, type_, rows[-1], stride))
    if not spec.is_limited:
        return rows
    last_row = fn.value("sub nsw i64 %rows, 1")
    last = element_address(fn, type_, first, scaled(fn, last_row, stride))
    for number in range(1, spec.rows):
        exists = fn.value(f"icmp slt i64 {number}, %rows")
        rows[number] = fn.value(f"select i1 {exists}, ptr {rows[number]}, ptr {last}")
    return rows
