"""The layouts of what control flow hands on, by the annotation of a loop or branch."""

from __future__ import annotations

from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge, Place
from tilewright.layout.linear import LinearLayout
from tilewright.schedule.layout.annotations import LayoutPlan

Carried = tuple[LinearLayout | None, ...]
"""The layouts of what control flow hands on to one place; None for what is no tile."""


def entering(op: ControlFlowOp) -> Edge:
    """The edge along which an op hands its operands to the region that control enters first."""
    return next(edge for edge in op.edges() if edge.source is OUTSIDE)


def carried_by(op: ControlFlowOp, plan: LayoutPlan) -> dict[Place, Carried]:
    """What each region of an op takes, and what it results in, by the op's annotation.

    A region that control enters first takes the op's operands, any other what the op results in.
    """
    into, results = entering(op), plan.results or ()
    taken: dict[Place, Carried] = {OUTSIDE: results}
    for edge in op.edges():
        if edge.target is not OUTSIDE and edge.target not in taken:
            is_first = edge.target == into.target
            taken[edge.target] = plan.operands[into.first :] if is_first else results
            if not edge.receivers:
                taken[edge.target] = ()
    return taken
