"""Rings of shared tiles, and the ops by which roles fill and read their slots (T1, T2)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation, OpResult, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    Operand,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import Effect, Order, Resource, update
from tilewright.ir.encoding import SharedType, layout_of, shared_tile
from tilewright.ir.op import SharedViewOp, TileOp
from tilewright.ir.types import i1, i32, storage_bytes


@irdl_attr_definition
class RingType(ParametrizedAttribute, TypeAttribute):
    """A ring: slots of shared memory with what says whether they are full or empty."""

    name = "ttg.ring"


RING = RingType()


@irdl_op_definition
class RingOp(TileOp):
    """A ring over shared tiles, all of as many slots as the ring.

    A slot is full when `producers` roles have committed it, and empty when `consumers` roles have
    released it; a replica counts as a role. `ring_name` is what messages call it, `offset_bytes`
    the place of what says whether slots are full (T2). With `cluster` programs share the ring:
    a slot of each is empty when the consumers of all of them have released theirs. With `shares`
    its tiles lie in the memory of the ring of that name, and roles use one of both at a time.
    """

    name = "ttg.ring"
    tiles = var_operand_def(SharedType)
    ring_name = prop_def(StringAttr)
    producers = prop_def(IntegerAttr)
    consumers = prop_def(IntegerAttr)
    cluster = opt_prop_def(IntegerAttr)
    shares = opt_prop_def(StringAttr)
    offset_bytes = opt_prop_def(IntegerAttr)
    result = result_def(RingType)

    @property
    def programs(self) -> int:
        """How many programs share the ring; 1 where each has its own."""
        return 1 if self.cluster is None else self.cluster.value.data

    @property
    def memory(self) -> str:
        """The name of the ring in whose memory the tiles lie: its own, or that of another one."""
        return (self.shares or self.ring_name).data

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.SHARED),)

    @property
    def num_slots(self) -> int:
        """The slots of the ring."""
        return int(_shared(self.tiles[0]).slots.data)

    def verify_(self) -> None:
        """There are tiles, all of as many slots; someone fills them and someone empties them."""
        slots = {_shared(tile).slots.data for tile in self.tiles}
        if len(slots) != 1:
            raise VerifyException(f"{self.name}: tiles of {sorted(slots)} slots")
        for side in ("producers", "consumers"):
            count = self.properties[side]
            if not isinstance(count, IntegerAttr) or count.value.data < 1:
                raise VerifyException(f"{self.name}: {side} is {count}")


def _shared(tile: SSAValue) -> SharedType:
    assert isinstance(tile.type, SharedType)
    return tile.type


class RingAccess(TileOp):
    """The facet of ops on a slot of a ring.

    At T2 the slot is an operand, and the number of the fill for those who wait. At T1 the order
    of the ops says both: each role goes through the slots in turn.
    """

    def effects(self) -> tuple[Effect, ...]:
        # Orders accesses of the slot's tiles by other roles: no access of shared memory passes it.
        return (update(Resource.SHARED),)

    def is_of_one_thread(self) -> bool:
        """Whether one thread can do it for its whole role."""
        return False

    def ring_of(self) -> RingOp:
        """The ring that the op is on. *Raises*: VerifyException where it is handed on."""
        owner = self.operands[0].owner
        if not isinstance(owner, RingOp):
            raise VerifyException(f"{self.name}: its ring is no result of {RingOp.name}")
        return owner

    def verify_(self) -> None:
        """The ring is named; slot and fill are i32; the results are its slot's tiles."""
        ring = self.ring_of()
        numbers = [operand.type for operand in self.operands[1:]]
        if any(type_ != i32 for type_ in numbers):
            raise VerifyException(f"{self.name}: slot and fill are i32")
        if self.results and list(self.result_types) != slot_types(ring):
            raise VerifyException(f"{self.name}: the results are not the tiles of a slot")


class SlotAccess(RingAccess):
    """The facet of ops that take a slot, or give it back: to fill it, or to read it."""

    IS_TO_FILL: ClassVar[bool]
    TAKES_SLOT: ClassVar[bool]

    def is_conditional(self) -> bool:
        """Whether it does nothing where a condition is false."""
        return False


class _RingEntry(SlotAccess, SharedViewOp):
    """An access that waits: its `position` is a slot and a fill, or nothing."""

    TAKES_SLOT: ClassVar[bool] = True

    def viewed(self, result: OpResult) -> SSAValue:
        """The ring's tile of all slots."""
        return self.ring_of().tiles[result.index]

    def verify_(self) -> None:
        """Slot and fill are given together."""
        super().verify_()
        if len(self.operands) not in (1, 3):
            raise VerifyException(f"{self.name}: slot and fill come together")


def slot_side(ring: str, slot: object, is_empty: bool) -> str:
    """What messages call the mbarrier that tells that a slot is empty, or full."""
    return f"{'empty' if is_empty else 'full'}[{slot}] of ring {ring}"


def slot_types(ring: RingOp) -> list[Attribute]:
    """The types of the tiles of one slot."""
    tiles = [_shared(tile) for tile in ring.tiles]
    return [shared_tile(tile.element, layout_of(tile)) for tile in tiles]


@irdl_op_definition
class RingAcquireOp(_RingEntry):
    """Wait until slot `slot` may be filled for the time `fill` (from 0); its tiles."""

    name = "ttg.ring_acquire"
    IS_TO_FILL: ClassVar[bool] = True
    ring = operand_def(RingType)
    position = var_operand_def()
    tiles = var_result_def(SharedType)

    def is_of_one_thread(self) -> bool:
        return True


