"""In which of two stages each op of a loop runs, and in which order a body runs them.

    loop for#0 dot#0 @0.0 dot#1 @1.1 rest @0.2
    ⇒ a body: dot#0 of iteration j + 1; dot#1 of iteration j; all else of iteration j + 1

A schedule names products. What computes with a product's result goes with it, and so does what it
needs; all else is of the stage that the rest has. A product that the body does not compute with
ends as late as may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.alias import is_shared
from tilewright.ir.effects import Access, effects_of, is_free
from tilewright.ir.locations import describe
from tilewright.ir.regions import ancestor_in
from tilewright.ir.schedule import REST, Anchor, LoopSchedule, Place
from tilewright.ir.schedule_attributes import anchor_of
from tilewright.ops.control_flow import ForOp
from tilewright.ops.rings import RingOp, ring_entered, ring_released
from tilewright.ops.roles import orders_roles, passes_turn, waits_for_turn
from tilewright.schedule.pipeline.addressing import end_of, taken_by
from tilewright.support.dataclass import dataclass

_STAGES = 2
"""By definition: a body holds the first stage of one iteration and the second of another."""
FEWEST_SLOTS = 2
"""By definition: while a role reads one slot, it waits for what is filled behind the next."""
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


class Unfit(Exception):  # a reason, no error
    """Why a loop does not run as its schedule says."""


def stage_loop(loop: ForOp, planned: LoopSchedule) -> StagedLoop:
    """The stages of a loop's ops as its schedule has them. *Raises*: Unfit."""
    if planned.num_stages != _STAGES:
        raise Unfit(f"its products are of {planned.num_stages} stages, and {_STAGES} are possible")
    return _Staging(loop, planned).staged()


def _in_order(planned: LoopSchedule) -> dict[Anchor, Place]:
    """The places of a loop; where an order is given, that is their cluster."""
    places = dict(planned.places)
    for number, step in enumerate(planned.order):
        subject = step.subject
        if step.action == "run" and isinstance(subject, Anchor):
            place = places.get(subject, Place(planned.num_stages - 1, 0))
            places[subject] = Place(place.stage, number, place.role)
    return places


