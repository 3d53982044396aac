"""A loop with what of it may run ahead: which of its loads, over how many slots, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilewright.ir.annotations import annotated, decided
from tilewright.ir.effects import global_access
from tilewright.ir.encoding import slot_step
from tilewright.ir.plans import SHARED, AccessAttr, ProductAttr
from tilewright.ir.schedule import REST, Anchor, Channel, LoopSchedule
from tilewright.ir.types import shape_of, storage_bytes
from tilewright.ops.control_flow import ForOp
from tilewright.ops.function import FuncOp
from tilewright.ops.shape.ir import PermutingOp
from tilewright.schedule.conversions import MAX_SCRATCH_BYTES
from tilewright.schedule.plan.accesses import is_planned
from tilewright.schedule.plan.anchors import by_engine, kind_of
from tilewright.schedule.plan.computed_operands import computed_operands
from tilewright.schedule.plan.default_stages import LoopOfProducts
from tilewright.schedule.plan.loop_places import LATE_SLOTS, places_of
from tilewright.schedule.plan.products import is_matrix_of_words

_HINT = "tt.num_stages"
MOST_SLOTS = 16
"""Of a loop. Chosen, not measured: what is fastest has 2 to 5. Each has copies of its own in front
of the loop, and a compile takes longer with their square (54 slots 30 s, 16 slots one)."""


class Candidate:
    """A loop with what of it may run ahead.

    Those are the loads of its products, and where it has none and its author asks for it, all of
    its tiles. A loop around another one is left alone. `computed` are loads that products take
    something computed of.
    """

    def __init__(self, loop: Operation, names: Mapping[Operation, Anchor]) -> None:
        assert isinstance(loop, ForOp)
        self.loop, self.names = loop, names
        self.ops = list(loop.body.block.ops)
        self.products = [op for op in self.ops if kind_of(op) == "dot"]
        self.hint = loop.attributes.get(_HINT)
        self.loads = self._loads()
        self.computed: list[Operation] = []

    def take_computed(self, kernel: FuncOp, asked: int, free_bytes: int) -> None:
        """Let loads that operands are computed from run ahead, too, as far as their slots fit.

        Where nobody asks for slots only a loop that adds products up takes them: what else a loop
        computes between its products overlaps its loads as well.
        """
        if self._is_left_alone() or not (asked > 1 or (not asked and self._is_accumulating)):
            return
        slots = min(asked or LATE_SLOTS, MOST_SLOTS)
        for load in computed_operands(kernel, self.loop.body.block, self.products):
            step_bytes = self.slot_bytes + slot_step(tile_bytes(load.results[0]))
            if load not in self.loads and slots * step_bytes <= free_bytes:
                self.computed.append(load)
                self.loads.append(load)
        self.loads.sort(key=self.ops.index)

    def _is_left_alone(self) -> bool:
        inner = any(op is not self.loop and kind_of(op) == "for" for op in self.loop.walk())
        return inner or isinstance(self.loop.lb.type, IndexType)

    def _loads(self) -> list[Operation]:
        if self._is_left_alone():
            return []
        loads = [op for op in self.ops if kind_of(op) == "load"]
        if not self.products:
            return loads if self.hint is not None else []
        return [load for load in loads if by_engine(load) or _feeds_products(load)]

    def asked(self, num_stages: int) -> int:
        """How many slots the author asks for; 0 where nothing is said."""
        return self.hint.value.data if isinstance(self.hint, IntegerAttr) else num_stages

    def filled(self, slots: int) -> int:
        """How many of the slots there are iterations for; the others would only take room."""
        most = self.loop.trips().most
        return slots if most is None else min(slots, most)

    @property
    def moved_bytes(self) -> int:
        """What the loop itself moves through shared memory, beside its slots.

        Those are operands that it computes, and tiles that it stores, which may change layouts.
        """
        staged = {
            value
            for product in self.products
            for value in shared_operands(product)
            if value.owner in self.ops and value.owner not in self.loads
        }
        stored = [
            tile_bytes(access.operands[1])
            for access in self.loop.walk()
            if kind_of(access) == "store" and is_planned(access)
        ]
        return sum(map(tile_bytes, staged)) + min(max(stored, default=0), MAX_SCRATCH_BYTES)

    @property
    def slot_bytes(self) -> int:
        """The bytes of the tiles of one iteration."""
        return sum(slot_step(tile_bytes(load.results[0])) for load in self.loads)

    def unsaid(self, held_bytes: int, num_warps: int) -> LoopOfProducts:
        """What the number of slots depends on where nobody says it."""
        return LoopOfProducts(
            self.loop,
            self.products,
            self._is_accumulating,
            self.slot_bytes,
            all(map(by_engine, self.loads)),
            any(map(self._is_looked_up, self.loads)),
            held_bytes,
            num_warps,
            self._are_of_warps,
        )

    def _is_looked_up(self, load: Operation) -> bool:
        """Whether what the loop loads says where a tile of it is."""
        seen, pending = set[Operation](), list(load.operands)
        while pending:
            op = pending.pop().owner
            if not isinstance(op, Operation) or op in seen or op.parent is not load.parent:
                continue
            if global_access(op) is not None:
                return True
            seen.add(op)
            pending += op.operands
        return False

    @property
    def _is_accumulating(self) -> bool:
        """Whether it only adds up products, each to what it was an iteration before."""
        end, carried = self.ops[-1], self.loop.body.block.args
        return bool(self.products) and all(
            op.operands[2] in carried and [use.operation for use in op.results[0].uses] == [end]
            for op in self.products
        )

    def _is_late(self, slots: int) -> bool:
        """Whether products run on into the next iteration: then what they read stays one longer."""
        is_open = self._is_accumulating and not self._are_of_warps and not self.computed
        return slots >= LATE_SLOTS and is_open

    @property
    def _are_of_warps(self) -> bool:
        """Whether the products are instructions of single warps, which wait for each."""
        return any(decided(op, ProductAttr).instruction == "mma" for op in self.products)

    def channels(self, slots: int, number: int) -> list[Channel]:
        """The rings that the loads fill: one of the copy engine, one of the threads."""
        release = "late" if self._is_late(slots) else "wait"
        found: list[Channel] = []
        for medium in ("tma", "cp_async"):
            loads = [op for op in self.loads if by_engine(op) == (medium == "tma")]
            if loads:
                anchors = tuple(self.names[load] for load in loads)
                name = f"ring{number + len(found)}"
                found.append(Channel(name, anchors, slots, medium, release))
        return found

    def schedule(self, slots: int) -> LoopSchedule:
        """The places of the loop's ops: loads are stages ahead of all others."""
        loads = [self.names[load] for load in self.loads]
        others = [self.names[op] for op in self.products] or [REST]
        places = places_of(loads, others, slots, self._is_late(slots))
        return LoopSchedule(self.names[self.loop], places)


