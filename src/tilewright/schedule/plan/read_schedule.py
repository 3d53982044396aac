"""Reads what an author says of the schedule: a text for the kernel, one for a loop, places of ops.

    matmul[grid](…, schedule="ring ab tiles load#0 load#1 slots 4 tma; loop for#0 …")    the kernel
    for k in tl.range(0, K, schedule="ring ab tiles load#0 slots 3 tma; loop for#0 …"):  a loop
        with tl.stage(0):                                                                  ops
            a = tl.load(a_ptrs)

In the text of a loop anchors count from the loop on: `for#0` is the loop, `load#0` its first load.
The loads of ops with places fill rings of as many slots as their stages ask for. Loops that nobody
gave a schedule are left to `decide-schedule`, unless a text for the kernel says it all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr
from xdsl.ir import Operation

from tilewright.ir.locations import describe, span_of
from tilewright.ir.passes import Pass
from tilewright.ir.schedule import Anchor, Channel, LoopSchedule, Place, Schedule, Step
from tilewright.ir.schedule_attributes import (
    PARTIAL,
    annotate_schedule,
    hint_of,
    place_of,
    schedule_of,
)
from tilewright.ir.schedule_text import parse_schedule
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.schedule.partition.tasks import ask_for_roles
from tilewright.schedule.plan.anchors import anchors_of, by_engine, kind_of, require_anchors
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import PlanRefused

_STAGES = "tt.num_stages"
_ROLES = "tt.warp_specialize"


@dataclass(frozen=True)
class ReadSchedule(Pass):
    """The pass; see the module. `text` '' and `groups` 0 are unsaid.

    *Raises*: MalformedSchedule for a text that cannot be read or names what is not there,
    PlanRefused for two that say different things of one loop.
    """

    text: str = ""
    groups: int = 0
    name = "read-schedule"

    def apply(self, module: ModuleOp) -> None:
        """Annotate the kernel with what is said, if anything is."""
        kernel = find_kernel(module)
        if self.text:
            if schedule_of(kernel) is not None:
                raise _refused(
                    kernel,
                    "the option `schedule` and a line `kernel schedule` of the option `plan` both "
                    "give the schedule",
                    "leave one of them out",
                )
            annotate_schedule(kernel, parse_schedule(self.text, span_of(kernel)[0]))
        parts = list(_parts(kernel))
        if not parts:
            return
        self._require_one(kernel, parts[0])
        annotate_schedule(kernel, together([part.schedule for part in parts]))
        kernel.attributes[PARTIAL] = UnitAttr()

    def _require_one(self, kernel: FuncOp, part: _Part) -> None:
        """Refuse a second schedule, and roles, for a kernel whose loops have schedules."""
        if schedule_of(kernel) is not None:
            other = "a schedule is given for the whole kernel"
        elif self.groups:
            other = f"`num_consumer_groups={self.groups}` makes roles of the kernel"
        elif any(_ROLES in op.attributes for op in kernel.walk()):
            other = "`warp_specialize` makes roles of the kernel"
        elif ask_for_roles(kernel):
            other = "`tl.async_task` makes roles of the kernel"
        else:
            return
        raise _refused(
            part.loop,
            f"{part.source} gives the loop at {describe(part.loop)} a schedule, and {other}",
            "leave one of them out",
        )


@dataclass(frozen=True)
class _Part:
    """The schedule of one loop, in the numbers of the kernel, and what says it."""

    loop: Operation
    schedule: Schedule
    source: str


def _parts(kernel: FuncOp) -> Iterator[_Part]:
    """What the author says of each loop, in the order of the text."""
    _refuse_places_outside_of_loops(kernel)
    names = {op: anchor for anchor, op in anchors_of(kernel).items() if anchor.index >= 0}
    for op in kernel.walk():
        if kind_of(op) != "for":
            continue
        text, pinned = hint_of(op), _pinned(op)
        if text and pinned:
            raise _refused(
                op,
                f"the loop at {describe(op)} has a `schedule`, and `tl.stage` places "
                f"{kind_of(pinned[0])} at {describe(pinned[0])} in it",
                "leave one of them out",
            )
        if text:
            yield _Part(op, _hinted(op, text, names), "`schedule`")
        elif pinned:
            yield _Part(op, _placed(op, pinned, names), "`tl.stage`")


def _refuse_places_outside_of_loops(kernel: FuncOp) -> None:
    for op in kernel.walk():
        holder = op.parent_op()
        if place_of(op) is None or not _has_place(op) or holder is None:
            continue
        if kind_of(holder) != "for":
            raise _refused(
                op,
                f"`tl.stage` places the {kind_of(op)} at {describe(op)}, which stands directly in "
                "no `for`",
                "stages are those of a loop's own body: put `tl.stage` there, outside of `if`",
            )


# --- the text of a loop ---


def _hinted(loop: Operation, text: str, names: Mapping[Operation, Anchor]) -> Schedule:
    span, _ = span_of(loop)
    local = parse_schedule(text, span)
    if replace(local, channels=(), loops=()) != Schedule():
        raise _refused(
            loop,
            f"the `schedule` of the loop at {describe(loop)} has clauses of the whole kernel",
            "rings and loops stand there; all else in the option `schedule` of a launch",
        )
    if _STAGES in loop.attributes:
        raise _refused(
            loop,
            f"the loop at {describe(loop)} has `num_stages` and a `schedule`, which says it too",
            "leave `num_stages` out: it is the number of slots",
        )
    ops = require_anchors(local, loop)
    numbers = {anchor: names[op] for anchor, op in ops.items()}
    return Schedule(
        channels=tuple(
            replace(channel, tiles=tuple(numbers[tile] for tile in channel.tiles))
            for channel in local.channels
        ),
        loops=tuple(_renumbered(one, numbers) for one in local.loops),
    )


def _renumbered(loop: LoopSchedule, numbers: Mapping[Anchor, Anchor]) -> LoopSchedule:
    places = tuple((numbers.get(anchor, anchor), place) for anchor, place in loop.places)
    steps = tuple(
        Step(step.action, numbers.get(step.subject, step.subject))
        if isinstance(step.subject, Anchor)
        else step
        for step in loop.order
    )
    return LoopSchedule(numbers[loop.loop], places, steps)


# --- places of ops ---


def _pinned(loop: Operation) -> list[Operation]:
    """The ops of a loop's body that have places and can have them."""
    ops = loop.regions[0].block.ops
    return [op for op in ops if place_of(op) is not None and _has_place(op)]


