"""What the layouts of an op have to be: those of its tiles, in this program, that its rule joins.

A rule of `anchors.py` says which layouts of an op go together. It is asked with what is stated in
place of what its neighbours have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.ir import Operation, SSAValue

from tilewright.ir.annotations import decided
from tilewright.ir.locations import span_of
from tilewright.ir.plans import ProductAttr
from tilewright.ir.regions import ControlFlowOp
from tilewright.ir.types import shape_of
from tilewright.layout.linear import LinearLayout
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.layout.anchors import ANCHORS, Anchored, Neighbours, default_layout
from tilewright.schedule.layout.annotations import LayoutPlan
from tilewright.schedule.layout.carried import Carried, carried_by
from tilewright.schedule.layout.products import instruction_layouts
from tilewright.schedule.layout.transfer import CACHED, is_flexible, is_tile, operand_layouts
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanRefused, UnsupportedLayout


@dataclass(frozen=True)
class Program:
    """Who shares a tile: the lanes of a warp, and the warps of a program."""

    lanes: int
    num_warps: int


def require_layouts(op: Operation, plan: LayoutPlan, program: Program) -> None:
    """Refuse layouts of an op that are not those of its tiles, or do not go together.

    *Raises*: PlanRefused.
    """
    _require_number(op, plan)
    values = (*op.operands, *op.results)
    for value, layout in zip(values, (*plan.operands, *(plan.results or ())), strict=True):
        if layout is not None:
            require_fit(op, layout, (shape_of(value.type),), program)
    if op.regions and isinstance(op, ControlFlowOp):
        _require_handed_on(op, plan)
        return
    made = _followed(op, plan, program)
    if (made.operands, made.results) != (plan.operands, plan.results):
        instead = LayoutPlan(made.operands, made.results)
        raise refused(op, f"they do not go together; with its operands', it has `{instead}`")


def _require_number(op: Operation, plan: LayoutPlan) -> None:
    operands, results = plan.operands, plan.results or ()
    if len(operands) != len(op.operands):
        raise refused(op, f"{len(operands)} layouts are not those of its operands")
    if len(results) != len(op.results):
        raise refused(op, f"{len(results)} layouts are not those of its results")


def require_fit(
    op: Operation, layout: LinearLayout, shapes: Sequence[tuple[int, ...]], program: Program
) -> None:
    """Refuse a layout of none of an op's tiles in this program. *Raises*: PlanRefused."""
    if layout.shape not in shapes:
        there = " or ".join("x".join(map(str, shape)) for shape in sorted(set(shapes)))
        own = "x".join(map(str, layout.shape))
        raise refused(op, f"it is of shape {own}, and the tiles are {there}")
    reason = _misfit(layout, program.lanes, program.num_warps)
    if reason:
        raise refused(op, reason)


@lru_cache(maxsize=CACHED)
def _misfit(layout: LinearLayout, lanes: int, num_warps: int) -> str:
    """Why a layout is none of tiles in a program; '' where it is."""
    if layout.num_lanes != lanes:
        return f"it has {layout.num_lanes} lanes, and a warp has {lanes}"
    if layout.num_warps != num_warps:
        return f"it has {layout.num_warps} warps, and the program has {num_warps}"
    return "" if layout.is_surjective else "it does not hold every element"


def _require_handed_on(op: ControlFlowOp, plan: LayoutPlan) -> None:
    """What is handed on in several ways at once is so in one layout. *Raises*: PlanRefused."""
    taken = carried_by(op, plan)
    given: dict[Operation, Carried] = {}
    for edge in op.edges():
        for value, layout in zip(edge.receivers, taken[edge.target], strict=True):
            if (layout is not None) != is_tile(value):
                raise refused(op, "a tile that it hands on has a layout, and nothing else has")
        if given.setdefault(edge.giver, taken[edge.target]) != taken[edge.target]:
            raise refused(op, "what it hands on has one layout in a region and another outside")


def _of_instruction(op: ProductOp, plan: LayoutPlan) -> Anchored:
    """The layouts of a product's instruction, and those that are stated where it takes any."""
    a, b, result = instruction_layouts(op, decided(op, ProductAttr))
    return Anchored((a or plan.operands[0], b or plan.operands[1], result), (result,))


