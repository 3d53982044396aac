"""Groups the ops of one block into steps: fused nests, packed operands, and single ops.

Roots are taken in program order. A root joins the open nest when it has the same space and
needs nothing that the nest completes only at its end; otherwise the nest is closed. Then
values that several steps would recompute are materialised, loads that a store might overtake
too, and the block is grouped again until nothing changes (the set only grows).
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.effects import Order, global_access, overtakes_reads, own_effects
from tilewright.ir.regions import is_control_flow
from tilewright.ops.creation.ir import UnsplatOp
from tilewright.ops.debug.ir import is_assumption
from tilewright.ops.reduction.ir import CombineOp
from tilewright.targets.cpu.forms import STEPS
from tilewright.targets.cpu.schedule.block_steps import BlockContents, Step, kind_of_root
from tilewright.targets.cpu.schedule.bufferization import Bufferization, PackForm
from tilewright.targets.cpu.schedule.carried_updates import CarriedUpdates
from tilewright.targets.cpu.schedule.inline import is_tile, num_folded
from tilewright.targets.cpu.schedule.joining import may_join
from tilewright.targets.cpu.schedule.kept_tiles import KeptTiles
from tilewright.targets.cpu.schedule.roots import Root, RootKind, space_of, viewed


class BlockPlanner:
    """Plans one block of tile ops."""

    def __init__(self, bufferization: Bufferization, block: Block) -> None:
        self.block = BlockContents(bufferization, block)
        self.steps: list[Step] = []
        self.open: Step | None = None
        self.open_at: list[Step | None] = []

    def plan(self) -> list[Step]:
        """Group until the set of materialised tiles is stable."""
        updates = CarriedUpdates(self.block)
        while True:
            self._group()
            kept = KeptTiles(self.block, self.steps, self.open_at)
            if not kept.keep_more() and not updates.choose(self.steps):
                return self.steps

    def _group(self) -> None:
        self.steps, self.open, self.open_at = [], None, []
        for position, op in enumerate(self.block.ops):
            self._place(op, position)
        self._flush()

    def _place(self, op: Operation, position: int) -> None:
        self.open_at.append(self.open)
        is_view = bool(op.results) and viewed(op.results[0]) is not None
        if not is_view:  # a view shares its operand's buffer: `reach` goes through it
            self._place_made(op, position)
        for value in op.results:
            for form in self.block.bufferization.packs_after.get(value, ()):
                self._place_pack(form, position)

    def _place_made(self, op: Operation, position: int) -> None:
        """Place an op whose results, if any, have elements of their own."""
        stored, inlined = self.block.bufferization.stored, self.block.inlined[op]
        if num_folded(op) > 1 and not stored.isdisjoint(inlined):
            self._place_root(op, position)
        elif inlined:
            for value in inlined:
                if value in stored:
                    self._add(Root(RootKind.MATERIALIZE, op, (value,), space_of(value), position))
        elif not self._place_root(op, position):
            self._place_op(op, position)

    def _place_root(self, op: Operation, position: int) -> bool:
        """Place an op that becomes roots of a nest; False when it does not."""
        operands = tuple(op.operands)
        if not operands or not is_tile(operands[0]):
            return False
        space = space_of(operands[0])
        kind = kind_of_root(type(op))
        if kind is None:
            return False
        axis = op.axis.value.data if isinstance(op, CombineOp) else None
        self._add(Root(kind, op, operands, space, position, axis))
        return True

    def _place_op(self, op: Operation, position: int) -> None:
        """Place an op that is a step of its own, with the copies that it needs before."""
        if is_assumption(op) or Order.BARRIER in own_effects(op):
            return
        is_end = op.has_trait(IsTerminator)
        if is_end or is_control_flow(op) or STEPS.find(type(op)) is not None:
            self._place_copies(op, position)
            self._flush()
        elif self._must_close_before(op):
            self._flush()
        self._op_step(op, position)

    def _must_close_before(self, op: Operation) -> bool:
        """Whether a scalar op needs results or memory effects of the open nest."""
        if self.open is None:
            return False
        outputs = {v for root in self.open.roots for v in root.outputs()}
        if isinstance(op, UnsplatOp):
            return bool(outputs & self.block.reach(tuple(op.operands)).keys())
        if any(operand in outputs for operand in op.operands):
            return True
        if kind_of_root(type(op)) is RootKind.PRINT:  # what is said comes in the author's order
            return any(root.kind is RootKind.PRINT for root in self.open.roots)
        if overtakes_reads(op):
            return True
        is_access = global_access(op) is not None
        return is_access and any(root.kind is not RootKind.REDUCE for root in self.open.roots)

    def _place_copies(self, op: Operation, position: int) -> None:
        for copy in self.block.bufferization.copies_into(op):
            value = copy.value
            root = Root(RootKind.COPY, op, (value,), space_of(value), position, None, copy.target)
            root.offset, root.strides = copy.offset, copy.strides
            self._add(root)
        for form in self.block.bufferization.packs_before.get(op, ()):
            self._place_pack(form, position)

    def _place_pack(self, form: PackForm, position: int) -> None:
        step = Step(position, pack=form)
        step.reached = self.block.reach((form.value,))
        if self.open is not None and (not form.from_memory or self._must_close_for(step.reached)):
            self._flush()
        self.steps.append(step)

    def _must_close_for(self, reached: dict[SSAValue, bool]) -> bool:
        """Whether packing from memory needs what the open nest computes or writes."""
        assert self.open is not None
        roots = self.open.roots
        if any(root.kind in (RootKind.STORE, RootKind.ATOMIC) for root in roots):
            return True
        return any(v in reached for root in roots for v in root.outputs())

    def _op_step(self, op: Operation, position: int) -> None:
        step = Step(position, op=op)
        tiles = tuple(v for v in op.operands if is_tile(v))
        step.reached = dict.fromkeys(
            self.block.reach((*tiles, *self.block.captured.get(op, ()))), False
        )
        self.steps.append(step)

    def _add(self, root: Root) -> None:
        computed = root.values[0] if root.kind is RootKind.MATERIALIZE else None
        root.reached = self.block.reach(root.values, computed)
        if self.open is not None and not may_join(self.block, self.open, root):
            self._flush()
        if self.open is None:
            self.open = Step(root.position)
        self.open.roots.append(root)
        self.open.reached.update(
            (v, same and self.open.reached.get(v, True)) for v, same in root.reached.items()
        )

    def _flush(self) -> None:
        if self.open is not None:
            self.steps.append(self.open)
            self.open = None
