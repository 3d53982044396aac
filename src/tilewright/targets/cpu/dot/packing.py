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
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.cpu.dot.panels import Multiply, PanelLayout, RowLayout
from tilewright.targets.cpu.dot.vectors import (
    counted_loop,
    element_address,
    interleave,
    load_prefix,
    scaled,
    shuffle,
    store_prefix,
    transpose,
    unrolled,
    whole_and_rest,
)
from tilewright.targets.cpu.dot.widen import STORAGE_TYPE, emit_half_part, emit_widen

MAX_STRAIGHT_VECTORS = 8
"""Vectors of a row that are copied without a loop around them.

Chosen, not measured: it bounds the code of a copy; a loop copies the same bytes."""


@dataclass(frozen=True)
class PackSpec:
    """One copy of an operand; equal specs share one function.

    *Shapes* `extent` is M for A and N for B. `lanes` is the width of one step in k-groups;
    for B that of its layout, or more of them where 2x2 products read it and it is not `transposed`:
    the source holds `[K, M]` or `[N, K]`. `stride`: that of A's rows, or of its panels, if it is
    not what the layout says.
    *Dtypes* `source`: the dtype in memory, i8, u8, f16, bf16, f32, f64 or an fp8.
    """

    layout: RowLayout | PanelLayout
    multiply: Multiply
    source: str
    extent: int
    k: int
    lanes: int
    transposed: bool = False
    features: frozenset[str] = frozenset()
    stride: int | None = None
    part: int = 0

    @property
    def group(self) -> int:
        """The number of consecutive k in one lane."""
        return self.layout.k_group

    @property
    def source_type(self) -> str:
        """The LLVM type in which source elements are loaded."""
        return STORAGE_TYPE[self.source]

    @property
    def chunk(self) -> int:
        """How many k one vector of lanes covers."""
        return self.lanes * self.group

    @property
    def name(self) -> str:
        """The name of the function; injective on the specs of one machine."""
        role = "a" if isinstance(self.layout, RowLayout) else "b"
        way = "t" if self.transposed else "n"
        shape = f"{self.extent}x{self.k}.{self.lanes}x{self.group}"
        bias = "x" * (isinstance(self.layout, RowLayout) and self.layout.bias)
        place = _row_stride(self) if isinstance(self.layout, RowLayout) else _panels_name(self)
        return f"tw.pack.{role}{way}{bias}.{self.source}.{self.layout.element}.{shape}.{place}"


def emit_pack(module: ModuleBuilder, spec: PackSpec) -> str:
    """Define `void @name(ptr %source, i64 %stride, ptr %packed)` for a spec; return `@name`.

    *Units* `%stride` in elements between rows of the source as it lies in memory.
    *Constraints* the source needs no alignment beyond its elements, and nothing is read
    outside it; the destination does not overlap it.
    """
    if module.has_function(spec.name):
        return f"@{spec.name}"
    arguments = "ptr noalias %source, i64 %stride, ptr noalias %packed"
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


def _panels_name(spec: PackSpec) -> str:
    assert isinstance(spec.layout, PanelLayout)
    apart = "" if spec.stride is None else f".{spec.stride}"
    return f"{spec.layout.columns}{apart}"


def _row_stride(spec: PackSpec) -> int:
    assert isinstance(spec.layout, RowLayout)
    return spec.layout.stride_elems(spec.k) if spec.stride is None else spec.stride


def _copy_rows(fn: FunctionBuilder, spec: PackSpec) -> None:
    def copy_row(row: str) -> None:
        source = _source_address(fn, spec, row, "0")
        target = _row_address(fn, spec, row, "0")

        def copy_chunk(k: str, valid: int) -> None:
            value = _load_along_k(fn, spec, element_address(fn, spec.source_type, source, k), valid)
            address = element_address(fn, STORAGE_TYPE[spec.layout.element], target, k)
            _store_lanes(fn, spec, value, address, valid)

        if spec.k <= MAX_STRAIGHT_VECTORS * spec.chunk:
            unrolled(spec.k, spec.chunk, copy_chunk)
        else:
            whole_and_rest(fn, spec.k, spec.chunk, copy_chunk)

    counted_loop(fn, spec.extent, copy_row)


