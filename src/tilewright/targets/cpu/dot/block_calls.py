"""The calls of a `dot`'s microkernels, whole ones and those at the right edge of a result."""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.block import emit_block
from tilewright.targets.cpu.dot.block_fetches import block_fetches
from tilewright.targets.cpu.dot.block_runs import ColumnRun, ProductBlock
from tilewright.targets.cpu.dot.block_spec import BlockSpec
from tilewright.targets.cpu.dot.block_targets import target_arguments
from tilewright.targets.cpu.dot.edge_packing import emit_edge_pack
from tilewright.targets.cpu.dot.panels import ELEMENT_BYTES
from tilewright.targets.cpu.dot.spec import FEW_ROWS, DotSpec
from tilewright.targets.cpu.dot.vectors import element_address, scaled
from tilewright.targets.cpu.dot.widen import STORAGE_BYTES, STORAGE_TYPE

EDGE_VECTORS = 2
"""Vectors of a block at the right edge of a result, where they hold all columns that are left.

Source: the FMA units of Intel (Skylake and later): six rows by two vectors take 6 cycles a step, by
four 12; by one 4, which is latency."""


AHEAD_BYTES = 4096
"""How many bytes of B before it multiplies them a block of few rows fetches its columns.

Measured on Zen 5, 2026-11-23, one thread, f32, tiles of 16x64x64, with fetches / without, GB/s:
M x 4096 x 4096 with M of 1: 10.8 / 6.2, of 4: 10.4 / 6.3, of 8: 8.9 / 6.3; in the cache, 1024x1024,
M of 1: 43 / 45, of 8: 25 / 30. Half as much, twice and four times give the same: each row is a page
further, which has to be found."""


def emit_edge_call(fn: FunctionBuilder, spec: DotSpec, block: ProductBlock, tallest: int) -> None:
    """A block, or one of few vectors where no more columns of it are left.

    That one has `tallest` rows if those that are too many are written where the last one is.
    """
    vectors = block.column.vectors
    if not spec.is_limited or len(vectors) <= EDGE_VECTORS:
        emit_block_call(fn, spec, block)
        return
    narrow, whole, done = fn.new_label(), fn.new_label(), fn.new_label()
    left = fn.value(f"sub nsw i64 %columns, {scaled(fn, block.panel, spec.b_layout.columns)}")
    fits = fn.value(f"icmp sle i64 {left}, {EDGE_VECTORS * spec.b_layout.lanes}")
    fn.branch_if(fits, narrow, whole)
    fn.place(narrow)
    column = ColumnRun(block.column.run, vectors[:EDGE_VECTORS])
    rows = tallest if spec.has_target else block.rows
    edge = replace(block, column=column, rows=rows, most_rows=block.rows)
    if spec.packs_b and block.is_first and block.rows < spec.m:
        _emit_edge_pack(fn, spec, block.panel, left)
        edge = replace(edge, is_first=False)
    emit_block_call(fn, replace(spec, next_b=None), edge)
    fn.branch(done)
    fn.place(whole)
    emit_block_call(fn, spec, block)
    fn.branch(done)
    fn.place(done)


def _emit_edge_pack(fn: FunctionBuilder, spec: DotSpec, panel: str, columns: str) -> None:
    """Pack the last `columns` columns of B, of a panel."""
    callee = emit_edge_pack(fn.module, spec.b_layout, EDGE_VECTORS)
    source, stride = _source_of(fn, spec, panel), "i64 %b_source_stride"
    b = _panel_of(fn, spec, panel)
    more = f"{stride}, i64 {columns}, i64 %depth"
    fn.emit(f"call fastcc void {callee}(ptr {b}, ptr {source}, {more})")


def _panel_of(fn: FunctionBuilder, spec: DotSpec, panel: str) -> str:
    """Where a panel of packed B is."""
    layout = spec.b_layout
    panel_bytes = layout.panel_elems(spec.k) * ELEMENT_BYTES[layout.element]
    return element_address(fn, "i8", "%b", scaled(fn, panel, panel_bytes))


def _source_of(fn: FunctionBuilder, spec: DotSpec, panel: str) -> str:
    """Where the columns of a panel are in an unpacked B."""
    column = scaled(fn, panel, spec.b_layout.columns)
    return element_address(fn, STORAGE_TYPE[spec.b_dtype], "%b_source", column)


def block_limits(fn: FunctionBuilder, spec: DotSpec) -> tuple[str, str]:
    """Before which row, and which panel, a block has to start to be seen."""
    if not spec.is_limited:
        return "%rows" * spec.has_row_limit, ""
    columns = spec.b_layout.columns
    room = fn.value(f"add nsw i64 %columns, {columns - 1}")
    return "%rows", fn.value(f"sdiv i64 {room}, {columns}")


