"""The layouts of a kernel's tiles, as they stand on its ops at T0: written, and read.

An op whose tiles have layouts of their own has `tw.layout`: of its operands, then of its results.
On a loop or branch these are what it takes, and what it results in. An op without it is open: it
is computed again in each layout that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.annotations import annotate, annotated, decided
from tilewright.ir.plans import AccessAttr
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Place, is_control_flow
from tilewright.layout.build import coalesced
from tilewright.layout.linear import LinearLayout
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.schedule.layout.anchors import Anchored, default_layout
from tilewright.schedule.layout.annotations import LayoutPlan, LayoutPlanAttr
from tilewright.schedule.layout.carried import Carried, carried_by, entering
from tilewright.schedule.layout.require import Program
from tilewright.schedule.layout.transfer import is_flexible, is_tile
from tilewright.support.dataclass import dataclass, replace


@dataclass
class Layouts:
    """The decision: layouts of values that have one of their own, vector widths."""

    machine: MachineModel
    num_warps: int
    own: dict[SSAValue, LinearLayout] = field(default_factory=dict)
    of_ops: dict[Operation, Anchored] = field(default_factory=dict)
    # What each region of an op takes, and its results (OUTSIDE).
    carried: dict[tuple[Operation, Place], Carried] = field(default_factory=dict)
    vectors: dict[Operation, int] = field(default_factory=dict)

    @property
    def num_threads(self) -> int:
        """The threads that share a tile."""
        return self.num_warps * self.machine.lanes

    @property
    def of_program(self) -> Program:
        """Who shares a tile."""
        return Program(self.machine.lanes, self.num_warps)

    def coalesced(self, shape: tuple[int, ...], order: tuple[int, ...], width: int) -> LinearLayout:
        """The layout that reads memory in `order` with vectors of `width` elements."""
        return coalesced(shape, order, width, self.num_warps, self.machine.lanes)

    def default(self, shape: tuple[int, ...]) -> LinearLayout:
        """The layout of a tile that nothing else decides."""
        return default_layout(shape, self.num_warps, self.machine.lanes)


def write_layouts(layouts: Layouts) -> None:
    """Annotate the ops with the layouts of their tiles, and accesses with the width in those."""
    for op, at in layouts.of_ops.items():
        annotate(op, LayoutPlanAttr(LayoutPlan(at.operands, at.results)))
    for op, vector in layouts.vectors.items():
        plan = decided(op, AccessAttr)
        if plan.vector != vector:
            annotate(op, AccessAttr(replace(plan, vector=vector)))
    for op, place in layouts.carried:
        if place is OUTSIDE:
            assert isinstance(op, ControlFlowOp)
            plan = _plan_of(op, layouts)
            if any((*plan.operands, *(plan.results or ()))):
                annotate(op, LayoutPlanAttr(plan))


def _plan_of(op: ControlFlowOp, layouts: Layouts) -> LayoutPlan:
    """The layouts of what a loop or branch takes and of what it results in."""
    into = entering(op)
    taken = layouts.carried[op, into.target]
    return LayoutPlan(((None,) * into.first) + taken, layouts.carried[op, OUTSIDE])


def read_layouts(kernel: FuncOp, machine: MachineModel, num_warps: int) -> Layouts:
    """The layouts that a kernel is annotated with. *Raises*: PlanMissing where one has to be."""
    layouts = Layouts(machine, num_warps)
    for op in kernel.walk():
        if isinstance(op, ControlFlowOp):
            plan = annotated(op, LayoutPlanAttr) or LayoutPlan(
                (None,) * len(op.operands), (None,) * len(op.results)
            )
            for place, taken in carried_by(op, plan).items():
                layouts.carried[op, place] = taken
            _read_own(layouts, op.results, plan.results or ())
            continue
        plan = annotated(op, LayoutPlanAttr)
        if plan is None:
            require_decided(op)
        else:
            layouts.of_ops[op] = Anchored(plan.operands, plan.results or ())
            _read_own(layouts, op.results, plan.results or ())
    return layouts


def require_decided(op: Operation) -> None:
    """Refuse an op whose layouts nobody decided. *Raises*: PlanMissing."""
    if not is_flexible(op) and is_laid_out(op):
        decided(op, LayoutPlanAttr)


def _read_own(layouts: Layouts, values: Sequence[SSAValue], at: Carried) -> None:
    for value, layout in zip(values, at, strict=True):
        if layout is not None:
            layouts.own[value] = layout


def is_laid_out(op: Operation) -> bool:
    """Whether an op has tiles, and does not just hand them on."""
    if is_control_flow(op) or op.has_trait(IsTerminator):
        return False
    return any(is_tile(value) for value in (*op.operands, *op.results))
