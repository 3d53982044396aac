"""Puts barriers between accesses of different warps to the same bytes of shared memory.

A read needs one behind the writes that it sees, a write one behind the reads and writes before
it, on every path and around every loop. Where an asynchronous unit (wgmma, TMA) accesses what
threads wrote, a fence of the threads comes before the barrier.

One walk: each block, branch and loop is summed up by what it touches before its first barrier
(exposed) and after its last one (pending). A barrier goes right before the op whose exposed
accesses meet pending ones, outside of loops where the first iteration alone is at fault. Control
flow is uniform over the program, so every place in it is reached by all warps or by none.

Requires T2 with every place given; produces T2 that `check_ordering` accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import reduce

from xdsl.ir import Block, Operation

from tilewright.ir.effects import Order
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.regions import (
    OUTSIDE,
    ControlFlowOp,
    Edge,
    Place,
    is_control_flow,
    possible_edges,
)
from tilewright.ops.function import FuncOp
from tilewright.ops.staging import LocalBarrierOp
from tilewright.schedule.check_ordering import is_ordered, require_ordered
from tilewright.schedule.placed_accesses import PlacedAccess, PlacedAccesses, PlacedStep
from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class BarrierReason:
    """Why a barrier stands before an op: two accesses that it orders."""

    op: Operation
    earlier: PlacedAccess
    later: PlacedAccess

    def __str__(self) -> str:
        return f"barrier before {describe(self.op)}: {self.earlier} comes before {self.later}"


@dataclass(frozen=True)
class OrderingReport:
    """The barriers and fences that were put in, with the reason of each barrier."""

    barriers: tuple[BarrierReason, ...]
    fences: int

    def __str__(self) -> str:
        return "\n".join(map(str, self.barriers)) or "no barriers"


def insert_shared_barriers(kernel: FuncOp, fence: type[Operation] | None = None) -> OrderingReport:
    """Put in the barriers that a kernel needs.

    `fence` is the op that shows a thread's writes to asynchronous units, on a target with any.

    *Raises* InternalError where `check_ordering` finds what is not ordered for all that.
    """
    placer = _Placer(fence)
    block = kernel.body.block
    placer.find_async(block)
    placer.place(block, _NOTHING)
    placer.remove_redundant(kernel)
    require_ordered(kernel, placer.accesses)
    return OrderingReport(tuple(placer.reasons.values()), placer.num_fences)


@dataclass(frozen=True)
class _Track:
    """Accesses of a region for one kind of order: before its first one, and after its last.

    `is_covered`: no path goes through without being ordered.
    """

    exposed: tuple[PlacedAccess, ...] = ()
    pending: tuple[PlacedAccess, ...] = ()
    is_covered: bool = False

    def then(self, later: _Track) -> _Track:
        """This region followed by another."""
        exposed = self.exposed if self.is_covered else _union(self.exposed, later.exposed)
        pending = later.pending if later.is_covered else _union(self.pending, later.pending)
        return _Track(exposed, pending, self.is_covered or later.is_covered)

    def ordered(self) -> _Track:
        """This region followed by what orders it."""
        return _Track(self.exposed, (), True)

    def either(self, other: _Track) -> _Track:
        """This region or another."""
        return _Track(
            _union(self.exposed, other.exposed),
            _union(self.pending, other.pending),
            self.is_covered and other.is_covered,
        )


@dataclass(frozen=True)
class _Summary:
    """What a region does: `warps` ordered by barriers, `units` by a fence and then a barrier."""

    warps: _Track = field(default_factory=_Track)
    units: _Track = field(default_factory=_Track)

    def then(self, later: _Summary) -> _Summary:
        """This region followed by another."""
        return _Summary(self.warps.then(later.warps), self.units.then(later.units))

    def either(self, other: _Summary) -> _Summary:
        """This region or another."""
        return _Summary(self.warps.either(other.warps), self.units.either(other.units))

    def entered(self) -> _Summary:
        """Nothing but what this region leaves pending: how the next one starts."""
        return _Summary(_Track((), self.warps.pending), _Track((), self.units.pending))


_NOTHING = _Summary()


def _union(left: Sequence[PlacedAccess], right: Sequence[PlacedAccess]) -> tuple[PlacedAccess, ...]:
    if not right:
        return tuple(left)
    return tuple(dict.fromkeys((*left, *right))) if left else tuple(right)


def _first(
    pending: Iterable[PlacedAccess],
    exposed: Sequence[PlacedAccess],
    meets: Callable[[PlacedAccess, PlacedAccess], bool],
) -> tuple[PlacedAccess, PlacedAccess] | None:
    """The first two accesses that need order."""
    return next(((a, b) for a in pending for b in exposed if meets(a, b)), None)


def _at_ends(edges: Sequence[Edge], inside: Mapping[int, _Summary]) -> Mapping[Place, _Summary]:
    """What is done from the start of an op to the end of each of its regions, on any way."""
    ends: dict[Place, _Summary] = {OUTSIDE: _NOTHING}
    is_new = True
    while is_new:
        is_new = False
        for region, summary in inside.items():
            if not any(e.target == region and e.source in ends for e in edges):
                continue
            known, end = ends.get(region), _entered(edges, ends, region).then(summary)
            ends[region] = end if known is None else known.either(end)
            is_new = is_new or ends[region] != known
    return ends


def _entered(edges: Sequence[Edge], ends: Mapping[Place, _Summary], place: Place) -> _Summary:
    """What is done from the start of an op to where a place begins."""
    return reduce(
        _Summary.either, (ends[e.source] for e in edges if e.target == place and e.source in ends)
    )


class _Placer:
    """Walks a kernel and puts barriers where its summaries meet."""

    def __init__(self, fence: type[Operation] | None) -> None:
        self.reasons: dict[Operation, BarrierReason] = {}
        self.num_fences = 0
        self._fence = fence
        self.accesses = PlacedAccesses()
        self._async: list[PlacedAccess] = []
        self._doubted: list[Operation] = []
        # Of ops with blocks: ordered once, they stay so, and whoever walks the loops around
        # them again finds the same. Without this a nest would be walked 3^depth times.
        self._summaries: dict[Operation, _Summary] = {}

    def find_async(self, block: Block) -> None:
        """Note which bytes asynchronous units access anywhere."""
        accesses = self.accesses.all_accesses(block)
        self._async = [placed for placed in accesses if placed.access.is_async]

    def place(self, block: Block, entered: _Summary) -> _Summary:
        """Order the ops of a block after what was pending before it; the block's summary."""
        so_far = entered
        is_fenced = False
        for op in tuple(block.ops):
            if not op.regions and not self.accesses.steps(op):
                continue
            summary = self._summary(op)
            reason = self._reason(so_far, summary)
            waits = Order.BARRIER in self._orders(op)
            if (reason or waits) and so_far.units.pending and not is_fenced:
                is_fenced = self._insert_fence(op)
            if reason:
                self._insert_barrier(op, reason)
                so_far = _after_barrier(so_far, is_fenced)
            if waits and is_fenced:
                so_far = _Summary(so_far.warps, so_far.units.ordered())
            so_far = so_far.then(summary)
            is_fenced = self._stays_fenced(op, is_fenced and not reason and not waits, summary)
        return so_far

    def _orders(self, op: Operation) -> list[Order]:
        if is_control_flow(op):
            return []
        return [step for step in self.accesses.steps(op) if isinstance(step, Order)]

    def _stays_fenced(self, op: Operation, is_fenced: bool, summary: _Summary) -> bool:
        """Whether a fence stands behind all writes of this block so far."""
        if Order.FENCE in self._orders(op):
            return True
        return is_fenced and not summary.units.pending

    def _summary(self, op: Operation) -> _Summary:
        if not op.regions:
            return self._steps_of(op)
        found = self._summaries.get(op)
        if found is None:
            found = self._summaries[op] = self._ordered_inside(op)
        return found

    def _ordered_inside(self, op: Operation) -> _Summary:
        """Order the regions of an op; what all of it does.

        First each by itself, then each behind those before it in the text, and then behind those
        that it comes after in the next iteration.
        """
        if not isinstance(op, ControlFlowOp):
            return self._steps_of(op)
        edges, before = possible_edges(op), len(self.reasons)
        reached = sorted({edge.target for edge in edges if edge.target is not None})
        inside = {index: self.place(op.regions[index].block, _NOTHING) for index in reached}
        inner = list(self.reasons)[before:]
        forward = [edge for edge in edges if not edge.is_back]
        for ways in (forward, edges):
            if self._meet(op, ways, inside):
                self._doubted += inner
                inner = []
        return _entered(edges, _at_ends(edges, inside), OUTSIDE)

    def _meet(self, op: Operation, edges: Sequence[Edge], inside: dict[int, _Summary]) -> bool:
        """Order each region behind what some way to it leaves pending; whether one needed it.

        Where one does, all are: a barrier on the way to it may do when a fence is put before.
        """
        placed: dict[int, _Summary] = {}
        while self._needs_order(edges, inside, placed):
            for region in inside:
                block, ends = op.regions[region].block, _at_ends(edges, inside)
                placed[region] = _entered(edges, ends, region).entered()
                self.place(block, placed[region])
                inside[region] = self.place(block, _NOTHING)
        return bool(placed)

    def _needs_order(
        self,
        edges: Sequence[Edge],
        inside: Mapping[int, _Summary],
        placed: Mapping[int, _Summary],
    ) -> bool:
        """Whether a region meets what is pending where it starts, and was not placed behind it."""
        ends = _at_ends(edges, inside)
        for region, summary in inside.items():
            entered = _entered(edges, ends, region).entered()
            if placed.get(region) != entered and self._reason(entered, summary):
                return True
        return False

    def _steps_of(self, op: Operation) -> _Summary:
        summary = _NOTHING
        for step in self.accesses.steps(op):
            summary = summary.then(self._step(step))
        return summary

    def _step(self, step: PlacedStep) -> _Summary:
        if not isinstance(step, PlacedAccess):
            return _Summary(_Track((), (), True)) if step is Order.BARRIER else _NOTHING
        access = step.access
        # Summaries meet across iterations, where positions count from other values.
        step = replace(step, position=None)
        start = (step,) if access.starts else ()
        end = (step,) if access.ends and not access.is_joint else ()
        hidden = tuple(t for t in end if any(t.hides_from(other) for other in self._async))
        units = _Track(start if access.is_async else (), hidden)
        return _Summary(_Track(start, end), units)

    def _reason(
        self, earlier: _Summary, later: _Summary
    ) -> tuple[PlacedAccess, PlacedAccess] | None:
        """Why a barrier must stand between two regions; None where none must."""
        found = _first(earlier.units.pending, later.units.exposed, PlacedAccess.hides_from)
        return found or _first(earlier.warps.pending, later.warps.exposed, PlacedAccess.conflicts)

    def _insert_barrier(self, op: Operation, reason: tuple[PlacedAccess, PlacedAccess]) -> None:
        barrier = build(LocalBarrierOp, location=op.location)
        self._insert(barrier, op)
        self.reasons[barrier] = BarrierReason(op, *reason)

    def _insert_fence(self, op: Operation) -> bool:
        if self._fence is None:
            return False
        self._insert(build(self._fence, location=op.location), op)
        self.num_fences += 1
        return True

    def _insert(self, new: Operation, op: Operation) -> None:
        assert op.parent is not None
        op.parent.insert_op_before(new, op)

    def remove_redundant(self, kernel: FuncOp) -> None:
        """Take out barriers inside loops that those between the iterations made needless."""
        for barrier in dict.fromkeys(self._doubted):
            block, following = barrier.parent, barrier.next_op
            assert block is not None and following is not None
            barrier.detach()
            if is_ordered(kernel, self.accesses):
                del self.reasons[barrier]
                barrier.erase()
            else:
                block.insert_op_before(barrier, following)


def _after_barrier(summary: _Summary, is_fenced: bool) -> _Summary:
    units = summary.units.ordered() if is_fenced else summary.units
    return _Summary(summary.warps.ordered(), units)
