"""What becomes of a block's sums: added to the tile's, or sent where the user wants them."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.targets.cpu.dot.block_spec import BlockSpec, column_masks, strided_rows
from tilewright.targets.cpu.dot.multiply_add import take_off_bias
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
    count = len(spec.vectors)
    excess = chains[spec.rows * count :]
    for row in range(spec.rows):
        for position, vector in enumerate(spec.vectors):
            value = chains[row * count + position]
            if excess:
                value = take_off_bias(fn, spec.multiply, spec.layout.lanes, value, excess[position])
            _store_vector(fn, spec, row * spec.ldc + vector.column, vector.valid, value)


def _store_vector(
    fn: FunctionBuilder, spec: BlockSpec, offset: int, valid: int, value: str
) -> None:
    scalar, lanes = spec.multiply.accumulator_type, spec.layout.lanes
    address = element_address(fn, scalar, "%c", offset)
    if not spec.zero_init:
        old = load_prefix(fn, lanes, scalar, address, valid)
        add = "add" if scalar == "i32" else "fadd"
        value = fn.value(f"{add} {spec.acc_type} {old}, {value}")
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

    Rows beyond the limit are the last one again, in both places: the same sums, to be stored
    twice. So all rows are read before the first is written, for the target may be what is added
    to.
    """
    assert spec.is_limited and not spec.multiply.bias_a, spec
    scalar, lanes, count = spec.multiply.accumulator_type, spec.layout.lanes, len(spec.vectors)
    masks = column_masks(fn, spec)
    before, later, done = fn.block, fn.new_label(), fn.new_label()
    fn.branch_if("%is_first", done, later)
    fn.place(later)
    sums = _added(fn, spec, chains, masks)
    fn.branch(done)
    fn.place(done)
    totals = [
        fn.value(f"phi {spec.acc_type} [ {chain}, %{before} ], [ {total}, %{later} ]")
        for chain, total in zip(chains, sums, strict=True)
    ]
    for row, at in enumerate(strided_rows(fn, spec, scalar, "%target", "%target_stride")):
        of_row = totals[row * count : (row + 1) * count]
        for vector, mask, total in zip(spec.vectors, masks, of_row, strict=True):
            assert mask is not None
            place = element_address(fn, scalar, at, vector.column)
            store_masked(fn, lanes, scalar, total, place, mask)


def _added(
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
