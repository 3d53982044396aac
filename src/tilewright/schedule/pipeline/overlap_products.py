"""Overlaps the products of loops in roles, as their schedule has it (T1 to T1).

`stages` finds what runs when, `expand_stages` shows what becomes. A loop that cannot run so stays
as it is, and notes why.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation

from tilewright.ir.passes import Pass
from tilewright.ir.schedule import Schedule
from tilewright.ir.schedule_attributes import anchor_of, note_pipelining, schedule_of
from tilewright.ops.control_flow import ForOp
from tilewright.ops.function import find_kernel
from tilewright.ops.roles import find_roles
from tilewright.schedule.pipeline.expand_stages import expand_stages
from tilewright.schedule.pipeline.stages import stage_loop
from tilewright.schedule.pipeline.staging import Unfit
from tilewright.schedule.pipeline.turns import wait_behind_turns
from tilewright.schedule.plan.anchors import kind_of
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class OverlapProducts(Pass):
    """The pass; see the module."""

    name = "overlap-products"
    requires = "T1"
    produces = "T1"
    after = ("stage-channels",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the loops of the kernel's roles."""
        kernel = find_kernel(module)
        schedule, roles = schedule_of(kernel), find_roles(kernel)
        if roles is None:
            return
        for body in roles.bodies:
            wait_behind_turns(body.block)
        if schedule is None:
            return
        for op in tuple(roles.walk()):
            if kind_of(op) == "for":
                _overlap(op, schedule)


def _overlap(loop: Operation, schedule: Schedule) -> None:
    assert isinstance(loop, ForOp)
    anchor = anchor_of(loop)
    planned = None if anchor is None else schedule.loop_of(anchor)
    if planned is None or planned.num_stages == 1 or not _has_products(loop):
        return
    try:
        if isinstance(loop.lb.type, IndexType):
            raise Unfit("its counter has no fixed width")
        staged = stage_loop(loop, planned)
    except Unfit as unfit:
        note_pipelining(loop, f"not overlapped: {unfit}")
        return
    names = " ".join(str(anchor_of(dot)) for dot in staged.dots if staged.stage[dot] == 0)
    note_pipelining(expand_stages(staged), f"{names} of the next iteration runs beside the others")


def _has_products(loop: ForOp) -> bool:
    anchors = [anchor_of(op) for op in loop.body.block.ops]
    return any(anchor is not None and anchor.kind == "dot" for anchor in anchors)