def _feeds_products(op: Operation) -> bool:
    """Whether products take a tile, or a view of it, from shared memory, and nothing else does."""
    users = [use.operation for use in op.results[0].uses]
    return bool(users) and all(_takes(user, op.results[0]) for user in users)


def _takes(user: Operation, tile: SSAValue) -> bool:
    if isinstance(user, PermutingOp):
        return _feeds_products(user)
    plan = annotated(user, ProductAttr)
    if plan is None:
        return False
    if plan.instruction == "mma" and not isinstance(tile.owner, PermutingOp):
        # It takes registers, into which matrix loads read a slot.
        return tile in user.operands[:2] and is_matrix_of_words(tile) and not _is_scattered(tile)
    places = zip(user.operands, (plan.a, plan.b), strict=False)
    mine = [place for value, place in places if value is tile]
    return bool(mine) and all(place == SHARED for place in mine)


def _is_scattered(tile: SSAValue) -> bool:
    """Whether a lane would copy 32-bit elements one by one.

    Measured on an H200, 2026-11-28, float32 1000 x 1023 x 515 in 32 x 64 x 32: 25.5 us by such
    copies, 22.3 through registers.
    """
    owner = tile.owner
    plan = annotated(owner, AccessAttr) if isinstance(owner, Operation) else None
    return plan is not None and plan.vector == 1 and storage_bytes(tile.type) == 4


def shared_operands(op: Operation) -> list[SSAValue]:
    """The operands that a product takes from shared memory; none of another op."""
    plan = annotated(op, ProductAttr)
    places = () if plan is None else (plan.a, plan.b)
    return [v for v, place in zip(op.operands, places, strict=False) if place == SHARED]


def tile_bytes(value: SSAValue) -> int:
    """The bytes of a tile in shared memory."""
    return prod(shape_of(value.type)) * storage_bytes(value.type)
