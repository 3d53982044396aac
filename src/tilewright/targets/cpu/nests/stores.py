"""Stores to user memory, by the structure of their pointers, as the table of `access` says."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.types import i32, i64
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.access import BY_PIECES, mask_value, note, reversed_lanes
from tilewright.targets.cpu.nests.addresses import Offsets, base_and_offsets
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.few_apart import store_spread
from tilewright.targets.cpu.nests.masks import has_masks
from tilewright.targets.cpu.nests.pieces import Pieces
from tilewright.targets.cpu.nests.piecewise import (
    are_long,
    are_long_here,
    find_pieces,
    is_known_whole,
    is_whole,
    store_pieces,
)
from tilewright.targets.cpu.nests.spreading import can_spread
from tilewright.targets.cpu.schedule.storage import Buffer

_STREAMING: dict[str, Attribute] = {
    "nontemporal": UnitAttr(),
    "align_bytes": IntegerAttr(64, i64),
}


@dataclass(frozen=True)
class Redirect:
    """A store that goes to `buffer` unless `is_safe` holds, because it may overtake loads."""

    is_safe: SSAValue
    buffer: Buffer


def store(
    ev: Evaluator,
    op: Operation,
    coords: Coords,
    value: SSAValue,
    redirect: Redirect | None = None,
) -> None:
    """Write one element or vector of a tile store at `coords`.

    *Constraints* a redirected store is contiguous along the lanes, in memory (`hazards`) and in
    its buffer (`Buffer.last`).
    """
    ptr, mask = op.operands[0], op.operands[2] if len(op.operands) > 2 else None
    emit = ev.emit
    wide = ev.lanes > 1
    held = mask_value(ev, mask, coords, wide)
    masks = () if held is None else (held,)
    value = emit.splat(value, ev.lanes)
    stride, jumps = ev.lane_stride(ptr, coords) if wide else (1, False)
    if stride == 1 and not jumps:
        note(ev, op, "contiguous" if wide else "scalar")
        pointer = ev.element(ptr, coords, False)
        if redirect is not None:
            aside = ev.buffer_pointer(redirect.buffer, coords)
            pointer = emit.pure(SelectOp, (redirect.is_safe, pointer, aside), pointer.type)
        properties = _STREAMING if ev.is_streaming else None
        emit.effect(cpu.StoreOp, (pointer, value, *masks), (), properties, op.location)
        return
    assert redirect is None
    pieces = find_pieces(ev, ptr, coords) if wide and (stride is None or jumps) else None
    if pieces is not None and pieces.step and are_long(pieces) and has_masks(ev.lowering.machine):
        note(ev, op, "contiguous", BY_PIECES)
        _store_by_pieces(ev, op, coords, pieces, value, masks)
        return
    _store_apart(ev, op, coords, value, masks)


def _store_apart(
    ev: Evaluator, op: Operation, coords: Coords, value: SSAValue, masks: tuple[SSAValue, ...]
) -> None:
    """Store lanes that are no neighbours in memory, or lie there in the opposite order."""
    ptr, emit = op.operands[0], ev.emit
    stride, jumps = ev.lane_stride(ptr, coords)
    if stride == -1 and not jumps:
        note(ev, op, "contiguous", "from the last lane to the first")
        pointer = emit.advance(ev.element(ptr, coords, False), 1 - ev.lanes)
        operands = (pointer, *(reversed_lanes(ev, each) for each in (value, *masks)))
        emit.effect(cpu.StoreOp, operands, location=op.location)
        return
    if stride and not jumps:
        note(ev, op, "strided", f"neighbouring elements are {stride} elements apart in memory")
        pointer = ev.element(ptr, coords, False)
        if can_spread(ev.lowering.machine, stride):
            store_spread(ev, op, pointer, value, masks, stride)
            return
        where: Offsets | None = (pointer, emit.iota(i32, ev.lanes, stride))
    else:
        note(ev, op, "gather", "the index of an element is computed or loaded")
        where = base_and_offsets(ev, ptr, coords)
    if where is not None:
        emit.effect(cpu.ScatterOp, (*where, value, *masks), location=op.location)
        return
    pointers = ev.lanes_of_element(ptr, coords)
    emit.effect(cpu.StorePointersOp, (pointers, value, *masks), location=op.location)


def _store_by_pieces(
    ev: Evaluator,
    op: Operation,
    coords: Coords,
    pieces: Pieces,
    value: SSAValue,
    masks: tuple[SSAValue, ...],
) -> None:
    """One vector store where no cut lies between the lanes, else one for each long piece."""
    pointer = ev.element(op.operands[0], coords, False)

    def at_once() -> None:
        ev.emit.effect(cpu.StoreOp, (pointer, value, *masks), location=op.location)

    def by_pieces() -> None:
        store_pieces(ev, op, coords, pieces, value, masks)

    def slow() -> None:
        is_long = are_long_here(ev, pieces)
        if is_long is None:
            by_pieces()
            return
        choose(ev, is_long, by_pieces, lambda: _store_apart(ev, op, coords, value, masks))

    is_known = is_known_whole(ev, pieces.cuts)
    if is_known is None:
        choose(ev, is_whole(ev, pieces.cuts), at_once, slow)
    elif is_known:
        at_once()
    else:
        slow()


def choose(
    ev: Evaluator, condition: SSAValue, then: Callable[[], None], otherwise: Callable[[], None]
) -> None:
    """Do one of two things, each computing in its block what it needs."""
    emit, blocks, saved = ev.emit, [], ev.emit.pin
    for generate in (then, otherwise):
        emit.push(Block())
        emit.pin = len(emit.blocks) - 1
        generate()
        emit.effect(YieldOp, ())
        emit.pin = saved
        blocks.append(emit.pop())
    emit.choose(condition, (blocks[0], blocks[1]))
