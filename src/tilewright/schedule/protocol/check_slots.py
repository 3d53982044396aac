"""Checks what roles do to slots: counted from fill to fill, in balance, by common scalars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.alias import is_shared
from tilewright.ir.effects import own_effects
from tilewright.ir.regions import ControlFlowOp, is_control_flow, sources_of
from tilewright.ir.schedule_attributes import COMMON
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.debug.ir import BarrierOp
from tilewright.ops.rings import (
    RingAcquireOp,
    RingCommitOp,
    RingDrainedOp,
    RingFill,
    RingLandedOp,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingSettled,
    RingWaitOp,
    SlotAccess,
)
from tilewright.ops.roles import Role, RolesOp, role_around, shared_by_roles
from tilewright.ops.staging import AsyncCopyOp
from tilewright.schedule.protocol.broken import broken, ring_name
from tilewright.support.rules import RuleTable

MAX_ANNOUNCED_BYTES = 1 << 20
"""What one phase of an mbarrier may wait for. Source: PTX ISA 8.8, 9.7.13.15, "tx-count"."""
CHECKS: RuleTable[Callable[[Role, Operation], None]] = RuleTable("checks of ops in roles")


def check_slots(roles: RolesOp, rings: Sequence[RingOp]) -> None:
    """Check every op of every role. *Raises*: ProtocolBroken."""
    common: set[SSAValue] = set()
    for role, region in zip(roles.described(), roles.bodies, strict=True):
        for op in region.block.walk():
            _check_op(role, op)
            if shared_by_roles(op):
                _check_surroundings(role, op, common)
        for block in _blocks(region.block):
            _check_balance(role, block)
    for ring in rings:
        _check_counts(roles, ring)


def _check_op(role: Role, op: Operation) -> None:
    check = CHECKS.find(type(op))
    if check is not None:
        check(role, op)


@CHECKS.register(BarrierOp)
def _check_barrier(role: Role, op: BarrierOp) -> None:
    what = "waits for the whole program, whose other roles never come here"
    raise broken(role.name, what, op, "use a barrier of the role's own warps")


@CHECKS.register(RingReleaseOp)
def _check_slot(role: Role, op: RingReleaseOp | RingCommitOp) -> None:
    if op.slot is None:
        raise broken(role.name, f"ring {ring_name(op.ring_of())}: no slot is named", op)


@CHECKS.register(RingAcquireOp, RingWaitOp, RingLandedOp, RingDrainedOp)
def _check_position(role: Role, op: RingAcquireOp | RingWaitOp | RingSettled) -> None:
    """Slot and fill are counted together, from slot 0 of fill 0 on, by steps of a seek."""
    ring = op.ring_of()
    if len(op.position) != 2:
        raise broken(role.name, f"ring {ring_name(ring)}: no slot is named", op)
    slot, fill = op.position
    is_first = constant_of(slot) == 0 and constant_of(fill) == 0
    in_loop = any(loop.is_loop() for loop in _around(op))
    if (is_first and in_loop) or not _is_counted(slot, fill, ring, set()):
        what = "slot and fill are not counted from fill to fill"
        hint = "carry both through the loops around, each step by a seek"
        raise broken(role.name, f"ring {ring_name(ring)}: {what}", op, hint)


def _is_counted(
    slot: SSAValue, fill: SSAValue, ring: RingOp, seen: set[tuple[SSAValue, SSAValue]]
) -> bool:
    """Whether two values are a position: the first one, or that of a seek, handed on together."""
    if (slot, fill) in seen or (constant_of(slot) == 0 and constant_of(fill) == 0):
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


def _around(op: Operation) -> Iterator[ControlFlowOp]:
    """The loops and branches around an op within its role, inner ones first."""
    around, parent = role_around(op), op.parent_op()
    while isinstance(parent, ControlFlowOp) and (around is None or parent is not around[0]):
        yield parent
        parent = parent.parent_op()


def _check_surroundings(role: Role, op: Operation, common: set[SSAValue]) -> None:
    """Loops and branches around follow from scalars that every role can compute for itself.

    `common` are those that are known to be such, to which those found here are added.
    """
    for outer in _around(op):
        for operand in _steering(outer):
            reason = _not_common(operand, common)
            if reason is not None:
                what = f"{shared_by_roles(op)}: {op.name} stands under {outer.name}, whose "
                what += f"scalars follow from {reason}"
                raise broken(role.name, what, op, "other roles cannot compute it for themselves")


def _steering(op: ControlFlowOp) -> list[SSAValue]:
    """What decides where control goes at an op, and how often: bounds, a condition."""
    return [value for edge in op.edges() for value in edge.giver.operands[: edge.first]]


def _not_common(scalar: SSAValue, common: set[SSAValue]) -> str | None:
    """The op that a scalar depends on and that one role alone sees; None without one."""
    pending = [scalar]
    while pending:
        value = pending.pop()
        if value in common:
            continue
        common.add(value)
        sources = sources_of(value)
        if sources is None and isinstance(value, BlockArgument):
            continue  # of the program, of a role, or a loop's counter
        if sources is None:
            assert isinstance(value, OpResult)
            if _is_seen_alone(value.op):
                return value.op.name
            sources = value.op.operands
        pending += reversed(sources)
    return None


def _is_seen_alone(op: Operation) -> bool:
    """Whether other roles cannot compute what an op gives."""
    is_common = COMMON in op.attributes
    if (own_effects(op) and not is_common) or any(map(is_shared, op.operands)):
        return True
    return any(isinstance(v.type, TensorType) for v in op.operands)


@CHECKS.register(RingCommitOp)
def _check_announced(role: Role, commit: RingCommitOp) -> None:
    """A commit announces the bytes of the copies into its slot since that was acquired."""
    _check_slot(role, commit)
    ring, total = commit.ring_of(), 0
    op = commit.prev_op
    while op is not None and not _begins_fill(op, ring):
        if isinstance(op, RingFill) and op.ring.owner is ring:
            if op.slot is not commit.slot:
                raise broken(role.name, f"ring {ring_name(ring)}: a copy is for another slot", op)
            total += op.num_bytes()
        op = op.prev_op
    announced: IntegerAttr | None = commit.announced_bytes
    found = 0 if announced is None else announced.value.data
    if found != total or found >= MAX_ANNOUNCED_BYTES:
        what = f"ring {ring_name(ring)}: {found} bytes are announced, and its copies bring {total}"
        raise broken(role.name, what, commit)
    _check_copies(role, commit)


def _check_copies(role: Role, commit: RingCommitOp) -> None:
    """A commit waits for the copies that threads have started, and for nothing where none did."""
    ring, is_copied = commit.ring_of(), False
    op = commit.prev_op
    while op is not None and not _ends_fill(op) and not op.regions:
        is_copied = is_copied or isinstance(op, AsyncCopyOp)
        op = op.prev_op
    if is_copied != (commit.by_copies is not None):
        what = "does not wait for what threads copy" if is_copied else "waits for copies of nobody"
        raise broken(role.name, f"ring {ring_name(ring)}: {commit.name} {what}", commit)


def _ends_fill(op: Operation) -> bool:
    """Whether an op commits a slot of a ring."""
    return isinstance(op, SlotAccess) and op.IS_TO_FILL and not op.TAKES_SLOT


def _begins_fill(op: Operation, ring: RingOp) -> bool:
    """Whether an op acquires a slot of a ring."""
    is_taken = isinstance(op, SlotAccess) and op.IS_TO_FILL and op.TAKES_SLOT
    return is_taken and op.operands[0] is ring.result


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
    taken: Counter[tuple[RingOp, bool]] = Counter()
    conditional: set[RingOp] = set()
    first: dict[RingOp, Operation] = {}
    for op in block.ops:
        if not isinstance(op, SlotAccess):
            continue
        ring = op.ring_of()
        first.setdefault(ring, op)
        if op.is_conditional():
            conditional.add(ring)
        taken[ring, op.IS_TO_FILL] += 1 if op.TAKES_SLOT else -1
    for (ring, is_to_fill), count in taken.items():
        if count and ring not in conditional and (is_to_fill or not _is_split(ring, role)):
            verbs = ("acquired", "committed") if is_to_fill else ("waited for", "released")
            more = verbs[0] if count > 0 else verbs[1]
            what = f"ring {ring_name(ring)}: slots are {more} {abs(count)} times more than "
            other = verbs[1] if count > 0 else verbs[0]
            raise broken(role.name, f"{what}{other} on a path", first[ring])


def _is_split(ring: RingOp, role: Role) -> bool:
    """Whether some release of a role is conditional, so that a block alone is not balanced."""
    uses = (use.operation for use in ring.result.uses)
    accesses = (op for op in uses if isinstance(op, SlotAccess) and _role_of(op) == role.name)
    return any(op.is_conditional() for op in accesses)


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
            what = f"ring {ring_name(ring)}: nobody ever does {kind.name}"
            raise broken("", what, ring)
        if any(_skips(ring, role.name) for role in found):
            continue
        replicas = sum(role.replicas for role in found)
        if replicas != count.value.data:
            counted = f"ring {ring_name(ring)} counts {count.value.data} of {kind.name}"
            raise broken(found[0].name, f"{counted}, and {replicas} do", ops[0])


def _skips(ring: RingOp, role: str) -> bool:
    """Whether replicas of a role go past fills of others: by a count that is not one."""
    seeks = [u.operation for u in ring.result.uses if isinstance(u.operation, RingSeekOp)]
    return any(_role_of(seek) == role and constant_of(seek.count) != 1 for seek in seeks)
