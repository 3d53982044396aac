"""How many rows below a vector masks show, where they are the same in all lanes of a piece.

mask = (r < n) & (r + c // 33 * 257 < m)      up to the first cut c // 33 is one number
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from xdsl.ir import SSAValue

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import i1, i64, shape_of
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.support.worklist import needed_first
from tilewright.targets.cpu.nests.coordinates import (
    LANE_LOOP,
    Coord,
    Coords,
    normalized,
    source_coords,
)
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.full_chunks import Prefix, conjuncts, is_prefix, mask_of
from tilewright.targets.cpu.nests.lane_loops import Nest
from tilewright.targets.cpu.nests.pieces import Cut, pieces_along
from tilewright.targets.cpu.nests.prefixes import comparison, is_assumed
from tilewright.targets.cpu.schedule.inline import is_tile, owner

Place = tuple[SSAValue, Coords]


def along_lanes(nest: Nest) -> list[Prefix]:
    """The masks of a nest that hold for the first lanes, whatever the row."""
    return [
        Prefix(part, place)
        for part, place in _masks(nest)
        if not _has_loops(place, nest.outer) and is_prefix(nest.ev, part, place, LANE_LOOP)
    ]


def along_rows(nest: Nest, row: int) -> list[Prefix]:
    """The masks of a nest that hold for the first rows, the same in all lanes of a piece."""
    cuts = frozenset(nest.cuts)
    return [
        Prefix(part, place, row)
        for part, place in _masks(nest)
        if is_prefix(nest.ev, part, place, row) and _is_one_number(nest.ev, part, place, cuts)
    ]


def _masks(nest: Nest) -> Iterator[tuple[SSAValue, Coords]]:
    """The conditions that mask a nest's accesses, each once."""
    found: dict[tuple[SSAValue, Coords], None] = {}
    for access in nest.body.accesses:
        mask = mask_of(access.op)
        if mask is not None:
            found.update(dict.fromkeys(conjuncts(nest.ev, mask, access.coords)))
    return (each for each in found if is_tile(each[0]) and not _is_stored(nest.ev, each[0]))


def _is_stored(ev: Evaluator, value: SSAValue) -> bool:
    return ev.lowering.bufferization.is_stored(value)


def _has_loops(coords: Coords, loops: Sequence[int]) -> bool:
    return any(loop in loops for coord in coords for loop, _ in coord.terms)


def are_full(ev: Evaluator, prefixes: Sequence[Prefix]) -> SSAValue:
    """Whether masks along the lanes hold for all of a chunk, an i1."""
    emit, full = ev.emit, ev.emit.constant(i1, 1)
    for prefix in prefixes:
        extent = _extent(ev, prefix, ev.lanes)
        holds = emit.compare("sge", extent, emit.constant(i64, ev.lanes))
        full = emit.integer("andi", full, holds)
    return full


def shown_rows(
    ev: Evaluator, prefixes: Sequence[Prefix], last: SSAValue, second: SSAValue | None
) -> SSAValue:
    """How many of `last` rows masks show, in the piece of the first lane and that of `second`."""
    emit, count = ev.emit, ev.emit.widen(last)
    for prefix in prefixes:
        size = max(shape_of(prefix.value.type))
        for lane in (None,) if second is None else (None, second):
            with nullcontext() if lane is None else ev.from_lane(lane):
                count = emit.integer("minsi", count, _extent(ev, prefix, size))
    return emit.narrow(emit.integer("maxsi", count, emit.constant(i64, 0)), last.type)


def _extent(ev: Evaluator, prefix: Prefix, size: int) -> SSAValue:
    """For how many (i64) of `size` lanes from the first, or rows from 0 on, a mask holds."""
    op = owner(prefix.value)
    assert op is not None
    here = prefix.coords
    if prefix.loop != LANE_LOOP:
        here = tuple(_without(coord, prefix.loop) for coord in here)
    compared = comparison(ev, op, here)
    if compared.first.type != i64:
        return compared.extent(ev)
    # The difference of the sides could overflow.
    nothing = ev.emit.constant(i64, 0)
    return ev.emit.pure(SelectOp, (compared.fits(ev, size), compared.extent(ev), nothing), i64)


def _without(coord: Coord, loop: int | None) -> Coord:
    return Coord(tuple(term for term in coord.terms if term[0] != loop), coord.offset)


def _is_one_number(ev: Evaluator, value: SSAValue, coords: Coords, cuts: frozenset[Cut]) -> bool:
    """Whether lanes between which none of the cuts lies surely have one value."""
    known: dict[Place, bool] = {}

    def needs(place: Place) -> list[Place]:
        return [] if _is_one(ev, place, cuts) else _made_of(place)

    place = _at(value, coords)
    for needed in needed_first(place, needs, known.__contains__):
        operands = needs(needed)
        are_one = bool(operands) and all(known[operand] for operand in operands)
        known[needed] = are_one or _is_one(ev, needed, cuts)
    return known[place]


def _at(value: SSAValue, coords: Coords) -> Place:
    return value, normalized(coords, shape_of(value.type)) if is_tile(value) else ()


def _made_of(place: Place) -> list[Place]:
    """What a tile is made of, lane by lane; nothing where that is not known."""
    value, coords = place
    op = owner(value)
    source = None if op is None else source_coords(op, coords)
    if op is not None and source is not None:
        return [_at(op.operands[0], source)]
    return [_at(v, coords) for v in op.operands] if isinstance(op, ElementwiseOp) else []


def _is_one(ev: Evaluator, place: Place, cuts: frozenset[Cut]) -> bool:
    """Whether a value itself is one number: a scalar, the same in all lanes, a quotient."""
    value, coords = place
    if not is_tile(value) or _is_same(ev, value, coords):
        return True
    return isinstance(owner(value), ElementwiseOp) and _is_quotient(ev, value, coords, cuts)


def _is_same(ev: Evaluator, value: SSAValue, coords: Coords) -> bool:
    """Whether all lanes have one value, whatever overflows."""
    strides = ev.lowering.bufferization.structure.strides(value)
    moving = [s for s, coord in zip(strides, coords, strict=True) if coord.lane_scale()]
    is_exact = not any(stride is not None and stride.is_assumed for stride in moving)
    return is_exact and ev.lane_stride(value, coords) == (0, False)


def _is_quotient(ev: Evaluator, value: SSAValue, coords: Coords, cuts: frozenset[Cut]) -> bool:
    """Whether a value is a quotient that changes at cuts only."""
    op = owner(value)
    found = pieces_along(ev.lowering.bufferization, value, coords, LANE_LOOP)
    if op is None or found is None or found.step or not found.cuts:
        return False
    is_own = all(cut.dividend is op.operands[0] for cut in found.cuts)
    return is_own and cuts.issuperset(found.cuts) and not is_assumed(ev, op)
