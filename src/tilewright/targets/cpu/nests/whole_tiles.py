"""Whether a load finds its whole tile in memory in one regular piece, asked at run time.

It does where its mask holds everywhere and no index jumps (`% M` wraps) inside the tile. Both
are questions about a few elements, because masks and addresses are affine.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import i1, i32, shape_of, width_bits
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.comparisons import integer_predicate
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.worklist import once
from tilewright.targets.cpu.nests import addresses, masks
from tilewright.targets.cpu.nests.coordinates import (
    LANE_LOOP,
    ORIGIN,
    Coord,
    Coords,
    loop_coord,
    normalized,
    source_coords,
)
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.schedule.inline import is_inline, owner

_SAME_MASK = ("tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tw.hint")
# Comparisons of unsigned numbers hold around a gap where their sides wrap: `i - 4 < n`.
_LESS = frozenset(("slt", "sle"))
_MORE = frozenset(("sgt", "sge"))
# By definition: narrower integers wrap within the extents of tensors.
_INDEX_BITS = 32
# What spans less wraps around once at most.
_LARGEST_SPAN = (1 << (_INDEX_BITS - 1)) - 1


def whole_tile(
    ev: Evaluator, op: LoadOp, extents: Sequence[SSAValue] = ()
) -> SSAValue | bool | None:
    """Whether every element is loaded and no index jumps: True, an i1, or None for no way.

    With `extents` (i64, at least 1, no more than the tile's) only the elements before them count.
    """
    for dim, extent in enumerate(extents):
        last = ev.emit.narrow(extent, i32)
        ev.variables[_last_loop(dim)] = ev.emit.integer("addi", last, ev.emit.index(-1))
    conditions: list[SSAValue] = []
    if op.mask is not None and not masks.is_all_true(op.mask):
        held = all_true(ev, op.mask)
        if held is None:
            return None
        conditions += held
    strides = ev.lowering.bufferization.structure.strides(op.operands[0])
    jumping = [dim for dim, stride in enumerate(strides) if stride is not None and stride.jumps]
    for dim in jumping:
        others = [other for other in jumping if other != dim]
        conditions += [_is_straight(ev, op.operands[0], dim, at) for at in _edges(ev, op, others)]
    if not conditions:
        return True
    total = conditions[0]
    for condition in conditions[1:]:
        total = ev.emit.integer("andi", total, condition)
    return total


def _last_loop(dim: int) -> int:
    """The variable that holds the last index of a dimension: no loop's, and not the lanes'."""
    return LANE_LOOP - 1 - dim


def _last(ev: Evaluator, dim: int, size: int) -> Coord:
    """The last index of a dimension that counts."""
    is_limited = _last_loop(dim) in ev.variables
    return loop_coord(_last_loop(dim)) if is_limited else Coord((), size - 1)


def _last_of(ev: Evaluator, place: Coord, size: int) -> Coord:
    """The last index of a dimension that is one of the tile's, of size 1, or part of one."""
    if len(place.terms) == 1 and place.offset == 0 and place.lane_scale() == 0:
        ((dim, scale),) = place.terms
        if scale == 1:
            return _last(ev, dim, size)
    return Coord((), size - 1)


def _edges(ev: Evaluator, op: LoadOp, dims: list[int]) -> list[dict[int, Coord]]:
    """Both ends of every dimension of `dims`: an index that jumps may do so in some rows only.

    What bounds a jump is affine: where it is not crossed at any corner, it is not crossed inside.
    """
    shape = shape_of(op.operands[0].type)
    edges: list[dict[int, Coord]] = [{}]
    for dim in dims:
        ends = (ORIGIN, _last(ev, dim, shape[dim]))
        edges = [{**edge, dim: index} for edge in edges for index in ends]
    return edges


def _is_straight(ev: Evaluator, ptr: SSAValue, dim: int, edge: dict[int, Coord]) -> SSAValue:
    """Whether the addresses along one dimension lie one stride apart, on one edge of the tile."""
    emit = ev.emit
    shape = shape_of(ptr.type)
    stride = ev.lowering.bufferization.structure.strides(ptr)[dim]
    assert stride is not None
    size = addresses.pointee_bytes(ptr)

    def at(index: Coord) -> SSAValue:
        here = {**edge, dim: index}
        coords = tuple(here.get(d, ORIGIN) for d in range(len(shape)))
        return addresses.address(ev, ev.element(ptr, coords, False))

    def distance(index: Coord) -> SSAValue:
        if not index.terms:
            return polynomial(ev, stride, index.offset * size)
        return emit.integer("muli", emit.widen(ev.index(index)), polynomial(ev, stride, size))

    straight: SSAValue | None = None
    for index in _probes(_last(ev, dim, shape[dim])):
        expected = emit.integer("addi", at(ORIGIN), distance(index))
        equal = emit.compare("eq", at(index), expected)
        straight = equal if straight is None else emit.integer("andi", straight, equal)
    return emit.constant(i1, 1) if straight is None else straight


def _probes(last: Coord) -> list[Coord]:
    """The indices whose addresses tell whether a dimension jumps: both ends, two deep."""
    if not last.terms:
        return [Coord((), index) for index in addresses.ends(last.offset + 1)[1:]]
    # Beyond the end of a dimension of one element a jump is found where there is none: slower.
    return [Coord((), 1), Coord(last.terms, last.offset - 1), last]


def all_true(ev: Evaluator, mask: SSAValue) -> list[SSAValue] | None:
    """Scalar conditions that together say that a mask holds everywhere; None if unknown.

    An affine comparison holds everywhere when it holds at the corner where it is hardest, and no
    side wraps around within the tile.
    """
    conditions: list[SSAValue] = []
    dims = tuple(loop_coord(dim) for dim in range(len(shape_of(mask.type))))
    pending: list[tuple[SSAValue, Coords]] = [(mask, dims)]
    for part, place in once(pending):
        op = owner(part)
        if op is not None and op.name in _SAME_MASK:
            pending.append((op.operands[0], _place_in(op, place)))
        elif op is not None and op.name == "arith.andi":
            pending += [(operand, place) for operand in reversed(op.operands)]
        elif op is not None and op.name == "tt.splat":
            conditions.append(ev.lowering.scalar(op.operands[0]))
        elif not masks.is_all_true(part):
            held = _held_comparison(ev, op, place)
            if held is None:
                return None
            conditions += held
    return conditions


def _place_in(op: Operation, place: Coords) -> Coords:
    """Where an op that only moves a mask reads it; nowhere in particular where it merges."""
    if not is_inline(op.results[0]):
        return (ORIGIN,) * len(shape_of(op.operands[0].type))
    source = source_coords(op, normalized(place, shape_of(op.results[0].type)))
    assert source is not None, op.name
    return source


def _held_comparison(ev: Evaluator, op: Operation | None, place: Coords) -> list[SSAValue] | None:
    """What says that an affine comparison holds everywhere; None for anything else."""
    predicate = "" if op is None else integer_predicate(op)
    if op is None or predicate not in _LESS | _MORE:
        return None
    if width_bits(op.operands[0].type) < _INDEX_BITS:
        return None
    want_low = predicate in _MORE
    left, right = op.operands
    corners = [_corner(ev, left, want_low, place), _corner(ev, right, not want_low, place)]
    if corners[0] is None or corners[1] is None:
        return None
    sides = [
        ev.element(v, c, False) for v, c in zip(op.operands, corners, strict=True) if c is not None
    ]
    ordered = [_is_ordered(ev, operand, place) for operand in op.operands]
    held = ev.emit.compare(predicate, sides[0], sides[1])
    return [held, *(condition for condition in ordered if condition is not None)]


def _is_ordered(ev: Evaluator, value: SSAValue, place: Coords) -> SSAValue | None:
    """Whether an affine tile has its least value where it should; None where it surely has.

    An index of 32 bits that wraps around within a tile is less behind that than before.
    """
    ends = [_corner(ev, value, want_low, place) for want_low in (True, False)]
    if ends[0] is None or ends[1] is None or ends[0] == ends[1]:
        return None
    low, high = (ev.element(value, end, False) for end in ends if end is not None)
    return None if constant_of(low) == 0 else ev.emit.compare("sle", low, high)


def _corner(ev: Evaluator, value: SSAValue, want_low: bool, place: Coords) -> Coords | None:
    """The element of an affine tile with the least or the greatest value.

    `place` says which dimensions of the load's tile its own are.
    """
    indices, span = [], 0
    strides = ev.lowering.bufferization.structure.strides(value)
    for dim, (stride, extent) in enumerate(zip(strides, shape_of(value.type), strict=True)):
        step = None if stride is None or stride.jumps else stride.as_int()
        span += 0 if step is None else abs(step) * (extent - 1)
        if step is None or span > _LARGEST_SPAN:
            return None
        is_first = (step >= 0) == want_low
        indices.append(ORIGIN if is_first else _last_of(ev, place[dim], extent))
    return tuple(indices)
