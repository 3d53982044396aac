"""Tile indices as integer combinations of the variables of the open loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from tilewright.analysis.reshapes import split_groups
from tilewright.ir.types import shape_of
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.reduction.ir import ReduceOp
from tilewright.ops.shape.ir import (
    BroadcastOp,
    ExpandDimsOp,
    FlipOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)
from tilewright.support.dataclass import dataclass

# By definition: the loop variable along which vectors lie; other variables are counted from 0.
LANE_LOOP = -1


@dataclass(frozen=True)
class Coord:
    """The index Σ scale × loop variable + offset along one dimension of a tile."""

    terms: tuple[tuple[int, int], ...] = ()
    offset: int = 0

    def lane_scale(self) -> int:
        """How far the index moves from one lane to the next."""
        for loop, scale in self.terms:
            if loop == LANE_LOOP:
                return scale
        return 0

    def without_lanes(self) -> Coord:
        """The index with the vector loop's variable taken as zero."""
        return Coord(tuple(t for t in self.terms if t[0] != LANE_LOOP), self.offset)

    def at_lane(self, lane: int) -> Coord:
        """The index of another lane, as a scalar index of the first one's form."""
        return Coord(self.terms, self.offset + lane * self.lane_scale())


ORIGIN = Coord()
Coords = tuple[Coord, ...]


def loop_coord(loop: int) -> Coord:
    """The index that is one loop's variable."""
    return Coord(((loop, 1),))


def constant_coords(indices: Sequence[int]) -> Coords:
    """A fixed element of a tile."""
    return tuple(Coord((), index) for index in indices)


def combine(parts: Sequence[tuple[Coord, int]]) -> Coord:
    """The sum of scaled indices."""
    terms: dict[int, int] = {}
    offset = 0
    for coord, scale in parts:
        offset += coord.offset * scale
        for loop, factor in coord.terms:
            terms[loop] = terms.get(loop, 0) + factor * scale
    return Coord(tuple((loop, f) for loop, f in terms.items() if f), offset)


def normalized(coords: Coords, shape: tuple[int, ...]) -> Coords:
    """The same element with index 0 along dimensions of size 1."""
    return tuple(ORIGIN if n == 1 else c for c, n in zip(coords, shape, strict=True))


def source_coords(op: Operation, coords: Coords, result: int = 0) -> Coords | None:
    """Where result `result` of a shape op reads its source; None for other ops."""
    rule = _SOURCES.get(type(op))
    return None if rule is None else rule(op, coords, shape_of(op.operands[0].type), result)


def folded_coords(op: Operation, coords: Coords) -> list[Coords]:
    """Where a fold at `coords` finds its elements, in their order."""
    assert isinstance(op, ReduceOp)
    axis = op.axis.value.data
    count = shape_of(op.operands[0].type)[axis]
    return [(*coords[:axis], Coord((), index), *coords[axis:]) for index in range(count)]


Shape = tuple[int, ...]


def _same(op: Operation, coords: Coords, shape: Shape, result: int) -> Coords:
    return coords


def _broadcast(op: Operation, coords: Coords, shape: Shape, result: int) -> Coords:
    return normalized(coords, shape)


def _unexpanded(op: Operation, coords: Coords, shape: Shape, result: int) -> Coords:
    assert isinstance(op, ExpandDimsOp)
    axis = op.axis.value.data
    return (*coords[:axis], *coords[axis + 1 :])


def _untransposed(op: Operation, coords: Coords, shape: Shape, result: int) -> Coords:
    assert isinstance(op, TransOp)
    source = dict(zip(op.permutation(), coords, strict=True))
    return tuple(source[dim] for dim in range(len(shape)))


def _whole(op: Operation, coords: Coords, shape: Shape, result: int) -> Coords:
    return (*coords, Coord((), result))


def _unflipped(op: Operation, coords: Coords, shape: Shape, result: int) -> Coords:
    assert isinstance(op, FlipOp)
    axis = op.axis.value.data
    flipped = combine([(Coord((), shape[axis] - 1), 1), (coords[axis], -1)])
    return (*coords[:axis], flipped, *coords[axis + 1 :])


def _folded(op: Operation, coords: Coords, shape: Shape, result: int) -> Coords | None:
    """The one element of a fold of one."""
    places = folded_coords(op, coords)
    return places[0] if len(places) == 1 else None


def _unsplit(op: Operation, coords: Coords, shape: Shape, result: int) -> Coords:
    groups = split_groups(shape, shape_of(op.results[0].type))
    assert groups is not None, "merging reshapes are materialised"
    source = [ORIGIN] * len(shape)
    for dim, targets in groups:
        source[dim] = combine([(coords[target], scale) for target, scale in targets])
    return tuple(source)


_SOURCES: dict[type[Operation], Callable[[Operation, Coords, Shape, int], Coords | None]] = {
    BroadcastOp: _broadcast,
    HintOp: _same,
    ExpandDimsOp: _unexpanded,
    TransOp: _untransposed,
    SplitOp: _whole,
    FlipOp: _unflipped,
    ReduceOp: _folded,
    ReshapeOp: _unsplit,
}
