"""Makes pairs of programs load blocks for each other, where the schedule says so (T0r to T0r).

    schedule "… cluster 2" ⇒ tt.func … {tw.cluster = 2}; see `share_blocks.py`

A block that both programs load at once comes in two halves: each program copies one of them to the
shared memory of both. So every block that may be shared is moved in an even number of boxes.

*Why here*: behind `form-roles`, as only a role that loads by the copy engine can wait for two
programs. What is refused stays a program of its own, and a reason of the schedule says why.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.locations import describe, span_of
from tilewright.ir.passes import Pass
from tilewright.ir.schedule import Schedule
from tilewright.ir.schedule_attributes import annotate_schedule, schedule_of
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.channels import PutOp
from tilewright.ops.descriptors.ir import DescriptorLoadOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.program.persistence import most_programs, set_cluster
from tilewright.ops.roles import RolesOp, find_roles
from tilewright.runtime.launch_numbers import LaunchGuard
from tilewright.schedule.partition.refusal import Refused
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import PlanRefused
from tilewright.targets.nvidia.partition.share_blocks import PROGRAMS, share_blocks
from tilewright.targets.nvidia.partition.smaller_maps import SmallerMaps, drop_unused_maps
from tilewright.targets.nvidia.tma.box_annotations import annotate_box, box_plan
from tilewright.targets.nvidia.tma.boxes import BoxPlan, box_reason
from tilewright.targets.nvidia.tma.launch_conditions import add_guards

_PAIRS = LaunchGuard(
    ("programs", 0), "multiple", PROGRAMS, "programs come in pairs", of_clusters=True
)


@dataclass(frozen=True)
class FormClusters(Pass):
    """The pass; see the module."""

    machine: MachineModel = SM_90A
    cluster_dims: tuple[int, int, int] | None = None
    name = "form-clusters"
    requires = "T0r"
    produces = "T0r"
    after = ("form-roles",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel.

        *Raises*: PlanRefused where the launch makes clusters of another shape.
        """
        kernel = find_kernel(module)
        schedule, roles = schedule_of(kernel), find_roles(kernel)
        if schedule is None or roles is None or schedule.cluster == 1:
            return
        if self.cluster_dims not in (None, (PROGRAMS, 1, 1)):
            raise _of_another_shape(kernel, self.cluster_dims)
        try:
            self._share(kernel, roles, schedule)
        except Refused as refused:
            reason = f"{describe(refused.op)}: programs do not load for each other: "
            reasons = (*schedule.reasons, reason + refused.reason)
            annotate_schedule(kernel, replace(schedule, cluster=1, reasons=reasons))

    def _share(self, kernel: FuncOp, roles: RolesOp, schedule: Schedule) -> None:
        if self.machine.max_cluster_size < PROGRAMS:
            raise Refused(kernel, f"{self.machine.arch} has no clusters")
        if all(role.replicas < PROGRAMS for role in schedule.roles):
            # What replicas write is known to be read by nobody, so that a tile may be done twice.
            raise Refused(kernel, "one group computes, and two are what was measured")
        loads = [load for put in roles.walk() if isinstance(put, PutOp) for load in _loads(put)]
        halves = {load: _half_boxes(load) for load in loads}
        share_blocks(roles)
        maps = SmallerMaps(kernel)
        for load, plan in halves.items():
            _take_boxes(load, plan, maps)
        drop_unused_maps(kernel)
        set_cluster(kernel, PROGRAMS)
        if self.cluster_dims is None and not most_programs(kernel):
            add_guards(kernel, [_PAIRS])


def _of_another_shape(kernel: FuncOp, dims: tuple[int, int, int] | None) -> PlanRefused:
    span, chain = span_of(kernel)
    return PlanRefused(
        f"the schedule says `cluster {PROGRAMS}`, for neighbours along the first axis, and the "
        f"launch makes clusters of {dims}",
        argument="schedule",
        hint="leave `cluster_dims` out, or the clause",
        span=span,
        chain=chain,
    )


def _loads(put: PutOp) -> list[DescriptorLoadOp]:
    """The loads of a fill. *Raises*: Refused where something else makes a tile."""
    owners = [value.owner for value in put.values]
    loads = [owner for owner in owners if isinstance(owner, DescriptorLoadOp)]
    if len(loads) != len(owners):
        raise Refused(put, "the copy engine does not bring all of a fill")
    return loads


def _half_boxes(load: DescriptorLoadOp) -> BoxPlan:
    """Boxes of which two programs move as many. *Raises*: Refused where there are none."""
    plan = box_plan(load, load.desc)
    if len(plan.copies()) % PROGRAMS == 0:
        return plan
    rows, *others = plan.box
    halved = replace(plan, box=(rows // PROGRAMS, *others))
    reason = "it has one row" if rows % PROGRAMS else box_reason(halved)
    if reason:
        raise Refused(load, f"a block of {'x'.join(map(str, plan.shape))} has no halves: {reason}")
    return halved


def _take_boxes(load: DescriptorLoadOp, plan: BoxPlan, maps: SmallerMaps) -> None:
    """Let a load go by other boxes than its map has."""
    if plan == box_plan(load, load.desc):
        return
    load.operands[0] = maps.with_boxes(load.desc, plan)
    annotate_box(load, plan)
