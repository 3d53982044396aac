"""Stores that bypass the cache where a launch writes more than the cache holds.

A store of a whole line that bypasses the cache saves reading the line first (measured: vector
add on 768 MiB 29-33 GB/s with ordinary stores, 38-43 without reading; but slower where the
result fits in the cache). How much a launch writes is known when it runs: the grid times the
bytes of one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import SSAValue

from tilewright.ir.types import i64
from tilewright.ops.program import GetNumProgramsOp
from tilewright.targets.cpu.access import address, pointee_bytes
from tilewright.targets.cpu.coordinates import LANE_LOOP, Coord, Coords
from tilewright.targets.cpu.evaluate import Evaluator
from tilewright.targets.cpu.loop_order import NestBody
from tilewright.targets.cpu.roots import Root, RootKind

LINE_BYTES = 64
_MAX_OPS = 24
_GREATER, _EQUAL = 4, 0


def is_stream(ev: Evaluator, roots: Sequence[Root], body: NestBody) -> bool:
    """Whether a nest only moves data: light, contiguous stores, and loads to feed them."""
    if body.is_heavy or body.num_ops > _MAX_OPS:
        return False
    if any(root.kind is not RootKind.STORE for root in roots):
        return False
    stores = [touch for touch in body.touches if touch.is_store]
    loads = [touch for touch in body.touches if touch.op is not None and not touch.is_store]
    whole_lines = all(ev.lanes * pointee_bytes(t.value) % LINE_BYTES == 0 for t in stores)
    straight = all(ev.lane_stride(t.value, t.coords) == (1, False) for t in (*stores, *loads))
    return bool(loads) and whole_lines and straight


def is_large(
    ev: Evaluator, roots: Sequence[Root], coords: Coords, first: int | SSAValue
) -> SSAValue:
    """An i1: the launch writes more than the cache holds, and the lines are aligned."""
    emit = ev.emit
    written = sum(pointee_bytes(root.values[0]) * prod(root.space) for root in roots)
    programs = _num_programs(ev)
    limit = emit.constant(i64, ev.lowering.machine.l3_bytes // max(written, 1))
    large = emit.compare(_GREATER, programs, limit)
    start = tuple(_at(coord, first) for coord in coords)
    for root in roots:
        pointer = address(ev, ev.element(root.values[0], start, False))
        rest = emit.integer("andi", pointer, emit.constant(i64, LINE_BYTES - 1))
        aligned = emit.compare(_EQUAL, rest, emit.constant(i64, 0))
        large = emit.integer("andi", large, aligned)
    return large


def _num_programs(ev: Evaluator) -> SSAValue:
    emit = ev.emit
    total: SSAValue | None = None
    for axis in range(3):
        count = emit.pure(GetNumProgramsOp, (), i32, {"axis": IntegerAttr(axis, i32)})
        wide = emit.widen(count)
        total = wide if total is None else emit.integer("muli", total, wide)
    assert total is not None
    return total


def _at(coord: Coord, first: int | SSAValue) -> Coord:
    """The index at the first lane of the loop; runs that stream start at a constant."""
    assert isinstance(first, int)
    terms = tuple(t for t in coord.terms if t[0] != LANE_LOOP)
    return Coord(terms, coord.offset + first * coord.lane_scale())
