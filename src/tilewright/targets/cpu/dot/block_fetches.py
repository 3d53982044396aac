"""What a block of a `dot` fetches while it multiplies: the next step's B, the next rows of A."""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.machine.cpus import LINE_BYTES
from tilewright.targets.cpu.dot.block_runs import ProductBlock, max_rows, row_runs
from tilewright.targets.cpu.dot.line_fetches import TURN_STEPS, LineFetch, spread
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES
from tilewright.targets.cpu.dot.spec import FEW_ROWS, DotSpec, SourceTile
from tilewright.targets.cpu.dot.vectors import element_address, scaled

NEAR_PANELS = 2
"""Panels of B up to which the next block's rows of A are fetched into the first-level cache: more
of them would push the rows out again before they are used.
Measured on Emerald Rapids, 2026-11-22, one thread, f32, near: 4096x64x512 1.25 times the speed;
with four panels 0.95 to 0.97, with eight 0.91. On Zen 5, 2026-11-23, with four panels far: 1.02 to
1.04 at 512³ to 2048³."""


SHORT_ROWS = 32
"""Rows of a tile up to which few more than half of them fetch all of the next step's B.

Sides are powers of two, so one program has more than half of them. Each block has the code for its
lines, used or not.
Measured on Zen 5, 2026-11-23, one thread, f32: 17x4096x4096 in tiles of 32x128x128 took 5.1 ms
where all 32 rows share the lines, 3.4 so; 1024³ in tiles of 64x64x32 would lose 4 %."""


def block_fetches(
    fn: FunctionBuilder, spec: DotSpec, block: ProductBlock
) -> list[tuple[LineFetch, str]]:
    """What a block fetches and its arguments: of the next step's B, of the next block's A.

    Not the block that packs B, which has loads enough: with fetches too it runs at 0.85 of its
    speed.
    """
    is_whole = all(vector.valid == spec.b_layout.lanes for vector in block.column.vectors)
    packs = spec.packs_b and block.is_first
    if not is_whole or packs or block.most_rows is not None or _num_turns(spec) == 0:
        return []
    found: list[tuple[LineFetch, str]] = []
    if spec.next_b is not None:
        found.append(_next_b(fn, spec, block, spec.next_b))
    if not spec.has_columns_outside:
        found.append(_next_rows(fn, spec, block))
    return found


def _num_turns(spec: DotSpec) -> int:
    """The turns in which a block may fetch, 0 where its steps are no whole turns."""
    turns, rest = divmod(spec.b_layout.num_groups(spec.k), TURN_STEPS)
    return 0 if rest else turns


def _next_b(
    fn: FunctionBuilder, spec: DotSpec, block: ProductBlock, tile: SourceTile
) -> tuple[LineFetch, str]:
    """The next step's rows of B above a block's columns: the last blocks of rows share them.

    Fetched early, they would leave the cache again while A and the result pass through it.
    """
    columns = block.column.run.size * spec.b_layout.columns
    # Rows that do not begin with a line end in one more.
    lines = -(-columns * tile.element_bytes // LINE_BYTES) + 1
    tall = _tallest(spec, block)
    packed = tall * spec.packs_b
    is_short = spec.is_limited and FEW_ROWS < spec.m <= SHORT_ROWS
    least = spec.m // 2 + 1 if is_short else spec.m
    others = max(1, -(-(least - packed) // tall))
    turns = _num_turns(spec)
    fetch = spread(lines, tile.rows, others * turns)
    number = _blocks_until(fn, block.row, tall, packed)
    skipped = str(others * turns - fetch.num_turns)
    if spec.is_limited or spec.has_row_limit:
        smax = fn.module.declare("llvm.smax.i64", "i64", "i64, i64")
        left = scaled(fn, _blocks_until(fn, "%rows", tall, packed), turns, -fetch.num_turns)
        skipped = fn.value(f"call i64 {smax}(i64 {left}, i64 0)")
    first = fn.value(f"sub nsw i64 {scaled(fn, number, turns)}, {skipped}")
    stride = scaled(fn, "%next_b_stride", tile.element_bytes)
    column = scaled(fn, block.panel, spec.b_layout.columns * tile.element_bytes)
    at = element_address(fn, "i8", "%next_b", column)
    return fetch, f", ptr {at}, i64 {stride}, i64 {first}"


def _tallest(spec: DotSpec, block: ProductBlock) -> int:
    """The rows of the tallest of the blocks that share the columns of one."""
    most = max_rows(spec.unit, spec.multiply, len(block.column.vectors), spec.a_in_place)
    return max(run.size for run in row_runs(spec, most))


def _blocks_until(fn: FunctionBuilder, row: str, tall: int, first: int) -> str:
    """The number of blocks of at most `tall` rows between the row `first` and a later one."""
    if row.isdecimal():
        return str(-(-(int(row) - first) // tall))
    return fn.value(f"udiv i64 {scaled(fn, row, 1, tall - 1 - first)}, {tall}")


def _blocks_before(fn: FunctionBuilder, row: str, size: int) -> str:
    """The number of whole blocks of `size` rows before a row."""
    return str(int(row) // size) if row.isdecimal() else fn.value(f"udiv i64 {row}, {size}")


def _next_rows(fn: FunctionBuilder, spec: DotSpec, block: ProductBlock) -> tuple[LineFetch, str]:
    """The rows of A of the next block, shared among the panels; behind the last it is a guess."""
    size = ELEMENT_BYTES[spec.a_layout.element]
    lines = -(-spec.k * size // LINE_BYTES)
    panels = spec.b_layout.num_panels(spec.n)
    blocks = -(-panels // block.column.run.size)
    turns = _num_turns(spec)
    fetch = spread(lines, block.rows, blocks * turns, panels <= NEAR_PANELS)
    number = _blocks_before(fn, block.panel, block.column.run.size)
    first = scaled(fn, number, turns)
    stride = scaled(fn, "%a_stride", size)
    at = element_address(fn, "i8", "%a", scaled(fn, scaled(fn, block.row, 1, block.rows), stride))
    return fetch, f", ptr {at}, i64 {stride}, i64 {first}"
