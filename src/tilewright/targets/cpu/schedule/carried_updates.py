"""Which tiles that a loop carries are overwritten where their next values are made."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilewright.ir.op import AccumulatingOp
from tilewright.targets.cpu.schedule.block_steps import BlockContents, Step
from tilewright.targets.cpu.schedule.bufferization import chain_head
from tilewright.targets.cpu.schedule.roots import RootKind


class CarriedUpdates:
    """The choice for one block, which a later grouping may take back once."""

    def __init__(self, block: BlockContents) -> None:
        self._block = block
        self._refused: set[SSAValue] = set()
        self._steps: Sequence[Step] = ()

    def choose(self, steps: Sequence[Step]) -> bool:
        """Choose the yielded values that may overwrite the carried tile where they are made.

        True when the choice changed, which changes the copies at the block's end.
        """
        self._steps = steps
        bufferization, changed = self._block.bufferization, False
        for argument, value in bufferization.carried_tiles(self._block.block):
            if value in self._refused or value is argument:
                continue
            is_chosen = bufferization.in_place.get(value) is argument
            made = self._step_of(chain_head(value))
            fits = made is not None and self._is_last_use(argument, made)
            if fits and value not in bufferization.in_place:
                bufferization.in_place[value] = argument
                changed = True
            elif is_chosen and not fits:
                del bufferization.in_place[value]
                self._refused.add(value)
                changed = True
        return changed

    def _step_of(self, value: SSAValue) -> int | None:
        for number, step in enumerate(self._steps):
            if step.op is not None and value in step.op.results:
                return number if self._block.bufferization.works_in_place(step.op, value) else None
            if any(value in root.outputs() for root in step.roots):
                return number
        return None

    def _is_last_use(self, argument: SSAValue, made: int) -> bool:
        if any(argument in step.reached for step in self._steps[made + 1 :]):
            return False
        step = self._steps[made]
        if step.op is None:
            stores = (root for root in step.roots if root.kind is RootKind.STORE)
            return step.reached.get(argument, True) and not any(
                argument in self._block.places_of(store) for store in stores
            )
        if isinstance(step.op, AccumulatingOp):
            added_to = step.op.accumulator_index()
            factors = [v for index, v in enumerate(step.op.operands) if index != added_to]
            return argument not in self._block.reach(tuple(factors))
        return argument not in self._block.captured[step.op]
