"""Where the sums of a block go that is told so, and which place is fetched meanwhile."""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.targets.cpu.dot.block_runs import ProductBlock
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.dot.vectors import element_address, scaled

BLOCKS_AHEAD = 2
"""How many blocks before its sums come a block's place in the user's memory is fetched.
Measured on Emerald Rapids, 2026-11-23, one thread, 6x4 vectors stored 17 steps after each other in
tiles of 126x128: 2016x4096 f32 in 2.5 ms, one block ahead 5.4, none 7.1; 1008x1024 279 µs, 383 and
473."""


def target_arguments(fn: FunctionBuilder, spec: DotSpec, block: ProductBlock) -> str:
    """Where the sums of a block go, and those of the next one."""
    at = _target_of(fn, spec, block.row, block.panel)
    later = _later_target(fn, spec, block, at)
    return f", ptr {at}, i64 %target_stride, i1 %is_first, ptr {later}"


def _target_of(fn: FunctionBuilder, spec: DotSpec, row: str, panel: str) -> str:
    """Where the sums of the block go that starts at a row and a panel."""
    c_bytes = ELEMENT_BYTES[spec.acc_dtype]
    column = scaled(fn, panel, spec.b_layout.columns)
    first = "0" if row == "0" else scaled(fn, row, "%target_stride")
    return element_address(fn, "i8", "%target", scaled(fn, scaled(fn, first, 1, column), c_bytes))


def _later_target(fn: FunctionBuilder, spec: DotSpec, block: ProductBlock, here: str) -> str:
    """Where the sums of the block after the next one go; this one's where that is not seen.

    What lies behind the last row is another program's.
    """
    is_below = spec.has_columns_outside or spec.n <= spec.b_layout.columns * block.column.run.size
    if is_below:
        row, panel = scaled(fn, block.row, 1, BLOCKS_AHEAD * block.rows), block.panel
    else:
        row, panel = _second_next(fn, spec, block)
    columns = scaled(fn, panel, spec.b_layout.columns)
    is_row = fn.value(f"icmp slt i64 {row}, %rows")
    is_column = fn.value(f"icmp slt i64 {columns}, %columns")
    is_there = fn.value(f"and i1 {is_row}, {is_column}")
    there = _target_of(fn, spec, row, panel)
    return fn.value(f"select i1 {is_there}, ptr {there}, ptr {here}")


def _second_next(fn: FunctionBuilder, spec: DotSpec, block: ProductBlock) -> tuple[str, str]:
    """The row and the panel of the block after the next one, along the panels and then below."""
    size, columns = block.column.run.size, spec.b_layout.columns
    following, second = (scaled(fn, block.panel, 1, count * size) for count in (1, BLOCKS_AHEAD))
    has_next, has_second = (
        fn.value(f"icmp slt i64 {scaled(fn, panel, columns)}, %columns")
        for panel in (following, second)
    )
    below = scaled(fn, block.row, 1, block.most_rows or block.rows)
    row = fn.value(f"select i1 {has_second}, i64 {block.row}, i64 {below}")
    first = fn.value(f"select i1 {has_next}, i64 0, i64 {size}")
    return row, fn.value(f"select i1 {has_second}, i64 {second}, i64 {first}")
