"""Roles that run at once, and the rings that carry tiles between them (T1, T2).

A ring has slots in shared memory. A producer acquires a slot, fills it and commits it; each
consumer waits for it, reads it and releases it. At T2 who acquires or waits says the slot and
which fill of that slot it means, counted from 0: both sides count alike, and parity is that
number's. At T1 a role goes through the slots in turn, and `ring_seek` skips some.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType, StringAttr
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, traits_def, var_region_def
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.attributes import integers_of
from tilewright.ir.effects import Effect, Resource, update
from tilewright.ir.op import TileOp
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge
from tilewright.ir.types import i32
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.rings import RingAccess, RingFill, RingOp
from tilewright.support.dataclass import dataclass


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


def orders_roles(op: Operation) -> bool:
    """Whether an op orders what roles or replicas do, and touches no tile itself."""
    return isinstance(op, RingOp | RingAccess | TurnOp | ClusterWaitOp)


def shared_by_roles(op: Operation) -> str:
    """What an op on a ring or a turn is on, as messages call it; '' for other ops."""
    if isinstance(op, TurnOp):
        name = op.properties["turns"]
        return f"turns {name.data}" if isinstance(name, StringAttr) else "turns"
    ring = op.ring.owner if isinstance(op, RingFill) else None
    if isinstance(op, RingAccess):
        ring = op.operands[0].owner
    return f"ring {ring.ring_name.data}" if isinstance(ring, RingOp) else ""


def waits_for_turn(op: Operation) -> bool:
    """Whether a replica waits for its turn at an op."""
    return isinstance(op, TurnWaitOp)


def passes_turn(op: Operation) -> bool:
    """Whether a replica passes its turn on at an op."""
    return isinstance(op, TurnPassOp)
