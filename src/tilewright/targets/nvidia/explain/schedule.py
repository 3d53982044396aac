"""The account of a schedule: what runs where, the rings with slots and bytes, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from xdsl.ir import Operation

from tilewright.analysis.alias import tile_bytes
from tilewright.ir.encoding import SharedType, slot_step
from tilewright.ir.locations import describe
from tilewright.ir.schedule import REST, Anchor, Channel, Place, Role, Schedule
from tilewright.ir.schedule_attributes import pipelining_of, schedule_of
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.ops.function import FuncOp
from tilewright.ops.ring_queries import rings_of
from tilewright.ops.rings import RingCommitOp
from tilewright.ops.roles import find_roles, role_around
from tilewright.schedule.plan.anchors import anchors_of
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.explain.waits import WaitSummary, explain_waits


@dataclass(frozen=True)
class OpSummary:
    """Where an op runs: its role ('' without roles), its stage and its cluster.

    `place` is '' outside of loops with stages; `ring` says what a load fills, '' for nothing.
    """

    anchor: str
    line: str
    role: str
    place: str
    ring: str


@dataclass(frozen=True)
class RingSummary:
    """One ring: the loads or the roles that fill it, its slots and their bytes, who moves them.

    `shares` is the ring in whose memory the slots lie; '' where they have their own.
    """

    name: str
    loads: str
    slots: int
    slot_bytes: int
    medium: str
    release: str
    shares: str = ""


@dataclass(frozen=True)
class ScheduleSummary:
    """The schedule of a kernel in its own lines.

    `clauses` are its text, which `parse_schedule` reads back; `loops` say how each loop was
    pipelined, or why not; `reasons` why the schedule is this one.
    """

    clauses: tuple[str, ...]
    roles: tuple[Role, ...]
    ops: tuple[OpSummary, ...]
    rings: tuple[RingSummary, ...]
    waits: tuple[WaitSummary, ...]
    loops: tuple[str, ...]
    reasons: tuple[str, ...]


def explain_schedule(tiles: FuncOp, kernel: FuncOp) -> ScheduleSummary | None:
    """The account of a T2 kernel, whose ops `tiles` has as they were at T0.

    None where nothing was scheduled.
    """
    schedule = schedule_of(kernel)
    loops = tuple(_loops(kernel))
    if schedule is None:
        return None
    numbered = {anchor: op for anchor, op in anchors_of(tiles).items() if anchor.index >= 0}
    return ScheduleSummary(
        schedule.clauses(),
        schedule.roles,
        tuple(_ops(schedule, numbered)),
        (*(_ring(c, numbered) for c in schedule.channels), *_rings_of_roles(schedule, kernel)),
        explain_waits(kernel),
        loops,
        schedule.reasons,
    )


def _loops(kernel: FuncOp) -> Iterator[str]:
    for op in kernel.walk():
        account = pipelining_of(op)
        if account:
            yield f"{describe(op)}: {account}"


def _ops(schedule: Schedule, numbered: Mapping[Anchor, Operation]) -> Iterator[OpSummary]:
    """Products and accesses of tiles, and what else the schedule names, in text order."""
    places = _places(schedule)
    named = {*places, *(tile for channel in schedule.channels for tile in channel.tiles)}
    for anchor, op in numbered.items():
        if anchor not in named and anchor.kind not in ("dot", "load", "store"):
            continue
        place, channel = places.get(anchor), schedule.channel_of(anchor)
        yield OpSummary(
            str(anchor),
            describe(op),
            _role(schedule, anchor, place),
            "" if place is None else f"stage {place.stage}, cluster {place.cluster}",
            "" if channel is None else channel.name,
        )


def _places(schedule: Schedule) -> dict[Anchor, Place]:
    return {
        anchor: place for loop in schedule.loops for anchor, place in loop.places if anchor != REST
    }


def _role(schedule: Schedule, anchor: Anchor, place: Place | None) -> str:
    """The role that runs an op: the one it is given, or who loads what fills a ring."""
    if place is not None and place.role:
        return place.role
    kind = "load" if schedule.channel_of(anchor) is not None else "math"
    return next((role.name for role in schedule.roles if role.kind == kind), "")


def _ring(channel: Channel, numbered: Mapping[Anchor, Operation]) -> RingSummary:
    ops = [numbered[tile] for tile in channel.tiles]
    blocks = {op.parent: [other for other in ops if other.parent is op.parent] for op in ops}
    # Loads of several blocks take turns with the slots; those of one block share a slot.
    size = max(sum(map(_slot_bytes, together)) for together in blocks.values())
    loads = ", ".join(map(str, channel.tiles))
    moved = channel.medium, channel.release, channel.shares
    return RingSummary(channel.name, loads, channel.slots, size, *moved)


def _rings_of_roles(schedule: Schedule, kernel: FuncOp) -> Iterator[RingSummary]:
    """The rings that no load fills: where roles meet, and where replicas show parts of tiles."""
    named = {channel.name for channel in schedule.channels}
    roles = find_roles(kernel)
    for ring in rings_of(kernel) if roles is not None else ():
        if ring.ring_name.data in named:
            continue
        types = [tile.type for tile in ring.tiles]
        size = sum(tile_bytes(type_) for type_ in types if isinstance(type_, SharedType))
        users = [use.operation for use in ring.result.uses]
        filling = [role_around(op) for op in users if isinstance(op, RingCommitOp)]
        names = dict.fromkeys(of.described()[number].name for of, number in filter(None, filling))
        who, slots = ", ".join(names), ring.num_slots
        yield RingSummary(ring.ring_name.data, who, slots, size // slots, "threads", "wait")


def _slot_bytes(load: Operation) -> int:
    type_ = load.results[0].type
    return slot_step(prod(shape_of(type_)) * storage_bytes(type_))
