"""How warps exchange the partial results of a reduction: the plan of its scratch.

Each warp folds what it holds; its results go to shared memory and every thread reads those of
all warps along the axis. One barrier, whatever the number of warps.

A place in scratch counts, from the fastest: with one result a warp, the warps along the axis,
so that a thread reads them as vectors; else registers side by side, then lanes, so that a warp
touches adjacent bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation

from tilewright.analysis.facts import MAX_ACCESS_BYTES
from tilewright.ir.encoding import layout_of
from tilewright.ir.plans import ExchangePlan
from tilewright.ir.types import element_of, storage_bytes
from tilewright.layout.axis import AxisSpread, spread_along
from tilewright.layout.linear import LinearLayout
from tilewright.ops.reduction.ir import CombineOp
from tilewright.schedule.exchanges import too_few_bytes
from tilewright.support.dataclass import dataclass
from tilewright.support.powers_of_two import power_of_two_part


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


@dataclass(frozen=True)
class Exchange:
    """Which threads exchange values: warps by the bits `along`, fastest first.

    Threads that differ in `gone_lanes` and `gone_warps` alone hold the same values.
    """

    layout: LinearLayout
    along: tuple[int, ...]
    gone_lanes: int
    gone_warps: int

    def kept(self, in_dim: str) -> tuple[bool, ...]:
        """For each bit of an in-dim whether threads differ by it, and do not exchange by it."""
        gone = self.gone_lanes
        if in_dim == "warp":
            gone = self.gone_warps | sum(1 << bit for bit in self.along)
        return tuple(not gone >> bit & 1 for bit in range(len(self.layout.basis_images(in_dim))))


def exchange_along(layout: LinearLayout, spread: AxisSpread) -> Exchange:
    """The exchange between all warps along an axis, whose lanes along it hold the same."""
    return Exchange(
        layout,
        tuple(bit.index for bit in spread.warps),
        layout.free_bits("lane") | spread.lane_mask,
        layout.free_bits("warp"),
    )


def plan_slots(between: Exchange, num_registers: int, element_bytes: int) -> Slots:
    """The places of `num_registers` values a thread."""
    lanes, warps = between.kept("lane"), between.kept("warp")
    along = 1 << len(between.along)
    limit = max(1, MAX_ACCESS_BYTES // element_bytes)
    is_axis_fastest = not any(lanes)
    vector = min(limit, along if is_axis_fastest else power_of_two_part(num_registers))
    unit = element_bytes * (along if is_axis_fastest else vector)
    lane_bases, unit = _place(lanes, unit)
    warp_bases, unit = _place(warps, unit)
    axis_bytes = element_bytes if is_axis_fastest else unit
    places = {bit: place for place, bit in enumerate(between.along)}
    return Slots(
        element_bytes=element_bytes,
        num_registers=num_registers,
        num_warps_along=along,
        lane_bases=lane_bases,
        warp_bases=warp_bases,
        axis_bases=tuple(
            axis_bytes << places[bit] if bit in places else 0 for bit in range(len(warps))
        ),
        axis_bytes=axis_bytes,
        vector=vector,
        is_axis_fastest=is_axis_fastest,
        register_stride=unit if is_axis_fastest else unit * along,
    )


def _place(kept: Sequence[bool], unit: int) -> tuple[tuple[int, ...], int]:
    """Steps in bytes for the bits that are kept, and the step of what follows them."""
    bases: list[int] = []
    for is_kept in kept:
        bases.append(unit if is_kept else 0)
        unit <<= is_kept
    return tuple(bases), unit


@dataclass(frozen=True)
class Scratch:
    """The places of the values of every operand of a fold, one array after the other."""

    between: Exchange
    slots: tuple[Slots, ...]
    offsets: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """The bytes of shared memory that the exchange takes."""
        return self.offsets[-1] + self.slots[-1].size_bytes


def plan_scratch(op: CombineOp, between: Exchange, num_registers: int) -> Scratch:
    """The places of `num_registers` values of every operand in every thread."""
    slots: list[Slots] = []
    offsets: list[int] = []
    end = 0
    for value in op.operands:
        size = storage_bytes(element_of(value.type))
        slots.append(plan_slots(between, num_registers, size))
        offsets.append(align_up(end, MAX_ACCESS_BYTES))
        end = offsets[-1] + slots[-1].size_bytes
    return Scratch(between, tuple(slots), tuple(offsets))


def too_few_partials(op: CombineOp, plan: ExchangePlan, warp_bits: int) -> str:
    """Why the warps along the axis have no room for what each adds to each result; '' if they do.

    `warp_bits` of them exchange at once: there are two to the power of so many parts of a result.
    """
    spread = spread_along(layout_of(op.operands[0].type), axis_of(op))
    if not spread.warps:
        return ""
    each = sum(storage_bytes(value.type) for value in op.operands)
    return too_few_bytes(plan, each * prod(spread.result.shape) << warp_bits)


def align_up(size: int, unit: int) -> int:
    """The least multiple of `unit` that is not below `size`."""
    return -(-size // unit) * unit


def axis_of(op: Operation) -> int:
    """The axis of an op that works along one."""
    axis = op.properties["axis"]
    assert isinstance(axis, IntegerAttr)
    return axis.value.data
