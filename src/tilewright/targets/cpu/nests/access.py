"""Loads and stores of user memory, by the structure of their pointers.

| change of the address from lane to lane | code |
|---|---|
| one element | a vector load or store at a scalar address |
| none | a scalar load; behind a mask that changes, one in each run or a gather |
| one element back | a vector load or store at the last lane's address, lanes reversed |
| none or one element, by pieces (`i % 49`) | runtime test: the same, else piece by piece |
| one element after 2, 4, … lanes (`i // 8`) | runtime test: a short vector repeated, else gather |
| one element but for other jumps (a bound) | runtime test: vector load, else gather |
| two to four elements | whole vectors, of which lanes are picked or masked (`few_apart`) |
| another constant number | gather or scatter with constant offsets |
| anything else | gather or scatter from the common base with computed offsets |
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.effects import is_plain_read
from tilewright.ir.types import (
    element_of,
    i32,
    vector_of,
)
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.creation.ir import SplatOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.ops.memory.ir import AddPtrOp, LoadOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp
from tilewright.support.deep_calls import with_room
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.addresses import (
    Offsets,
    base_and_offsets,
    coords_at,
    ends,
    is_run,
)
from tilewright.targets.cpu.nests.coordinates import Coords, combine, constant_coords
from tilewright.targets.cpu.nests.evaluate import ELEMENT_RULES, Evaluator
from tilewright.targets.cpu.nests.few_apart import load_masked, load_near
from tilewright.targets.cpu.nests.full_chunks import conjuncts
from tilewright.targets.cpu.nests.masks import has_masked_loads, is_all_true, segments
from tilewright.targets.cpu.nests.pieces import Cut, Pieces
from tilewright.targets.cpu.nests.piecewise import (
    are_long,
    are_long_here,
    are_two_here,
    find_pieces,
    is_known_whole,
    is_whole,
    load_pieces,
    load_two,
    second_piece,
)
from tilewright.targets.cpu.nests.repeated import load_repeated, repeated_cut, starts_group
from tilewright.targets.cpu.nests.spreading import can_spread, is_near
from tilewright.targets.cpu.report import Access, line_of
from tilewright.targets.cpu.schedule.inline import is_tile, owner

_SAME_ARRAY = (AddPtrOp, SplatOp, BroadcastOp, ExpandDimsOp, TransOp, ReshapeOp, HintOp)
_Form = Callable[[Evaluator, LoadOp, Coords], SSAValue]
BY_PIECES = "tested at run time: the index is a quotient or a remainder"


@ELEMENT_RULES.register(LoadOp)
def _loaded(ev: Evaluator, op: LoadOp, coords: Coords, wide: bool) -> SSAValue:
    # An index may itself be loaded, and so on: here the walk is one of calls.
    return with_room(lambda: load(ev, op, coords, wide))


def load(ev: Evaluator, op: LoadOp, coords: Coords, wide: bool) -> SSAValue:
    """The elements of a tile load at `coords`."""
    ptr = op.operands[0]
    stride, jumps = ev.lane_stride(ptr, coords) if wide else (0, False)
    is_same = all(ev.lane_stride(operand, coords) == (0, False) for operand in op.operands)
    if is_same:
        # One for all lanes is read in a loop outside of the chunk's.
        with ev.without_assumptions():
            return _load_scalar(ev, op, coords)
    if not wide:
        return _load_scalar(ev, op, coords)
    if stride == 0 and not jumps:
        note(ev, op, "uniform")
        return _load_equal(ev, op, coords)
    if stride == 1 and not jumps:
        note(ev, op, "contiguous")
        return _load_contiguous(ev, op, coords)
    pieces = find_pieces(ev, ptr, coords) if stride is None or jumps else None
    repeated = None if pieces is None else repeated_cut(ev, pieces)
    if repeated is not None:
        return _load_repeated(ev, op, coords, repeated)
    if pieces is not None and are_long(pieces):
        return _load_by_pieces(ev, op, coords, pieces)
    if stride == 1:
        return _load_wrapping(ev, op, coords)
    if stride == -1 and not jumps:
        note(ev, op, "contiguous", "from the last lane to the first")
        return _load_reversed(ev, op, coords)
    if stride is not None and not jumps:
        note(ev, op, "strided", f"neighbouring elements are {stride} elements apart in memory")
        pointer = _place(ev, op, coords)
        extra, _ = _optional(ev, op, coords, True)
        if not extra and is_near(stride):
            return load_near(ev, op, pointer, stride)
        if extra and can_spread(ev.lowering.machine, stride):
            return load_masked(ev, op, pointer, extra, stride)
        return _load_gather(ev, op, coords, (pointer, ev.emit.iota(i32, ev.lanes, stride)))
    note(ev, op, "gather", "the index of an element is computed or loaded")
    return _load_general(ev, op, coords)


def _place(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
    """The address of a load at its first lane: in the arena where a store has hit its row."""
    guard = ev.lowering.guards.get(op.result)
    if guard is None:
        return ev.element(op.ptr, coords, False)
    origin = constant_coords((0,) * len(coords))
    row, aside = ev.element(op.ptr, origin, False), guard.buffer.base
    start = ev.emit.pure(SelectOp, (guard.is_copied, aside, row), row.type)
    index = combine(list(zip(coords, guard.buffer.strides(), strict=True)))
    return ev.emit.advance(start, ev.index(index))


def note(ev: Evaluator, op: Operation, kind: str, why: str = "") -> None:
    """Say in the report how an access is made, and why so."""
    word = "load" if is_plain_read(op) else "store"
    ev.accesses.setdefault(op, Access(word, line_of(op.location), kind, why))


def _optional(
    ev: Evaluator, op: LoadOp, coords: Coords, wide: bool
) -> tuple[tuple[SSAValue, ...], tuple[int, int]]:
    """The mask and `other` operands with their segment sizes."""
    other = op.other
    mask = mask_value(ev, op.mask, coords, wide)
    if mask is None:
        return (), (0, 0)
    lanes = ev.lanes if wide else 1
    values = [mask]
    if other is not None:
        values.append(ev.emit.splat(ev.element(other, coords, wide), lanes))
    return tuple(values), (1, int(other is not None))


def mask_value(ev: Evaluator, mask: SSAValue | None, coords: Coords, wide: bool) -> SSAValue | None:
    """The mask of an access and the chunk's own limit; None where all lanes take part."""
    emit, lanes = ev.emit, ev.lanes if wide else 1
    value: SSAValue | None = None
    if mask is not None and not is_all_true(mask):
        value = emit.splat(ev.element(mask, coords, wide), lanes)
        value = None if value in emit.true_values else value
    if ev.limit is None or lanes == 1:
        return value
    return ev.limit if value is None else emit.integer("andi", value, ev.limit)


