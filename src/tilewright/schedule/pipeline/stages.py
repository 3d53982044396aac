"""In which of two stages each op of a loop runs, and in which order a body runs them.

    loop for#0 dot#0 @0.0 dot#1 @1.1 rest @0.2
    ⇒ a body: dot#0 of iteration j + 1; dot#1 of iteration j; all else of iteration j + 1

A schedule names products. What computes with a product's result goes with it, and so does what it
needs; all else is of the stage that the rest has. A product that the body does not compute with
ends as late as may be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import BlockArgument, Operation, OpResult

from tilewright.ir.schedule import LoopSchedule
from tilewright.ops.control_flow import ForOp
from tilewright.ops.rings import ring_released
from tilewright.ops.roles import waits_for_turn
from tilewright.schedule.pipeline.addressing import end_of
from tilewright.schedule.pipeline.staging import Staging, Unfit
from tilewright.support.dataclass import dataclass

_STAGES = 2
"""By definition: a body holds the first stage of one iteration and the second of another."""
_LATE = 1 << 20
"""By definition: a cluster behind all that can be written."""


@dataclass(frozen=True)
class StagedLoop:
    """A loop of two stages: `order` is that of a body, `stage` that of each op in it.

    `dots` are its products. Ops without a stage are computed wherever they are needed. An op of
    `behind` waits for the product that it is listed with, whose operand it makes anew or whose
    slot it gives back.
    """

    loop: ForOp
    order: tuple[Operation, ...]
    stage: Mapping[Operation, int]
    dots: tuple[Operation, ...]
    behind: Mapping[Operation, tuple[Operation, ...]]


def stage_loop(loop: ForOp, planned: LoopSchedule) -> StagedLoop:
    """The stages of a loop's ops as its schedule has them. *Raises*: Unfit."""
    if planned.num_stages != _STAGES:
        raise Unfit(f"its products are of {planned.num_stages} stages, and {_STAGES} are possible")
    staging = Staging(loop, planned)
    behind = staging.behind()
    order = _Order(staging).run()
    return StagedLoop(loop, order, staging.stage, tuple(staging.dots), behind)


class _Order:
    """The order of a body: by clusters, and as the text has it, each op behind what it needs."""

    def __init__(self, staging: Staging) -> None:
        self._all = staging
        self._done: dict[Operation, None] = {}
        self._waiting = {dot: self._waiting_for(dot) for dot in staging.dots}

    def run(self) -> tuple[Operation, ...]:
        """Every op with a stage, once."""
        leading = [op for op in self._all.stage if not self._is_led(op)]
        for op in sorted(leading, key=self._key):
            self._put(op)
        return tuple(self._done)

    def _is_led(self, op: Operation) -> bool:
        """Whether an op comes right before who needs it, or behind the wait that it belongs to."""
        is_fence = op in self._all.fences.values()
        return is_fence or self._all.is_view(op) or waits_for_turn(op)

    def _put(self, op: Operation) -> None:
        if op not in self._done:
            for before in self._needed(op):
                self._put(before)
            self._done[op] = None
            if op in self._all.fences:
                self._put(self._all.fences[op])

    def _needed(self, op: Operation) -> Iterator[Operation]:
        """What comes before an op in a body."""
        staging = self._all
        stage = staging.stage[op]
        yield from (m for m in staging.makers(op) if staging.stage[m] == stage)
        if stage == 0:
            yield from self._of_the_iteration_before(op)
        if op in staging.slots:
            entry = staging.slots[op]
            yield from (entry, *staging.readers(entry))
        for passing, (taken, locked) in staging.turns.items():
            if op in locked:
                yield taken
            if op is passing:
                yield from locked

    def _of_the_iteration_before(self, op: Operation) -> Iterator[Operation]:
        """What the later stage makes in the same body, for an op of the next iteration."""
        staging = self._all
        for value in staging.taken(op):
            if isinstance(value, BlockArgument) and value.index:
                given = end_of(staging.loop).arguments[value.index - 1]
                if isinstance(given, OpResult) and staging.stage.get(given.op) == 1:
                    yield given.op

    def _key(self, op: Operation) -> tuple[int, int, int]:
        """Clusters first; what waits for a product that nothing waits for else comes last."""
        staging = self._all
        index = staging.index[op]
        if op in staging.named:
            return staging.named[op].cluster, 1, index
        ring = ring_released(op)
        if ring is not None and ring.ring_name.data in staging.given:
            return staging.given[ring.ring_name.data], 1, index
        dots = [dot for dot, waiting in self._waiting.items() if op in waiting]
        if any(not staging.is_prompt(dot) for dot in dots):
            return _LATE, 0 if op in staging.slots else 1, index
        is_first = bool(dots) and not staging.makers(op)
        return staging.rest.cluster, 0 if is_first else 1, index

    def _waiting_for(self, dot: Operation) -> frozenset[Operation]:
        """What gives back a slot or turn of a product, renews its operand, or is computed of it
        in the next iteration."""
        staging = self._all
        found = [r for r, entry in staging.slots.items() if dot in staging.readers(entry)]
        found += [passing for passing, (_, locked) in staging.turns.items() if dot in locked]
        maker = staging.renewed(dot)
        found += [] if maker is None else [maker]
        found += [op for op in staging.stage if dot in self._of_the_iteration_before(op)]
        return frozenset(found)
