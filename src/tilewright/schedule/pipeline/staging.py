"""What stands in the body of a loop of two stages, and of which stage each op of it is.

A slot of a ring is waited for, read and given back in one stage: that of who reads it. So are the
fence that shows what threads wrote to it, and the turn of a product.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.alias import is_shared
from tilewright.ir.effects import Access, Order, effects_of, is_free, own_effects
from tilewright.ir.locations import describe
from tilewright.ir.regions import ancestor_in
from tilewright.ir.schedule import REST, Anchor, LoopSchedule, Place
from tilewright.ir.schedule_attributes import anchor_of
from tilewright.ops.control_flow import ForOp
from tilewright.ops.rings import RingOp, ring_entered, ring_released
from tilewright.ops.roles import orders_roles, passes_turn, waits_for_turn
from tilewright.schedule.pipeline.addressing import end_of, taken_by

FEWEST_SLOTS = 2
"""By definition: while a role reads one slot, it waits for what is filled behind the next."""


class Unfit(Exception):  # a reason, no error
    """Why a loop does not run as its schedule says."""


def _in_order(planned: LoopSchedule) -> dict[Anchor, Place]:
    """The places of a loop; where an order is given, that is their cluster."""
    places = dict(planned.places)
    for number, step in enumerate(planned.order):
        subject = step.subject
        if step.action == "run" and isinstance(subject, Anchor):
            place = places.get(subject, Place(planned.num_stages - 1, 0))
            places[subject] = Place(place.stage, number, place.role)
    return places


class Staging:
    """One loop on its way to its stages; `stage` has them. *Raises*: Unfit."""

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
        self.fences = self._fences()
        self.turns = self._turns()
        self.free = self._free_ops()
        self.stage: dict[Operation, int] = {}
        self._require_movable()
        self._find_stages()
        self._stage_slots()

    # --- what is in the body ---

    def _require_movable(self) -> None:
        """Hold what is no product, slot or turn to reads: others keep their iteration's place."""
        for op in self.ops:
            if orders_roles(op) or op in self.dots or op in self.fences.values():
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

    def _fences(self) -> dict[Operation, Operation]:
        """The fence right behind the wait for a slot, which shows what threads wrote there."""
        behind = {entry: entry.next_op for entry in self.entries.values()}
        return {e: op for e, op in behind.items() if op and own_effects(op) == (Order.FENCE,)}

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
        is_of_slot = op in self.slots or self.is_view(op) or op in self.fences.values()
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
            mine += [self.fences[entry]] if entry in self.fences else []
            self.stage.update((op, stage) for op in (*views, *mine))
        for passing, (taken, locked) in self.turns.items():
            self.stage[passing] = self.stage[taken] = self.stage[locked[0]]

    def _closure_of_views(self, entry: Operation) -> list[Operation]:
        views = [entry]
        for view in views:
            views += [user for user in self.users(view) if self.is_view(user)]
        return views

    # --- waits for products ---

    def behind(self) -> dict[Operation, tuple[Operation, ...]]:
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


def _block_of(value: SSAValue) -> Block | None:
    return value.block if isinstance(value, BlockArgument) else value.owner.parent_block()
