"""Roles that run at once, and the rings that carry tiles between them (T1, T2).

A ring has slots in shared memory. A producer acquires a slot, fills it and commits it; each
consumer waits for it, reads it and releases it. At T2 who acquires or waits says the slot and
which fill of that slot it means, counted from 0: both sides count alike, and parity is that
number's. At T1 a role goes through the slots in turn, and `ring_seek` skips some.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import (
    Attribute,
    Operation,
    OpResult,
    ParametrizedAttribute,
    SSAValue,
    TypeAttribute,
)
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
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.attributes import integers_of
from tilewright.ir.effects import Effect, Resource, update
from tilewright.ir.encoding import SharedType, layout_of, shared_tile
from tilewright.ir.op import SharedViewOp, TileOp
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge
from tilewright.ir.types import i1, i32, storage_bytes
from tilewright.ops.control_flow import YieldOp
from tilewright.support.dataclass import dataclass


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
    a slot of each is empty when the consumers of all of them have released theirs.
    """

    name = "ttg.ring"
    tiles = var_operand_def(SharedType)
    ring_name = prop_def(StringAttr)
    producers = prop_def(IntegerAttr)
    consumers = prop_def(IntegerAttr)
    cluster = opt_prop_def(IntegerAttr)
    offset_bytes = opt_prop_def(IntegerAttr)
    result = result_def(RingType)

    @property
    def programs(self) -> int:
        """How many programs share the ring; 1 where each has its own."""
        return 1 if self.cluster is None else self.cluster.value.data

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
    have come.
    """

    name = "ttg.ring_commit"
    IS_TO_FILL: ClassVar[bool] = True
    TAKES_SLOT: ClassVar[bool] = False
    ring = operand_def(RingType)
    slot = opt_operand_def()
    announced_bytes = opt_prop_def(IntegerAttr)

    def is_of_one_thread(self) -> bool:
        """Where nothing but copy engines writes to the slot."""
        return self.announced_bytes is not None


@irdl_op_definition
class RingWaitOp(_RingEntry):
    """Wait until slot `slot` is full for the time `fill` (from 0); its tiles."""

    name = "ttg.ring_wait"
    IS_TO_FILL: ClassVar[bool] = False
    ring = operand_def(RingType)
    position = var_operand_def()
    tiles = var_result_def(SharedType)


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


class TurnOp(TileOp):
    """The facet of ops on a turn.

    The replicas of a role take turns, the first of them first. `turns` names what they take
    turns at: a role may have several.
    """

    turns = prop_def(StringAttr)

    def effects(self) -> tuple[Effect, ...]:
        """Replicas share memory: nothing moves across."""
        return (update(Resource.SHARED),)


@irdl_op_definition
class TurnWaitOp(TurnOp):
    """Wait until it is this replica's turn; all of its warps do."""

    name = "ttg.turn_wait"


@irdl_op_definition
class TurnPassOp(TurnOp):
    """It is the next replica's turn, and the first one's behind the last; nobody waits here.

    A replica passes a turn once that it has had.
    """

    name = "ttg.turn_pass"


@irdl_op_definition
class ClusterWaitOp(TileOp):
    """Wait for the other programs of the cluster: nobody reaches into this one from here on.

    The last op of every role that reads a ring of the cluster.
    """

    name = "ttg.cluster_wait"

    def effects(self) -> tuple[Effect, ...]:
        """It is about whole programs, and neither moves nor goes."""
        return (update(Resource.QUEUE),)


@dataclass(frozen=True)
class Role:
    """A role as its op has it: `replicas` groups of `warps` run one region.

    `registers` are those of each thread; 0 leaves them as they are. What a region allocates lies
    from byte `shared_start` on, that of replica r `r * shared_bytes` bytes behind.
    """

    name: str
    warps: int
    replicas: int
    registers: int
    shared_start: int = 0
    shared_bytes: int = 0

    def replica_names(self) -> tuple[str, ...]:
        """What messages call the replicas."""
        if self.replicas == 1:
            return (self.name,)
        return tuple(f"{self.name} {index}" for index in range(self.replicas))


