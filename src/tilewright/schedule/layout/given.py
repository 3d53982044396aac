"""Layouts that an author gives an op: obeyed, or refused with the reason."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from tilewright.ir.annotations import annotated
from tilewright.ir.regions import is_control_flow
from tilewright.ir.types import shape_of
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.layout.anchors import Anchored, Neighbours
from tilewright.schedule.layout.annotations import LayoutPlan, LayoutPlanAttr
from tilewright.schedule.layout.require import (
    Program,
    followed,
    refused,
    require_fit,
    require_layouts,
)
from tilewright.schedule.layout.transfer import is_tile


def require_own_tiles(op: Operation, program: Program) -> None:
    """Refuse a layout of an op that hands tiles on or has none. *Raises*: PlanRefused.

    A loop or branch may be given all of its layouts, as they are decided, but not one of them.
    """
    plan = annotated(op, LayoutPlanAttr)
    if plan is None:
        return
    if op.has_trait(IsTerminator) or (is_control_flow(op) and plan.is_one):
        raise refused(op, "it hands tiles on; give it to an op that makes one")
    if not any(map(is_tile, (*op.operands, *op.results))):
        raise refused(op, "the op has no tiles")
    if is_control_flow(op):
        require_layouts(op, plan, program)


def obeyed(near: Neighbours, op: Operation, plan: LayoutPlan, program: Program) -> Anchored:
    """The layouts of an op that an author gave it, all of them. *Raises*: PlanRefused."""
    if not plan.is_one:
        require_layouts(op, plan, program)
        return Anchored(plan.operands, plan.results or ())
    (layout,) = plan.operands
    assert layout is not None, "a plan of one layout has one"
    shapes = [shape_of(v.type) for v in (*op.operands, *op.results) if is_tile(v)]
    require_fit(op, layout, shapes, program)
    if isinstance(op, ProductOp):
        raise refused(op, "a product has the layouts of its instruction; annotate `tw.product`")
    anchored = followed(op, plan, near)
    if layout not in (*anchored.operands, *anchored.results):
        raise refused(op, "no tile of the op can be in it")
    return anchored
