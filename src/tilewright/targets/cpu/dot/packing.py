"""Copies of `dot` operands from memory into the layouts that the microkernel reads.

Four copies, by operand and by the direction in which the source is contiguous. A source that
is contiguous along k gives lanes of whole k-groups; one that is contiguous across k gives
`k_group` rows that are interleaved. What then lies the wrong way round is transposed in
registers, a square of lanes at a time.

| operand | source             | step                                        |
|---------|--------------------|---------------------------------------------|
| A       | `[M, K]`           | load along k, store                         |
| A       | `[K, M]` (`a.T`)   | interleave a group of rows, transpose, store |
| B       | `[K, N]`           | interleave a group of rows, store           |
| B       | `[N, K]` (`b.T`)   | load along k, transpose, store              |

The A of 2x2 products is copied as the B that its transpose is, in panels of two columns.

Elements are converted on the way (f16, bf16 and fp8 to f32, bytes to words), which is exact.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.pack_sources import (
    load_across_k,
    load_along_k,
    load_groups,
    load_rows,
    row_start,
)
from tilewright.targets.cpu.dot.pack_spec import PackSpec
from tilewright.targets.cpu.dot.panels import PanelLayout, RowLayout
from tilewright.targets.cpu.dot.vectors import (
    clamped,
    counted_loop,
    counted_while,
    element_address,
    scaled,
    shuffle,
    store_prefix,
    transpose,
    unrolled,
    whole_and_rest,
)
from tilewright.targets.cpu.dot.widen import STORAGE_TYPE

LIMIT_ARGUMENTS = ", i64 %extent, i64 %depth, i64 %filled_extent, i64 %filled_depth"

MAX_STRAIGHT_VECTORS = 8
"""Vectors of a row that are copied without a loop around them.

