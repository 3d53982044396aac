"""Layouts that an author gives an op: obeyed, or refused with the reason.

A rule of `anchors.py` says which layouts of an op go together. It is asked with what is given in
place of what its neighbours have.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.locations import span_of
from tilewright.ir.regions import is_control_flow
from tilewright.ir.types import shape_of
from tilewright.layout.linear import LinearLayout
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.layout.anchors import ANCHORS, Anchored, Neighbours
from tilewright.schedule.layout.annotations import LayoutPlan, LayoutPlanAttr
from tilewright.schedule.layout.transfer import is_flexible, is_tile, operand_layouts
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanRefused, UnsupportedLayout


def require_own_tiles(op: Operation) -> None:
    """Refuse a layout of an op that hands tiles on or has none. *Raises*: PlanRefused."""
    if LayoutPlanAttr.name not in op.attributes:
        return
    if is_control_flow(op) or op.has_trait(IsTerminator):
        raise _refused(op, "it hands tiles on; give it to an op that makes one")
    if not any(map(is_tile, (*op.operands, *op.results))):
        raise _refused(op, "the op has no tiles")


def obeyed(
    near: Neighbours, op: Operation, plan: LayoutPlan, lanes: int, num_warps: int
) -> Anchored:
    """The layouts of an op that an author gave it, all of them. *Raises*: PlanRefused."""
    given = tuple(layout for layout in plan.operands if layout is not None)
    shapes = {shape_of(value.type) for value in (*op.operands, *op.results) if is_tile(value)}
    for layout in (*given, *(at for at in plan.results or () if at is not None)):
        reason = _misfit(layout, shapes, lanes, num_warps)
        if reason:
            raise _refused(op, reason)
    if isinstance(op, ProductOp):
        raise _refused(op, "a product has the layouts of its instruction; annotate `tw.product`")
    if not plan.is_one and len(plan.operands) != len(op.operands):
        raise _refused(op, f"{len(plan.operands)} layouts are not those of its operands")
    anchored = _followed(op, _Given(near, op, plan))
    stated = plan if not plan.is_one else None
    if stated is not None and (anchored.operands, anchored.results) != (
        stated.operands,
        stated.results,
    ):
        made = LayoutPlan(anchored.operands, anchored.results)
        raise _refused(op, f"they do not go together; with its operands', it has `{made}`")
    if plan.is_one and given[0] not in (*anchored.operands, *anchored.results):
        raise _refused(op, "no tile of the op can be in it")
    return anchored


def _misfit(layout: LinearLayout, shapes: set[tuple[int, ...]], lanes: int, num_warps: int) -> str:
    """Why a layout is none of the tiles of an op in this program; '' where it is."""
    if layout.shape not in shapes:
        there = " or ".join("x".join(map(str, shape)) for shape in sorted(shapes))
        return f"it is of shape {'x'.join(map(str, layout.shape))}, and the tiles are {there}"
    if layout.num_lanes != lanes:
        return f"it has {layout.num_lanes} lanes, and a warp has {lanes}"
    if layout.num_warps != num_warps:
        return f"it has {layout.num_warps} warps, and the program has {num_warps}"
    if not layout.is_surjective:
        return "it does not hold every element"
    return ""


def _followed(op: Operation, given: _Given) -> Anchored:
    """What the op's rule makes of what is given."""
    rule = ANCHORS.find(type(op))
    try:
        if rule is not None:
            return rule(given, op)
        if is_flexible(op):
            layout = given.default(shape_of(op.results[0].type))
            operands = tuple(operand_layouts(op, layout))
            return Anchored(operands, (layout,) * len(op.results))
    except UnsupportedLayout as error:
        raise _refused(op, f"its operands have none to fit: {error.summary}") from error
    raise _refused(op, "its tiles are those of the ops in it: annotate them")


@dataclass(frozen=True)
class _Given:
    """What a rule finds where layouts are given: those, and else what its neighbours have."""

    near: Neighbours
    op: Operation
    plan: LayoutPlan

    def _of_shape(self, shape: tuple[int, ...]) -> LinearLayout | None:
        results = self.plan.results or ()
        found = (at for at in (*results, *self.plan.operands) if at is not None)
        return next((layout for layout in found if layout.shape == shape), None)

    def own(self, value: SSAValue) -> LinearLayout | None:
        """The layout that is given for an operand, or that it has already."""
        if not self.plan.is_one:
            for operand, layout in zip(self.op.operands, self.plan.operands, strict=True):
                if operand is value:
                    return layout
        return self._of_shape(shape_of(value.type)) or self.near.own(value)

    def default(self, shape: tuple[int, ...]) -> LinearLayout:
        """The layout that is given for a shape, or the default one."""
        return self._of_shape(shape) or self.near.default(shape)

    def accessed(self, op: Operation) -> LinearLayout:
        """The layout that is given for the pointers of an access."""
        return self._of_shape(shape_of(op.operands[0].type)) or self.near.accessed(op)

    def streamed(self, shape: tuple[int, ...], element_bytes: int) -> LinearLayout:
        """The layout that is given for a block."""
        return self._of_shape(shape) or self.near.streamed(shape, element_bytes)


def _refused(op: Operation, reason: str) -> PlanRefused:
    span, chain = span_of(op)
    return PlanRefused(
        f"{op.name.partition('.')[2]}: the layout that is given is refused: {reason}",
        hint="see `--stage plan` for what the compiler takes, or leave it away",
        span=span,
        chain=chain,
    )
