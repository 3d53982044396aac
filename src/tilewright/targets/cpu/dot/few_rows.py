"""Products of few rows with a B that lies as rows in memory: no panel is written for them.

The first rows of a product pack B for those that follow (`block.py`). Where all rows that are seen
fit in one block nobody follows: the block takes as many of B's columns as its registers hold, reads
them where the user has them, and keeps nothing. A kernel may not make its tile smaller than 16
rows, so how many are seen is mostly known at run time alone: one of a few heights is chosen then.
The order of a sum's terms stays that of the blocks that pack.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.block_calls import block_limits, emit_block_call
from tilewright.targets.cpu.dot.block_runs import ColumnRun, ProductBlock, column_runs, max_rows
from tilewright.targets.cpu.dot.spec import FEW_ROWS, DotSpec

HEIGHTS = (1, 4, 8)
"""Rows of the products that are chosen from at run time.

Measured on Emerald Rapids, busy, 2026-11-23, one thread, tiles of 16x64x128, ms of CPU time for
M x 4096 x 4096, with / without: M of 1 f16 2.6 / 4.7, bf16 2.8 / 4.7, f32 4.9 / 6.0; M of 4 bf16
4.3 / 4.8; M of 8 bf16 5.9 / 6.4, f16 6.2 / 6.4."""

MAX_VECTORS = 8
"""Vectors of a block at most: with one row they are the chains that keep two FMA units busy.

Source: the optimization guides of Intel (Skylake and later) and AMD (Zen 3 and later)."""


def emit_few_rows(
    fn: FunctionBuilder, spec: DotSpec, emit_product: Callable[[DotSpec], None]
) -> None:
    """A product whose rows may be few at run time; `emit_product` writes one of several blocks."""
    has_limit = spec.is_limited or spec.has_row_limit
    if not (spec.packs_b and has_limit and spec.m <= FEW_ROWS):
        emit_product(spec)
        return
    done = fn.new_label()
    for height in [height for height in HEIGHTS if height < spec.m]:
        fits, more = fn.new_label(), fn.new_label()
        fn.branch_if(fn.value(f"icmp sle i64 %rows, {height}"), fits, more)
        fn.place(fits)
        _emit_height(fn, replace(spec, m=height), emit_product)
        fn.branch(done)
        fn.place(more)
    emit_product(spec)
    fn.branch(done)
    fn.place(done)


def _emit_height(
    fn: FunctionBuilder, spec: DotSpec, emit_product: Callable[[DotSpec], None]
) -> None:
    """Blocks of all rows side by side, unless they were narrower than a panel.

    Each visit of a row of B is one of a page: bf16 with M of 8 by 32 columns took 6.5 ms, and takes
    4.9 in two blocks of rows by 64 columns (as above).
    """
    layout = spec.b_layout
    columns = _num_vectors(spec) * layout.lanes
    if columns < layout.columns:
        emit_product(spec)
        return
    spec = replace(spec, panel_columns=columns, next_b=None)
    _, limit = block_limits(fn, spec)

    def emit_blocks(column: ColumnRun) -> None:
        def at(panel: str) -> None:
            emit_block_call(fn, spec, ProductBlock("0", spec.m, panel, column, is_first=True))

        column.run.emit(fn, at, limit)

    for column in column_runs(spec):
        emit_blocks(column)


def _num_vectors(spec: DotSpec) -> int:
    """The vectors of a block of all rows, a power of two: as many as leave no register spilled."""
    count = MAX_VECTORS
    while count > 1 and max_rows(spec.unit, spec.multiply, count) < spec.m:
        count //= 2
    return count
