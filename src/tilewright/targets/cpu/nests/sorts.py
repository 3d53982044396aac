"""Stable sorts of the last dimension with positions, as loops of constant code size.

Keys of up to 32 bits go through a network (`sorting_network.py`), others are merged: keys lie in
two buffers that take turns; after each pass runs are twice as long. The copy into
the home buffer was made before (the sort's step asks for it).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from xdsl.ir import Block, SSAValue

from tilewright.ir.types import i1, i32, i64, is_float, shape_of
from tilewright.ops.elementwise.comparisons import CmpFOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.ops.indexing.ir import SortOp
from tilewright.targets.cpu.forms import STEPS, step_nest
from tilewright.targets.cpu.nests import masks, sorting_network
from tilewright.targets.cpu.nests.emitter import Emitter, code
from tilewright.targets.cpu.ops import LoadOp, StoreOp
from tilewright.targets.cpu.schedule.bufferization import COPIES, Copy
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.storage import Buffer

# By definition: the numbers of `olt`, `ord` and `uno` among FLOAT_PREDICATES.
_ORDERED_LT, _ORDERED, _UNORDERED = 4, 7, 14


@COPIES.register(SortOp)
def _copies(op: SortOp) -> Iterator[Copy]:
    return iter((Copy(op.src, op.result),))


@STEPS.register(SortOp)
def emit_sort(lowering: Lowering, out: Block, op: SortOp) -> None:
    """Sort every row of the home buffer of `op.result` and write the positions."""
    shape = shape_of(op.operands[0].type)
    keys, positions = (lowering.buffer(result) for result in op.results)
    if sorting_network.fits(op, lowering.machine.vector_bytes):
        _sort_by_network(lowering, out, op, (keys, positions))
        return
    spare_keys = lowering.allocate((shape[-1],), keys.element, "sort keys")
    spare_positions = lowering.allocate((shape[-1],), i32, "sort positions")
    with step_nest(lowering, out, op) as ev:
        emit = ev.emit
        row, _ = emit.open_loop()
        offset = emit.integer("muli", row, emit.index(shape[-1]))
        here = (emit.advance(keys.base, offset), emit.advance(positions.base, offset))
        there = (spare_keys.base, spare_positions.base)
        _number(emit, here[1], shape[-1])
        width, source, target = 1, here, there
        while width < shape[-1]:
            _merge_pass(emit, op, (source, target), shape[-1], width)
            source, target, width = target, source, 2 * width
        if source is not here:
            _copy_row(emit, source, here, shape[-1])
        emit.close_loop((0, prod(shape[:-1]), 1))


def _sort_by_network(
    lowering: Lowering, out: Block, op: SortOp, homes: tuple[Buffer, Buffer]
) -> None:
    """Sort every row through words of key and position."""
    shape, (keys, positions) = shape_of(op.operands[0].type), homes
    spare = lowering.allocate((shape[-1],), keys.element, "sort keys").base
    words = lowering.allocate((shape[-1],), i64, "sort words").base
    lanes = sorting_network.lanes_of_words(lowering.machine.vector_bytes)
    with step_nest(lowering, out, op) as ev:
        emit = ev.emit
        row, _ = emit.open_loop()
        offset = emit.integer("muli", row, emit.index(shape[-1]))
        here, places = (emit.advance(home.base, offset) for home in (keys, positions))
        net = sorting_network.Network(emit, words, shape[-1], lanes)
        sorting_network.sort_row(net, op, here, spare, places)
        emit.close_loop((0, prod(shape[:-1]), 1))


Row = tuple[SSAValue, SSAValue]


def _load(emit: Emitter, base: SSAValue, index: SSAValue) -> SSAValue:
    pointer = emit.advance(base, index)
    element = pointer.type.pointee  # pyright: ignore[reportAttributeAccessIssue]
    return emit.effect(LoadOp, (pointer,), (element,), masks.NO_MASK).results[0]


def _store(emit: Emitter, base: SSAValue, index: SSAValue, value: SSAValue) -> None:
    emit.effect(StoreOp, (emit.advance(base, index), value))


def _number(emit: Emitter, positions: SSAValue, size: int) -> None:
    index, _ = emit.open_loop()
    _store(emit, positions, index, index)
    emit.close_loop((0, size, 1))


def _copy_row(emit: Emitter, source: Row, target: Row, size: int) -> None:
    index, _ = emit.open_loop()
    for src, dst in zip(source, target, strict=True):
        _store(emit, dst, index, _load(emit, src, index))
    emit.close_loop((0, size, 1))


def _merge_pass(emit: Emitter, op: SortOp, rows: tuple[Row, Row], size: int, width: int) -> None:
    """Merge neighbouring runs of `width` into runs of twice that."""
    start, _ = emit.open_loop()
    bound = emit.index(size)
    middle = emit.integer("minsi", emit.integer("addi", start, emit.index(width)), bound)
    end = emit.integer("minsi", emit.integer("addi", start, emit.index(2 * width)), bound)
    offset, (left, right) = emit.open_loop((i32, i32))
    _merge_step(emit, op, rows, (start, middle, end, offset), (left, right), size)
    emit.close_loop((0, size, 2 * width))


def _merge_step(
    emit: Emitter,
    op: SortOp,
    rows: tuple[Row, Row],
    run: tuple[SSAValue, SSAValue, SSAValue, SSAValue],
    heads: tuple[SSAValue, SSAValue],
    size: int,
) -> None:
    """Write the smaller head of two runs; on a tie the left one, which keeps the order."""
    start, middle, end, offset = run
    left, right = heads
    (keys, positions), target = rows
    last = emit.index(size - 1)
    left_at, right_at = (emit.integer("minsi", head, last) for head in heads)
    right_first = _before(emit, op, _load(emit, keys, right_at), _load(emit, keys, left_at))
    left_done = emit.compare("sge", left, middle)
    right_left = emit.compare("slt", right, end)
    either = emit.integer("ori", left_done, right_first)
    take_right = emit.integer("andi", right_left, either)
    taken = emit.pure(SelectOp, (take_right, right_at, left_at), i32)
    place = emit.integer("addi", start, offset)
    _store(emit, target[0], place, _load(emit, keys, taken))
    _store(emit, target[1], place, _load(emit, positions, taken))
    one, zero = emit.index(1), emit.index(0)
    step_right = emit.pure(SelectOp, (take_right, one, zero), i32)
    step_left = emit.integer("subi", one, step_right)
    heads_after = (
        emit.integer("addi", left, step_left),
        emit.integer("addi", right, step_right),
    )
    emit.close_run(emit.integer("subi", end, start), (start, middle), heads_after)


def _before(emit: Emitter, op: SortOp, first: SSAValue, second: SSAValue) -> SSAValue:
    """Whether `first` sorts strictly before `second`; NaN is the greatest value."""
    descending = op.descending is not None
    if not is_float(first.type):
        return emit.compare("sgt" if descending else "slt", first, second)
    low, high = (second, first) if descending else (first, second)
    less = emit.pure(CmpFOp, (low, high), i1, {"predicate": code(_ORDERED_LT)})
    high_nan = emit.pure(CmpFOp, (high, high), i1, {"predicate": code(_UNORDERED)})
    low_number = emit.pure(CmpFOp, (low, low), i1, {"predicate": code(_ORDERED)})
    return emit.integer("ori", less, emit.integer("andi", high_nan, low_number))
