"""What a copy of a `dot` operand loads: vectors along k or across it, of the source as it lies.

Of a limited operand there are `%extent` rows or columns and `%depth` k; zeros stand for the others.
Vectors that end behind it are loaded under masks, and one of which nothing is there from the
source's start: no address is touched that the operand does not have.
"""

from __future__ import annotations

from collections.abc import Callable

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

    def loaded(is_whole: bool) -> str:
        vector = _load(fn, spec, start, _Place(*place), (spec.chunk, valid), is_whole)
        return _as_lanes(fn, spec, _widen(fn, spec, spec.chunk, vector))

    return _whole_or_part(fn, spec, _Place(*place), (1, valid), loaded)


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
    first, count = row_start(fn, spec, k), min(valid, spec.group)

    def loaded(is_whole: bool) -> str:
        rows, start = ["zeroinitializer"] * spec.group, first
        for row in range(count):
            if row:
                start = element_address(fn, spec.source_type, start, "%stride")
            place = _Place(scaled(fn, k, 1, row), column)
            vector = _load(fn, spec, start, place, (spec.lanes, columns), is_whole)
            rows[row] = _widen(fn, spec, spec.lanes, vector)
        type_ = STORAGE_TYPE[spec.layout.element]
        return _as_lanes(fn, spec, interleave(fn, spec.lanes, type_, rows))

    return _whole_or_part(fn, spec, _Place(k, column), (count, columns), loaded)


def _whole_or_part(
    fn: FunctionBuilder,
    spec: PackSpec,
    place: _Place,
    size: tuple[int, int],
    loaded: Callable[[bool], str],
) -> str:
    """A vector of lanes made of so many rows of so many elements from a place on.

    `loaded` makes it, of rows that are there whole, or of parts of them.
    """
    if not spec.is_limited:
        return loaded(True)
    rows, elements = _limits(spec)
    last_row, last = scaled(fn, place.row, 1, size[0]), scaled(fn, place.element, 1, size[1])
    has_rows = fn.value(f"icmp sle i64 {last_row}, {rows}")
    is_whole = fn.value(f"and i1 {has_rows}, {fn.value(f'icmp sle i64 {last}, {elements}')}")
    whole, part, done = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch_if(is_whole, whole, part)
    vectors: list[str] = []
    for label in (whole, part):
        fn.place(label)
        vectors.append(loaded(label == whole))
        fn.branch(done)
    fn.place(done)
    kind = f"<{spec.lanes} x {spec.multiply.lane_type}>"
    return fn.value(f"phi {kind} [ {vectors[0]}, %{whole} ], [ {vectors[1]}, %{part} ]")


def _limits(spec: PackSpec) -> tuple[str, str]:
    """How many rows of the source there are, and how many elements of each."""
    return ("%depth", "%extent") if spec.is_across_k else ("%extent", "%depth")


def _load(
    fn: FunctionBuilder,
    spec: PackSpec,
    start: str,
    place: _Place,
    size: tuple[int, int],
    is_whole: bool,
) -> str:
    """A vector from a row that begins at `start`, `size` being its lanes and how many are valid.

    The others are zeros, and where it is not whole those that are not there.
    """
    lanes, valid = size
    address = element_address(fn, spec.source_type, start, place.element)
    if is_whole:
        return load_prefix(fn, lanes, spec.source_type, address, valid)
    rows, elements = _limits(spec)
    left = fn.value(f"sub nsw i64 {elements}, {place.element}")
    is_row = fn.value(f"icmp slt i64 {place.row}, {rows}")
    left = clamped(fn, fn.value(f"select i1 {is_row}, i64 {left}, i64 0"), valid)
    is_there = fn.value(f"icmp sgt i64 {left}, 0")
    address = fn.value(f"select i1 {is_there}, ptr {address}, ptr %source")
    mask = prefix_mask_of(fn, lanes, spec.source_type, left)
    return load_masked(fn, lanes, spec.source_type, address, mask)


def _as_lanes(fn: FunctionBuilder, spec: PackSpec, value: str) -> str:
    if spec.group == 1:
        return value
    parts = f"<{spec.chunk} x {STORAGE_TYPE[spec.layout.element]}>"
    return fn.value(f"bitcast {parts} {value} to <{spec.lanes} x {spec.multiply.lane_type}>")


def _widen(fn: FunctionBuilder, spec: PackSpec, lanes: int, value: str) -> str:
    if spec.layout.parts > 1:
        return emit_half_part(fn, spec.part, lanes, value)
    return emit_widen(fn, spec.source, spec.layout.element, lanes, value, spec.features)
