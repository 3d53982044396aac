"""What a copy of a `dot` operand loads: vectors along k or across it, of the source as it lies.

Of a limited operand there are `%extent` rows or columns and `%depth` k; zeros stand for the others.
Vectors that end behind it are loaded under masks, and one of which nothing is there from the
source's start: no address is touched that the operand does not have.
"""

from __future__ import annotations

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.dot.pack_spec import PackSpec
from tilewright.targets.cpu.dot.vectors import (
    clamped,
    element_address,
    interleave,
    load_masked,
    load_prefix,
    prefix_mask_of,
    scaled,
)
from tilewright.targets.cpu.dot.widen import STORAGE_TYPE, emit_half_part, emit_widen


@dataclass(frozen=True)
class _Place:
    """Where a vector of the source begins: its row there, its element in the row."""

    row: str
    element: str


def row_start(fn: FunctionBuilder, spec: PackSpec, row: str) -> str:
    """The address of a row of the source as it lies in memory."""
    offset = scaled(fn, row, "%stride") if row != "0" else "0"
    return element_address(fn, spec.source_type, "%source", offset)


def load_rows(
    fn: FunctionBuilder, spec: PackSpec, first: str, count: int, k: str, valid: int
) -> list[str]:
    """A vector along k for each of `lanes` rows of the source; zero beyond `count`."""
    start = row_start(fn, spec, first)
    rows = ["zeroinitializer"] * spec.lanes
    for row in range(count):
        if row:
            start = element_address(fn, spec.source_type, start, "%stride")
        rows[row] = load_along_k(fn, spec, start, (scaled(fn, first, 1, row), k), valid)
    return rows


def load_along_k(
    fn: FunctionBuilder, spec: PackSpec, start: str, place: tuple[str, str], valid: int
) -> str:
    """The k-groups of a row that begins at `start`, `place` being its number and the first k."""
    loaded = _load(fn, spec, start, _Place(*place), spec.chunk, valid)
    return _as_lanes(fn, spec, _widen(fn, spec, spec.chunk, loaded))


def load_groups(
    fn: FunctionBuilder, spec: PackSpec, k: str, valid: int, column: str, columns: int
) -> list[str]:
    """The next `lanes` k-groups of `columns` columns; zero beyond `valid` k."""
    return [
        load_across_k(fn, spec, scaled(fn, k, 1, start), valid - start, column, columns)
        for start in range(0, spec.chunk, spec.group)
    ]


def load_across_k(
    fn: FunctionBuilder, spec: PackSpec, k: str, valid: int, column: str, columns: int
) -> str:
    """The k-group from `k` on of `columns` columns, rows of the source interleaved."""
    if valid <= 0:
        return "zeroinitializer"
    start = row_start(fn, spec, k)
    rows = ["zeroinitializer"] * spec.group
    for row in range(min(valid, spec.group)):
        if row:
            start = element_address(fn, spec.source_type, start, "%stride")
        place = _Place(scaled(fn, k, 1, row), column)
        rows[row] = _widen(fn, spec, spec.lanes, _load(fn, spec, start, place, spec.lanes, columns))
    type_ = STORAGE_TYPE[spec.layout.element]
    return _as_lanes(fn, spec, interleave(fn, spec.lanes, type_, rows))


def _load(
    fn: FunctionBuilder, spec: PackSpec, start: str, place: _Place, lanes: int, valid: int
) -> str:
    """A vector from a row that begins at `start`: the first `valid` lanes, zeros behind them."""
    address = element_address(fn, spec.source_type, start, place.element)
    if not spec.is_limited:
        return load_prefix(fn, lanes, spec.source_type, address, valid)
    rows, elements = ("%depth", "%extent") if spec.is_across_k else ("%extent", "%depth")
    left = fn.value(f"sub nsw i64 {elements}, {place.element}")
    is_row = fn.value(f"icmp slt i64 {place.row}, {rows}")
    left = fn.value(f"select i1 {is_row}, i64 {left}, i64 0")
    whole, part, done = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch_if(fn.value(f"icmp sge i64 {left}, {valid}"), whole, part)
    fn.place(whole)
    loaded = load_prefix(fn, lanes, spec.source_type, address, valid)
    fn.branch(done)
    fn.place(part)
    is_there = fn.value(f"icmp sgt i64 {left}, 0")
    address = fn.value(f"select i1 {is_there}, ptr {address}, ptr %source")
    mask = prefix_mask_of(fn, lanes, spec.source_type, clamped(fn, left, valid))
    masked = load_masked(fn, lanes, spec.source_type, address, mask)
    fn.branch(done)
    fn.place(done)
    kind = f"<{lanes} x {spec.source_type}>"
    return fn.value(f"phi {kind} [ {loaded}, %{whole} ], [ {masked}, %{part} ]")


def _as_lanes(fn: FunctionBuilder, spec: PackSpec, value: str) -> str:
    if spec.group == 1:
        return value
    parts = f"<{spec.chunk} x {STORAGE_TYPE[spec.layout.element]}>"
    return fn.value(f"bitcast {parts} {value} to <{spec.lanes} x {spec.multiply.lane_type}>")


def _widen(fn: FunctionBuilder, spec: PackSpec, lanes: int, value: str) -> str:
    if spec.layout.parts > 1:
        return emit_half_part(fn, spec.part, lanes, value)
    return emit_widen(fn, spec.source, spec.layout.element, lanes, value, spec.features)
