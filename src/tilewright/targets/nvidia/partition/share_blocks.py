"""Lets two programs of a cluster load for each other (T0r to T0r).

    load: for %t in %pid, %n, %step
            { for %k … { %a = load A[f(%t), %k]; %b = load B[%k, g(%t)]; put %ab, %a, %b } }
    math: for %t in %pid, %n, %step { … }
    ⇒ both: %rank = %pid & 1
            for %u in %pid - %rank, %n, %step { %t = min(%u + %rank, %n - 1) … }
      load: %v = min(%u + 1 - %rank, %n - 1)
            … put %ab, %a, %b, (f(%t) == f(%v)), (g(%t) == g(%v))

Programs 2c and 2c + 1 go through as many tiles, so that they fill and empty the same slots at the
same time. Where the number of tiles is odd the last one is done by both, which write the same.
Each knows what its neighbour loads, since that follows from the neighbour's number: a block that
both load at once is shared. Whoever goes on with that decides how.

What must hold: the program's number is where the loop over tiles begins and nothing else; the
loops inside of a tile, and so the fills, are the same for every tile; nothing is added to memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.effects import global_access, is_free
from tilewright.ir.regions import ancestor_in, counter_of, sources_of
from tilewright.ir.types import i1, i64
from tilewright.ops.channels import GetOp, PutOp, SkipOp
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.inline.ir import InlineAsmOp
from tilewright.ops.program.ir import GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.roles import RolesOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.schedule.partition.refusal import Refused

PROGRAMS = 2
"""How many programs share. By definition: one has one neighbour."""
# By definition: the number of `eq` among INTEGER_PREDICATES.
_EQUAL = 0


def share_blocks(roles: RolesOp) -> None:
    """Rewrite the roles of a kernel. *Raises*: Refused, with the kernel as it was."""
    bodies = [region.block for region in roles.bodies]
    loops = [_tile_loop(body) for body in bodies]
    puts = [(loop, op) for loop in loops for op in loop.walk() if isinstance(op, PutOp)]
    for loop, put in puts:
        _require_same_fills(loop, put)
    leaves = {put: [_leaves(loop, load) for load in _loads(put)] for loop, put in puts}
    tiles = {loop: _Tile(loop) for loop in loops}
    for loop, put in puts:
        tiles[loop].share(put, leaves[put])


def goes_by_programs(kernel: Operation) -> bool:
    """Whether programs of a kernel go from tile to tile as far apart as there are programs."""
    counters = [counter for op in kernel.walk() if (counter := counter_of(op)) is not None]
    return any(
        _asks(counter.start, GetProgramIdOp) and _asks(counter.step, GetNumProgramsOp)
        for counter in counters
    )


def _asks(value: SSAValue, kind: type[GetProgramIdOp | GetNumProgramsOp]) -> bool:
    """Whether a value is asked of the launch, along the first axis."""
    op = value.owner
    return isinstance(op, kind) and not op.axis.value.data


# --- what must hold -----------------------------------------------------------------------------


def _tile_loop(body: Block) -> ForOp:
    """The loop over tiles of a role. *Raises*: Refused where it is not what a cluster needs."""
    found = [op for op in body.ops if any(_acts(inner) for inner in op.walk())]
    loop = found[0] if found else body.last_op
    assert loop is not None
    if len(found) != 1 or not isinstance(loop, ForOp):
        raise Refused(loop, "programs share the blocks of one loop over tiles")
    if not _asks(loop.lb, GetProgramIdOp):
        raise Refused(loop, "the loop over tiles does not begin with the program's number")
    if loop.results:
        raise Refused(loop, "a tile needs what the one before it has computed")
    for op in body.walk():
        _require_alike(op, loop)
    return loop


def _acts(op: Operation) -> bool:
    access = global_access(op)
    return isinstance(op, PutOp | GetOp) or (access is not None and access.writes)


def _require_alike(op: Operation, loop: ForOp) -> None:
    """Hold an op to what two programs may do for one tile. *Raises*: Refused."""
    access = global_access(op)
    if isinstance(op, GetProgramIdOp) and any(use.operation is not loop for use in op.result.uses):
        raise Refused(op, "more than the first tile follows from the program's number")
    if isinstance(op, InlineAsmOp):
        raise Refused(op, "assembly may tell programs apart")
    if isinstance(op, SkipOp):
        raise Refused(op, "replicas take whole tiles in turn")
    if access is not None and access.reads and access.writes:
        raise Refused(op, f"{op.name} would add a tile to memory twice")


def _require_same_fills(loop: ForOp, put: PutOp) -> None:
    """Hold the loops between tiles and a fill to as many rounds for every tile."""
    around = put.parent_op()
    while around is not loop:
        assert around is not None
        counter = counter_of(around)
        if counter is None:
            raise Refused(around, "how often a tile fills a ring may differ between programs")
        bounds = (counter.start, counter.end, counter.step)
        if any(_follows(leaf, loop) for leaf in _reached(loop, bounds)):
            raise Refused(around, "how often a tile fills a ring follows from the tile")
        around = around.parent_op()


def _loads(put: PutOp) -> list[Operation]:
    """The loads of a fill."""
    owners = [value.owner for value in put.values]
    assert all(isinstance(owner, Operation) for owner in owners)
    return [owner for owner in owners if isinstance(owner, Operation)]


def _leaves(loop: ForOp, load: Operation) -> list[SSAValue]:
    """The scalars of a tile that say which block a load takes. *Raises*: Refused."""
    found = [leaf for leaf in _reached(loop, load.operands) if _follows(leaf, loop)]
    for leaf in found:
        _require_scalars(loop, leaf, load)
    return found


def _require_scalars(loop: ForOp, value: SSAValue, load: Operation) -> None:
    """Hold what a scalar is computed from to plain ops of the tile. *Raises*: Refused."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.parent is not loop.body.block:
        return
    if owner.regions or not is_free(owner):
        raise Refused(load, f"which block is loaded follows from {owner.name}")
    for operand in owner.operands:
        _require_scalars(loop, operand, load)