def _transpose_rows(fn: FunctionBuilder, spec: PackSpec) -> None:
    def square(row: str, rows: int, k: str, valid: int) -> None:
        groups = _load_groups(fn, spec, k, valid, row, rows)
        lane = spec.multiply.lane_type
        for index, value in enumerate(transpose(fn, spec.lanes, lane, groups)[:rows]):
            target = _row_address(fn, spec, scaled(fn, row, 1, index), k)
            _store_lanes(fn, spec, value, target, valid)

    def row_block(row: str, rows: int) -> None:
        whole_and_rest(fn, spec.k, spec.chunk, lambda k, valid: square(row, rows, k, valid))

    whole_and_rest(fn, spec.extent, spec.lanes, row_block)


def _copy_panels(fn: FunctionBuilder, spec: PackSpec, layout: PanelLayout) -> None:
    def copy_group(k: str, valid: int) -> None:
        def copy_vector(start: str, panel: str, column: int, columns: int) -> None:
            first = scaled(fn, panel, layout.columns, column)
            value = _load_across_k(fn, spec, k, valid, first, columns)
            _store_lanes(fn, spec, value, _panel_vector(fn, spec, layout, start, k, column))

        def copy_panels(column: str, columns: int) -> None:
            value = _load_across_k(fn, spec, k, valid, column, columns)
            _store_panels(fn, spec, layout, value, (column, columns), k)

        if spec.lanes > layout.columns:
            whole_and_rest(fn, spec.extent, spec.lanes, copy_panels)
            return
        _for_each_vector(fn, spec, layout, copy_vector)

    whole_and_rest(fn, spec.k, layout.k_group, copy_group)


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
        apart = _panel_stride(spec, layout)
        start = scaled(fn, scaled(fn, first, 1, column), apart // layout.columns)
        address = _panel_vector(fn, spec, layout, start, k, 0)
        store_prefix(fn, layout.columns, lane, part, address, layout.columns)


def _panel_stride(spec: PackSpec, layout: PanelLayout) -> int:
    """Elements from one panel to the next."""
    return layout.panel_elems(spec.k) if spec.stride is None else spec.stride


def _for_each_vector(
    fn: FunctionBuilder,
    spec: PackSpec,
    layout: PanelLayout,
    body: Callable[[str, str, int, int], None],
) -> None:
    """Emit `body(panel start, panel, column in it, valid columns)` for every vector of B."""
    whole, rest = divmod(spec.extent, layout.columns)
    stride = _panel_stride(spec, layout)

    def panel_block(panel: str) -> None:
        start = scaled(fn, panel, stride)
        for column in range(0, layout.columns, spec.lanes):
            body(start, panel, column, spec.lanes)

    if whole * layout.columns <= MAX_STRAIGHT_VECTORS * layout.lanes:
        for panel in range(whole):
            panel_block(str(panel))
    else:
        counted_loop(fn, whole, panel_block)
    for column in range(0, rest, spec.lanes):
        body(str(whole * stride), str(whole), column, min(spec.lanes, rest - column))


def _transpose_panels(fn: FunctionBuilder, spec: PackSpec, layout: PanelLayout) -> None:
    def vector_column(start: str, panel: str, column: int, columns: int) -> None:
        first = scaled(fn, panel, layout.columns, column)
        whole_and_rest(
            fn, spec.k, spec.chunk, lambda k, valid: square(start, column, first, columns, k, valid)
        )

    def square(start: str, column: int, first: str, columns: int, k: str, valid: int) -> None:
        rows = _load_rows(fn, spec, first, columns, k, valid)
        groups = transpose(fn, spec.lanes, spec.multiply.lane_type, rows)
        for index in range(-(-valid // spec.group)):
            at = scaled(fn, k, 1, index * spec.group)
            place = _panel_vector(fn, spec, layout, start, at, column)
            _store_lanes(fn, spec, groups[index], place)

    _for_each_vector(fn, spec, layout, vector_column)


def _panel_vector(
    fn: FunctionBuilder, spec: PackSpec, layout: PanelLayout, start: str, k: str, column: int
) -> str:
    offset = scaled(fn, k, layout.columns, start)
    if spec.part:
        offset = scaled(fn, offset, 1, spec.part * layout.part_elems(spec.k))
    row = element_address(fn, STORAGE_TYPE[layout.element], "%packed", offset)
    return element_address(fn, STORAGE_TYPE[layout.element], row, column * layout.k_group)


def _source_address(fn: FunctionBuilder, spec: PackSpec, row: str, column: str) -> str:
    """The address of the source element in `row` and `column` as they lie in memory."""
    offset = scaled(fn, row, "%stride") if row != "0" else "0"
    start = element_address(fn, spec.source_type, "%source", offset)
    return element_address(fn, spec.source_type, start, column)


def _row_address(fn: FunctionBuilder, spec: PackSpec, row: str, k: str) -> str:
    type_ = STORAGE_TYPE[spec.layout.element]
    part = spec.part * -(-spec.k // spec.group) * spec.group
    start = element_address(fn, type_, "%packed", scaled(fn, row, _row_stride(spec), part))
    return element_address(fn, type_, start, k)


def _load_rows(
    fn: FunctionBuilder, spec: PackSpec, first: str, count: int, k: str, valid: int
) -> list[str]:
    """A vector along k for each of `lanes` rows of the source; zero beyond `count`."""
    address = _source_address(fn, spec, first, k)
    rows = ["zeroinitializer"] * spec.lanes
    for row in range(count):
        if row:
            address = element_address(fn, spec.source_type, address, "%stride")
        rows[row] = _load_along_k(fn, spec, address, valid)
    return rows


def _load_along_k(fn: FunctionBuilder, spec: PackSpec, address: str, valid: int) -> str:
    loaded = load_prefix(fn, spec.chunk, spec.source_type, address, valid)
    return _as_lanes(fn, spec, _widen(fn, spec, spec.chunk, loaded))


def _load_groups(
    fn: FunctionBuilder, spec: PackSpec, k: str, valid: int, column: str, columns: int
) -> list[str]:
    """The next `lanes` k-groups of `columns` columns; zero beyond `valid` k."""
    return [
        _load_across_k(fn, spec, scaled(fn, k, 1, start), valid - start, column, columns)
        for start in range(0, spec.chunk, spec.group)
    ]


def _load_across_k(
    fn: FunctionBuilder, spec: PackSpec, k: str, valid: int, column: str, columns: int
) -> str:
    if valid <= 0:
        return "zeroinitializer"
    address = _source_address(fn, spec, k, column)
    rows = ["zeroinitializer"] * spec.group
    for row in range(min(valid, spec.group)):
        if row:
            address = element_address(fn, spec.source_type, address, "%stride")
        loaded = load_prefix(fn, spec.lanes, spec.source_type, address, columns)
        rows[row] = _widen(fn, spec, spec.lanes, loaded)
    type_ = STORAGE_TYPE[spec.layout.element]
    return _as_lanes(fn, spec, interleave(fn, spec.lanes, type_, rows))


def _as_lanes(fn: FunctionBuilder, spec: PackSpec, value: str) -> str:
    if spec.group == 1:
        return value
    parts = f"<{spec.chunk} x {STORAGE_TYPE[spec.layout.element]}>"
    return fn.value(f"bitcast {parts} {value} to <{spec.lanes} x {spec.multiply.lane_type}>")


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


def _widen(fn: FunctionBuilder, spec: PackSpec, lanes: int, value: str) -> str:
    if spec.layout.parts > 1:
        return emit_half_part(fn, spec.part, lanes, value)
    return emit_widen(fn, spec.source, spec.layout.element, lanes, value, spec.features)
