"""Which bytes of shared memory the ops of a kernel touch, once everything has its place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.alias import SharedAliases
from tilewright.ir.annotations import missing
from tilewright.ir.effects import Extent, Group, Order
from tilewright.ir.locations import describe
from tilewright.ir.regions import is_control_flow
from tilewright.ops.ring_queries import is_in_ring
from tilewright.ops.roles import orders_roles
from tilewright.schedule.ring_positions import RingPosition, counted_from, position_of
from tilewright.schedule.scratch import scratch_bytes, scratch_offset
from tilewright.schedule.shared_effects import Counted, SharedAccess, shared_steps
from tilewright.support.dataclass import dataclass

Span = tuple[int, int]


@dataclass(frozen=True)
class PlacedAccess:
    """An access with the bytes that it may touch: spans [start, end).

    `position` is the slot of a ring that the bytes are of, where that is known. `waits_itself`:
    it is the end of what comes to them, whichever op started that.
    """

    access: SharedAccess
    spans: tuple[Span, ...]
    position: RingPosition | None = None
    waits_itself: bool = False

    def covers(self, other: PlacedAccess) -> bool:
        """Whether all bytes of another access are among those of this one."""
        return all(any(a <= c and d <= b for a, b in self.spans) for c, d in other.spans)

    def overlaps(self, other: PlacedAccess) -> bool:
        """Whether both may touch one byte; positions of both count from where control is."""
        mine, others = self.position, other.position
        if mine is not None and others is not None and mine.is_other(others):
            return False
        return any(a < d and c < b for a, b in self.spans for c, d in other.spans)

    def conflicts(self, later: PlacedAccess) -> bool:
        """Whether warps must wait between this access and a later one."""
        return (self.access.is_write or later.access.is_write) and self.overlaps(later)

    def hides_from(self, later: PlacedAccess) -> bool:
        """Whether an asynchronous unit may miss what threads wrote here, without a fence."""
        is_plain_write = self.access.is_write and not self.access.is_async
        return is_plain_write and later.access.is_async and self.overlaps(later)

    def __str__(self) -> str:
        verb = "write" if self.access.is_write else "read"
        return f"the {verb} of {self.access.op.name} at {describe(self.access.op)}"


PlacedStep = PlacedAccess | Order | Group | Counted


class PlacedAccesses:
    """The accesses of each op of a kernel whose shared memory has been placed."""

    def __init__(self) -> None:
        self._aliases = SharedAliases()
        # Nothing that slots are counted by changes while barriers are put in.
        self.counted_from = cache(counted_from)
        self.bases: set[SSAValue] = set()
        """The values that the slots of the accesses that are known are counted from."""
        self._steps: dict[Operation, tuple[PlacedStep, ...]] = {}

    def steps(self, op: Operation) -> tuple[PlacedStep, ...]:
        """What an op without control flow inside does, in order."""
        found = self._steps.get(op)
        if found is None:
            found = self._steps[op] = tuple(self._found(op))
        return found

    def _found(self, op: Operation) -> Iterator[PlacedStep]:
        if orders_roles(op):
            # Replicas that meet order what their own warps have done, too.
            yield from (step for step in shared_steps(op) if step is Order.BARRIER)
            return
        for step in shared_steps(op):
            if not isinstance(step, SharedAccess):
                yield step
            elif not self._is_in_ring(step):
                yield self._placed(step, op)

    def _placed(self, step: SharedAccess, op: Operation) -> PlacedAccess:
        is_end = step.extent is Extent.END
        # Where an access of another op ends, its view is of the iteration that started it.
        is_here = not is_end or step.op is op
        position = None
        if step.tile is not None and is_here:
            position = position_of(step.tile, self.counted_from)
        if position is not None and position.base is not None:
            self.bases.add(position.base)
        waits_itself = is_end and is_here and step.tile is not None
        return PlacedAccess(step, self._spans(step), position, waits_itself)

    def _is_in_ring(self, access: SharedAccess) -> bool:
        """Whether a ring orders an access: one role fills its slots, others read them."""
        return access.tile is not None and all(map(is_in_ring, self._aliases.roots(access.tile)))

    def all_accesses(self, block: Block) -> list[PlacedAccess]:
        """Every access in a block, control flow inside of it included."""
        found: list[PlacedAccess] = []
        for op in block.ops:
            if is_control_flow(op):
                for region in op.regions:
                    for inner in region.blocks:
                        found += self.all_accesses(inner)
            else:
                found += [step for step in self.steps(op) if isinstance(step, PlacedAccess)]
        return found

    def _spans(self, access: SharedAccess) -> tuple[Span, ...]:
        if access.tile is None:
            start = scratch_offset(access.op)
            return ((start, start + scratch_bytes(access.op)),)
        spans: list[Span] = []
        for place in self._aliases.places(access.tile):
            base = _offset(place.root)
            spans.append((base + place.start, base + place.end))
        return tuple(spans)


def _offset(root: Operation) -> int:
    offset = root.properties.get("offset_bytes")
    if not isinstance(offset, IntegerAttr):
        raise missing(root, "its shared tile has no place", "run `place-shared` first")
    return offset.value.data
