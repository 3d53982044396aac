"""The schedules of a kernel that are worth timing, as options of a launch, in a fixed order.

They are what the deciding passes make of `num_stages`, of numbers of groups and of orders of a
loop's products, as far as the kernel and the machine allow them: what does not fit, cannot be
formed or comes to the same as another one is left out. The first is no pipeline at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.schedule import Schedule
from tilewright.ir.schedule_attributes import (
    annotate_schedule,
    hint_of,
    place_of,
    schedule_of,
    tasks_of,
)
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.program.persistence import cluster_of
from tilewright.ops.roles import find_roles
from tilewright.passes.persist import persist, reason_against
from tilewright.schedule.plan.products import DecideProducts
from tilewright.schedule.plan.schedule import DecideSchedule
from tilewright.support.dataclass import replace
from tilewright.support.errors import TilewrightError
from tilewright.support.options import LOOP_SCHEDULES, CompileOptions
from tilewright.targets.nvidia.partition.decide import DecideRoles
from tilewright.targets.nvidia.partition.epilogues import (
    ALL_BUFFERS,
    TWO_BUFFERS,
    waits_whole,
)
from tilewright.targets.nvidia.partition.form import FormRoles
from tilewright.targets.nvidia.partition.form_clusters import FormClusters
from tilewright.targets.nvidia.partition.persistence import gains
from tilewright.targets.nvidia.partition.share_blocks import PROGRAMS

_STAGES = (2, 3, 4, 5)
"""Chosen, not measured: what is fastest has 2 or 4, and more than 5 slots seldom fit."""
# By definition: all that options may ask for.
_GROUPS = (1, 2, 3)
# By definition: as many slots as fit, or the fewest that overlap anything.
_SLOTS = (0, 2)


def enumerate_schedules(
    module: ModuleOp, machine: MachineModel, options: CompileOptions
) -> tuple[Mapping[str, object], ...]:
    """The options of each schedule of a kernel that stands at T0, behind the tile passes."""
    kernel = find_kernel(module)
    if not any(op.name == "scf.for" for op in kernel.walk()) or _is_said(kernel):
        return ()
    found: list[Mapping[str, object]] = [{"num_stages": 1}]
    seen: set[str] = {""}
    for schedule in (*_pipelined(module, machine, options), *_in_roles(module, machine, options)):
        text = str(schedule)
        if text not in seen:
            seen.add(text)
            found.append({"schedule": text})
    return tuple(found) if len(found) > 1 else ()


def _is_said(kernel: FuncOp) -> bool:
    """Whether the author says in the kernel where its ops run."""
    return any(hint_of(op) or place_of(op) or tasks_of(op) for op in kernel.walk())


def _pipelined(
    module: ModuleOp, machine: MachineModel, options: CompileOptions
) -> Iterator[Schedule]:
    """What `num_stages` makes of the kernel, for each number that fits."""
    for stages in _STAGES:
        clone = module.clone()
        DecideProducts(machine, options.num_warps).apply(clone)
        DecideSchedule(machine, stages, options.num_warps).apply(clone)
        schedule = schedule_of(find_kernel(clone))
        if schedule is not None and schedule.loops:
            yield schedule


def _in_roles(
    module: ModuleOp, machine: MachineModel, options: CompileOptions
) -> Iterator[Schedule]:
    """The roles of the kernel that can be formed, by groups, order of products and slots."""
    if not machine.has_setmaxnreg:
        return
    seen: set[str] = set()
    for form in (module, *_persistent(module, machine)):
        for groups, order, slots in product(_GROUPS, ("", *LOOP_SCHEDULES), _SLOTS):
            decide = DecideRoles(
                machine,
                options.num_warps,
                groups,
                slots,
                loop_schedule=order,
                buffers=TWO_BUFFERS,
            )
            schedule = decide.schedule(find_kernel(form))
            is_new = schedule.channels and str(schedule) not in seen
            seen.add(str(schedule))
            if not is_new or not _can_be_formed(form, machine, schedule):
                continue
            yield schedule
            clustered = replace(schedule, cluster=PROGRAMS)
            if schedule.cluster == 1 and _can_be_formed(form, machine, clustered):
                yield clustered
            waiting = replace(decide, buffers=ALL_BUFFERS).schedule(find_kernel(form))
            is_whole = schedule.persist and waits_whole(find_kernel(form), waiting)
            if is_whole and _can_be_formed(form, machine, waiting):
                yield waiting


def _persistent(module: ModuleOp, machine: MachineModel) -> Iterator[ModuleOp]:
    """The kernel with programs that go from tile to tile, where that is worth a try."""
    kernel = find_kernel(module)
    if gains(kernel) and not reason_against(kernel):
        clone = module.clone()
        persist(find_kernel(clone), machine.num_sms)
        yield clone


def _can_be_formed(module: ModuleOp, machine: MachineModel, schedule: Schedule) -> bool:
    """Whether the kernel runs as these roles, and in such clusters, found by forming them."""
    clone = module.clone()
    kernel = find_kernel(clone)
    annotate_schedule(kernel, schedule)
    try:
        FormRoles(machine).apply(clone)
        FormClusters(machine).apply(clone)
    except TilewrightError:  # tiles that its groups do not share, or what the machine lacks
        return False
    return find_roles(kernel) is not None and cluster_of(kernel) == schedule.cluster
