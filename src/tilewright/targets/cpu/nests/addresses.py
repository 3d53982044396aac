"""Addresses of tiles as numbers: whether lanes follow each other, base and offsets of vectors."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.ir.types import (
    PointerType,
    element_of,
    i32,
    i64,
    shape_of,
    storage_bytes,
    width_bits,
)
from tilewright.ops.elementwise.ir import PtrToIntOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.targets.cpu.nests.coordinates import Coords, source_coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.schedule.inline import is_tile, owner

Offsets = tuple[SSAValue, SSAValue]


def ends(lanes: int) -> tuple[int, ...]:
    """The lanes whose addresses tell whether a run of lanes jumps: both ends, two deep."""
    return tuple(sorted({0, min(1, lanes - 1), max(lanes - 2, 0), lanes - 1}))


def coords_at(coords: Coords, lane: int) -> tuple[int, Coords]:
    """The scalar coordinates of one lane, with the lane."""
    return lane, tuple(coord.at_lane(lane) for coord in coords)


def is_run(ev: Evaluator, ptr: SSAValue, points: list[tuple[int, Coords]]) -> SSAValue:
    """Whether the addresses at `points` lie as many elements apart as their lanes."""
    emit = ev.emit
    size = pointee_bytes(ptr)
    _, start = points[0]
    first = address(ev, ev.element(ptr, start, False))
    straight: SSAValue | None = None
    for lane, coords in points[1:]:
        there = address(ev, ev.element(ptr, coords, False))
        expected = emit.integer("addi", first, emit.constant(i64, lane * size))
        equal = emit.compare("eq", there, expected)
        straight = equal if straight is None else emit.integer("andi", straight, equal)
    assert straight is not None
    return straight


def address(ev: Evaluator, pointer: SSAValue) -> SSAValue:
    """A scalar pointer as i64."""
    key = ("address", pointer)
    found = ev.emit.recall(key)
    if found is None:
        found = ev.emit.remember(key, ev.emit.pure(PtrToIntOp, (pointer,), i64))
    return found


def pointee_bytes(ptr: SSAValue) -> int:
    """Bytes of one element behind a pointer or a tile of pointers."""
    pointer = element_of(ptr.type)
    assert isinstance(pointer, PointerType)
    return storage_bytes(pointer.pointee)


def base_and_offsets(ev: Evaluator, ptr: SSAValue, coords: Coords) -> Offsets | None:
    """A pointer tile as one scalar base and a vector of offsets; None if bases differ."""
    split = _split(ev, ptr, coords)
    if split is None:
        return None
    base, offsets = split
    emit = ev.emit
    if len(offsets) > 1:
        offsets = [emit.widen(offset) for offset in offsets]
    if not offsets:
        return base, emit.iota(i32, ev.lanes, 0)
    total = offsets[0]
    for offset in offsets[1:]:
        total = emit.integer("addi", total, offset)
    if width_bits(total.type) < 32:
        total = emit.widen(total, i32)
    return base, total


def _split(ev: Evaluator, ptr: SSAValue, coords: Coords) -> tuple[SSAValue, list[SSAValue]] | None:
    additions: list[tuple[SSAValue, Coords]] = []
    while is_tile(ptr) and ev.lane_stride(ptr, coords) != (0, False):
        if ev.lowering.bufferization.is_stored(ptr):
            return None
        op = owner(ptr)
        assert op is not None
        source = source_coords(op, coords)
        if source is not None:
            coords = source
        elif isinstance(op, AddPtrOp):
            additions.append((op.operands[1], coords))
        else:
            return None
        ptr = op.operands[0]
    base = ev.element(ptr, coords, False)
    offsets: list[SSAValue] = []
    for addend, place in reversed(additions):
        offset = ev.element(addend, place, True)
        if shape_of(offset.type):
            offsets.append(offset)
        else:
            base = ev.emit.advance(base, offset)
    return base, offsets
