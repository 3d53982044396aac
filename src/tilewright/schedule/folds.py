"""How warps exchange the partial results of a reduction: the plan of its scratch.

Each warp folds what it holds; its results go to shared memory and every thread reads those of
all warps along the axis. One barrier, whatever the number of warps.

A place in scratch counts, from the fastest: with one result a warp, the warps along the axis,
so that a thread reads them as vectors; else registers side by side, then lanes, so that a warp
touches adjacent bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ir.types import element_of, storage_bytes
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.digits import power_of_two_part
from tilewright.layout.linear import LinearLayout
from tilewright.ops.reduction import CombineOp, ReduceOp
from tilewright.schedule.scratch import SCRATCH
from tilewright.support.dataclass import dataclass

_VECTOR_BYTES = 16


@dataclass(frozen=True)
class Slots:
    """Places in shared memory for one value of every (register, lane, warp, warp along the axis).

    *Semantics*: the byte of register `r` from warp `k` along the axis is `offset + base(lane,
    warp) + register_bytes(r) + k * axis_bytes`, where `base` is linear in the bits of lane and
    warp with the images `lane_bases` and `warp_bases` (bits along the axis and of copies: 0).
    `vector` values in a row, along the axis if `is_axis_fastest` and else of registers, are one
    access.
    """

    element_bytes: int
    num_registers: int
    num_warps_along: int
    lane_bases: tuple[int, ...]
    warp_bases: tuple[int, ...]
    axis_bases: tuple[int, ...]
    axis_bytes: int
    vector: int
    is_axis_fastest: bool
    register_stride: int

    @property
    def size_bytes(self) -> int:
        """The bytes that the places take."""
        blocks = self.num_registers if self.is_axis_fastest else self.num_registers // self.vector
        return blocks * self.register_stride

    def register_bytes(self, register: int) -> int:
        """The byte of a register's first value."""
        if self.is_axis_fastest:
            return register * self.register_stride
        block, place = divmod(register, self.vector)
        return block * self.register_stride + place * self.element_bytes


def plan_slots(
    layout: LinearLayout, spread: AxisSpread, num_registers: int, element_bytes: int
) -> Slots:
    """The places of `num_registers` values a thread, one of each warp along the axis.

    Lanes along the axis and copies share a place.
    """
    lanes = _kept(layout, "lane", spread)
    warps = _kept(layout, "warp", spread)
    along = 1 << len(spread.warps)
    limit = max(1, _VECTOR_BYTES // element_bytes)
    is_axis_fastest = not any(lanes)
    vector = min(limit, along if is_axis_fastest else power_of_two_part(num_registers))
    unit = element_bytes * (along if is_axis_fastest else vector)
    lane_bases, unit = _place(lanes, unit)
    warp_bases, unit = _place(warps, unit)
    axis_bytes = element_bytes if is_axis_fastest else unit
    order = {bit.index: place for place, bit in enumerate(spread.warps)}
    axis_bases = tuple(
        axis_bytes << order[index] if index in order else 0 for index in range(len(warps))
    )
    if not is_axis_fastest:
        unit *= along
    return Slots(
        element_bytes,
        num_registers,
        along,
        lane_bases,
        warp_bases,
        axis_bases,
        axis_bytes,
        vector,
        is_axis_fastest,
        unit,
    )


def _kept(layout: LinearLayout, in_dim: str, spread: AxisSpread) -> tuple[bool, ...]:
    """For each bit of an in-dim whether it holds other elements, off the axis."""
    gone = layout.free_bits(in_dim)
    gone |= spread.lane_mask if in_dim == "lane" else spread.warp_mask
    return tuple(not gone >> bit & 1 for bit in range(len(layout.basis_images(in_dim))))


def _place(kept: Sequence[bool], unit: int) -> tuple[tuple[int, ...], int]:
    """Steps in bytes for the bits that are kept, and the step of what follows them."""
    bases: list[int] = []
    for is_kept in kept:
        bases.append(unit if is_kept else 0)
        unit <<= is_kept
    return tuple(bases), unit


@dataclass(frozen=True)
class FoldPlan:
    """Where the elements of a fold are, and the scratch of each operand (None: no exchange)."""

    layout: LinearLayout
    spread: AxisSpread
    slots: tuple[Slots, ...] | None
    offsets: tuple[int, ...]

    @property
    def scratch_bytes(self) -> int:
        """The bytes of shared memory that the exchange takes."""
        if self.slots is None:
            return 0
        return self.offsets[-1] + self.slots[-1].size_bytes


def plan_reduction(op: CombineOp) -> FoldPlan:
    """The plan of a reduction of laid-out tiles."""
    layout = layout_of(op.operands[0].type)
    spread = spread_along(layout, _axis(op))
    if not spread.warps:
        return FoldPlan(layout, spread, None, ())
    return exchange_plan(op, layout, spread, spread.result.num_registers)


def exchange_plan(
    op: CombineOp, layout: LinearLayout, spread: AxisSpread, num_registers: int
) -> FoldPlan:
    """A plan in which each thread hands on `num_registers` values of every operand."""
    slots: list[Slots] = []
    offsets: list[int] = []
    end = 0
    for value in op.operands:
        size = storage_bytes(element_of(value.type))
        slots.append(plan_slots(layout, spread, num_registers, size))
        offsets.append(-(-end // _VECTOR_BYTES) * _VECTOR_BYTES)
        end = offsets[-1] + slots[-1].size_bytes
    return FoldPlan(layout, spread, tuple(slots), tuple(offsets))


def _axis(op: Operation) -> int:
    axis = op.properties["axis"]
    return axis.value.data  # type: ignore[attr-defined]  # an IntegerAttr by the op's definition


@SCRATCH.register(ReduceOp)
def _reduction_scratch(op: ReduceOp) -> int:
    return plan_reduction(op).scratch_bytes if has_layout(op.operands[0].type) else 0
