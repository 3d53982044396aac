"""Takes slots from loops until all shared memory of a program in one role has room (T1 to T1).

    for#0 with 3 slots of 68 KiB, beside a conversion of 64 KiB ⇒ 2 slots, and why

How many slots fit is decided before layouts are, and what conversions, reductions and results move
through shared memory is known behind the pipeline only. So where slots may leave too little, the
passes up to there run on a copy, with a slot less each time, until that fits. A slot less is slower
and computes the same; what does not fit without any is an error of whoever gives places.

*Why here*: in front of `pipeline-loops`, which makes code of the slots. `fit-rings` does the same
for roles, whose rings are shortened as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from tilewright.analysis.alias import slot_bytes
from tilewright.ir.effects import Allocation, own_effects
from tilewright.ir.encoding import SharedType, slot_step
from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ir.schedule import Schedule
from tilewright.ir.schedule_attributes import anchor_of, annotate_schedule, schedule_of
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import counted_loops
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.roles import find_roles
from tilewright.ops.staging import shared_tiles_of
from tilewright.schedule.async_copy import CopyAsync
from tilewright.schedule.conversions import MAX_SCRATCH_BYTES
from tilewright.schedule.delay_conversions import DelayConversions
from tilewright.schedule.exchanges import DecideExchanges
from tilewright.schedule.partition.wait_in_loops import WaitInLoops
from tilewright.schedule.partition.warps import warps_of_tiles
from tilewright.schedule.pipeline.pipeline_loops import PipelineLoops
from tilewright.schedule.plan.candidates import tile_bytes
from tilewright.schedule.plan.loop_places import shortened
from tilewright.schedule.shared_memory import plan_shared
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.remarks import is_in_loop
from tilewright.targets.nvidia.tma.barriers import barrier_bytes
from tilewright.targets.nvidia.tma.slots import TmaEngine

PIPELINING = (
    PipelineLoops(TmaEngine()),
    CopyAsync(),
    WaitInLoops(),
    DelayConversions(),
    DecideExchanges(),
)
"""The passes that make code of slots, until all scratch is known."""


@dataclass(frozen=True)
class FitStages(Pass):
    """The pass; see the module."""

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "fit-stages"
    requires = "T1"
    produces = "T1"
    after = ("decide-schedule", "decide-copies")

    def apply(self, module: ModuleOp) -> None:
        """Shorten the schedule of the kernel."""
        kernel = find_kernel(module)
        given = schedule_of(kernel)
        if given is None or not given.loops or find_roles(kernel) is not None:
            return
        if _most_bytes(kernel, given) <= self.machine.max_shared_bytes:
            return
        schedule: Schedule | None = given
        while schedule is not None and not self._fits(module, schedule):
            schedule = shortened(schedule)
        if schedule is not None and schedule != given:
            annotate_schedule(kernel, replace(schedule, reasons=_reasons(kernel, given, schedule)))

    def _fits(self, module: ModuleOp, schedule: Schedule) -> bool:
        """Whether shared memory holds a kernel with a schedule."""
        clone = module.clone()
        kernel = find_kernel(clone)
        annotate_schedule(kernel, schedule)
        for item in PIPELINING:
            item.apply(clone)
        num_warps = warps_of_tiles(kernel, self.num_warps)
        taken_bytes = barrier_bytes(kernel)
        plan = plan_shared(kernel, self.machine, num_warps, taken_bytes)
        return plan.total_bytes + taken_bytes <= self.machine.max_shared_bytes


def _most_bytes(kernel: FuncOp, schedule: Schedule) -> int:
    """More than a kernel takes: all tiles apart, and the most that one conversion takes."""
    slots = max((channel.slots for channel in schedule.channels), default=1)
    total = MAX_SCRATCH_BYTES
    for op in kernel.walk():
        for effect in own_effects(op):
            type_ = effect.value.type if isinstance(effect, Allocation) else None
            if isinstance(type_, SharedType):
                times = slots if is_in_loop(op) else type_.slots.data
                total += times * slot_step(slot_bytes(type_))
        total += slots * sum(slot_step(tile_bytes(tile)) for tile in _loads_ahead(op, schedule))
    return total


def _loads_ahead(op: Operation, schedule: Schedule) -> Iterator[SSAValue]:
    """The tile that an op loads into a ring, where no place is made for it yet."""
    anchor = anchor_of(op)
    if anchor is not None and schedule.channel_of(anchor) is not None:
        tiles = (result for result in op.results if isinstance(result.type, TensorType))
        yield from (tile for tile in tiles if not any(shared_tiles_of(tile)))


def _reasons(kernel: FuncOp, given: Schedule, schedule: Schedule) -> tuple[str, ...]:
    """Why loops have fewer slots than they were given."""
    reasons = list(schedule.reasons)
    for loop in counted_loops(kernel):
        anchor = anchor_of(loop)
        before = None if anchor is None else given.slots_of(anchor)
        after = None if anchor is None else schedule.slots_of(anchor)
        if before != after:
            reasons.append(
                f"{describe(loop)}: {after} slots, not {before}: shared memory has no room for "
                "more beside what else lies there"
            )
    return tuple(reasons)