def _reached(loop: ForOp, values: Iterable[SSAValue]) -> list[SSAValue]:
    """The values in the block of a tile, its counter among them, that values follow from.

    From loops inside of the tile it goes back through what they carry and compute; counters of
    those follow from their bounds, which `_require_same_fills` looks at.
    """
    pending, seen = list(values), dict[SSAValue, None]()
    found: list[SSAValue] = []
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen[value] = None
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        if op is None or not loop.is_ancestor(op):
            continue
        if op is loop or (isinstance(owner, Operation) and owner.parent is loop.body.block):
            found.append(value)
            continue
        sources = sources_of(value)
        pending += op.operands if sources is None else sources
    return found


def _follows(value: SSAValue, loop: ForOp) -> bool:
    """Whether a value of a tile follows from which tile it is, as far as is known."""
    owner = value.owner
    if value in loop.body.block.args:
        return True
    if not isinstance(owner, Operation) or owner.parent is not loop.body.block:
        return False
    return bool(owner.regions) or any(_follows(operand, loop) for operand in owner.operands)


# --- what changes -------------------------------------------------------------------------------


class _Tile:
    """The loop over tiles of a role, rewritten for pairs of programs."""

    def __init__(self, loop: ForOp) -> None:
        self._block = loop.body.block
        ahead = TileBuilder(loop)
        self._rank = ahead.binary("andi", loop.lb, ahead.integer(PROGRAMS - 1))
        self._other = ahead.binary("subi", ahead.integer(PROGRAMS - 1), self._rank)
        self._last = ahead.binary("subi", loop.ub, ahead.integer(1))
        loop.operands = [ahead.binary("subi", loop.lb, self._rank), loop.ub, loop.step]
        (self._first,) = self._block.args
        users = [(use.operation, use.index) for use in self._first.uses]
        self._own = self._tile_of(self._rank)
        for user, index in users:
            user.operands[index] = self._own
        self._peers: dict[SSAValue, SSAValue] = {}

    def _tile_of(self, rank: SSAValue) -> SSAValue:
        """The tile of the program of a rank: the last one where there is none behind it."""
        assert self._block.first_op is not None
        make = TileBuilder(self._block.first_op)
        return make.binary("minsi", make.binary("addi", self._first, rank), self._last)

    def share(self, put: PutOp, leaves: Sequence[Sequence[SSAValue]]) -> None:
        """Say of each value of a fill whether the neighbour's is the same."""
        if not self._peers:
            self._peers[self._own] = self._tile_of(self._other)
        before = ancestor_in(self._block, put)
        flags = [self._is_same(TileBuilder(before), own) for own in leaves]
        put.operands = [*put.operands, *flags]

    def _is_same(self, make: TileBuilder, leaves: Sequence[SSAValue]) -> SSAValue:
        is_same = make.emit(ConstantOp, (), i1, {"value": IntegerAttr(1, i1)})
        for leaf in leaves:
            own = self._own if leaf is self._first else leaf
            equal: dict[str, Attribute] = {"predicate": IntegerAttr(_EQUAL, i64)}
            one = make.emit(CmpIOp, (own, self._peer(make, own)), i1, equal)
            is_same = make.binary("andi", is_same, one)
        return is_same

    def _peer(self, make: TileBuilder, value: SSAValue) -> SSAValue:
        """What the neighbour has in the place of a scalar."""
        owner = value.owner
        if value in self._peers:
            return self._peers[value]
        if not isinstance(owner, Operation) or owner.parent is not self._block:
            return value
        operands = {operand: self._peer(make, operand) for operand in owner.operands}
        if all(old is new for old, new in operands.items()):
            return value
        clone = owner.clone(operands)
        self._block.insert_op_before(clone, make.before)
        self._peers.update(zip(owner.results, clone.results, strict=True))
        return self._peers[value]
