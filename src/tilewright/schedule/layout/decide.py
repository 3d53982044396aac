"""Decides the layout of every tile: anchors first, the rest follows or is computed anywhere.

One walk in program order. An anchor's layouts come from its rule; arithmetic keeps the layout
of an operand that has one; what depends on scalars and ranges alone stays open and is computed
again in every layout that asks for it. A loop is walked until what it carries settles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.annotations import access_of, annotated_access, plan_of
from tilewright.ir.types import shape_of
from tilewright.layout.build import coalesced
from tilewright.layout.linear import LinearLayout
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul import DotOp
from tilewright.schedule.layout.anchors import (
    ANCHORS,
    Anchored,
    default_layout,
    registers_in_a_row,
)
from tilewright.schedule.layout.products import anchor_product, values_of_products
from tilewright.schedule.layout.transfer import (
    is_flexible,
    is_tile,
    operand_layouts,
    result_layout,
)
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError, UnsupportedLayout

_MAX_ROUNDS = 4
_MAX_ACCESS_BYTES = 16


@dataclass
class Layouts:
    """The decision: layouts of values that have one of their own, vector widths."""

    machine: MachineModel
    num_warps: int
    own: dict[SSAValue, LinearLayout] = field(default_factory=dict)
    anchored: dict[Operation, Anchored] = field(default_factory=dict)
    carried: dict[Operation, tuple[LinearLayout | None, ...]] = field(default_factory=dict)
    vectors: dict[Operation, int] = field(default_factory=dict)

    @property
    def num_threads(self) -> int:
        """The threads that share a tile."""
        return self.num_warps * self.machine.lanes

    def coalesced(self, shape: tuple[int, ...], order: tuple[int, ...], width: int) -> LinearLayout:
        """The layout that reads memory in `order` with vectors of `width` elements."""
        return coalesced(shape, order, width, self.num_warps, self.machine.lanes)

    def default(self, shape: tuple[int, ...]) -> LinearLayout:
        """The layout of a tile that nothing else decides."""
        return default_layout(shape, self.num_warps, self.machine.lanes)


def decide_layouts(kernel: FuncOp, machine: MachineModel, num_warps: int) -> Layouts:
    """The layouts of a T0 kernel with its plan.

    *Raises*: InternalError for an op without rule, PlanMissing for one without plan.
    """
    walk = _Walk(Layouts(machine, num_warps), values_of_products(kernel))
    walk.group_accesses(kernel)
    walk.block(kernel.body.block)
    return walk.layouts


_Carried = tuple[LinearLayout | None, ...]


@dataclass(frozen=True)
class _Loop:
    """A loop as the walk sees it: what it carries, where that starts, and what it hands on."""

    op: Operation
    arguments: Sequence[SSAValue]
    initial: Sequence[SSAValue]
    walk: Callable[[], None]
    yielded: Sequence[SSAValue]


class _Walk:
    """The walk over one kernel; implements `Neighbours` for the anchors' rules."""

    def __init__(self, layouts: Layouts, products: frozenset[SSAValue]) -> None:
        self.layouts = layouts
        # Values computed from a matrix product: their layout wins over that of a load.
        self.products = products
        self.demands: dict[SSAValue, LinearLayout] = {}
        # What the last walk of a loop started from and came to. A loop that is entered again in
        # the same way starts where it ended: else nests take several walks to the power of depth.
        self.settled: dict[Operation, tuple[_Carried, _Carried]] = {}
        self.widths: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}

    # --- what rules ask ---

    def own(self, value: SSAValue) -> LinearLayout | None:
        """The layout a value has already; None where it can be computed in any."""
        return self.layouts.own.get(value)

    def default(self, shape: tuple[int, ...]) -> LinearLayout:
        """The layout of a tile that nothing else decides."""
        return self.layouts.default(shape)

    def accessed(self, op: Operation) -> LinearLayout:
        """The layout that coalesces the access of `op` to the pointers of operand 0."""
        shape, order = _access_key(op)
        return self.layouts.coalesced(shape, order, self.widths[shape, order])

    def streamed(self, shape: tuple[int, ...], element_bytes: int) -> LinearLayout:
        """The layout that reads rows of a shared tile in the widest accesses."""
        order = tuple(reversed(range(len(shape))))
        share = max(1, prod(shape) // self.layouts.num_threads)
        width = min(_MAX_ACCESS_BYTES // element_bytes, 1 << (share.bit_length() - 1))
        return self.layouts.coalesced(shape, order, width)

    # --- memory ---

    def group_accesses(self, kernel: FuncOp) -> None:
        """Accesses of one shape and order share a layout: the widest that one of them takes."""
        for op in kernel.walk():
            plan = annotated_access(op)
            if plan is not None:
                key = _access_key(op)
                self.layouts.vectors[op] = plan.vector
                self.widths[key] = max(self.widths.get(key, 1), plan.vector)

    # --- the walk ---

    def block(self, block: Block) -> None:
        """Decide every op of a block."""
        for op in block.ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        if isinstance(op, ForOp):
            self._for(op)
        elif isinstance(op, WhileOp):
            self._while(op)
        elif isinstance(op, IfOp):
            self._if(op)
        elif op.has_trait(IsTerminator) or not _has_tiles(op):
            return
        elif isinstance(op, DotOp):
            self._anchor(op, anchor_product(self, op, plan_of(op)))
        else:
            rule = ANCHORS.find(type(op))
            if rule is not None:
                self._anchor(op, rule(self, op))
            elif is_flexible(op):
                self._flexible(op)
            else:
                raise InternalError(f"no layout rule for {op.name}")

    def _anchor(self, op: Operation, anchored: Anchored) -> None:
        self.layouts.anchored[op] = anchored
        layout = anchored.operands[0] if op in self.layouts.vectors else None
        if layout is not None:
            run = registers_in_a_row(layout, access_of(op).order[0])
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
        for result in op.results:
            self.layouts.own.pop(result, None)
            if layout is not None:
                self.layouts.own[result] = layout
        if layout is not None:
            for operand, wanted in _wanted_operands(op, layout):
                self.demand(operand, wanted)

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

    def _for(self, op: ForOp) -> None:
        body = op.body.block
        yielded = _end_of(body).operands
        loop = _Loop(op, body.args[1:], op.iter_args, lambda: self.block(body), yielded)
        self.layouts.carried[op] = settled = self._settle(loop)
        self._enter(op.results, settled)

    def _while(self, op: WhileOp) -> None:
        before, after = op.before_region.block, op.after_region.block
        condition = _end_of(before)
        passed = condition.operands[1:]

        def walk() -> None:
            self.block(before)
            # What goes to the body and out is in the layouts in which the test hands it on.
            self._enter(after.args, self._handed_on(passed))
            self.block(after)

        loop = _Loop(op, before.args, op.arguments, walk, _end_of(after).operands)
        self.layouts.carried[op] = self._settle(loop)
        handed = self._handed_on(passed)
        self.layouts.carried[condition] = handed
        self._enter(op.results, handed)

    def _handed_on(self, values: Sequence[SSAValue]) -> tuple[LinearLayout | None, ...]:
        return tuple(
            (self.own(v) or self.demands.get(v) or self.default(shape_of(v.type)))
            if is_tile(v)
            else None
            for v in values
        )

    def _settle(self, loop: _Loop) -> _Carried:
        """Walk a loop's blocks until the layouts of what it carries stay; those layouts."""
        initial = tuple(self.own(value) for value in loop.initial)
        start, current = self.settled.get(loop.op, (None, initial))
        walked = current = current if start == initial else initial
        for _ in range(_MAX_ROUNDS):
            self._walk_with(loop, current)
            walked = current
            rows = zip(loop.arguments, loop.yielded, loop.initial, strict=True)
            current = tuple(self._next_layout(*row) for row in rows)
            if current == walked:
                break
        settled = tuple(
            layout or self.default(shape_of(argument.type)) if is_tile(argument) else None
            for argument, layout in zip(loop.arguments, current, strict=True)
        )
        if settled != walked:
            self._walk_with(loop, settled)
        self.settled[loop.op] = (initial, settled)
        return settled

    def _walk_with(self, loop: _Loop, layouts: Sequence[LinearLayout | None]) -> None:
        for argument, layout in zip(loop.arguments, layouts, strict=True):
            self.demands.pop(argument, None)
            self._put(argument, layout)
        loop.walk()

    def _next_layout(
        self, argument: SSAValue, value: SSAValue, start: SSAValue
    ) -> LinearLayout | None:
        if not is_tile(argument):
            return None
        return self.own(value) or self.demands.get(argument) or self.own(start)

    def _if(self, op: IfOp) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.block(block)
        ends = [block.last_op for region in op.regions for block in region.blocks]
        layouts: list[LinearLayout | None] = []
        for index, result in enumerate(op.results):
            values = [end.operands[index] for end in ends if end is not None]
            layouts.append(self._joined(values) if is_tile(result) else None)
        self.layouts.carried[op] = tuple(layouts)
        self._enter(op.results, layouts)

    def _joined(self, values: Sequence[SSAValue]) -> LinearLayout:
        """The layout of a result that is one of `values`: that of a product if there is one."""
        ordered = sorted(values, key=lambda value: value not in self.products)
        known = [layout for value in ordered if (layout := self.own(value)) is not None]
        return known[0] if known else self.default(shape_of(values[0].type))

    def _enter(self, values: Sequence[SSAValue], layouts: Sequence[LinearLayout | None]) -> None:
        for value, layout in zip(values, layouts, strict=True):
            self._put(value, layout)

    def _put(self, value: SSAValue, layout: LinearLayout | None) -> None:
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


def _has_tiles(op: Operation) -> bool:
    return any(is_tile(value) for value in (*op.operands, *op.results))


def _access_key(op: Operation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return shape_of(op.operands[0].type), access_of(op).order


def _end_of(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op
