"""Loads and stores whose addresses are affine by pieces along the lanes (`pieces`).

    x[j // 49 * 52 + j % 49]      lanes 0 1 2 … 48 | 49 50 …      up to each cut one vector access

Where no cut lies between the lanes of a chunk, which one division for each cut tells, the access is
a vector's, or one element for all lanes. Else it is done piece by piece, each a vector access whose
mask lets the piece's lanes through; of a load that can only have two pieces without a loop. A
division by what is not positive, and a dividend that could overflow within a chunk, make each lane
a piece of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Operation, Region, SSAValue

from tilewright.ir.types import element_of, i1, i8, i16, i32, i64, is_float, vector_of, width_bits
from tilewright.ops.control_flow import ConditionOp, WhileOp, YieldOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP, Coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.masks import has_masks, segments
from tilewright.targets.cpu.nests.pieces import Cut, Pieces, pieces_along

# By definition: lanes up to this count fit a byte without a sign, one past the last included.
_LANES_OF_A_BYTE = 128
# Measured on Zen 5, busy, 2026-11-23, f32, f16 and int8 in the cache: by pieces of 5, 8 and 12
# elements 0.8 to 1.5, 0.56 to 0.85 and 0.43 to 0.56 ns each, gathered or scattered 0.5 to 0.8.
_LEAST_PIECE = 8


def find_pieces(ev: Evaluator, ptr: SSAValue, coords: Coords) -> Pieces | None:
    """The pieces of an address along the lanes, where it stays or moves to the next element."""
    found = pieces_along(ev.lowering.bufferization, ptr, coords, LANE_LOOP)
    return found if found is not None and found.cuts and found.step in (0, 1) else None


def are_long(pieces: Pieces) -> bool:
    """Whether no piece is known to be so short that gathered elements cost less."""
    return all(cut.size is None or cut.size >= _LEAST_PIECE * cut.step for cut in pieces.cuts)


def are_long_here(ev: Evaluator, pieces: Pieces) -> SSAValue | None:
    """The same of divisors that only the run knows, an i1; None where there are none."""
    emit = ev.emit
    value: SSAValue | None = None
    for cut in pieces.cuts:
        if cut.size is not None or isinstance(cut.divisor, int):
            continue
        divisor = ev.element(cut.divisor, cut.coords, False)
        least = emit.constant(i64, _LEAST_PIECE * cut.step)
        is_long = emit.compare("sge", emit.widen(divisor), least)
        value = is_long if value is None else emit.integer("andi", value, is_long)
    return value


def is_whole(ev: Evaluator, cuts: Sequence[Cut]) -> SSAValue:
    """An i1: no cut lies between the lanes of this chunk."""
    lanes = ev.emit.constant(i64, ev.lanes)
    return ev.emit.compare("sge", _length(ev, cuts), lanes)


def may_be_two(ev: Evaluator, cuts: Sequence[Cut]) -> bool:
    """Whether a chunk with a cut mostly has one: cuts lie a chunk apart, at multiples of one."""
    least = min(cuts, key=lambda cut: cut.size or 0)
    if least.size is None or least.size < least.step * ev.lanes:
        return False
    same = (least.dividend, least.coords, least.step)
    return all(
        (cut.dividend, cut.coords, cut.step) == same and (cut.size or 0) % least.size == 0
        for cut in cuts
    )


def are_two_here(ev: Evaluator, cuts: Sequence[Cut]) -> SSAValue | None:
    """Whether a chunk with a cut has no other, an i1; None where it may have others.

    Cuts of one division by no less than the chunk's lanes lie a chunk apart, unless the dividend
    is such that each lane is a piece.
    """
    needed = needed_cuts(cuts)
    if len(needed) != 1 or (needed[0].size or 0) < needed[0].step * ev.lanes:
        return None
    (cut,) = needed
    return _holds(ev, cut, ev.element(cut.dividend, cut.coords, False))


def second_piece(ev: Evaluator, cuts: Sequence[Cut]) -> SSAValue:
    """The lane (i32) with which the second piece of a chunk begins that has two."""
    return ev.emit.narrow(_length(ev, cuts), i32)


def find_second(ev: Evaluator, cuts: Sequence[Cut]) -> tuple[SSAValue, SSAValue]:
    """A lane (i32) behind the first with which a piece may begin, and whether no other does (i1).

    Of a chunk without a cut it is the last one: each lane may begin a piece.
    """
    emit = ev.emit
    last = emit.constant(i64, ev.lanes - 1)
    second = emit.narrow(emit.integer("minsi", _length(ev, cuts), last), i32)
    with ev.from_lane(second):
        rest = _length(ev, cuts)
    left = emit.integer("subi", emit.index(ev.lanes), second)
    return second, emit.compare("sge", rest, emit.widen(left))


def is_known_whole(ev: Evaluator, cuts: Sequence[Cut]) -> bool | None:
    """Whether no cut lies between the lanes, where the chunk's code is for one of the cases."""
    if ev.is_whole is None:
        return None
    whole, among = ev.is_whole
    if whole:
        return True if among.issuperset(cuts) else None
    return False if among == frozenset(cuts) else None