@irdl_op_definition
class RingCommitOp(SlotAccess):
    """What the role has written to slot `slot` is there; all of its warps come here.

    `announced_bytes` are those that copy engines bring to the slot besides: it is full when they
    have come. With `by_copies` each thread arrives by itself when all copies are there that it has
    started (`AsyncCopyOp`), whenever that is, and goes on at once.
    """

    name = "ttg.ring_commit"
    IS_TO_FILL: ClassVar[bool] = True
    TAKES_SLOT: ClassVar[bool] = False
    ring = operand_def(RingType)
    slot = opt_operand_def()
    announced_bytes = opt_prop_def(IntegerAttr)
    by_copies = opt_prop_def(UnitAttr)

    def is_of_one_thread(self) -> bool:
        """Where nothing but copy engines writes to the slot."""
        return self.announced_bytes is not None


@irdl_op_definition
class RingWaitOp(_RingEntry):
    """Wait until slot `slot` is full for the time `fill` (from 0); its tiles.

    With `meets` all replicas of the role come here once for each fill, right after their commits
    of it, and wait at a barrier of their own: then it is full.
    """

    name = "ttg.ring_wait"
    IS_TO_FILL: ClassVar[bool] = False
    ring = operand_def(RingType)
    position = var_operand_def()
    meets = opt_prop_def(UnitAttr)
    tiles = var_result_def(SharedType)

    def effects(self) -> tuple[Effect, ...]:
        """Where all replicas come they order what their own warps have done."""
        return (*super().effects(), *(() if self.meets is None else (Order.BARRIER,)))

    def is_of_one_thread(self) -> bool:
        """Where nobody looks at the slot: it says that others have come."""
        return all(tile.first_use is None for tile in self.tiles)


@irdl_op_definition
class RingReleaseOp(SlotAccess):
    """The role has read slot `slot`; all of its warps come here.

    Where `condition` (i1) is given and false, nothing is released.
    """

    name = "ttg.ring_release"
    IS_TO_FILL: ClassVar[bool] = False
    TAKES_SLOT: ClassVar[bool] = False
    ring = operand_def(RingType)
    slot = opt_operand_def()
    condition = opt_operand_def(i1)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def is_conditional(self) -> bool:
        return self.condition is not None

    def is_of_one_thread(self) -> bool:
        """One thread that has read nothing speaks for all of its role."""
        return True

    def verify_(self) -> None:
        """The ring is named itself, and the slot is i32."""
        self.ring_of()
        if self.slot is not None and self.slot.type != i32:
            raise VerifyException(f"{self.name}: the slot is i32")


@irdl_op_definition
class RingSeekOp(RingAccess):
    """Go `count` (i32, not negative) fills on: past this role's own, or past another replica's.

    At T2 it takes the slot and the fill where the role stands (`before`), and gives those where
    it stands then (`after`); at T1 it takes and gives neither. It waits for nothing.
    """

    name = "ttg.ring_seek"
    ring = operand_def(RingType)
    count = operand_def()
    before = var_operand_def()
    after = var_result_def()

    def is_of_one_thread(self) -> bool:
        return True

    def effects(self) -> tuple[Effect, ...]:
        """With numbers of its own it computes; without it counts on where the role stands."""
        return () if self.before else super().effects()

    def verify_(self) -> None:
        """Slot and fill come and go together, as i32."""
        self.ring_of()
        if len(self.before) not in (0, 2) or len(self.after) != len(self.before):
            raise VerifyException(f"{self.name}: slot and fill come and go together")
        values = (*self.operands[1:], *self.results)
        if any(value.type != i32 for value in values):
            raise VerifyException(f"{self.name}: count, slot and fill are i32")


class RingSettled(RingAccess):
    """The facet of waits for something of all fills of a ring that this role has started.

    At T2 they take the slot and the fill that the role would start next.
    """

    IS_EMPTY: ClassVar[bool]
    """Whether they wait until slots are empty; else until they are full."""
    if TYPE_CHECKING:  # each op defines them
        ring: Operand
        position: Sequence[SSAValue]

    def is_of_one_thread(self) -> bool:
        return True


@irdl_op_definition
class RingLandedOp(RingSettled):
    """Wait until all copies to slots of the ring that this role has started are there."""

    name = "ttg.ring_landed"
    IS_EMPTY: ClassVar[bool] = False
    ring = operand_def(RingType)
    position = var_operand_def()


@irdl_op_definition
class RingDrainedOp(RingSettled):
    """Wait until all slots of the ring that this role has filled are read and released."""

    name = "ttg.ring_drained"
    IS_EMPTY: ClassVar[bool] = True
    ring = operand_def(RingType)
    position = var_operand_def()


class RingFill(TileOp):
    """The facet of ops by which a copy engine fills a tile (`dst`) of a slot of a ring.

    They have operands `dst`, `ring` and, at T2, `slot`; the bytes are those of the tile. Where
    `shared` (i1) holds, each program of a cluster brings its part of them to all programs.
    """

    if TYPE_CHECKING:  # each op defines them
        dst: Operand
        ring: Operand
        slot: Operand | None
        shared: Operand | None

    def num_bytes(self) -> int:
        """The bytes that the copy brings."""
        return prod(_shared(self.dst).extents()) * storage_bytes(_shared(self.dst).element)


def ring_entered(op: Operation) -> RingOp | None:
    """The ring for whose next slot an op waits; None for other ops."""
    return op.ring_of() if isinstance(op, _RingEntry) else None


def ring_released(op: Operation) -> RingOp | None:
    """The ring to which an op gives back a slot that was read; None for other ops."""
    return op.ring_of() if isinstance(op, RingReleaseOp) else None