def _has_place(op: Operation) -> bool:
    """Whether an op has a place of its own: what is only computed from numbers follows others."""
    if kind_of(op) not in ("cvt", "reduce"):
        return kind_of(op) in ("dot", "load", "store")
    seen: set[Operation] = set()
    pending = [value.owner for value in op.operands]
    while pending:
        owner = pending.pop()
        if not isinstance(owner, Operation) or owner in seen or owner.parent is not op.parent:
            continue
        if kind_of(owner) in ("dot", "load", "reduce"):
            return True
        seen.add(owner)
        pending += [value.owner for value in owner.operands]
    return False


def _placed(
    loop: Operation, pinned: list[Operation], names: Mapping[Operation, Anchor]
) -> Schedule:
    places = [(op, place_of(op) or Place()) for op in pinned]
    last = max(place.stage for _, place in places)
    rings: dict[tuple[int, str], list[Anchor]] = {}
    for op, place in places:
        if kind_of(op) == "load" and place.stage < last:
            medium = "tma" if by_engine(op) else "cp_async"
            rings.setdefault((place.stage, medium), []).append(names[op])
    channels = tuple(
        Channel(f"ring{number}", tuple(tiles), _slots(loop, last - stage + 1), medium)
        for number, ((stage, medium), tiles) in enumerate(rings.items())
    )
    anchored = tuple((names[op], place) for op, place in places)
    return Schedule(channels=channels, loops=(LoopSchedule(names[loop], anchored),))


def _slots(loop: Operation, needed: int) -> int:
    """The slots of a ring: those that the stages need, or more where the loop asks for more."""
    asked = loop.attributes.get(_STAGES)
    if not isinstance(asked, IntegerAttr):
        return needed
    if asked.value.data < needed:
        raise _refused(
            loop,
            f"the loop at {describe(loop)} has `num_stages={asked.value.data}`, and its stages "
            f"have {needed} tiles under way",
            f"take `num_stages={needed}`, or leave it out",
        )
    return asked.value.data


# --- all loops ---


def together(schedules: list[Schedule]) -> Schedule:
    """Several schedules as one; a ring whose name is taken gets another one."""
    taken: set[str] = set()
    channels: list[Channel] = []
    loops: list[LoopSchedule] = []
    for schedule in schedules:
        renamed: dict[str, str] = {}
        for channel in schedule.channels:
            renamed[channel.name] = _free_name(channel.name, taken)
            taken.add(renamed[channel.name])
            channels.append(replace(channel, name=renamed[channel.name]))
        loops += [_with_rings(loop, renamed) for loop in schedule.loops]
    return Schedule(channels=tuple(channels), loops=tuple(loops))


def _free_name(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _with_rings(loop: LoopSchedule, renamed: Mapping[str, str]) -> LoopSchedule:
    steps = tuple(
        Step(step.action, renamed[step.subject]) if isinstance(step.subject, str) else step
        for step in loop.order
    )
    return replace(loop, order=steps)


def _refused(op: Operation, message: str, hint: str) -> PlanRefused:
    span, chain = span_of(op)
    return PlanRefused(message, argument="schedule", hint=hint, span=span, chain=chain)
