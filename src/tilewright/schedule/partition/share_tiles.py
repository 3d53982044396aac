"""Lets replicas of a role take whole tiles in turn (T0r to T0r).

    math: for %t in %lb, %ub, %step { for %k in 0, %n, 64 { %a, %b = get %ab … } … store }
    ⇒ math x2 (%r): skip %ab, %r * trips
      for %t in %lb + %r * %step, %ub, %step * 2
        { for %k in 0, %n, 64 { %a, %b = get %ab … } … store; skip %ab, trips }

The loop over tiles is the one loop of the role that does anything. How often it takes from a
channel is the same in each of its iterations, and known before it: a replica goes past the fills
of the tiles between its own.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.effects import is_free
from tilewright.ir.op import build
from tilewright.ir.regions import counter_of, is_control_flow
from tilewright.ir.types import i1, i32, i64
from tilewright.ops.channels import GetOp, MeetOp, SkipOp
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp, constant_of
from tilewright.ops.debug.ir import is_assumption
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.schedule.partition.cuts import is_root
from tilewright.schedule.partition.refusal import Refused

# By definition: the number of `sgt` among INTEGER_PREDICATES.
_GREATER = 4


def share_tiles(body: Block, replicas: int) -> None:
    """Rewrite the body of a role for replicas of which each takes every so many-th tile.

    *Raises*: Refused, with the body partly rewritten: whoever asks drops it then.
    """
    meets = (op for op in body.walk() if isinstance(op, MeetOp))
    for op in meets:
        raise Refused(op, "roles meet within a tile")
    loop = _tile_loop(body)
    counting = _Counting(loop)
    counts = counting.fills()
    end, around = loop.body.block.last_op, loop.parent
    assert end is not None and around is not None
    replica = body.args[0]
    for channel, count in counts.items():
        mine = counting.emit("arith.muli", replica, count)
        others = counting.emit("arith.muli", count, counting.constant(replicas - 1))
        around.insert_op_before(_skip(loop, channel, mine), loop)
        loop.body.block.insert_op_before(_skip(end, channel, others), end)
    moved = counting.emit("arith.muli", replica, loop.step)
    lb = counting.emit("arith.addi", loop.lb, moved)
    step = counting.emit("arith.muli", loop.step, counting.constant(replicas))
    loop.operands = [lb, loop.ub, step]


def _skip(like: Operation, channel: SSAValue, count: SSAValue) -> Operation:
    return build(SkipOp, [channel, count], location=like.location)


def _tile_loop(body: Block) -> ForOp:
    """The loop over tiles. *Raises*: Refused where something else does or takes anything."""
    found: list[ForOp] = []
    for op in body.ops:
        acts = [inner for inner in op.walk() if _acts(inner)]
        if not acts:
            continue
        if not isinstance(op, ForOp) or found:
            raise Refused(
                acts[0], "replicas take whole tiles of one loop, and this is outside of it"
            )
        found.append(op)
    if not found:
        last = body.last_op
        assert last is not None
        raise Refused(last, "there is no loop over tiles that replicas could take in turn")
    (loop,) = found
    if loop.results:
        raise Refused(loop, "a tile needs what the one before it has computed")
    if loop.lb.type != i32:
        raise Refused(loop, f"a loop over tiles counts in i32, and this one in {loop.lb.type}")
    return loop


def _acts(op: Operation) -> bool:
    return isinstance(op, GetOp) or (is_root(op) and not is_assumption(op))


class _Counting:
    """Scalars in front of the loop over tiles."""

    def __init__(self, loop: ForOp) -> None:
        self._loop = loop
        self._made: dict[SSAValue, SSAValue] = {}

    def fills(self) -> dict[SSAValue, SSAValue]:
        """How often an iteration takes from each channel. *Raises*: Refused where that varies."""
        counts: dict[SSAValue, SSAValue] = {}
        for op in self._loop.body.block.ops:
            own = [inner for inner in op.walk() if isinstance(inner, GetOp)]
            if not own:
                continue
            times = self.constant(1) if isinstance(op, GetOp) else self._trips(op, own)
            for get in own:
                before = counts.get(get.channel)
                counts[get.channel] = (
                    times if before is None else self.emit("arith.addi", before, times)
                )
        return counts

    def _trips(self, op: Operation, gets: list[GetOp]) -> SSAValue:
        """How often a loop inside of a tile runs, each time taking what stands in its block."""
        counter = counter_of(op)
        if counter is None or any(get.parent is not counter.value.block for get in gets):
            raise Refused(op, "how often a tile takes from a ring follows from more than one loop")
        by = constant_of(counter.step)
        if counter.start.type != i32 or not isinstance(by, int) or by < 1:
            raise Refused(op, "how often a tile takes from a ring is known for constant steps")
        lb, ub = self._outside(counter.start), self._outside(counter.end)
        one = self.constant(1)
        # Unsigned, as the difference of two i32 may need all 32 bits.
        reach = self.emit("arith.subi", self.emit("arith.subi", ub, lb), one)
        whole = self.emit("arith.divui", reach, self.constant(by))
        trips = self.emit("arith.addi", whole, one)
        greater: dict[str, Attribute] = {"predicate": IntegerAttr(_GREATER, i64)}
        runs = self._insert(build(CmpIOp, [ub, lb], [i1], greater, location=op.location))
        return self.emit("arith.select", runs, trips, self.constant(0))

    def _outside(self, value: SSAValue) -> SSAValue:
        """A value in front of the loop. *Raises*: Refused where it follows from the tile."""
        if value in self._made:
            return self._made[value]
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        if op is None or not (op is self._loop or self._loop.is_ancestor(op)):
            return value
        is_fixed = isinstance(owner, Operation) and is_free(op) and not is_control_flow(op)
        if not is_fixed or op.has_trait(IsTerminator):
            raise Refused(op, "how often a tile takes from a ring follows from the tile")
        clone = op.clone({operand: self._outside(operand) for operand in op.operands})
        self._insert(clone)
        for old, new in zip(op.results, clone.results, strict=True):
            self._made[old] = new
        return self._made[value]

    def emit(self, name: str, *operands: SSAValue) -> SSAValue:
        """An op on i32."""
        types = [operands[-1].type]
        return self._insert(build(ELEMENTWISE[name], operands, types, location=self._loop.location))

    def constant(self, value: int) -> SSAValue:
        """A number."""
        properties: dict[str, Attribute] = {"value": IntegerAttr(value, i32)}
        return self._insert(build(ConstantOp, (), [i32], properties, location=self._loop.location))

    def _insert(self, op: Operation) -> SSAValue:
        block = self._loop.parent
        assert block is not None
        block.insert_op_before(op, self._loop)
        return op.results[0]