def _load_scalar(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
    extra, sizes = _optional(ev, op, coords, False)
    pointer = _place(ev, op, coords)
    properties = segments(1, *sizes)
    if is_volatile(op):
        properties["is_volatile"] = UnitAttr()
    result = element_of(op.results[0].type)
    return ev.emit.read(cpu.LoadOp, (pointer, *extra), result, properties, op.location)


def _load_contiguous(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
    extra, sizes = _optional(ev, op, coords, True)
    pointer = _place(ev, op, coords)
    if extra:
        pointer = _inside(ev, op, coords, pointer)
    result = vector_of(element_of(op.results[0].type), ev.lanes)
    return ev.emit.read(cpu.LoadOp, (pointer, *extra), result, segments(1, *sizes), op.location)


def _load_reversed(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
    """A vector load that begins where the last lane lies, turned round."""
    emit = ev.emit
    extra, sizes = _optional(ev, op, coords, True)
    pointer = emit.advance(_place(ev, op, coords), 1 - ev.lanes)
    result = vector_of(element_of(op.results[0].type), ev.lanes)
    operands = (pointer, *(reversed_lanes(ev, value) for value in extra))
    loaded = emit.read(cpu.LoadOp, operands, result, segments(1, *sizes), op.location)
    return reversed_lanes(ev, loaded)


def reversed_lanes(ev: Evaluator, value: SSAValue) -> SSAValue:
    """A vector with its lanes in the opposite order."""
    pattern = DenseArrayBase.from_list(i32, list(reversed(range(ev.lanes))))
    return ev.emit.pure(cpu.ShuffleOp, (value, value), value.type, {"pattern": pattern})


def _inside(ev: Evaluator, op: LoadOp, coords: Coords, pointer: SSAValue) -> SSAValue:
    """Where a masked load looks: at the start of its array for rows that the mask hides.

    No lane of such a row is read, but where its page is not mapped, the processor takes hundreds
    of cycles to find out (measured: 162 ns a load on a Zen 5, 2026-11-22).
    """
    base = _base(op.operands[0])
    if op.mask is None or base is None:
        return pointer
    for part, place in conjuncts(ev, op.mask, coords):
        moves = is_tile(part) and ev.lane_stride(part, place) != (0, False)
        condition = None if moves else ev.element(part, place, False)
        if condition is not None and condition not in ev.emit.true_values:
            start = ev.lowering.scalar(base)
            pointer = ev.emit.pure(SelectOp, (condition, pointer, start), pointer.type)
    return pointer


def _base(ptr: SSAValue) -> SSAValue | None:
    """The argument that a tile of pointers or a pointer is some way from, where that is one."""
    op = owner(ptr)
    while isinstance(op, _SAME_ARRAY):
        ptr = op.operands[0]
        op = owner(ptr)
    return ptr if op is None and not is_tile(ptr) else None


def _load_gather(ev: Evaluator, op: LoadOp, coords: Coords, where: Offsets) -> SSAValue:
    extra, sizes = _optional(ev, op, coords, True)
    result = vector_of(element_of(op.results[0].type), ev.lanes)
    return ev.emit.read(cpu.GatherOp, (*where, *extra), result, segments(1, 1, *sizes), op.location)


def _load_general(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
    where = base_and_offsets(ev, op.operands[0], coords)
    if where is not None:
        return _load_gather(ev, op, coords, where)
    extra, sizes = _optional(ev, op, coords, True)
    pointers = ev.lanes_of_element(op.operands[0], coords)
    result = vector_of(element_of(op.results[0].type), ev.lanes)
    return ev.emit.read(
        cpu.LoadPointersOp, (pointers, *extra), result, segments(1, *sizes), op.location
    )


def _load_wrapping(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
    """A vector load where this run of lanes does not cross the jump, else a gather."""
    note(ev, op, "contiguous", "tested at run time: the index wraps or saturates")
    emit = ev.emit
    straight = is_run(ev, op.operands[0], [coords_at(coords, lane) for lane in ends(ev.lanes)])
    _optional(ev, op, coords, True)
    ev.element(op.operands[0], coords, False)
    result = vector_of(element_of(op.results[0].type), ev.lanes)
    fast = _branch(ev, _load_contiguous, op, coords)
    slow = _branch(ev, _load_general, op, coords)
    (value,) = emit.choose(straight, (fast, slow), (result,))
    return value


def _load_by_pieces(ev: Evaluator, op: LoadOp, coords: Coords, pieces: Pieces) -> SSAValue:
    """One access where no cut lies between the lanes, else one for each piece, or a gather.

    Pieces are gathered where they are short, or the machine has no masks for them.
    """
    note(ev, op, "contiguous" if pieces.step else "uniform", BY_PIECES)
    at_once = _load_contiguous if pieces.step else _load_equal
    is_known = is_known_whole(ev, pieces.cuts)
    if is_known:
        return at_once(ev, op, coords)
    masks, _ = _optional(ev, op, coords, True)
    ev.element(op.operands[0], coords, False)

    def either(condition: SSAValue, then: _Form, otherwise: _Form) -> SSAValue:
        blocks = _branch(ev, then, op, coords), _branch(ev, otherwise, op, coords)
        (value,) = ev.emit.choose(condition, blocks, (result,))
        return value

    def slow(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
        if not has_masked_loads(ev.lowering.machine, element_of(result)):
            return _load_general(ev, op, coords)
        if is_known is False and ev.second_lane is not None:
            return load_two(ev, op, coords, pieces, masks, ev.second_lane)
        are_two = are_two_here(ev, pieces.cuts)
        if are_two is not None:
            return either(are_two, in_two, by_pieces)
        is_long = are_long_here(ev, pieces)
        if is_long is None:
            return by_pieces(ev, op, coords)
        return either(is_long, by_pieces, _load_general)

    def in_two(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
        return load_two(ev, op, coords, pieces, masks, second_piece(ev, pieces.cuts))

    def by_pieces(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
        return load_pieces(ev, op, coords, pieces, masks)

    result = vector_of(element_of(op.results[0].type), ev.lanes)
    if is_known is not None:
        return slow(ev, op, coords)
    return either(is_whole(ev, pieces.cuts), at_once, slow)


def _load_repeated(ev: Evaluator, op: LoadOp, coords: Coords, cut: Cut) -> SSAValue:
    """A short vector whose elements are repeated, if they begin with the lanes; else a gather."""
    assert cut.size is not None
    size = cut.size
    note(ev, op, "contiguous", f"each element for {size} lanes, tested at run time")
    begins = starts_group(ev, cut)
    masks, _ = _optional(ev, op, coords, True)
    ev.element(op.operands[0], coords, False)

    def fast(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
        return load_repeated(ev, op, coords, size, masks)

    result = vector_of(element_of(op.results[0].type), ev.lanes)
    blocks = _branch(ev, fast, op, coords), _branch(ev, _load_general, op, coords)
    (value,) = ev.emit.choose(begins, blocks, (result,))
    return value


def _load_equal(ev: Evaluator, op: LoadOp, coords: Coords) -> SSAValue:
    """One element for all lanes."""
    extra, sizes = _optional(ev, op, coords, True)
    if not extra:
        return ev.emit.splat(_load_scalar(ev, op, coords), ev.lanes)
    pointer, result = _place(ev, op, coords), vector_of(element_of(op.results[0].type), ev.lanes)
    operands = (pointer, ev.emit.iota(i32, ev.lanes, 0), *extra)
    return ev.emit.read(cpu.GatherOp, operands, result, segments(1, 1, *sizes), op.location)


def _branch(
    ev: Evaluator,
    generate: _Form,
    op: LoadOp,
    coords: Coords,
) -> Block:
    """A block that yields what `generate` computes, all of it inside."""
    emit, saved = ev.emit, ev.emit.pin
    emit.push(Block())
    emit.pin = len(emit.blocks) - 1
    value = generate(ev, op, coords)
    emit.effect(YieldOp, (value,))
    emit.pin = saved
    return emit.pop()


def is_volatile(op: Operation) -> bool:
    """Whether an op must happen once, where it stands: a load with that flag."""
    flag: object = getattr(op, "is_volatile", None)
    return flag is not None and not (isinstance(flag, IntegerAttr) and flag.value.data == 0)
