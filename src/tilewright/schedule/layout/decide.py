"""Decides the layout of every tile: anchors first, the rest follows or is computed anywhere.

One walk in program order. An anchor's layouts come from its rule; arithmetic keeps the layout
of an operand that has one; what depends on scalars and ranges alone stays open and is computed
again in every layout that asks for it. A loop is walked until what it carries settles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import starmap
from math import prod

from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.dataflow import run
from tilewright.analysis.facts import MAX_ACCESS_BYTES
from tilewright.ir.annotations import annotated, decided
from tilewright.ir.plans import AccessAttr, ProductAttr
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge, Place
from tilewright.ir.types import shape_of
from tilewright.layout.linear import LinearLayout
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.layout.access_widths import AccessWidths
from tilewright.schedule.layout.anchors import ANCHORS, Anchored, registers_in_a_row
from tilewright.schedule.layout.annotations import LayoutPlanAttr
from tilewright.schedule.layout.carried import Carried, carried_by
from tilewright.schedule.layout.decided import Layouts, is_laid_out
from tilewright.schedule.layout.given import obeyed, require_own_tiles
from tilewright.schedule.layout.products import anchor_product, values_of_products
from tilewright.schedule.layout.transfer import (
    is_flexible,
    is_tile,
    operand_layouts,
    result_layout,
)
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError, UnsupportedLayout


def decide_layouts(kernel: FuncOp, machine: MachineModel, num_warps: int) -> Layouts:
    """The layouts of a T0 kernel with its plan.

    *Raises*: InternalError for an op without rule, PlanMissing for one without plan.
    """
    walk = _Walk(kernel, Layouts(machine, num_warps), values_of_products(kernel))
    walk.look_at_accesses(kernel)
    run(walk, kernel.body.block)
    return walk.layouts


@dataclass
class _Settling:
    """What the arguments of a loop have been in, from what they are in where it is entered.

    An argument that comes back to a layout that it has had keeps it: tiles that change places
    would change layouts for ever. So every walk but the last brings a layout that is new.
    """

    initial: Carried
    had: list[list[LinearLayout | None]]
    kept: dict[int, LinearLayout | None] = field(default_factory=dict)

    def following(self, proposed: Sequence[LinearLayout | None]) -> Carried:
        """The layouts of the next iteration, of those that the last one proposes."""
        return tuple(map(self._next, range(len(self.had)), proposed))

    def _next(self, index: int, proposed: LinearLayout | None) -> LinearLayout | None:
        had = self.had[index]
        if index in self.kept:
            return self.kept[index]
        if proposed in had[:-1]:
            self.kept[index] = proposed
        if proposed != had[-1]:
            had.append(proposed)
        return proposed

    def close(self, index: int, layout: LinearLayout) -> LinearLayout:
        """Give an argument that nothing decides a layout for good."""
        self.kept[index] = layout
        return layout


class _Walk:
    """The walk over one kernel, a dataflow; implements `Neighbours` for the anchors' rules."""

    is_backward = False
    is_sparse = True

    def __init__(self, kernel: FuncOp, layouts: Layouts, products: frozenset[SSAValue]) -> None:
        self.layouts = layouts
        # Values computed from a matrix product: their layout wins over that of a load.
        self.products = products
        self.demands: dict[SSAValue, LinearLayout] = {}
        # A loop that is entered again in the same way starts where it ended: else nests take
        # several walks to the power of their depth.
        self.settling: dict[tuple[Operation, Place], _Settling] = {}
        self.widths = AccessWidths(kernel)

    # --- what rules ask ---

    def own(self, value: SSAValue) -> LinearLayout | None:
        """The layout a value has already; None where it can be computed in any."""
        return self.layouts.own.get(value)

    def default(self, shape: tuple[int, ...]) -> LinearLayout:
        """The layout of a tile that nothing else decides."""
        return self.layouts.default(shape)

    def accessed(self, op: Operation) -> LinearLayout:
        """The layout that coalesces the access of `op` to the pointers of operand 0."""
        (shape, order), width = self.widths.of(op)
        return self.layouts.coalesced(shape, order, width)

    def streamed(self, shape: tuple[int, ...], element_bytes: int) -> LinearLayout:
        """The layout that reads rows of a shared tile in the widest accesses."""
        order = tuple(reversed(range(len(shape))))
        share = max(1, prod(shape) // self.layouts.num_threads)
        width = min(MAX_ACCESS_BYTES // element_bytes, 1 << (share.bit_length() - 1))
        return self.layouts.coalesced(shape, order, width)

    # --- memory ---

    def look_at_accesses(self, kernel: FuncOp) -> None:
        """Take over how wide accesses are, and check the layouts that the author gives."""
        for op in kernel.walk():
            require_own_tiles(op, self.layouts.of_program)
            plan = annotated(op, AccessAttr)
            if plan is not None:
                self.layouts.vectors[op] = plan.vector

    # --- the walk ---

    def visit(self, op: Operation) -> None:
        """Decide an op; loops and branches are decided where values cross into and out of them."""
        if not is_laid_out(op):
            return
        given = annotated(op, LayoutPlanAttr)
        if given is not None:
            self._anchor(op, obeyed(self, op, given, self.layouts.of_program))
        elif isinstance(op, ProductOp):
            self._anchor(op, anchor_product(self, op, decided(op, ProductAttr)))
        else:
            rule = ANCHORS.find(type(op))
            if rule is not None:
                self._anchor(op, rule(self, op))
            elif is_flexible(op):
                self._flexible(op)
            else:
                raise InternalError(f"no layout rule for {op.name}")

    def _anchor(self, op: Operation, anchored: Anchored) -> None:
        self.layouts.of_ops[op] = anchored
        layout = anchored.operands[0] if op in self.layouts.vectors else None
        if layout is not None:
            run = registers_in_a_row(layout, decided(op, AccessAttr).order[0])
            self.layouts.vectors[op] = min(run, self.layouts.vectors[op])
        for value, layout in zip(op.results, anchored.results, strict=True):
            if layout is not None:
                self.layouts.own[value] = layout
        for value, layout in zip(op.operands, anchored.operands, strict=True):
            if layout is not None:
                self.demand(value, layout)

    def _flexible(self, op: Operation) -> None:
        order = sorted(op.operands, key=lambda value: value not in self.products)
        known = [self.own(value) for value in order if is_tile(value)]
        layout = result_layout(op, known)
        try:
            operands = None if layout is None else operand_layouts(op, layout)
        except UnsupportedLayout:
            operands = None
        if operands is not None:
            self._anchor(op, Anchored(tuple(operands), (layout,) * len(op.results)))
            return
        self.layouts.of_ops.pop(op, None)
        for result in op.results:
            self.layouts.own.pop(result, None)

    def demand(self, value: SSAValue, layout: LinearLayout) -> None:
        """Note that `value` is wanted in `layout`, which decides what carried values are in."""
        pending = [(value, layout)]
        while pending:
            value, layout = pending.pop()
            if self.own(value) is not None or not is_tile(value):
                continue
            op = value.owner
            if isinstance(op, Block) or not is_flexible(op):
                self.demands.setdefault(value, layout)
            elif self.demands.get(value) != layout:
                self.demands[value] = layout
                pending += reversed(_wanted_operands(op, layout))

    # --- control flow ---

    def cross(self, op: ControlFlowOp, edge: Edge, visits: int) -> bool:
        """Give what a region takes its layouts; whether the region is to be walked with them."""
        place, values = edge.target, edge.values
        if place is OUTSIDE:
            return False
        given = annotated(op, LayoutPlanAttr)
        if given is not None:
            self._enter(op, place, edge.receivers, carried_by(op, given)[place])
            return not edge.is_back
        if not any(other.is_back and other.target == place for other in op.edges()):
            # What a test hands to the body and out stays as it is.
            self._enter(op, place, edge.receivers, self._handed_on(values))
            return True
        if edge.source is OUTSIDE:
            self._begin(op, edge)
            return True
        walked, following = self.layouts.carried[op, place], self._following(op, edge)
        if following != walked:
            self._enter(op, place, edge.receivers, following)
        return following != walked

    def _begin(self, op: ControlFlowOp, edge: Edge) -> None:
        """Enter a loop from outside: as it settled last, if it is entered as it was then."""
        key = op, edge.target
        layouts = tuple(map(self.own, edge.values))
        known = self.settling.get(key)
        if known is not None and known.initial == layouts:
            layouts = self.layouts.carried[key]
        else:
            self.settling[key] = _Settling(layouts, [[layout] for layout in layouts])
        self._enter(op, edge.target, edge.receivers, layouts)

    def _following(self, op: ControlFlowOp, edge: Edge) -> Carried:
        """The layouts of the next iteration: of what is handed to it, or as its ops ask for."""
        settling = self.settling[op, edge.target]
        rows = zip(edge.receivers, edge.values, settling.initial, strict=True)
        following = settling.following(list(starmap(self._proposed, rows)))
        if following != self.layouts.carried[op, edge.target]:
            return following
        return tuple(
            settling.close(index, self.default(shape_of(argument.type)))
            if layout is None and is_tile(argument)
            else layout
            for index, (argument, layout) in enumerate(zip(edge.receivers, following, strict=True))
        )

    def start(self, op: ControlFlowOp, region: int) -> None:
        """Begin with a region, whose arguments have their layouts."""

    def leave(self, op: ControlFlowOp, edges: Sequence[Edge]) -> None:
        """Give the results their layouts: those in which a region takes the same values."""
        given = annotated(op, LayoutPlanAttr)
        if given is not None:
            self._enter(op, OUTSIDE, op.results, given.results or ())
            return
        carried = self.layouts.carried
        givers = {edge.giver for edge in edges}
        same = (e.target for e in op.edges() if e.target is not OUTSIDE and e.giver in givers)
        shared = next(((op, at) for at in same if carried.get((op, at))), None)
        layouts = self._joined_each(op, edges) if shared is None else carried[shared]
        self._enter(op, OUTSIDE, op.results, layouts)

    def _handed_on(self, values: Sequence[SSAValue]) -> Carried:
        return tuple(
            (self.own(v) or self.demands.get(v) or self.default(shape_of(v.type)))
            if is_tile(v)
            else None
            for v in values
        )

    def _proposed(
        self, argument: SSAValue, value: SSAValue, initial: LinearLayout | None
    ) -> LinearLayout | None:
        if not is_tile(argument):
            return None
        return self.own(value) or self.demands.get(argument) or initial

    def _joined_each(self, op: ControlFlowOp, edges: Sequence[Edge]) -> Carried:
        return tuple(
            self._joined([edge.values[index] for edge in edges]) if is_tile(result) else None
            for index, result in enumerate(op.results)
        )

    def _joined(self, values: Sequence[SSAValue]) -> LinearLayout:
        """The layout of a result that is one of `values`: that of a product if there is one."""
        ordered = sorted(values, key=lambda value: value not in self.products)
        known = [layout for value in ordered if (layout := self.own(value)) is not None]
        return known[0] if known else self.default(shape_of(values[0].type))

    def _enter(
        self, op: Operation, place: Place, values: Sequence[SSAValue], layouts: Carried
    ) -> None:
        """Give what a place takes its layouts; of arguments nothing is asked yet."""
        self.layouts.carried[op, place] = layouts
        for value, layout in zip(values, layouts, strict=True):
            if place is not OUTSIDE:
                self.demands.pop(value, None)
            self.layouts.own.pop(value, None)
            if layout is not None:
                self.layouts.own[value] = layout


def _wanted_operands(op: Operation, layout: LinearLayout) -> list[tuple[SSAValue, LinearLayout]]:
    """The operands of a flexible op with the layouts that its result in `layout` asks for."""
    try:
        wanted = operand_layouts(op, layout)
    except UnsupportedLayout:
        return []
    pairs = zip(op.operands, wanted, strict=True)
    return [(operand, at) for operand, at in pairs if at is not None]
