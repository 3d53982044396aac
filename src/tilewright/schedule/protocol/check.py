"""Checks what roles share before a program is emitted: registers, memory, rings and turns.

All of it is read off T2 and nothing is run: who runs it is `run`. Each rule says what it
refuses, and every message names the role, the ring or what else is shared, and the line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.alias import is_shared, tile_bytes
from tilewright.ir.effects import own_effects
from tilewright.ir.encoding import SharedType
from tilewright.ir.locations import span_of
from tilewright.ir.regions import ControlFlowOp, is_control_flow, sources_of
from tilewright.machine.model import MachineModel
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.debug.ir import BarrierOp
from tilewright.ops.function import FuncOp
from tilewright.ops.roles import (
    RingAcquireOp,
    RingCommitOp,
    RingFill,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingWaitOp,
    Role,
    RolesOp,
    TurnPassOp,
    TurnWaitOp,
    find_roles,
    role_around,
    shared_by_roles,
)
from tilewright.ops.staging import LocalAllocOp
from tilewright.schedule.scratch import has_place, scratch_bytes, scratch_offset
from tilewright.schedule.shared_memory import RING_SLOT_BYTES
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import ProtocolBroken

MAX_ANNOUNCED_BYTES = 1 << 20
"""What one phase of an mbarrier may wait for. Source: PTX ISA 8.8, 9.7.13.15, "tx-count"."""
# Source: PTX ISA 8.8, setmaxnreg: a multiple of 8, at least 24, for a group of four warps.
_REGISTER_STEP, _FEWEST_REGISTERS = 8, 24
_WARP_GROUP = 4
_ON_A_SLOT = (RingAcquireOp, RingCommitOp, RingWaitOp, RingReleaseOp)


def check_protocol(kernel: FuncOp, machine: MachineModel) -> None:
    """Check the roles of a kernel, if it has any.

    *Raises*: ProtocolBroken for the first rule that does not hold.
    """
    roles = find_roles(kernel)
    if roles is None:
        return
    rings = [op for op in kernel.body.block.ops if isinstance(op, RingOp)]
    _check_registers(roles, machine)
    _check_barriers(roles, machine)
    _check_places(kernel, roles, rings)
    for role, region in zip(roles.described(), roles.bodies, strict=True):
        for op in region.block.walk():
            _check_op(role, op)
        for block in _blocks(region.block):
            _check_balance(role, block)
    for ring in rings:
        _check_counts(roles, ring)


def broken(role: str, what: str, op: Operation, hint: str = "") -> ProtocolBroken:
    """The error of a role at an op; '' is what no role does, but the program has."""
    span, chain = span_of(op)
    whose = f"role {role}: " if role else ""
    return ProtocolBroken(whose + what, hint=hint, span=span, chain=chain)


# --- what a cta has -----------------------------------------------------------------------------


def _check_registers(roles: RolesOp, machine: MachineModel) -> None:
    """Grants are what `setmaxnreg` takes, and all together what an SM has: more of them hang."""
    total, granted = 0, machine.registers_per_sm
    described = roles.described()
    if not any(role.registers for role in described):
        return
    for role in described:
        count = role.registers
        is_grant = _FEWEST_REGISTERS <= count <= machine.max_registers_per_thread + 1
        if not is_grant or count % _REGISTER_STEP or role.warps % _WARP_GROUP:
            what = f"{count} registers for {role.warps} warps are no grant"
            raise broken(role.name, what, roles, "grant 24 to 256, in steps of 8, to warp groups")
        total += machine.lanes * role.warps * role.replicas * count
        if total > granted:
            what = f"its registers make {total} of the program, and an SM has {granted}"
            raise broken(role.name, what, roles, "roles that wait for registers wait forever")


def _check_barriers(roles: RolesOp, machine: MachineModel) -> None:
    """Each replica meets at a barrier of its own, and so does each of its turns."""
    count = 1  # where the whole cta meets
    for role, region in zip(roles.described(), roles.bodies, strict=True):
        turns = (op for op in region.block.walk() if isinstance(op, TurnWaitOp | TurnPassOp))
        names = {op.turns.data for op in turns}
        count += role.replicas * (1 + (len(names) if role.replicas > 1 else 0))
        if count > machine.num_barriers:
            what = f"its turns and replicas make {count} barriers of {machine.num_barriers}"
            raise broken(role.name, what, roles)


@dataclass(frozen=True)
class _Piece:
    """Bytes of shared memory, whose they are (a replica, or '' for all), and what for."""

    start: int
    end: int
    owner: str
    what: str
    op: Operation


def _check_places(kernel: FuncOp, roles: RolesOp, rings: Sequence[RingOp]) -> None:
    """Nothing that two roles or replicas use, or a ring and anything else, shares a byte."""
    pieces: list[_Piece] = []
    for op in kernel.body.block.ops:
        if isinstance(op, LocalAllocOp):
            pieces.append(_piece(op, 0, "", _what_of(op)))
    for ring in rings:
        if ring.offset_bytes is None:
            raise broken("", f"ring {_name(ring)} has no place", ring)
        start = ring.offset_bytes.value.data
        end = start + ring.num_slots * RING_SLOT_BYTES
        pieces.append(_Piece(start, end, f"ring {_name(ring)}", f"ring {_name(ring)}", ring))
    for role, region in zip(roles.described(), roles.bodies, strict=True):
        for index, name in enumerate(role.replica_names()):
            base = role.shared_start + index * role.shared_bytes
            for op in region.block.walk():
                if isinstance(op, LocalAllocOp):
                    pieces.append(_piece(op, base, name, f"a tile of role {name}"))
                elif has_place(op):
                    start = base + scratch_offset(op)
                    what = f"the scratch of role {name}"
                    pieces.append(_Piece(start, start + scratch_bytes(op), name, what, op))
    for one, other in combinations(pieces, 2):
        is_shared_by_two = one.owner != other.owner or one.owner == ""
        if is_shared_by_two and max(one.start, other.start) < min(one.end, other.end):
            places = f"bytes {one.start} to {one.end} and {other.start} to {other.end}"
            what = f"{other.what} lies in {one.what}: {places}"
            raise broken("", what, other.op)


def _what_of(op: LocalAllocOp) -> str:
    """What a tile of all roles is for."""
    rings = [use.operation for use in op.result.uses if isinstance(use.operation, RingOp)]
    return f"a tile of ring {_name(rings[0])}" if rings else "a tile of all roles"


def _piece(op: LocalAllocOp, base: int, owner: str, what: str) -> _Piece:
    if op.offset_bytes is None:
        raise broken("", f"{what} has no place", op)
    start = base + op.offset_bytes.value.data
    assert isinstance(op.result.type, SharedType)
    return _Piece(start, start + tile_bytes(op.result.type), owner, what, op)


# --- ops on slots -------------------------------------------------------------------------------


def _check_op(role: Role, op: Operation) -> None:
    if isinstance(op, BarrierOp):
        what = "waits for the whole program, whose other roles never come here"
        raise broken(role.name, what, op, "use a barrier of the role's own warps")
    if isinstance(op, RingAcquireOp | RingWaitOp):
        _check_position(role, op)
    elif isinstance(op, RingReleaseOp | RingCommitOp) and op.slot is None:
        raise broken(role.name, f"ring {_name(op.ring_of())}: no slot is named", op)
    if isinstance(op, (*_ON_A_SLOT, RingFill, RingSeekOp, TurnWaitOp, TurnPassOp)):
        _check_surroundings(role, op)
    if isinstance(op, RingCommitOp):
        _check_announced(role, op)


def _name(ring: RingOp) -> str:
    return ring.ring_name.data


def _check_position(role: Role, op: RingAcquireOp | RingWaitOp) -> None:
    """Slot and fill are counted together, from slot 0 of fill 0 on, by steps of a seek."""
    ring = op.ring_of()
    if len(op.position) != 2:
        raise broken(role.name, f"ring {_name(ring)}: no slot is named", op)
    slot, fill = op.position
    is_first = _is_zero(slot) and _is_zero(fill)
    in_loop = any(loop.is_loop() for loop in _around(op))
    if (is_first and in_loop) or not _is_counted(slot, fill, ring, set()):
        what = "slot and fill are not counted from fill to fill"
        hint = "carry both through the loops around, each step by a seek"
        raise broken(role.name, f"ring {_name(ring)}: {what}", op, hint)


def _is_counted(
    slot: SSAValue, fill: SSAValue, ring: RingOp, seen: set[tuple[SSAValue, SSAValue]]
) -> bool:
    """Whether two values are a position: the first one, or that of a seek, handed on together."""
    if (slot, fill) in seen or (_is_zero(slot) and _is_zero(fill)):
        return True
    seen.add((slot, fill))
    if isinstance(slot, OpResult) and isinstance(slot.op, RingSeekOp):
        seek = slot.op
        is_pair = list(seek.after) == [slot, fill] and len(seek.before) == 2
        fits = seek.ring_of().num_slots == ring.num_slots
        return is_pair and fits and _is_counted(seek.before[0], seek.before[1], ring, seen)
    sources, others = sources_of(slot), sources_of(fill)
    if not sources or not others or len(sources) != len(others):
        return False
    pairs = zip(sources, others, strict=True)
    return all(_is_counted(at, number, ring, seen) for at, number in pairs)


def _is_zero(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and value.owner.splat_value() == 0


def _around(op: Operation) -> Iterator[ControlFlowOp]:
    """The loops and branches around an op within its role, inner ones first."""
    parent = op.parent_op()
    while isinstance(parent, ControlFlowOp) and not isinstance(parent, RolesOp):
        yield parent
        parent = parent.parent_op()


def _check_surroundings(role: Role, op: Operation) -> None:
    """Loops and branches around follow from scalars that every role can compute for itself."""
    for outer in _around(op):
        for operand in _steering(outer):
            reason = _not_common(operand, set())
            if reason is not None:
                what = f"{shared_by_roles(op)}: {op.name} stands under {outer.name}, whose "
                what += f"scalars follow from {reason}"
                raise broken(role.name, what, op, "other roles cannot compute it for themselves")


def _steering(op: ControlFlowOp) -> list[SSAValue]:
    """What decides where control goes at an op, and how often: bounds, a condition."""
    return [value for edge in op.edges() for value in edge.giver.operands[: edge.first]]


def _not_common(value: SSAValue, seen: set[SSAValue]) -> str | None:
    """The op that a scalar depends on and that one role alone sees; None without one."""
    if value in seen:
        return None
    seen.add(value)
    sources = sources_of(value)
    if sources is not None:
        inner = [_not_common(source, seen) for source in sources]
    elif isinstance(value, BlockArgument):
        return None  # of the program, of a role, or a loop's counter
    else:
        assert isinstance(value, OpResult)
        if own_effects(value.op) or any(map(is_shared, value.op.operands)):
            return value.op.name
        if any(isinstance(v.type, TensorType) for v in value.op.operands):
            return value.op.name
        inner = [_not_common(operand, seen) for operand in value.op.operands]
    return next((reason for reason in inner if reason is not None), None)


def _check_announced(role: Role, commit: RingCommitOp) -> None:
    """A commit announces the bytes of the copies into its slot since that was acquired."""
    ring, total = commit.ring_of(), 0
    op = commit.prev_op
    while op is not None and not (isinstance(op, RingAcquireOp) and op.ring_of() is ring):
        if isinstance(op, RingFill) and op.ring.owner is ring:
            if op.slot is not commit.slot:
                raise broken(role.name, f"ring {_name(ring)}: a copy is for another slot", op)
            total += op.num_bytes()
        op = op.prev_op
    announced: IntegerAttr | None = commit.announced_bytes
    found = 0 if announced is None else announced.value.data
    if found != total or found >= MAX_ANNOUNCED_BYTES:
        what = f"ring {_name(ring)}: {found} bytes are announced, and its copies bring {total}"
        raise broken(role.name, what, commit)


def _blocks(block: Block) -> Iterator[Block]:
    """A block and those of the loops and branches inside."""
    yield block
    for op in block.ops:
        if is_control_flow(op):
            for region in op.regions:
                for inner in region.blocks:
                    yield from _blocks(inner)


def _check_balance(role: Role, block: Block) -> None:
    """On every path a role gives back as often as it takes; conditions leave that to the run."""
    taken: Counter[tuple[RingOp, str]] = Counter()
    conditional: set[RingOp] = set()
    first: dict[RingOp, Operation] = {}
    for op in block.ops:
        if not isinstance(op, _ON_A_SLOT):
            continue
        ring = op.ring_of()
        first.setdefault(ring, op)
        if isinstance(op, RingReleaseOp) and op.condition is not None:
            conditional.add(ring)
        sign = 1 if isinstance(op, RingAcquireOp | RingWaitOp) else -1
        side = "fills" if isinstance(op, RingAcquireOp | RingCommitOp) else "reads"
        taken[ring, side] += sign
    for (ring, side), count in taken.items():
        if count and ring not in conditional and not _is_split(ring, role, side):
            verbs = ("acquired", "committed") if side == "fills" else ("waited for", "released")
            more = verbs[0] if count > 0 else verbs[1]
            what = f"ring {_name(ring)}: slots are {more} {abs(count)} times more than "
            other = verbs[1] if count > 0 else verbs[0]
            raise broken(role.name, f"{what}{other} on a path", first[ring])


def _is_split(ring: RingOp, role: Role, side: str) -> bool:
    """Whether some release of a role is conditional, so that a block alone is not balanced."""
    uses = (use.operation for use in ring.result.uses)
    releases = [op for op in uses if isinstance(op, RingReleaseOp) and _role_of(op) == role.name]
    return side == "reads" and any(op.condition is not None for op in releases)


def _role_of(op: Operation) -> str:
    around = role_around(op)
    return "" if around is None else around[0].described()[around[1]].name


def _check_counts(roles: RolesOp, ring: RingOp) -> None:
    """As many replicas fill and empty a slot as the ring counts; who skips fills is left out."""
    for kind, count in ((RingCommitOp, ring.producers), (RingReleaseOp, ring.consumers)):
        ops = [u.operation for u in ring.result.uses if isinstance(u.operation, kind)]
        names = dict.fromkeys(map(_role_of, ops))
        found = [role for role in roles.described() if role.name in names]
        if not found:
            what = f"ring {_name(ring)}: nobody ever does {kind.name}"
            raise broken("", what, ring)
        if any(_skips(ring, role.name) for role in found):
            continue
        replicas = sum(role.replicas for role in found)
        if replicas != count.value.data:
            what = f"ring {_name(ring)} counts {count.value.data} of {kind.name}, and {replicas} do"
            raise broken(found[0].name, what, ops[0])


def _skips(ring: RingOp, role: str) -> bool:
    """Whether replicas of a role go past fills of others: by a count that is not one."""
    seeks = [u.operation for u in ring.result.uses if isinstance(u.operation, RingSeekOp)]
    return any(_role_of(seek) == role and not _is_one(seek.count) for seek in seeks)


def _is_one(value: SSAValue) -> bool:
    return isinstance(value.owner, ConstantOp) and value.owner.splat_value() == 1
