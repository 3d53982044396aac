"""Which tiles of a block are kept in memory, given how its ops are grouped.

What is not kept is computed anew wherever it is read. The set of those that are only grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.ir.effects import overtakes_reads
from tilewright.ir.regions import ControlFlowOp
from tilewright.targets.cpu.schedule.block_steps import (
    BlockContents,
    Step,
    kind_of_root,
    visited_one_by_one,
)
from tilewright.targets.cpu.schedule.inline import EXPENSIVE, is_inline, is_tile
from tilewright.targets.cpu.schedule.roots import RootKind, sources_of, space_of
from tilewright.targets.cpu.schedule.rows import is_loaded_row
from tilewright.targets.cpu.schedule.transposed_loads import transposed_loads
from tilewright.targets.cpu.schedule.uses import Uses


class KeptTiles:
    """The tiles that one grouping of a block shows to be worth keeping, or to need it."""

    def __init__(
        self, block: BlockContents, steps: Sequence[Step], open_at: Sequence[Step | None]
    ) -> None:
        """`open_at` is the nest that was open at each position of the block."""
        self._block = block
        self._steps = steps
        self._open_at = open_at

    def keep_more(self) -> bool:
        """Choose tiles for memory that none was before; whether there are any."""
        before = len(self._block.bufferization.stored)
        self._keep_loads_before_stores()
        if len(self._block.bufferization.stored) == before:
            self._keep_shared_values()
        if len(self._block.bufferization.stored) == before:
            self._keep_transposed_loads()
        return len(self._block.bufferization.stored) != before

    def _keep_loads_before_stores(self) -> None:
        """Materialise loads that a possibly aliasing write would overtake."""
        for step in self._steps:
            for value in step.reached:
                start = self._block.loaded.get(value)
                if start is None or not is_tile(value) or value in self._block.bufferization.stored:
                    continue
                if not self._is_overtaken(start, step):
                    continue
                stores = self._numbers_stored(start, step)
                if stores and self._is_loaded_row(value):
                    for op in stores:
                        self._block.bufferization.guarded.setdefault(op, {})[value] = None
                else:
                    self._block.bufferization.stored.add(value)
        for step in self._steps:
            for root in step.roots:
                if root.kind is RootKind.STORE:
                    self._keep_loads((root.values[0], *root.values[2:]))
                elif root.kind is RootKind.ATOMIC:
                    self._keep_loads(root.values)
                self._keep_elements(visited_one_by_one(root.op))
            if step.op is not None:
                for inner in step.op.walk():
                    self._keep_elements(visited_one_by_one(inner))

    def _is_overtaken(self, start: int, step: Step) -> bool:
        """Whether what is read at a position may be written before a step."""
        if step.op is not None and step.op.regions and overtakes_reads(step.op):
            return True
        return bool(self._written_between(start, step))

    def _written_between(self, start: int, step: Step) -> list[Operation]:
        """The ops that may write memory after a position and before a step."""
        block, inside = self._block, {root.op for root in step.roots}
        end = max([step.position, *(root.position for root in step.roots)])
        return [
            op for op in block.barriers if start < block.positions[op] < end and op not in inside
        ]

    def _is_loaded_row(self, value: SSAValue) -> bool:
        """Whether a tile that is loaded lies in a row."""
        pointer = self._block.ops[self._block.loaded[value]].operands[0]
        return is_loaded_row(self._block.bufferization.structure, value, pointer)

    def _numbers_stored(self, start: int, step: Step) -> list[Operation]:
        """The stores between a position and a nest if each writes one number; else none."""
        stores = self._written_between(start, step)
        is_plain = all(
            kind_of_root(type(op)) is RootKind.STORE and not is_tile(op.operands[0])
            for op in stores
        )
        return stores if step.roots and is_plain else []

    def _keep_loads(self, values: tuple[SSAValue, ...]) -> None:
        """Addresses and masks of a store must not change while it stores."""
        for value in self._block.reach(values):
            if value in self._block.loaded and is_tile(value):
                self._block.bufferization.stored.add(value)

    def _keep_elements(self, values: tuple[SSAValue, ...]) -> None:
        """What is visited one by one is computed by vectors before: where it is made."""
        for value in values:
            is_made = self._block.makes(value) and is_inline(value)
            if is_made and not self._block.bufferization.costs.is_symbolic(value):
                self._block.bufferization.stored.add(value)

    def _keep_transposed_loads(self) -> None:
        """Materialise what a nest would load across the rows that it writes."""
        bufferization = self._block.bufferization
        for step in self._steps:
            if step.roots:
                across = transposed_loads(bufferization, step.roots)
                found = {value: is_down for value, is_down in across if self._block.makes(value)}
                bufferization.crossed.update(found)
                bufferization.stored.update(found)
                bufferization.turned |= {value for value, is_down in found.items() if is_down}

    def _keep_shared_values(self) -> None:
        """Materialise values that several steps, or a loop, would recompute at a price."""
        stored, uses = self._block.bufferization.stored, self._direct_uses()
        for position in reversed(range(len(self._block.ops))):
            for value in self._block.inlined[self._block.ops[position]]:
                if uses.count(value) > 1 and self._is_dear(value):
                    stored.add(value)
                    uses.materialize(value, self._step_to_join(value, position))
                uses.hand_on(value, self._sources(value))

    def _is_dear(self, value: SSAValue) -> bool:
        """Whether a tile that is not materialised would better be, if it is evaluated twice."""
        stored, costs = self._block.bufferization.stored, self._block.bufferization.costs
        if value in stored or costs.is_symbolic(value):
            return False
        return costs.recompute(value, stored) >= EXPENSIVE

    def _step_to_join(self, value: SSAValue, position: int) -> Step | None:
        """The nest in which a tile would be materialised: the one that is open there."""
        step = self._open_at[position]
        return step if step is not None and step.roots[0].space == space_of(value) else None

    def _sources(self, value: SSAValue) -> Iterable[SSAValue]:
        if value not in self._block.sources:
            self._block.sources[value] = sources_of(value)
        return [source for source, _ in self._block.sources[value]]

    def _direct_uses(self) -> Uses:
        uses = Uses()
        for step in self._steps:
            is_loop = isinstance(step.op, ControlFlowOp) and step.op.is_loop()
            bit = uses.add_step(step, is_repeated=is_loop)
            if step.op is not None:
                operands = filter(is_tile, self._block.bufferization.evaluated_operands(step.op))
                uses.take((*operands, *self._block.captured.get(step.op, ())), bit)
            elif step.pack is not None:
                uses.take((step.pack.value,), bit)
            for root in step.roots:
                if root.kind is RootKind.MATERIALIZE:
                    uses.materialize(root.values[0], step)
                else:
                    uses.take(root.values, bit)
        return uses
