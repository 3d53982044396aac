"""What becomes of a block's sums: added to the tile's, or sent where the user wants them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.targets.cpu.dot.block_spec import BlockSpec, column_masks, strided_rows
from tilewright.targets.cpu.dot.multiply_add import row_of_2x2, take_off_bias
from tilewright.targets.cpu.dot.vectors import (
    counted_while,
    element_address,
    load_masked,
    load_prefix,
    scaled,
    store_masked,
    store_prefix,
)

TARGET_ARGUMENTS = ", ptr %target, i64 %target_stride, i1 %is_first"
"""The arguments of a product, and of a block of it, that is told where its sums go.

A block is told in `ptr %later_target`, after them, where the sums of the block after the next
one go."""


def store_block(fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str]) -> None:
    """Store the sums at `%c`, or add them to what is there."""
    if spec.multiply.rows == 2:
        _store_2x2(fn, spec, chains)
        return
    count = len(spec.vectors)
    excess = chains[spec.rows * count :]
    for row in range(spec.rows):
        for position, vector in enumerate(spec.vectors):
            value = chains[row * count + position]
            if excess:
                value = take_off_bias(fn, spec.multiply, spec.layout.lanes, value, excess[position])
            offset = row * spec.ldc + vector.column
            _store_vector(fn, spec, spec.layout.lanes, (offset, vector.valid), value)


def _store_2x2(fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str]) -> None:
    """Store the sums of two rows by two columns each: a row of two neighbours makes one vector."""
    count = len(spec.vectors)
    for row in range(spec.rows):
        of_rows = chains[row // 2 * count : (row // 2 + 1) * count]
        for position in range(0, count, 2):
            neighbours = slice(position, position + 2)
            vectors, sums = spec.vectors[neighbours], of_rows[neighbours]
            value = row_of_2x2(fn, spec.multiply, sums, row % 2)
            place = row * spec.ldc + vectors[0].column, sum(vector.valid for vector in vectors)
            _store_vector(fn, spec, 2 * len(sums), place, value)


def _store_vector(
    fn: FunctionBuilder, spec: BlockSpec, lanes: int, place: tuple[int, int], value: str
) -> None:
    """Store `lanes` sums of a row, as many of them as are valid: `place` is (offset, valid)."""
    scalar, (offset, valid) = spec.multiply.accumulator_type, place
    address = element_address(fn, scalar, "%c", offset)
    if not spec.zero_init:
        old = load_prefix(fn, lanes, scalar, address, valid)
        add = "add" if scalar == "i32" else "fadd"
        value = fn.value(f"{add} <{lanes} x {scalar}> {old}, {value}")
    store_prefix(fn, lanes, scalar, value, address, valid)


def fetch_target(fn: FunctionBuilder, spec: BlockSpec) -> None:
    """Ask for the lines that later sums go to, which come while blocks multiply: a block's own
    would come too late for a product that is not deep, as they do for the first rows.

    Not for those that are added to: they are near, and a burst of fetches costs 3 % of a block
    that is 256 deep (Emerald Rapids, 2026-11-22).
    """
    away, here = fn.new_label(), fn.new_label()
    fn.branch_if(fn.value("icmp ne ptr %target, %c"), away, here)
    fn.place(away)
    for first in ("%target", "%later_target") if spec.source else ("%later_target",):
        _fetch_rows(fn, spec, first)
    fn.branch(here)
    fn.place(here)


def _fetch_rows(fn: FunctionBuilder, spec: BlockSpec, first: str) -> None:
    """Ask for the lines in which a block's vectors end, in rows of the target from `first` on.

    Where rows do not begin with a line, that in which they begin ends what another block writes.
    An edge block is followed by whole ones.
    """
    callee = fn.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    scalar, lanes = spec.multiply.accumulator_type, spec.layout.lanes
    columns = max(spec.layout.columns, spec.vectors[-1].column + lanes)

    def fetch_row(number: str) -> None:
        row = element_address(fn, scalar, first, scaled(fn, number, "%target_stride"))
        for end in range(lanes, columns + 1, lanes):
            at = element_address(fn, scalar, row, end - 1)
            fn.emit(f"call void {callee}(ptr {at}, i32 1, i32 2, i32 1)")

    least = fn.module.declare("llvm.smin.i64", "i64", "i64, i64")
    counted_while(fn, fn.value(f"call i64 {least}(i64 %rows, i64 {spec.rows})"), fetch_row)


def send_block(fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str]) -> None:
    """Store the sums at the target, added to `%c` where this is not the first product.

    A branch, since a load waits for its line even where its mask hides every lane: a first
    product that is 17 deep takes 1.09 to 1.16 times as long with such loads (Zen 5, 2026-11-23).
    That no zero is added changes no sum, for one that began at +0 is never -0.
    """
    assert spec.is_limited and not spec.multiply.bias_a, spec
    if spec.is_edge:
        _send_masked(fn, spec, chains)
        return
    totals = _unless_first(fn, spec, chains, lambda: _added(fn, spec, chains))
    ragged = _is_ragged(fn, spec)
    place = fn.value(f"select i1 {ragged}, ptr %c, ptr %target")
    stride = fn.value(f"select i1 {ragged}, i64 {spec.ldc}, i64 %target_stride")
    _store_rows(fn, spec, place, stride, totals)
    copying, done = fn.new_label(), fn.new_label()
    fn.branch_if(ragged, copying, done)
    fn.place(copying)
    _copy_ragged(fn, spec)
    fn.branch(done)
    fn.place(done)


def _unless_first(
    fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str], add: Callable[[], Sequence[str]]
) -> list[str]:
    """The sums of a block, added to earlier ones where there are some."""
    before, later, done = fn.block, fn.new_label(), fn.new_label()
    fn.branch_if("%is_first", done, later)
    fn.place(later)
    sums = add()
    fn.branch(done)
    fn.place(done)
    return [
        fn.value(f"phi {spec.acc_type} [ {chain}, %{before} ], [ {total}, %{later} ]")
        for chain, total in zip(chains, sums, strict=True)
    ]


def _added(fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str]) -> list[str]:
    """The sums of a block with what is at `%c`, where the tile has a place for all of them."""
    scalar, lanes, count = spec.multiply.accumulator_type, spec.layout.lanes, len(spec.vectors)
    sums: list[str] = []
    for number, chain in enumerate(chains):
        row, vector = number // count, spec.vectors[number % count]
        place = element_address(fn, scalar, "%c", row * spec.ldc + vector.column)
        old = load_prefix(fn, lanes, scalar, place, vector.valid)
        sums.append(fn.value(f"fadd {spec.acc_type} {old}, {chain}"))
    return sums


def _is_ragged(fn: FunctionBuilder, spec: BlockSpec) -> str:
    """An i1: a limit cuts a block whose sums go to the user's memory."""
    columns = spec.vectors[-1].column + spec.vectors[-1].valid
    has_rows = fn.value(f"icmp sge i64 %rows, {spec.rows}")
    has_columns = fn.value(f"icmp sge i64 %columns, {columns}")
    is_whole = fn.value(f"and i1 {has_rows}, {has_columns}")
    is_here = fn.value("icmp eq ptr %target, %c")
    return fn.value(f"xor i1 {fn.value(f'or i1 {is_whole}, {is_here}')}, true")