class _Staging:
    """One loop on its way to its stages."""

    def __init__(self, loop: ForOp, planned: LoopSchedule) -> None:
        self.loop = loop
        self.body: Block = loop.body.block
        self.ops = [op for op in self.body.ops if op is not end_of(loop)]
        self.index = {op: number for number, op in enumerate(self.ops)}
        places = _in_order(planned)
        self.rest = places.get(REST, Place(planned.num_stages - 1, 0))
        self.given = {step.subject: n for n, step in enumerate(planned.order)}
        anchored = {op: anchor_of(op) for op in self.ops}
        self.named = {op: places[a] for op, a in anchored.items() if a is not None and a in places}
        self.dots = [op for op, a in anchored.items() if a is not None and a.kind == "dot"]
        self.entries = self._entries()
        self.slots = self._slots()
        self.turns = self._turns()
        self.free = self._free_ops()
        self.stage: dict[Operation, int] = {}

    def staged(self) -> StagedLoop:
        """The loop with its stages."""
        self._require_movable()
        self._find_stages()
        self._stage_slots()
        behind = self._behind()
        order = _Order(self).run()
        return StagedLoop(self.loop, order, self.stage, tuple(self.dots), behind)

    # --- what is in the body ---

    def _require_movable(self) -> None:
        """Hold what is no product, slot or turn to reads: others keep their iteration's place."""
        for op in self.ops:
            if orders_roles(op) or op in self.dots:
                continue
            for effect in effects_of(op):
                is_read = isinstance(effect, Access) and not effect.writes and not effect.atomic
                if not is_read:
                    raise Unfit(f"{op.name} at {describe(op)} stays in the order of iterations")

    def _entries(self) -> dict[RingOp, Operation]:
        """The waits for slots, one for each ring."""
        entries: dict[RingOp, Operation] = {}
        for op in self.ops:
            ring = ring_entered(op)
            if ring is None:
                continue
            if ring in entries:
                raise Unfit(f"ring {ring.ring_name.data} is waited for twice in an iteration")
            entries[ring] = op
        return entries

    def _slots(self) -> dict[Operation, Operation]:
        """The wait for the slot that each release gives back."""
        slots: dict[Operation, Operation] = {}
        for op in self.ops:
            ring = ring_released(op)
            if ring is not None and ring not in self.entries:
                raise Unfit(f"ring {ring.ring_name.data} is released for another iteration")
            if ring is not None:
                slots[op] = self.entries[ring]
        return slots

    def _turns(self) -> dict[Operation, tuple[Operation, list[Operation]]]:
        """Where each turn is passed: where it was taken, and the products between."""
        turns: dict[Operation, tuple[Operation, list[Operation]]] = {}
        taken: Operation | None = None
        locked: list[Operation] = []
        for op in self.ops:
            if waits_for_turn(op):
                taken, locked = op, []
            elif op in self.dots:
                locked.append(op)
            elif passes_turn(op):
                if taken is None or not locked:
                    raise Unfit(f"the turn that is passed at {describe(op)} is for no product")
                turns[op] = taken, locked
                taken, locked = None, []
        return turns

    def _free_ops(self) -> frozenset[Operation]:
        """What follows from the loop's counter, and from what is outside of the loop."""
        known: set[SSAValue] = {self.body.args[0]}
        found: list[Operation] = []
        for op in self.ops:
            if is_free(op) and all(value in known for value in self.taken(op)):
                found.append(op)
                known |= set(op.results)
        return frozenset(found)

    def taken(self, op: Operation) -> list[SSAValue]:
        """What an op takes of the body."""
        return [v for v in taken_by(op, self.body) if _block_of(v) is self.body]

    def makers(self, op: Operation) -> list[Operation]:
        """The ops that make what an op takes of its own iteration; free ones are left out."""
        makers = [value.op for value in self.taken(op) if isinstance(value, OpResult)]
        return [maker for maker in makers if maker not in self.free]

    def users(self, op: Operation) -> list[Operation]:
        """The ops of the body that take what an op makes."""
        found = [self._beside(use.operation) for result in op.results for use in result.uses]
        return [user for user in dict.fromkeys(found) if user in self.index]

    def _beside(self, op: Operation) -> Operation:
        return ancestor_in(self.body, op)

    def is_view(self, op: Operation) -> bool:
        """Whether an op makes a shared tile: that of a slot, or a view of one."""
        return any(map(is_shared, op.results))

    def readers(self, entry: Operation) -> list[Operation]:
        """The ops that read a slot, or a view of it."""
        found: list[Operation] = []
        pending = [entry]
        while pending:
            for user in self.users(pending.pop()):
                (pending if self.is_view(user) else found).append(user)
        return found

    # --- stages ---

    def _find_stages(self) -> None:
        """Stages of what is in registers: as named, as the first needs it, or as the rest."""
        self.stage.update((op, place.stage) for op, place in self.named.items())
        behind = self._closure([op for op in self.named if self.stage[op] == 1], self.users)
        before = self._closure([op for op in self.named if self.stage[op] == 0], self.makers)
        for op in self.ops:
            if op in self.named or op in self.free or self._goes_with_others(op):
                continue
            if op in behind and op in before:
                raise Unfit(f"{op.name} at {describe(op)} is between stages in the wrong order")
            stage = 1 if op in behind else 0 if op in before else self.rest.stage
            self.stage[op] = stage

    def _closure(
        self, roots: list[Operation], following: Callable[[Operation], list[Operation]]
    ) -> set[Operation]:
        found: set[Operation] = set()
        pending = list(roots)
        while pending:
            for op in following(pending.pop()):
                if op not in found and not self._goes_with_others(op):
                    found.add(op)
                    pending.append(op)
        return found

    def _goes_with_others(self, op: Operation) -> bool:
        """Whether an op is of a slot or of a turn, and so of the stage of who reads it."""
        is_of_slot = op in self.slots or self.is_view(op)
        return is_of_slot or waits_for_turn(op) or passes_turn(op)

    def _stage_slots(self) -> None:
        """A slot is waited for, read and given back in one stage; a turn goes with its product."""
        for ring, entry in self.entries.items():
            stages = {self.stage[op] for op in self.readers(entry)} or {self.rest.stage}
            if len(stages) > 1:
                raise Unfit(f"the slot at {describe(entry)} is read in two stages")
            stage = stages.pop()
            if stage == 1 and ring.num_slots < FEWEST_SLOTS:
                raise Unfit(f"ring {ring.ring_name.data} has a single slot")
            views = self._closure_of_views(entry)
            mine = [release for release, waited in self.slots.items() if waited is entry]
            self.stage.update((op, stage) for op in (*views, *mine))
        for passing, (taken, locked) in self.turns.items():
            self.stage[passing] = self.stage[taken] = self.stage[locked[0]]

    def _closure_of_views(self, entry: Operation) -> list[Operation]:
        views = [entry]
        for view in views:
            views += [user for user in self.users(view) if self.is_view(user)]
        return views

    # --- waits for products ---

    def _behind(self) -> dict[Operation, tuple[Operation, ...]]:
        """Which products an op waits for though it does not take their results."""
        behind: dict[Operation, tuple[Operation, ...]] = {}
        for release, entry in self.slots.items():
            behind[release] = tuple(op for op in self.readers(entry) if op in self.dots)
        for passing, (_, locked) in self.turns.items():
            behind[passing] = tuple(locked)
        for dot in self.dots:
            maker = self.renewed(dot)
            if maker is not None:
                behind[maker] = (dot,)
        return behind

    def renewed(self, dot: Operation) -> Operation | None:
        """What makes the operand in registers of a product, an iteration ahead of it.

        The product reads these registers until it ends.
        """
        value = dot.operands[0]
        if is_shared(value) or not isinstance(value, OpResult) or value.op not in self.stage:
            return None
        is_ahead = self.stage[value.op] < self.stage[dot]
        return value.op if is_ahead and self.users(value.op) == [dot] else None

    def is_prompt(self, dot: Operation) -> bool:
        """Whether a body computes with what a product of its own iteration makes."""
        return any(self.stage.get(user) == self.stage[dot] for user in self.users(dot))