def load_pieces(
    ev: Evaluator,
    op: Operation,
    coords: Coords,
    pieces: Pieces,
    masks: Sequence[SSAValue],
) -> SSAValue:
    """The vector of a load, loaded piece by piece; `masks`: its mask and other value, if any."""

    def body(lane: SSAValue, inside: SSAValue, found: Sequence[SSAValue]) -> list[SSAValue]:
        pointer = ev.element(op.operands[0], coords, False)
        place = _back(ev, pointer, lane) if pieces.step else pointer
        return [_load_piece(ev, op, pieces, masks, (place, inside), found[0])]

    start = _hidden(ev, op, masks)
    (value,) = _for_pieces(ev, pieces.cuts, masks[:1], (start,), body)
    return value


def load_two(
    ev: Evaluator,
    op: Operation,
    coords: Coords,
    pieces: Pieces,
    masks: Sequence[SSAValue],
    second: SSAValue,
) -> SSAValue:
    """The vector of a load of two pieces, the second from the lane `second` (i32) on."""
    emit = ev.emit
    places = [ev.element(op.operands[0], coords, False)]
    with ev.from_lane(second):
        following = ev.element(op.operands[0], coords, False)
        places.append(_back(ev, following, second) if pieces.step else following)
    ends = emit.index(0), second, emit.index(ev.lanes)
    found = _hidden(ev, op, masks)
    for place, first, end in zip(places, ends, ends[1:], strict=False):
        inside = _between(ev, first, end, _type_of_lanes(ev, op.results))
        for mask in masks[:1]:
            inside = emit.integer("andi", inside, mask)
        found = _load_piece(ev, op, pieces, masks, (place, inside), found)
    return found


def _hidden(ev: Evaluator, op: Operation, masks: Sequence[SSAValue]) -> SSAValue:
    """What lanes of a load are that its mask hides: its other value, or zero."""
    element = element_of(op.results[0].type)
    zero = ev.emit.constant(element, 0.0 if is_float(element) else 0)
    return masks[1] if len(masks) > 1 else ev.emit.splat(zero, ev.lanes)


def _load_piece(
    ev: Evaluator,
    op: Operation,
    pieces: Pieces,
    masks: Sequence[SSAValue],
    piece: tuple[SSAValue, SSAValue],
    found: SSAValue,
) -> SSAValue:
    """`found` with the lanes of a piece: where its lane 0 or one element lies, and its mask."""
    emit, lanes, (place, inside) = ev.emit, ev.lanes, piece
    result = vector_of(element_of(op.results[0].type), lanes)
    if pieces.step:
        sizes = segments(1, 1, 1)
        return emit.effect(cpu.LoadOp, (*piece, found), (result,), sizes, op.location).results[0]
    if masks:
        operands, sizes = (place, emit.iota(i32, lanes, 0), inside, found), segments(1, 1, 1, 1)
        return emit.effect(cpu.GatherOp, operands, (result,), sizes, op.location).results[0]
    sizes, element = segments(1, 0, 0), element_of(result)
    equal = emit.effect(cpu.LoadOp, (place,), (element,), sizes, op.location)
    every = emit.splat(equal.results[0], lanes)
    return emit.pure(SelectOp, (inside, every, found), result)


def store_pieces(
    ev: Evaluator,
    op: Operation,
    coords: Coords,
    pieces: Pieces,
    value: SSAValue,
    masks: Sequence[SSAValue],
) -> None:
    """Store a vector piece by piece, in the order of its lanes."""

    def body(lane: SSAValue, inside: SSAValue, found: Sequence[SSAValue]) -> list[SSAValue]:
        pointer = _back(ev, ev.element(op.operands[0], coords, False), lane)
        ev.emit.effect(cpu.StoreOp, (pointer, value, inside), location=op.location)
        return []

    _for_pieces(ev, pieces.cuts, masks, (), body)


def _back(ev: Evaluator, pointer: SSAValue, lane: SSAValue) -> SSAValue:
    """Where lane 0 would lie, if a lane lies at `pointer`."""
    return ev.emit.advance(pointer, ev.emit.integer("subi", ev.emit.index(0), lane))


Body = Callable[[SSAValue, SSAValue, Sequence[SSAValue]], list[SSAValue]]


