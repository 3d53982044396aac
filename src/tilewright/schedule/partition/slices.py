"""The part of a program that some of its ops need: what they are computed from, and when they run.

    for %i (%p, %acc) { %a = load %p; %d = dot %a, %acc; yield %p + 1, %d }
    the load needs: for %i (%p) { %a = load %p; yield %p + 1 }

Control flow around a needed op is needed with what steers it; values that it carries are needed
one by one. A copy of a slice does to each needed op what the whole program does to it, since it
computes the same values in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.op import build
from tilewright.ir.regions import ControlFlowOp, Edge, is_control_flow

Values = dict[SSAValue, SSAValue]
"""What the values of the program are in a copy."""


class Slice:
    """The ops and values that `roots` need inside of `block`.

    `stops` are ops whose results are there without computing them: they are roots themselves.
    """

    def __init__(
        self, block: Block, roots: Iterable[Operation], stops: Sequence[Operation] = ()
    ) -> None:
        self.ops: set[Operation] = set()
        self.values: set[SSAValue] = set()
        self.block = block
        self._stops = set(stops)
        self._pending: list[SSAValue] = []
        for root in roots:
            self.add(root)

    def add(self, op: Operation) -> None:
        """Need one more op, and all that it needs."""
        self._need_op(op)
        while self._pending:
            self._trace(self._pending.pop())

    def add_values(self, values: Iterable[SSAValue]) -> None:
        """Need some values, and all that they come from."""
        self._need_values(values)
        while self._pending:
            self._trace(self._pending.pop())

    def _need_op(self, op: Operation) -> None:
        if op in self.ops:
            return
        self.ops.add(op)
        if is_control_flow(op):
            assert isinstance(op, ControlFlowOp)
            for edge in op.edges():
                self._need_values(edge.giver.operands[: edge.first])
        elif op not in self._stops:
            self._need_values(op.operands)
        if op.parent is not self.block:
            parent = op.parent_op()
            assert parent is not None
            self._need_op(parent)

    def _need_values(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            if value not in self.values:
                self.values.add(value)
                self._pending.append(value)

    def _trace(self, value: SSAValue) -> None:
        """Need what a value comes from."""
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        if op is None or owner is self.block:
            return
        if not is_control_flow(op):
            self._need_op(op)
            return
        assert isinstance(op, ControlFlowOp)
        self._need_op(op)
        for edge in op.edges():
            for given, receiver in zip(edge.values, edge.receivers, strict=True):
                if receiver is value:
                    self._need_values((given, *_beside(op, edge, receiver)))

    def copy_into(self, target: Block, values: Values, replace: Replace | None = None) -> None:
        """Put a copy of the slice at the end of a block; `values` grows by its values.

        `replace` may copy an op in its own way: it says whether it has.
        """
        self._copy_block(self.block, target, values, replace or _nothing)

    def _copy_block(self, block: Block, target: Block, values: Values, replace: Replace) -> None:
        for op in block.ops:
            if op.has_trait(IsTerminator):
                return
            if op not in self.ops or replace(op, target, values):
                continue
            if is_control_flow(op):
                assert isinstance(op, ControlFlowOp)
                self._copy_control(op, target, values, replace)
            else:
                target.add_op(op.clone(values))

    def _copy_control(
        self, op: ControlFlowOp, target: Block, values: Values, replace: Replace
    ) -> None:
        edges = op.edges()
        results = [result for result in op.results if result in self.values]
        operands = [values.get(v, v) for v in self._given(op, edges)]
        regions = [
            self._copy_region(op, region, values, replace) if region.blocks else Region()
            for region in op.regions
        ]
        types = [result.type for result in results]
        new = build(type(op), operands, types, dict(op.properties), regions, op.location)
        new.attributes = dict(op.attributes)
        target.add_op(new)
        for old, made in zip(results, new.results, strict=True):
            values[old] = made
            made.name_hint = old.name_hint

    def _copy_region(
        self, op: ControlFlowOp, region: Region, values: Values, replace: Replace
    ) -> Region:
        edges = op.edges()
        received = {receiver for edge in edges for receiver in edge.receivers}
        arguments = [a for a in region.block.args if a in self.values or a not in received]
        block = Block(arg_types=[argument.type for argument in arguments])
        for old, made in zip(arguments, block.args, strict=True):
            values[old] = made
            made.name_hint = old.name_hint
        self._copy_block(region.block, block, values, replace)
        end = region.block.last_op
        assert end is not None
        given = [values.get(v, v) for v in self._given(end, edges)]
        block.add_op(build(type(end), given, (), dict(end.properties), (), end.location))
        return Region(block)

    def _given(self, giver: Operation, edges: Sequence[Edge]) -> list[SSAValue]:
        """The operands of an op that gives along edges, without those that nobody needs."""
        own = [edge for edge in edges if edge.giver is giver]
        first = min((edge.first for edge in own), default=len(giver.operands))
        kept = list(giver.operands[:first])
        for index, value in enumerate(giver.operands[first:]):
            if any(edge.receivers[index] in self.values for edge in own if edge.receivers):
                kept.append(value)
        return kept


Replace = Callable[[Operation, Block, Values], bool]
"""Copies an op in its own way into a block; whether it did."""


def _nothing(op: Operation, target: Block, values: Values) -> bool:
    return False


def _beside(op: ControlFlowOp, edge: Edge, receiver: SSAValue) -> list[SSAValue]:
    """What else receives the operand that `receiver` gets along an edge: they stay or go as one."""
    index = next(i for i, other in enumerate(edge.receivers) if other is receiver)
    return [
        other.receivers[index]
        for other in op.edges()
        if other.giver is edge.giver and other.first == edge.first and other.receivers
    ]