@irdl_op_definition
class RolesOp(ControlFlowOp):
    """Regions that run at once, each by warps of its own; the last op of the program.

    To dataflow each region is one way through the op, as nothing but memory goes from one to
    another. Each region takes the number of its replica, and yields nothing. `warps`, `replicas`
    and `registers` have an entry for each of `roles`; so have, once shared memory has its places
    (T2), `shared_start` and `shared_bytes`.
    """

    name = "tw.roles"
    roles = prop_def(ArrayAttr[StringAttr])
    warps = prop_def(DenseArrayBase[IntegerType])
    replicas = prop_def(DenseArrayBase[IntegerType])
    registers = prop_def(DenseArrayBase[IntegerType])
    shared_start = opt_prop_def(DenseArrayBase[IntegerType])
    shared_bytes = opt_prop_def(DenseArrayBase[IntegerType])
    bodies = var_region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def described(self) -> tuple[Role, ...]:
        """The roles, one for each region."""
        numbers = [integers_of(p) for p in (self.warps, self.replicas, self.registers)]
        nowhere = (0,) * len(self.bodies)
        numbers += [integers_of(p) or nowhere for p in (self.shared_start, self.shared_bytes)]
        rows = zip((name.data for name in self.roles), *numbers, strict=True)
        return tuple(Role(*row) for row in rows)

    def is_loop(self) -> bool:
        """Each region runs once."""
        return False

    def edges(self) -> tuple[Edge, ...]:
        """Into every region, and out of it; nothing but the replica's number goes along."""
        sides = range(len(self.bodies))
        entering = [Edge(OUTSIDE, side, self, 0, ()) for side in sides]
        return (*entering, *(Edge(s, OUTSIDE, _last(self, s), 0, ()) for s in sides))

    def verify_(self) -> None:
        """Every region is a role with a name of its own, and the program ends with them."""
        numbers: Sequence[Sequence[int]] = [
            integers_of(p) for p in (self.warps, self.replicas, self.registers)
        ]
        count = len(self.bodies)
        places = [p for p in (self.shared_start, self.shared_bytes) if p is not None]
        numbers = [*numbers, *map(integers_of, places)]
        if count == 0 or {len(self.roles), *map(len, numbers)} != {count}:
            raise VerifyException(f"{self.name}: {count} regions, and another number of roles")
        if len({name.data for name in self.roles}) != count:
            raise VerifyException(f"{self.name}: two roles of one name")
        for role in self.described():
            if role.warps & (role.warps - 1) or min(role.warps, role.replicas) < 1:
                raise VerifyException(f"{self.name}: {role.name} has {role.warps} warps")
        for side, body in enumerate(self.bodies):
            if [argument.type for argument in body.block.args] != [i32]:
                raise VerifyException(f"{self.name}: a region takes the number of its replica")
            if _last(self, side).operands:
                raise VerifyException(f"{self.name}: a role yields nothing")
        following = self.next_op
        if following is not None and following.next_op is not None:
            raise VerifyException(f"{self.name}: the program goes on behind its roles")


def _last(op: RolesOp, side: int) -> YieldOp:
    """The end of a region. *Raises*: VerifyException where it is no yield."""
    last = op.bodies[side].block.last_op
    if not isinstance(last, YieldOp):
        raise VerifyException(f"{op.name}: a role ends with {YieldOp.name}")
    return last


def role_around(op: Operation) -> tuple[RolesOp, int] | None:
    """The op whose roles an op is in one of, and the number of that role; None outside of all."""
    region = op.parent_region()
    while region is not None:
        parent = region.parent
        if isinstance(parent, RolesOp):
            return parent, parent.bodies.index(region)
        region = None if parent is None else parent.parent_region()
    return None


def find_roles(kernel: Operation) -> RolesOp | None:
    """The roles of a kernel, which has some as its last op or none."""
    return next((op for op in kernel.regions[0].block.ops if isinstance(op, RolesOp)), None)


def rings_of(kernel: Operation) -> tuple[RingOp, ...]:
    """The rings of a kernel, all of which its program makes before its roles begin."""
    return tuple(op for op in kernel.regions[0].block.ops if isinstance(op, RingOp))


def orders_roles(op: Operation) -> bool:
    """Whether an op orders what roles or replicas do, and touches no tile itself."""
    return isinstance(op, RingOp | RingAccess | TurnOp | ClusterWaitOp)


def is_in_ring(allocation: Operation) -> bool:
    """Whether a shared tile is the slots of a ring, whose accesses the ring orders."""
    users = (use.operation for result in allocation.results for use in result.uses)
    return any(isinstance(user, RingOp) for user in users)


def shared_by_roles(op: Operation) -> str:
    """What an op on a ring or a turn is on, as messages call it; '' for other ops."""
    if isinstance(op, TurnOp):
        name = op.properties["turns"]
        return f"turns {name.data}" if isinstance(name, StringAttr) else "turns"
    ring = op.ring.owner if isinstance(op, RingFill) else None
    if isinstance(op, RingAccess):
        ring = op.operands[0].owner
    return f"ring {ring.ring_name.data}" if isinstance(ring, RingOp) else ""


def ring_entered(op: Operation) -> RingOp | None:
    """The ring for whose next slot an op waits; None for other ops."""
    return op.ring_of() if isinstance(op, _RingEntry) else None


def ring_released(op: Operation) -> RingOp | None:
    """The ring to which an op gives back a slot that was read; None for other ops."""
    return op.ring_of() if isinstance(op, RingReleaseOp) else None


def waits_for_turn(op: Operation) -> bool:
    """Whether a replica waits for its turn at an op."""
    return isinstance(op, TurnWaitOp)


def passes_turn(op: Operation) -> bool:
    """Whether a replica passes its turn on at an op."""
    return isinstance(op, TurnPassOp)