def _followed(op: Operation, plan: LayoutPlan, program: Program) -> Anchored:
    """What the op's rule makes of layouts that are all stated. *Raises*: PlanRefused."""
    result = plan.results[0] if plan.results and is_flexible(op) else None
    if result is not None:
        return _of_result(op, result)
    if isinstance(op, ProductOp):
        return _of_instruction(op, plan)
    return followed(op, plan, Alone(program))


def followed(op: Operation, plan: LayoutPlan, near: Neighbours) -> Anchored:
    """What the op's rule makes of the layouts that are stated. *Raises*: PlanRefused."""
    stated = _Stated(near, op, plan)
    rule = ANCHORS.find(type(op))
    if rule is None and is_flexible(op):
        return _of_result(op, stated.default(shape_of(op.results[0].type)))
    if rule is None:
        raise refused(op, "its tiles are those of the ops in it: annotate them")
    try:
        return rule(stated, op)
    except UnsupportedLayout as error:
        raise _unfit(op, error) from error


def _of_result(op: Operation, layout: LinearLayout) -> Anchored:
    """The layouts of an op that can be computed in any, by that of its results."""
    try:
        return Anchored(tuple(operand_layouts(op, layout)), (layout,) * len(op.results))
    except UnsupportedLayout as error:
        raise _unfit(op, error) from error


def _unfit(op: Operation, error: UnsupportedLayout) -> PlanRefused:
    return refused(op, f"its operands have none to fit: {error.summary}")


@dataclass(frozen=True)
class Alone:
    """An op without neighbours: what a rule finds where all layouts are stated."""

    program: Program

    def own(self, value: SSAValue) -> LinearLayout | None:
        """None: what the op has is stated."""
        return None

    def default(self, shape: tuple[int, ...]) -> LinearLayout:
        """The default layout of a shape."""
        return default_layout(shape, self.program.num_warps, self.program.lanes)

    def accessed(self, op: Operation) -> LinearLayout:
        """The default layout of the pointers of an access."""
        return self.default(shape_of(op.operands[0].type))

    def streamed(self, shape: tuple[int, ...], element_bytes: int) -> LinearLayout:
        """The default layout of a block."""
        return self.default(shape)


@dataclass(frozen=True)
class _Stated:
    """What a rule finds where layouts are stated: those, and else what its neighbours have."""

    near: Neighbours
    op: Operation
    plan: LayoutPlan

    def _of_shape(self, shape: tuple[int, ...]) -> LinearLayout | None:
        for layouts in (self.plan.results or (), self.plan.operands):
            for layout in layouts:
                if layout is not None and layout.shape == shape:
                    return layout
        return None

    def own(self, value: SSAValue) -> LinearLayout | None:
        """The layout that is stated for an operand, or that it has already."""
        if not self.plan.is_one:
            for operand, layout in zip(self.op.operands, self.plan.operands, strict=True):
                if operand is value:
                    return layout
        return self._of_shape(shape_of(value.type)) or self.near.own(value)

    def default(self, shape: tuple[int, ...]) -> LinearLayout:
        """The layout that is stated for a shape, or the default one."""
        return self._of_shape(shape) or self.near.default(shape)

    def accessed(self, op: Operation) -> LinearLayout:
        """The layout that is stated for the pointers of an access."""
        return self._of_shape(shape_of(op.operands[0].type)) or self.near.accessed(op)

    def streamed(self, shape: tuple[int, ...], element_bytes: int) -> LinearLayout:
        """The layout that is stated for a block."""
        return self._of_shape(shape) or self.near.streamed(shape, element_bytes)


def refused(op: Operation, reason: str) -> PlanRefused:
    """The error about layouts of an op that cannot be."""
    span, chain = span_of(op)
    return PlanRefused(
        f"{op.name.partition('.')[2]}: the layout that is given is refused: {reason}",
        hint="see `--stage plan` for what the compiler takes, or leave it away",
        span=span,
        chain=chain,
    )