def _for_pieces(
    ev: Evaluator,
    cuts: Sequence[Cut],
    masks: Sequence[SSAValue],
    initial: Sequence[SSAValue],
    body: Body,
) -> tuple[SSAValue, ...]:
    """Do `body(first lane, mask of the lanes, carried)` for each piece of a chunk."""
    emit, lanes = ev.emit, ev.lanes
    carried = [emit.index(0), *initial]
    types = [value.type for value in carried]
    lane, values = emit.open_block(types)
    emit.effect(ConditionOp, (emit.compare("slt", lane, emit.index(lanes)), lane, *values))
    test = emit.pop()
    lane, values = emit.open_block(types)
    with ev.from_lane(lane):
        rest = emit.integer("subi", emit.index(lanes), lane)
        length = emit.integer("minsi", _length(ev, cuts), emit.widen(rest))
        end = emit.integer("addi", lane, emit.narrow(length, i32))
        inside = _between(ev, lane, end, _type_of_lanes(ev, initial))
        for mask in masks:
            inside = emit.integer("andi", inside, mask)
        following = body(lane, inside, values)
    emit.effect(YieldOp, (end, *following))
    loop = emit.pop()
    return emit.pure_many(WhileOp, carried, types, (Region(test), Region(loop)))[1:]


def _type_of_lanes(ev: Evaluator, values: Sequence[SSAValue]) -> Attribute:
    """The type that numbers of lanes are compared in: as wide as the elements, without masks."""
    if not has_masks(ev.lowering.machine):
        return i64 if any(width_bits(value.type) == width_bits(i64) for value in values) else i32
    return i8 if ev.lanes <= _LANES_OF_A_BYTE else i16


def _between(ev: Evaluator, first: SSAValue, end: SSAValue, narrow: Attribute) -> SSAValue:
    """The mask of the lanes from `first` to before `end`."""
    emit, lanes = ev.emit, ev.lanes
    numbers = emit.iota(narrow, lanes)
    low, high = (emit.splat(_resized(ev, value, narrow), lanes) for value in (first, end))
    after = emit.compare("uge", numbers, low)
    return emit.integer("andi", after, emit.compare("ult", numbers, high))


def _resized(ev: Evaluator, lane: SSAValue, to: Attribute) -> SSAValue:
    if width_bits(to) < width_bits(lane.type):
        return ev.emit.narrow(lane, to)
    return ev.emit.widen(lane, to)


def _length(ev: Evaluator, cuts: Sequence[Cut]) -> SSAValue:
    """How many lanes (i64, at least 1) follow the first one, itself included, before a cut."""
    emit = ev.emit
    lengths = [_lanes_to(ev, cut) for cut in needed_cuts(cuts)]
    least = lengths[0]
    for length in lengths[1:]:
        least = emit.integer("minsi", least, length)
    return least


def needed_cuts(cuts: Sequence[Cut]) -> list[Cut]:
    """The cuts without those that lie where others do: by a multiple of another divisor."""
    return [cut for cut in cuts if not any(_has_all_of(other, cut) for other in cuts)]


def _has_all_of(cut: Cut, other: Cut) -> bool:
    """Whether another cut of the same dividend lies only where this one does."""
    if cut.size is None or other.size is None or not 0 < cut.size < other.size:
        return False
    return other.size % cut.size == 0 and _kind(cut) == _kind(other)


def _kind(cut: Cut) -> tuple[object, ...]:
    """All but what it is divided by. Shifts round negative numbers otherwise than quotients."""
    is_shift = isinstance(cut.divisor, int)
    return cut.dividend, cut.coords, cut.step, cut.is_unsigned, is_shift


def _holds(ev: Evaluator, cut: Cut, x: SSAValue) -> SSAValue:
    """Whether the dividend `x` of a cut stays in range within a chunk, an i1."""
    emit = ev.emit
    last = (1 << width_bits(x.type) - 1) - 1 - cut.step * ev.lanes
    if last < 0:
        return emit.constant(i1, 0)
    holds = emit.compare("sle", x, emit.constant(x.type, last))
    if not cut.is_unsigned:
        return holds
    return emit.integer("andi", holds, emit.compare("sge", x, emit.constant(x.type, 0)))


def _lanes_to(ev: Evaluator, cut: Cut) -> SSAValue:
    """The lanes (i64, at least 1) up to the next cut of a dividend."""
    emit = ev.emit
    x = ev.element(cut.dividend, cut.coords, False)
    holds = _holds(ev, cut, x)
    if isinstance(cut.divisor, int):
        left = emit.integer("andi", x, emit.constant(x.type, cut.divisor - 1))
        steps = emit.integer("subi", emit.constant(i64, cut.divisor), emit.widen(left))
    else:
        d = ev.element(cut.divisor, cut.coords, False)
        zero = emit.constant(x.type, 0)
        holds = emit.integer("andi", holds, emit.compare("sgt", d, zero))
        left = emit.widen(emit.integer("remsi", x, d))
        # Rounded towards zero, quotients below zero end at a multiple, and others before one.
        is_above = emit.compare("sgt", x, emit.integer("subi", zero, d))
        end = emit.pure(SelectOp, (is_above, emit.widen(d), emit.constant(i64, 1)), i64)
        steps = emit.integer("maxsi", emit.integer("subi", end, left), emit.constant(i64, 1))
    if cut.step > 1:
        more = emit.integer("addi", steps, emit.constant(i64, cut.step - 1))
        steps = emit.integer("divui", more, emit.constant(i64, cut.step))
    return emit.pure(SelectOp, (holds, steps, emit.constant(i64, 1)), i64)
