"""Checks the layouts that a kernel is annotated with, before anything is rewritten by them."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.annotations import annotated
from tilewright.ir.plans import AccessAttr
from tilewright.ops.function import FuncOp
from tilewright.schedule.layout.anchors import registers_in_a_row
from tilewright.schedule.layout.annotations import LayoutPlan, LayoutPlanAttr
from tilewright.schedule.layout.decided import require_decided
from tilewright.schedule.layout.require import Program, refused, require_layouts


def verify_layouts(kernel: FuncOp, lanes: int, num_warps: int) -> None:
    """Check every op. *Raises*: PlanRefused, PlanMissing for an op that needs layouts."""
    program = Program(lanes, num_warps)
    for op in kernel.walk():
        plan = annotated(op, LayoutPlanAttr)
        if plan is None:
            require_decided(op)
        else:
            require_layouts(op, plan, program)
            _require_vectors(op, plan)


def _require_vectors(op: Operation, plan: LayoutPlan) -> None:
    """An access moves no more elements at once than its layout has in a row of registers."""
    access, layout = annotated(op, AccessAttr), plan.operands[0] if plan.operands else None
    if access is None or layout is None:
        return
    run = registers_in_a_row(layout, access.order[0])
    if access.vector > run:
        raise refused(op, f"it has {run} elements in a row, and {access.vector} move at once")
