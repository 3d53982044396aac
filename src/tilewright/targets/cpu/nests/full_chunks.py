"""Splits a masked lane loop into full chunks without masks and a masked rest.

A mask such as `offsets < n` holds for a prefix of the lanes. Where every mask along the lanes
is of this kind, the loop runs up to the last full chunk with the comparisons known to be true
(no mask, no blend), and only what is left is masked.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import i1, i32, i64, shape_of
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.nests.coordinates import (
    LANE_LOOP,
    Coord,
    Coords,
    normalized,
    source_coords,
)
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.loop_order import MemoryAccess
from tilewright.targets.cpu.nests.masks import is_all_true
from tilewright.targets.cpu.nests.prefixes import prefix_of
from tilewright.targets.cpu.schedule.inline import is_tile, owner


@dataclass(frozen=True)
class Prefix:
    """A comparison that holds for a prefix of the lanes, at its own coordinates."""

    value: SSAValue
    coords: Coords


def find_prefixes(ev: Evaluator, accesses: tuple[MemoryAccess, ...]) -> tuple[Prefix, ...] | None:
    """The comparisons that mask a nest's accesses along the lanes; None if there are others."""
    found: dict[Prefix, None] = {}
    for access in accesses:
        mask = _mask_of(access.op)
        if mask is None or is_all_true(mask):
            continue
        parts = _conjuncts(ev, mask, access.coords)
        if parts is None:
            return None
        found.update(dict.fromkeys(parts))
    return tuple(found) or None


def _mask_of(op: Operation | None) -> SSAValue | None:
    return op.mask if isinstance(op, LoadOp | StoreOp) else None


def _conjuncts(ev: Evaluator, mask: SSAValue, coords: Coords) -> list[Prefix] | None:
    """The lane-dependent comparisons of a conjunction; None if part of it is no prefix."""
    found: list[Prefix] = []
    pending = [(mask, coords)]
    while pending:
        part, place = pending.pop()
        place = normalized(place, shape_of(part.type))
        if not is_tile(part) or ev.lane_stride(part, place) == (0, False):
            continue
        op = owner(part)
        if op is None or ev.lowering.bufferization.is_stored(part):
            return None
        source = source_coords(op, place)
        if source is not None:
            pending.append((op.operands[0], source))
        elif op.name == "arith.andi":
            pending += [(operand, place) for operand in reversed(op.operands)]
        elif _is_prefix(ev, op, place):
            found.append(Prefix(part, place))
        else:
            return None
    return found


def _is_prefix(ev: Evaluator, op: Operation, coords: Coords) -> bool:
    prefix = prefix_of(op)
    if prefix is None:
        return False
    left_grows, _ = prefix
    strides = [ev.lane_stride(operand, coords) for operand in op.operands]
    growing, fixed = strides if left_grows else strides[::-1]
    return growing == (1, False) and fixed == (0, False)


def full_extent(ev: Evaluator, prefixes: tuple[Prefix, ...], size: int) -> SSAValue:
    """How many of `size` elements are within all prefixes, as i32."""
    emit = ev.emit
    end = emit.constant(i64, size)
    for prefix in prefixes:
        end = emit.integer("minsi", end, _extent(ev, prefix))
    return emit.narrow(emit.integer("maxsi", end, emit.constant(i64, 0)), i32)


def _extent(ev: Evaluator, prefix: Prefix) -> SSAValue:
    """How many elements from the loop's start on satisfy a prefix comparison, as i64."""
    op = owner(prefix.value)
    known = None if op is None else prefix_of(op)
    assert op is not None and known is not None
    left_grows, more = known
    start = tuple(_at_start(coord) for coord in prefix.coords)
    sides = [ev.emit.widen(ev.element(operand, start, False)) for operand in op.operands]
    growing, fixed = sides if left_grows else sides[::-1]
    extent = ev.emit.integer("subi", fixed, growing)
    return ev.emit.integer("addi", extent, ev.emit.constant(i64, more)) if more else extent


def _at_start(coord: Coord) -> Coord:
    return Coord(tuple(t for t in coord.terms if t[0] != LANE_LOOP), coord.offset)


def assume(ev: Evaluator, prefixes: tuple[Prefix, ...]) -> None:
    """Take the comparisons as true in the chunk that is entered now."""
    true = ev.emit.constant(i1, 1)
    ev.emit.true_values.add(true)
    for prefix in prefixes:
        ev.assumed[(prefix.value, prefix.coords)] = true
