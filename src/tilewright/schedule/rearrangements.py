"""Where elements change their place in a tile: what stays in a warp, and the scratch otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation

from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.linear import Coordinates, LinearLayout
from tilewright.ops.indexing.ir import GatherOp, HistogramOp
from tilewright.ops.shape.ir import FlipOp
from tilewright.schedule.layout.anchors import ANCHORS, Anchored, Neighbours, own_or_default
from tilewright.schedule.reduction_scratch import axis_of
from tilewright.schedule.scratch import SCRATCH
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedLayout

# From this many registers along the axis on, memory is cheaper than a shuffle of each.
_MAX_SHUFFLED = 4
_COUNT_BYTES = 4


@dataclass(frozen=True)
class TilePlaces:
    """A whole tile in shared memory, the last dim fastest.

    Strides are powers of two, so that the place of an element is linear in the bits of its
    coordinates, like a layout.
    """

    strides: tuple[int, ...]
    element_bytes: int
    size_bytes: int

    def byte(self, at: Coordinates) -> int:
        """The byte of the element at these coordinates."""
        return sum(i * stride for i, stride in zip(at, self.strides, strict=True))

    def bases(self, layout: LinearLayout, in_dim: str) -> tuple[int, ...]:
        """How far each bit of an in-dim of a layout moves, in bytes."""
        return tuple(self.byte(vector) for vector in layout.basis_images(in_dim))


def tile_places(shape: Sequence[int], element_bytes: int) -> TilePlaces:
    """The places of a tile of `shape`."""
    strides: list[int] = []
    stride = element_bytes
    for extent in reversed(shape):
        strides.append(stride)
        stride <<= max(0, extent - 1).bit_length()
    strides.reverse()
    size = strides[0] * shape[0] if shape else stride
    return TilePlaces(tuple(strides), element_bytes, size)


@dataclass(frozen=True)
class FlipPlan:
    """A reversal along one dim: the registers, and the lanes that differ; or the scratch.

    Register `r` takes register `sources[r]` of the lane whose index is this one's xor
    `lane_mask`.
    """

    sources: tuple[int, ...]
    lane_mask: int
    places: TilePlaces | None


def plan_flip(op: FlipOp) -> FlipPlan:
    """The plan of a reversal of a laid-out tile."""
    layout, axis = layout_of(op.src.type), axis_of(op)
    places = tile_places(layout.shape, storage_bytes(element_of(op.src.type)))
    try:
        spread = spread_along(layout, axis)
    except UnsupportedLayout:
        return FlipPlan((), 0, places)
    if spread.warps:
        return FlipPlan((), 0, places)
    last = layout.shape[axis] - 1 - sum(bit.step for bit in spread.lanes)
    where = {
        (line, at): register
        for register, (line, at) in enumerate(zip(spread.lines, spread.positions, strict=True))
    }
    rows = zip(spread.lines, spread.positions, strict=True)
    sources = tuple(where[line, last - at] for line, at in rows)
    return FlipPlan(sources, spread.lane_mask, None)


@SCRATCH.register(FlipOp)
def _flip_scratch(op: FlipOp) -> int:
    places = plan_flip(op).places if has_layout(op.src.type) else None
    return 0 if places is None else places.size_bytes


@dataclass(frozen=True)
class GatherPlan:
    """A look-up along one dim: by shuffles where lines stay in their warp, else by scratch."""

    spread: AxisSpread | None
    result_lines: tuple[int, ...]
    places: TilePlaces | None


def plan_gather(op: GatherOp) -> GatherPlan:
    """The plan of a look-up in a laid-out tile."""
    source, target, axis = layout_of(op.src.type), layout_of(op.indices.type), axis_of(op)
    try:
        spread = spread_along(source, axis)
        lines, where = target.reduce(axis)
        is_within = not spread.warps and lines == spread.result
        if is_within and len(spread.groups[0]) <= _MAX_SHUFFLED:
            return GatherPlan(spread, where, None)
    except UnsupportedLayout:
        pass
    return GatherPlan(None, (), tile_places(source.shape, storage_bytes(element_of(op.src.type))))


@SCRATCH.register(GatherOp)
def _gather_scratch(op: GatherOp) -> int:
    places = plan_gather(op).places if has_layout(op.src.type) else None
    return 0 if places is None else places.size_bytes


def bin_places(op: HistogramOp) -> TilePlaces:
    """The counters of a histogram in shared memory."""
    return tile_places(shape_of(op.result.type), _COUNT_BYTES)


@ANCHORS.register(HistogramOp)
def _histogram_layouts(near: Neighbours, op: HistogramOp) -> Anchored:
    source = own_or_default(near, op.src)
    return Anchored((source,) * len(op.operands), (near.default(shape_of(op.result.type)),))


@SCRATCH.register(HistogramOp)
def _histogram_scratch(op: HistogramOp) -> int:
    return bin_places(op).size_bytes


def num_elements(op: Operation) -> int:
    """The number of elements of the op's first operand."""
    return prod(shape_of(op.operands[0].type))