Chosen, not measured: it bounds the code of a copy; a loop copies the same bytes."""


def emit_pack(module: ModuleBuilder, spec: PackSpec) -> str:
    """Define `void @name(ptr %source, i64 %stride, ptr %packed)` for a spec; return `@name`.

    *Units* `%stride` in elements between rows of the source as it lies in memory. A limited copy
    takes `i64 %extent, i64 %depth` too: how many rows (of A) or columns, and k, there are; then
    `i64 %filled_extent, i64 %filled_depth`, up to which zeros stand for the others. What lies
    behind is undefined.
    *Constraints* the source needs no alignment beyond its elements, and nothing is read
    outside it; the destination does not overlap it.
    """
    if module.has_function(spec.name):
        return f"@{spec.name}"
    arguments = "ptr noalias %source, i64 %stride, ptr noalias %packed"
    arguments += LIMIT_ARGUMENTS * spec.is_limited
    header = f"define internal void @{spec.name}({arguments}) noinline nounwind"
    fn = FunctionBuilder(module, header)
    for part in range(spec.layout.parts):
        _copy(fn, replace(spec, part=part))
    fn.emit("ret void")
    return module.add_function(spec.name, fn.text())


def _copy(fn: FunctionBuilder, spec: PackSpec) -> None:
    """The copy of one part of every element."""
    match spec.layout, spec.transposed:
        case RowLayout(), False:
            _copy_rows(fn, spec)
        case RowLayout(), True:
            _transpose_rows(fn, spec)
        case PanelLayout() as layout, False:
            _copy_panels(fn, spec, layout)
        case PanelLayout() as layout, True:
            _transpose_panels(fn, spec, layout)


def _copy_rows(fn: FunctionBuilder, spec: PackSpec) -> None:
    def copy_row(row: str) -> None:
        source = row_start(fn, spec, row)
        target = _row_address(fn, spec, row, "0")

        def copy_chunk(k: str, valid: int) -> None:
            value = load_along_k(fn, spec, source, (row, k), valid)
            address = element_address(fn, STORAGE_TYPE[spec.layout.element], target, k)
            _store_lanes(fn, spec, value, address, valid)

        if spec.k <= MAX_STRAIGHT_VECTORS * spec.chunk and not spec.is_limited:
            unrolled(spec.k, spec.chunk, copy_chunk)
        else:
            _along_depth(fn, spec, spec.chunk, copy_chunk)

    _along_extent(fn, spec, 1, lambda row, _: copy_row(row))


def _transpose_rows(fn: FunctionBuilder, spec: PackSpec) -> None:
    def square(row: str, rows: int, k: str, valid: int) -> None:
        groups = load_groups(fn, spec, k, valid, row, rows)
        lane = spec.multiply.lane_type
        for index, value in enumerate(transpose(fn, spec.lanes, lane, groups)[:rows]):
            target = _row_address(fn, spec, scaled(fn, row, 1, index), k)
            _store_lanes(fn, spec, value, target, valid)

    def row_block(row: str, rows: int) -> None:
        _along_depth(fn, spec, spec.chunk, lambda k, valid: square(row, rows, k, valid))

    _along_extent(fn, spec, spec.lanes, row_block)


def _copy_panels(fn: FunctionBuilder, spec: PackSpec, layout: PanelLayout) -> None:
    def copy_group(k: str, valid: int) -> None:
        def copy_vector(start: str, panel: str, column: int, columns: int) -> None:
            first = scaled(fn, panel, layout.columns, column)
            value = load_across_k(fn, spec, k, valid, first, columns)
            _store_lanes(fn, spec, value, _panel_vector(fn, spec, layout, start, k, column))

        def copy_panels(column: str, columns: int) -> None:
            value = load_across_k(fn, spec, k, valid, column, columns)
            _store_panels(fn, spec, layout, value, (column, columns), k)

        if spec.lanes > layout.columns:
            _along_extent(fn, spec, spec.lanes, copy_panels)
            return
        _for_each_vector(fn, spec, layout, copy_vector)

    _along_depth(fn, spec, layout.k_group, copy_group)


def _store_panels(
    fn: FunctionBuilder,
    spec: PackSpec,
    layout: PanelLayout,
    value: str,
    place: tuple[str, int],
    k: str,
) -> None:
    """Store a k-group of some columns, `place` being the first and how many, panel by panel."""
    lane, (first, columns) = spec.multiply.lane_type, place
    for column in range(0, columns, layout.columns):
        lanes = range(column, column + layout.columns)
        part = shuffle(fn, spec.lanes, lane, value, "poison", lanes)
        apart = spec.panel_stride
        start = scaled(fn, scaled(fn, first, 1, column), apart // layout.columns)
        address = _panel_vector(fn, spec, layout, start, k, 0)
        store_prefix(fn, layout.columns, lane, part, address, layout.columns)


def _for_each_vector(
    fn: FunctionBuilder,
    spec: PackSpec,
    layout: PanelLayout,
    body: Callable[[str, str, int, int], None],
) -> None:
    """Emit `body(panel start, panel, column in it, valid columns)` for every vector of B."""
    whole, rest = divmod(spec.extent, layout.columns)
    stride = spec.panel_stride

    def panel_block(panel: str) -> None:
        start = scaled(fn, panel, stride)
        for column in range(0, layout.columns, spec.lanes):
            body(start, panel, column, spec.lanes)

    if spec.is_limited:
        counted_while(fn, _filled(fn, "%filled_extent", whole, layout.columns), panel_block)
    elif whole * layout.columns <= MAX_STRAIGHT_VECTORS * layout.lanes:
        for panel in range(whole):
            panel_block(str(panel))
    else:
        counted_loop(fn, whole, panel_block)
    for column in range(0, rest, spec.lanes):
        body(str(whole * stride), str(whole), column, min(spec.lanes, rest - column))


def _transpose_panels(fn: FunctionBuilder, spec: PackSpec, layout: PanelLayout) -> None:
    def vector_column(start: str, panel: str, column: int, columns: int) -> None:
        first = scaled(fn, panel, layout.columns, column)
        _along_depth(
            *(fn, spec, spec.chunk),
            lambda k, valid: square(start, column, first, columns, k, valid),
        )

    def square(start: str, column: int, first: str, columns: int, k: str, valid: int) -> None:
        rows = load_rows(fn, spec, first, columns, k, valid)
        groups = transpose(fn, spec.lanes, spec.multiply.lane_type, rows)
        for index in range(-(-valid // spec.group)):
            at = scaled(fn, k, 1, index * spec.group)
            place = _panel_vector(fn, spec, layout, start, at, column)
            _store_lanes(fn, spec, groups[index], place)

    _for_each_vector(fn, spec, layout, vector_column)


def _along_extent(
    fn: FunctionBuilder, spec: PackSpec, size: int, body: Callable[[str, int], None]
) -> None:
    """Emit `body(start, valid)` for chunks of rows of A, or columns of B, as far as they count."""
    _along(fn, "%filled_extent" if spec.is_limited else None, (spec.extent, size), body)


def _along_depth(
    fn: FunctionBuilder, spec: PackSpec, size: int, body: Callable[[str, int], None]
) -> None:
    """The same along k."""
    _along(fn, "%filled_depth" if spec.is_limited else None, (spec.k, size), body)


def _along(
    fn: FunctionBuilder,
    limit: str | None,
    extents: tuple[int, int],
    body: Callable[[str, int], None],
) -> None:
    """Chunks of `extents[1]` of `extents[0]`, whole ones as far as a limit, if there is one."""
    total, size = extents
    if limit is None:
        whole_and_rest(fn, total, size, body)
        return
    whole, rest = divmod(total, size)
    count = _filled(fn, limit, whole, size)
    counted_while(fn, count, lambda index: body(scaled(fn, index, size), size))
    if rest:
        body(str(whole * size), rest)


def _filled(fn: FunctionBuilder, limit: str, whole: int, size: int) -> str:
    """How many of `whole` chunks of a size begin before a limit."""
    last = fn.value(f"add nsw i64 {limit}, {size - 1}")
    return clamped(fn, fn.value(f"udiv i64 {last}, {size}"), whole)


def _panel_vector(
    fn: FunctionBuilder, spec: PackSpec, layout: PanelLayout, start: str, k: str, column: int
) -> str:
    offset = scaled(fn, k, layout.columns, start)
    if spec.part:
        offset = scaled(fn, offset, 1, spec.part * layout.part_elems(spec.k))
    row = element_address(fn, STORAGE_TYPE[layout.element], "%packed", offset)
    return element_address(fn, STORAGE_TYPE[layout.element], row, column * layout.k_group)


def _row_address(fn: FunctionBuilder, spec: PackSpec, row: str, k: str) -> str:
    type_ = STORAGE_TYPE[spec.layout.element]
    part = spec.part * -(-spec.k // spec.group) * spec.group
    start = element_address(fn, type_, "%packed", scaled(fn, row, spec.row_stride, part))
    return element_address(fn, type_, start, k)


def _store_lanes(
    fn: FunctionBuilder, spec: PackSpec, value: str, address: str, valid: int | None = None
) -> None:
    """Store a vector of k-groups, as many as hold `valid` k, flipping the top bits of a
    biased A."""
    lane = spec.multiply.lane_type
    if isinstance(spec.layout, RowLayout) and spec.layout.bias:
        value = fn.value(f"xor <{spec.lanes} x {lane}> {value}, splat (i32 {0x80808080})")
    groups = spec.lanes if valid is None else -(-valid // spec.group)
    store_prefix(fn, spec.lanes, lane, value, address, groups)