class _Order:
    """The order of a body: by clusters, and as the text has it, each op behind what it needs."""

    def __init__(self, staging: _Staging) -> None:
        self._all = staging
        self._done: dict[Operation, None] = {}

    def run(self) -> tuple[Operation, ...]:
        """Every op with a stage, once."""
        leading = [op for op in self._all.stage if not self._is_led(op)]
        for op in sorted(leading, key=self._key):
            self._put(op)
        return tuple(self._done)

    def _is_led(self, op: Operation) -> bool:
        """Whether an op comes right before who needs it."""
        return self._all.is_view(op) or waits_for_turn(op)

    def _put(self, op: Operation) -> None:
        if op not in self._done:
            for before in self._needed(op):
                self._put(before)
            self._done[op] = None

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
        dots = [dot for dot in staging.dots if op in self._waiting_for(dot)]
        if any(not staging.is_prompt(dot) for dot in dots):
            return _LATE, 0 if op in staging.slots else 1, index
        is_first = bool(dots) and not staging.makers(op)
        return staging.rest.cluster, 0 if is_first else 1, index

    def _waiting_for(self, dot: Operation) -> list[Operation]:
        """What gives back a slot or turn of a product, renews its operand, or is computed of it
        in the next iteration."""
        staging = self._all
        found = [r for r, entry in staging.slots.items() if dot in staging.readers(entry)]
        found += [passing for passing, (_, locked) in staging.turns.items() if dot in locked]
        maker = staging.renewed(dot)
        found += [] if maker is None else [maker]
        return found + [op for op in staging.stage if dot in self._of_the_iteration_before(op)]


def _block_of(value: SSAValue) -> Block | None:
    return value.block if isinstance(value, BlockArgument) else value.owner.parent_block()
