"""Decides the schedule of a kernel, on T0: which loads run ahead of their loop, and over what.

    for … { %a = load …; %b = load …; %d = dot %a, %b, %c }
    ⇒ tt.func … {tw.schedule = #tw.schedule<"ring loads tiles load#0 load#1 slots 4 cp_async
      release late; loop for#0 load#0 @0.1 load#1 @0.1 dot#0 @2.0">}

`num_stages`, of a loop or of the kernel, is the number of slots, of which as many are used as fit;
where neither says it, `default_stages` does.
A schedule that is annotated already is kept; either way what it names is marked, to be found at
the levels below.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ir.schedule import Channel, LoopSchedule, Schedule
from tilewright.ir.schedule_attributes import (
    PARTIAL,
    SCHEDULE,
    annotate_schedule,
    name_anchor,
    schedule_of,
)
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.roles import find_roles
from tilewright.schedule.partition.warps import warps_of_program
from tilewright.schedule.plan.anchors import anchors_of, kind_of, require_anchors
from tilewright.schedule.plan.candidates import MOST_SLOTS, Candidate, shared_operands, tile_bytes
from tilewright.schedule.plan.read_schedule import together
from tilewright.schedule.plan.verify_schedule import problems, require_legal
from tilewright.support.dataclass import dataclass, replace

_SPARE_BYTES = 4096
"""Left for reductions and mbarriers. Chosen, not measured: a reduction of 8 warps takes 2 KiB."""


@dataclass(frozen=True)
class DecideSchedule(Pass):
    """Annotate the kernel with its schedule; see the module. `num_stages` 0 is unsaid.

    *Raises*: MalformedSchedule for an annotated one that names what is not there, PlanRefused for
    one that the kernel's dependences or the machine do not allow.
    """

    machine: MachineModel = SM_90A
    num_stages: int = 0
    num_warps: int = 4
    name = "decide-schedule"
    requires = "T0r"
    produces = "T0r"
    after = ("decide-products",)

    def apply(self, module: ModuleOp) -> None:
        """Decide the schedule of the kernel."""
        kernel = find_kernel(module)
        if find_roles(kernel) is not None:
            return  # the roles are the schedule
        schedule = schedule_of(kernel)
        if schedule is None or schedule.roles:
            # Roles that could not be formed leave a program of one role.
            schedule = self._completed(kernel, Schedule())
            if not schedule.loops and not schedule.reasons:
                kernel.attributes.pop(SCHEDULE, None)
                return
        else:
            anchors = require_anchors(schedule, kernel)
            num_warps = warps_of_program(kernel, self.num_warps)
            require_legal(kernel, schedule, anchors, self.machine, num_warps)
        if kernel.attributes.pop(PARTIAL, None) is not None:
            schedule = self._completed(kernel, schedule)
        annotate_schedule(kernel, schedule)
        for anchor, op in require_anchors(schedule, kernel).items():
            if anchor.index >= 0:
                name_anchor(op, anchor)

    def _completed(self, kernel: FuncOp, given: Schedule) -> Schedule:
        """A schedule with that of all loops which it says nothing of."""
        num_warps = warps_of_program(kernel, self.num_warps)
        decided = decide_schedule(kernel, self.machine, self.num_stages, num_warps)
        return _legal_part(decided, given, kernel, self.machine, num_warps)


def _legal_part(
    decided: Schedule, given: Schedule, kernel: FuncOp, machine: MachineModel, num_warps: int
) -> Schedule:
    """What is given, with the loops that are decided and may run so, and why the others do not."""
    named = [loop.loop for loop in given.loops]
    loops = tuple(loop for loop in decided.loops if loop.loop not in named)
    both = together([given, replace(decided, loops=loops)])
    anchors = require_anchors(both, kernel)
    kept = replace(given, reasons=decided.reasons)
    for loop in both.loops[len(named) :]:
        mine = [c for c in both.channels if c.tiles[0] in dict(loop.places)]
        more = replace(kept, loops=(*kept.loops, loop), channels=(*kept.channels, *mine))
        problem = next(problems(more, anchors, machine, num_warps), None)
        if problem is not None:
            reason = f"{describe(problem.op)}: {problem.reason}"
            more = replace(kept, reasons=(*kept.reasons, reason))
        kept = more
    return kept


def decide_schedule(
    kernel: FuncOp, machine: MachineModel, num_stages: int, num_warps: int = 4
) -> Schedule:
    """The schedule of a kernel in one role, from what its author said."""
    names = {op: anchor for anchor, op in anchors_of(kernel).items() if anchor.index >= 0}
    held_bytes = _held_bytes(kernel)
    free_bytes = machine.max_shared_bytes - _SPARE_BYTES - held_bytes
    loops: list[LoopSchedule] = []
    channels: list[Channel] = []
    reasons: list[str] = []
    for op in kernel.walk():
        if kind_of(op) != "for":
            continue
        candidate = Candidate(op, names)
        asked = candidate.asked(num_stages)
        room_bytes = free_bytes - candidate.moved_bytes
        candidate.take_computed(kernel, asked, room_bytes)
        if not candidate.loads:
            continue
        unsaid = candidate.unsaid(held_bytes, num_warps)
        wanted = asked or unsaid.default_stages(machine)
        if wanted < 2:
            continue
        fitting = min(MOST_SLOTS, max(0, room_bytes) // candidate.slot_bytes)
        if fitting < asked:
            size = candidate.slot_bytes
            most = f"a loop has {fitting} slots at most"
            limit = most if fitting == MOST_SLOTS else f"{fitting} slots of {size} bytes fit"
            reasons.append(f"{describe(op)}: {limit}, not {wanted}")
        slots = candidate.filled(min(wanted, fitting))
        if slots > 1:
            channels += candidate.channels(slots, len(channels))
            loops.append(candidate.schedule(slots))
    return Schedule(channels=tuple(channels), loops=tuple(loops), reasons=tuple(reasons))


def loops_in_order(
    kernel: FuncOp, machine: MachineModel, num_warps: int = 4
) -> Iterator[tuple[Operation, str]]:
    """The loops of products whose loads do not run ahead where nobody asks for it, and why."""
    names = {op: anchor for anchor, op in anchors_of(kernel).items() if anchor.index >= 0}
    held_bytes = _held_bytes(kernel)
    for op in kernel.walk():
        candidate = Candidate(op, names) if kind_of(op) == "for" else None
        if candidate is None or not (candidate.loads and candidate.products):
            continue
        reason = candidate.unsaid(held_bytes, num_warps).why_one(machine)
        if reason and not candidate.asked(0):
            yield op, reason


def _held_bytes(kernel: FuncOp) -> int:
    """The bytes of the shared operands of products that come from outside of their loops."""
    held: set[SSAValue] = set()
    for op in kernel.walk():
        for value in shared_operands(op):
            owner = value.owner
            is_outside = not isinstance(owner, Operation) or owner.parent is not op.parent
            held |= {value} if is_outside else set()
    return sum(map(tile_bytes, held))