def emit_block_call(fn: FunctionBuilder, spec: DotSpec, block: ProductBlock) -> None:
    """Call the microkernel of a block, which is written where it is missing."""
    layout = spec.b_layout
    a_bytes = ELEMENT_BYTES[spec.a_layout.element]
    c_bytes = ELEMENT_BYTES[spec.acc_dtype]
    packs = spec.packs_b and block.is_first
    fetches = block_fetches(fn, spec, block)
    callee = emit_block(
        fn.module,
        BlockSpec(
            multiply=spec.multiply,
            layout=layout,
            k=spec.k,
            rows=block.rows,
            vectors=block.column.vectors,
            lda=None if spec.a_in_place else spec.a_stride,
            ldc=spec.acc_stride,
            zero_init=spec.zero_init,
            fetches=tuple(fetch for fetch, _ in fetches),
            source=spec.b_dtype if packs else None,
            keeps=packs and block.rows < spec.m,
            has_pitch=packs and _has_pitch(spec, block),
            fetches_ahead=packs and spec.fetches_ahead,
            features=spec.features,
            is_limited=spec.is_limited,
            has_target=spec.has_target,
            is_edge=block.most_rows is not None,
        ),
    )
    more = "".join(arguments for _, arguments in fetches)
    more += _source_arguments(fn, spec, block) if packs else ""
    more += _limit_arguments(fn, spec, block) if spec.is_limited else ""
    more += target_arguments(fn, spec, block) if spec.has_target else ""
    b = _panel_of(fn, spec, block.panel)
    c_column = scaled(fn, block.panel, layout.columns * c_bytes)
    c = element_address(fn, "i8", "%c", scaled(fn, block.row, spec.acc_stride * c_bytes, c_column))
    stride = "%a_stride" if spec.a_in_place else spec.a_stride
    a_row = scaled(fn, block.row, stride) if block.row != "0" else "0"
    a = element_address(fn, "i8", "%a", scaled(fn, a_row, a_bytes))
    lda = "%a_stride" if spec.a_in_place else "poison"
    fn.emit(f"call fastcc void {callee}(ptr {a}, ptr {b}, ptr {c}, i64 {lda}{more})")


def _limit_arguments(fn: FunctionBuilder, spec: DotSpec, block: ProductBlock) -> str:
    """How much of a block is seen: what is left of the rows and columns, and the depth."""
    column = scaled(fn, block.panel, spec.b_layout.columns)
    rows = fn.value(f"sub nsw i64 %rows, {block.row}")
    if block.most_rows is not None and block.most_rows < block.rows:
        is_less = fn.value(f"icmp slt i64 {rows}, {block.most_rows}")
        rows = fn.value(f"select i1 {is_less}, i64 {rows}, i64 {block.most_rows}")
    columns = fn.value(f"sub nsw i64 %columns, {column}")
    return f", i64 {rows}, i64 {columns}, i64 %depth"


def _source_arguments(fn: FunctionBuilder, spec: DotSpec, block: ProductBlock) -> str:
    """Where a block finds its columns of an unpacked B."""
    source = _source_of(fn, spec, block.panel)
    arguments = f", ptr {source}, i64 %b_source_stride"
    if _has_pitch(spec, block):
        is_alone = fn.value(f"icmp sle i64 %rows, {block.rows}")
        pitch = fn.value(f"select i1 {is_alone}, i64 0, i64 {spec.b_layout.columns}")
        arguments += f", i64 {pitch}"
    return arguments + f", i64 {_rows_ahead(fn, spec)}" if spec.fetches_ahead else arguments


def _has_pitch(spec: DotSpec, block: ProductBlock) -> bool:
    """Whether a block that packs B may be the only one that is seen.

    Nobody reads what it packs then, and it puts all of it in the same place of the first-level
    cache, beside what it waits for.
    """
    return (spec.is_limited or spec.has_row_limit) and block.rows < spec.m


def _rows_ahead(fn: FunctionBuilder, spec: DotSpec) -> str:
    """How many rows of B ahead of themselves the first rows fetch it: none where more follow."""
    row_bytes = spec.b_layout.columns * STORAGE_BYTES[STORAGE_TYPE[spec.b_dtype]]
    ahead = max(1, AHEAD_BYTES // row_bytes)
    if spec.m <= FEW_ROWS:
        return str(ahead)
    is_few = fn.value(f"icmp sle i64 %rows, {FEW_ROWS}")
    return fn.value(f"select i1 {is_few}, i64 {ahead}, i64 0")
