"""What ops do to shared memory, step by step, as those who order it need it.

An op is a sequence of accesses and barriers. Most of it the op declares itself (`ir.effects`).
What follows from the schedule comes here: an op with scratch writes it, waits for all warps and
reads it; all wait before an atomic that releases and behind one that acquires; and a wait is the
end of what the ops behind its tokens started.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.traits import IsTerminator

from tilewright.analysis.alias import is_shared
from tilewright.ir.effects import (
    Access,
    Atomic,
    Effect,
    Extent,
    Group,
    Order,
    Resource,
    Wait,
    own_effects,
)
from tilewright.ir.encoding import SharedType, TokenType
from tilewright.ir.regions import sources_of
from tilewright.schedule.scratch import scratch_bytes
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import InternalError


@dataclass(frozen=True)
class SharedAccess:
    """A read or write of the shared tile `tile`, or of the scratch of `op`.

    `is_async` is one by the asynchronous units (wgmma, TMA), which see what threads wrote only
    after a fence. `is_joint` is one that every thread waited for where it ends, `is_counted` one
    that may end here, which a `Counted` wait behind it says exactly.
    """

    op: Operation
    tile: SSAValue | None
    is_write: bool
    is_async: bool = False
    extent: Extent = Extent.WHOLE
    is_joint: bool = False
    is_counted: bool = False

    @property
    def starts(self) -> bool:
        """Whether memory is touched from here on."""
        return self.extent is not Extent.END

    @property
    def ends(self) -> bool:
        """Whether memory is no longer touched after this."""
        return self.extent is not Extent.START


@dataclass(frozen=True)
class Counted:
    """The end of all groups of accesses that ops of a class started but the newest `pending`."""

    started_by: type[Operation]
    pending: int


Step = SharedAccess | Order | Group | Counted


def shared_steps(op: Operation) -> tuple[Step, ...]:
    """What an op without regions of its own does to shared memory, in order.

    *Raises* InternalError for an op that takes a shared tile and declares no access of it.
    """
    effects = own_effects(op)
    if not effects:
        _check_handled(op)
    atomics = [e.atomic for e in effects if isinstance(e, Access) and e.atomic is not None]
    steps: list[Step] = [Order.BARRIER] if any(map(_releases, atomics)) else []
    for effect in effects:
        steps += _steps_of(op, effect)
    if scratch_bytes(op):
        steps += [SharedAccess(op, None, True), Order.BARRIER, SharedAccess(op, None, False)]
    elif any(map(_acquires, atomics)):
        steps.append(Order.BARRIER)
    return tuple(steps)


def _releases(atomic: Atomic) -> bool:
    return atomic.releases


def _acquires(atomic: Atomic) -> bool:
    return atomic.acquires


def _steps_of(op: Operation, effect: Effect) -> Iterator[Step]:
    if isinstance(effect, Order | Group):
        yield effect
    elif isinstance(effect, Wait):
        is_counted = effect.pending is not None
        for start, access in ended_by(op, effect):
            for step in _accesses(start, access):
                yield replace(step, is_joint=effect.is_joint, is_counted=is_counted)
        for tile in filter(is_shared, effect.values):
            yield SharedAccess(op, tile, True, True, Extent.END, effect.is_joint)
        if effect.pending is not None:
            yield Counted(effect.through[0], effect.pending)
    elif isinstance(effect, Access):
        yield from _accesses(op, effect)


def _accesses(op: Operation, access: Access) -> Iterator[SharedAccess]:
    if access.resource is not Resource.SHARED:
        return
    for is_write, does in ((False, access.reads), (True, access.writes)):
        if does:
            yield SharedAccess(op, access.value, is_write, access.is_async, access.extent)


def _check_handled(op: Operation) -> None:
    """An op without effects makes a view of a shared tile, or hands it on."""
    hands_on = any(map(is_shared, op.results)) or op.has_trait(IsTerminator)
    if any(map(is_shared, op.operands)) and not hands_on:
        raise InternalError(f"{op.name} does not say what it does to shared memory")


def touched_tiles(op: Operation) -> list[SSAValue]:
    """The shared tiles that an op touches or hands on, those that it waits for included."""
    tiles = [operand for operand in op.operands if is_shared(operand)]
    for effect in own_effects(op):
        steps = _steps_of(op, effect)
        tiles += [s.tile for s in steps if isinstance(s, SharedAccess) and s.tile is not None]
    return tiles


def ended_by(op: Operation, wait: Wait) -> Iterator[tuple[Operation, Access]]:
    """The ends of the accesses that a wait of an op is for, with the ops that started them."""
    for source in _sources(op, wait.through):
        for effect in own_effects(source):
            if isinstance(effect, Access) and effect.extent is Extent.START:
                yield source, replace(effect, extent=Extent.END)


def _sources(op: Operation, through: tuple[type[Operation], ...]) -> Iterator[Operation]:
    """The ops of some classes whose results reach an op, through each other and control flow."""
    pending = _handed(op)
    seen = set(pending)
    while pending:
        value = pending.pop()
        sources = sources_of(value)
        if sources is None and isinstance(value, OpResult) and isinstance(value.op, through):
            yield value.op
            sources = _handed(value.op)
        for source in sources or ():
            if source not in seen:
                seen.add(source)
                pending.append(source)


def _handed(op: Operation) -> list[SSAValue]:
    """What an op takes that may stand for an asynchronous one: tokens and tiles."""
    return [v for v in op.operands if isinstance(v.type, TokenType | TensorType | SharedType)]