def _store_rows(
    fn: FunctionBuilder, spec: BlockSpec, place: str, stride: str, totals: Sequence[str]
) -> None:
    """Whole vectors, without masks: a masked one of AVX2 takes an AMD core 12 cycles to store.

    Measured on Zen 3, 2026-11-26, one thread, f32, least CPU time, masked / whole: 1024x1024x17 in
    tiles of 128x128x128 1,181 / 606 µs, 1024³ in tiles of 64x64x32 40.6 / 32.4 ms.
    """
    scalar, lanes, count = spec.multiply.accumulator_type, spec.layout.lanes, len(spec.vectors)
    for row in range(spec.rows):
        for vector, total in zip(spec.vectors, totals[row * count :], strict=False):
            at = element_address(fn, scalar, place, vector.column)
            store_prefix(fn, lanes, scalar, total, at, vector.valid)
        place = element_address(fn, scalar, place, stride)


def _copy_ragged(fn: FunctionBuilder, spec: BlockSpec) -> None:
    """Copy what is seen of a block from the tile's own place, which nobody reads any more."""
    scalar, lanes = spec.multiply.accumulator_type, spec.layout.lanes
    masks = column_masks(fn, spec)

    def copy_row(number: str) -> None:
        here = element_address(fn, scalar, "%c", scaled(fn, number, spec.ldc))
        there = element_address(fn, scalar, "%target", scaled(fn, number, "%target_stride"))
        for vector, mask in zip(spec.vectors, masks, strict=True):
            assert mask is not None
            at = element_address(fn, scalar, here, vector.column)
            value = load_prefix(fn, lanes, scalar, at, vector.valid)
            place = element_address(fn, scalar, there, vector.column)
            store_masked(fn, lanes, scalar, value, place, mask)

    least = fn.module.declare("llvm.smin.i64", "i64", "i64, i64")
    counted_while(fn, fn.value(f"call i64 {least}(i64 %rows, i64 {spec.rows})"), copy_row)


def _send_masked(fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str]) -> None:
    """The same of a block that a limit cuts, and that may have a row more than the tile.

    Rows beyond the limit are the last one again, in both places: the same sums, to be stored
    twice. So all rows are read before the first is written, for the target may be what is added
    to.
    """
    scalar, lanes, count = spec.multiply.accumulator_type, spec.layout.lanes, len(spec.vectors)
    masks = column_masks(fn, spec)
    totals = _unless_first(fn, spec, chains, lambda: _added_masked(fn, spec, chains, masks))
    for row, at in enumerate(strided_rows(fn, spec, scalar, "%target", "%target_stride")):
        of_row = totals[row * count : (row + 1) * count]
        for vector, mask, total in zip(spec.vectors, masks, of_row, strict=True):
            assert mask is not None
            place = element_address(fn, scalar, at, vector.column)
            store_masked(fn, lanes, scalar, total, place, mask)


def _added_masked(
    fn: FunctionBuilder, spec: BlockSpec, chains: Sequence[str], masks: Sequence[str | None]
) -> list[str]:
    """The sums of a block with what is at `%c`."""
    scalar, lanes, count = spec.multiply.accumulator_type, spec.layout.lanes, len(spec.vectors)
    sums: list[str] = []
    for row, at in enumerate(strided_rows(fn, spec, scalar, "%c", str(spec.ldc))):
        of_row = chains[row * count : (row + 1) * count]
        for vector, mask, chain in zip(spec.vectors, masks, of_row, strict=True):
            assert mask is not None
            place = element_address(fn, scalar, at, vector.column)
            old = load_masked(fn, lanes, scalar, place, mask)
            sums.append(fn.value(f"fadd {spec.acc_type} {old}, {chain}"))
    return sums
