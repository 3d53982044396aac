"""Where elements change their place in a tile: what stays in a warp, and the scratch otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tilewright.ir.annotations import decided
from tilewright.ir.encoding import layout_of
from tilewright.ir.plans import ExchangeAttr, ExchangePlan
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.linear import Coordinates, LinearLayout
from tilewright.ops.indexing.ir import GatherOp, HistogramOp
from tilewright.ops.shape.ir import FlipOp
from tilewright.schedule.exchanges import CHECKS, CHOICES, register_scratch, too_few_bytes
from tilewright.schedule.layout.anchors import ANCHORS, Anchored, Neighbours, own_or_default
from tilewright.schedule.reduction_scratch import axis_of
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedLayout

# From this many registers along the axis on, memory is cheaper than a shuffle of each. Chosen, not
# measured: a look-up takes a shuffle for each register, or a store, a load and a barrier.
_MAX_SHUFFLED = 4
# By definition: a count is an i32.
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


MEMORY, SHUFFLE = "memory", "shuffle"


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
    """How the elements of a planned reversal move."""
    layout, axis = layout_of(op.src.type), axis_of(op)
    if decided(op, ExchangeAttr).method == MEMORY:
        return FlipPlan((), 0, _whole_tile(op))
    spread = spread_along(layout, axis)
    last = layout.shape[axis] - 1 - sum(bit.step for bit in spread.lanes)
    where = {
        (line, at): register
        for register, (line, at) in enumerate(zip(spread.lines, spread.positions, strict=True))
    }
    rows = zip(spread.lines, spread.positions, strict=True)
    sources = tuple(where[line, last - at] for line, at in rows)
    return FlipPlan(sources, spread.lane_mask, None)


def _whole_tile(op: FlipOp | GatherOp) -> TilePlaces:
    return tile_places(shape_of(op.src.type), storage_bytes(op.src.type))


@CHOICES.register(FlipOp)
def _flip_choices(op: FlipOp) -> Iterator[ExchangePlan]:
    if not _other_warps(op):
        yield ExchangePlan(SHUFFLE)
    yield ExchangePlan(MEMORY, _whole_tile(op).size_bytes)


@CHECKS.register(FlipOp)
def _check_flip(op: FlipOp, plan: ExchangePlan) -> str:
    return _other_warps(op) if plan.method == SHUFFLE else _no_room(op, plan)


def _no_room(op: FlipOp | GatherOp, plan: ExchangePlan) -> str:
    """Why a tile does not go through memory as a whole."""
    if plan.method != MEMORY:
        return f"there is no `{plan.method}`, but {SHUFFLE} and {MEMORY}"
    return too_few_bytes(plan, prod(shape_of(op.src.type)) * storage_bytes(op.src.type))


def _other_warps(op: FlipOp | GatherOp) -> str:
    """Why the lines along the axis are in no one warp; '' where each is in one."""
    try:
        spread = spread_along(layout_of(op.src.type), axis_of(op))
    except UnsupportedLayout:
        return "a lane or a warp steps along the axis and another one at once"
    return "several warps share the axis" if spread.warps else ""


@dataclass(frozen=True)
class GatherPlan:
    """A look-up along one dim: by shuffles where lines stay in their warp, else by scratch."""

    spread: AxisSpread | None
    result_lines: tuple[int, ...]
    places: TilePlaces | None


def plan_gather(op: GatherOp) -> GatherPlan:
    """How the elements of a planned look-up move."""
    if decided(op, ExchangeAttr).method == MEMORY:
        return GatherPlan(None, (), _whole_tile(op))
    spread = spread_along(layout_of(op.src.type), axis_of(op))
    return GatherPlan(spread, layout_of(op.indices.type).reduce(axis_of(op))[1], None)


@CHOICES.register(GatherOp)
def _gather_choices(op: GatherOp) -> Iterator[ExchangePlan]:
    memory = ExchangePlan(MEMORY, _whole_tile(op).size_bytes)
    if _lines_elsewhere(op):
        yield memory
        return
    spread = spread_along(layout_of(op.src.type), axis_of(op))
    is_short = len(spread.groups[0]) <= _MAX_SHUFFLED
    yield from (ExchangePlan(SHUFFLE), memory) if is_short else (memory, ExchangePlan(SHUFFLE))


@CHECKS.register(GatherOp)
def _check_gather(op: GatherOp, plan: ExchangePlan) -> str:
    return _lines_elsewhere(op) if plan.method == SHUFFLE else _no_room(op, plan)


def _lines_elsewhere(op: GatherOp) -> str:
    """Why a lane finds the line that it looks into in no lane of its warp; '' where it does."""
    reason, axis = _other_warps(op), axis_of(op)
    if reason:
        return reason
    try:
        wanted = layout_of(op.indices.type).reduce(axis)[0]
    except UnsupportedLayout:
        return "the indices' lanes step along the axis and another one at once"
    held = layout_of(op.src.type).reduce(axis)[0]
    return "" if wanted == held else "source and indices have their lines in different lanes"


def bin_places(op: HistogramOp) -> TilePlaces:
    """The counters of a histogram in shared memory."""
    return tile_places(shape_of(op.result.type), _COUNT_BYTES)


@ANCHORS.register(HistogramOp)
def _histogram_layouts(near: Neighbours, op: HistogramOp) -> Anchored:
    source = own_or_default(near, op.src)
    return Anchored((source,) * len(op.operands), (near.default(shape_of(op.result.type)),))


@register_scratch(HistogramOp)
def _histogram_scratch(op: HistogramOp) -> int:
    return bin_places(op).size_bytes
