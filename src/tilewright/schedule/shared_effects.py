"""What ops do to shared memory, step by step: the facet that orders them.

An op is a sequence of accesses and barriers: one with scratch writes it, waits for all warps and
reads it. An asynchronous op starts an access; the op that waits for it ends it. Families of ops
register their rule here; an op that touches a shared tile and has no rule is a defect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.alias import carried_from, is_shared
from tilewright.ir.encoding import SharedType, TokenType
from tilewright.ops.debug import BarrierOp
from tilewright.ops.staging import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    DotWaitOp,
    LaidOutDotOp,
    LocalAllocOp,
    LocalBarrierOp,
    LocalLoadOp,
    LocalStoreOp,
)
from tilewright.schedule.scratch import scratch_bytes
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import InternalError
from tilewright.support.rules import RuleTable


class Order(Enum):
    """What orders accesses: all warps wait; a thread's writes reach the asynchronous units."""

    BARRIER = "barrier"
    FENCE = "fence"


class Extent(Enum):
    """Which part of an access an op is: all of it, or where it starts or ends."""

    WHOLE = "whole"
    START = "start"
    END = "end"


@dataclass(frozen=True)
class Access:
    """A read or write of the shared tile `tile`, or of the scratch of `op`.

    `is_async` is one by the asynchronous units (wgmma, TMA), which see what threads wrote only
    after a fence. `is_joint` is one that every thread waited for where it ends.
    """

    op: Operation
    tile: SSAValue | None
    is_write: bool
    is_async: bool = False
    extent: Extent = Extent.WHOLE
    is_joint: bool = False

    @property
    def starts(self) -> bool:
        """Whether memory is touched from here on."""
        return self.extent is not Extent.END

    @property
    def ends(self) -> bool:
        """Whether memory is no longer touched after this."""
        return self.extent is not Extent.START


Step = Access | Order
EffectRule = Callable[[Operation], tuple[Step, ...]]
SHARED_EFFECTS: RuleTable[EffectRule] = RuleTable("shared effects")


def shared_steps(op: Operation) -> tuple[Step, ...]:
    """What an op without regions of its own does to shared memory, in order.

    *Raises* InternalError for an op that touches a shared tile in a way nobody has declared.
    """
    rule = SHARED_EFFECTS.find(type(op))
    if rule is not None:
        return rule(op)
    if scratch_bytes(op):
        return (Access(op, None, True), Order.BARRIER, Access(op, None, False))
    makes_view = any(is_shared(result) for result in op.results)
    if any(map(is_shared, op.operands)) and not makes_view:
        raise InternalError(f"{op.name} does not say what it does to shared memory")
    return ()


def touched_tiles(op: Operation) -> list[SSAValue]:
    """The shared tiles that an op touches or hands on, those that it waits for included."""
    tiles = [operand for operand in op.operands if is_shared(operand)]
    rule = SHARED_EFFECTS.find(type(op))
    steps = () if rule is None else rule(op)
    return tiles + [s.tile for s in steps if isinstance(s, Access) and s.tile is not None]


@SHARED_EFFECTS.register(LocalBarrierOp, BarrierOp)
def _barrier(op: Operation) -> tuple[Step, ...]:
    return (Order.BARRIER,)


@SHARED_EFFECTS.register(LocalAllocOp)
def _alloc(op: LocalAllocOp) -> tuple[Step, ...]:
    return () if op.src is None else (Access(op, op.result, True),)


@SHARED_EFFECTS.register(LocalStoreOp)
def _store(op: LocalStoreOp) -> tuple[Step, ...]:
    return (Access(op, op.dst, True),)


@SHARED_EFFECTS.register(LocalLoadOp)
def _load(op: LocalLoadOp) -> tuple[Step, ...]:
    return (Access(op, op.src, False),)


@SHARED_EFFECTS.register(LaidOutDotOp)
def _dot(op: LaidOutDotOp) -> tuple[Step, ...]:
    """A product reads its shared operands, with wgmma by the asynchronous unit."""
    extent = Extent.WHOLE if op.is_async is None else Extent.START
    is_async = op.product.data.instruction == "wgmma"
    shared = (value for value in (op.a, op.b) if is_shared(value))
    return tuple(Access(op, value, False, is_async, extent) for value in shared)


@SHARED_EFFECTS.register(DotWaitOp)
def _dot_wait(op: DotWaitOp) -> tuple[Step, ...]:
    """The end of the reads of every product that the tiles come from."""
    return ends_of(op, (LaidOutDotOp,))


@SHARED_EFFECTS.register(AsyncCopyOp)
def _copy(op: AsyncCopyOp) -> tuple[Step, ...]:
    return (Access(op, op.dst, True, extent=Extent.START),)


@SHARED_EFFECTS.register(AsyncCommitOp)
def _commit(op: Operation) -> tuple[Step, ...]:
    return ()


@SHARED_EFFECTS.register(AsyncWaitOp)
def _wait(op: Operation) -> tuple[Step, ...]:
    """The end of the writes of every copy in the groups that the tokens stand for."""
    return ends_of(op, (AsyncCopyOp, AsyncCommitOp, AsyncWaitOp))


def ends_of(
    op: Operation, kinds: tuple[type[Operation], ...], *, is_joint: bool = False
) -> tuple[Step, ...]:
    """The ends of the accesses that ops of some kinds start, whose tokens or results op takes."""
    ended: list[Step] = []
    for source in _sources(op, kinds):
        for step in shared_steps(source):
            if isinstance(step, Access) and step.extent is Extent.START:
                ended.append(replace(step, extent=Extent.END, is_joint=is_joint))
    return tuple(ended)


def _sources(op: Operation, kinds: tuple[type[Operation], ...]) -> Iterator[Operation]:
    """The ops of some kinds whose results reach an op, through each other and control flow."""
    pending = _handed(op)
    seen = set(pending)
    while pending:
        value = pending.pop()
        sources = carried_from(value) if _is_handed_on(value) else None
        if sources is None and isinstance(value, OpResult) and isinstance(value.op, kinds):
            if not isinstance(value.op, AsyncWaitOp):
                yield value.op
            sources = _handed(value.op)
        for source in sources or ():
            if source not in seen:
                seen.add(source)
                pending.append(source)


def _handed(op: Operation) -> list[SSAValue]:
    """What an op takes that may stand for an asynchronous one: tokens and tiles."""
    return [v for v in op.operands if isinstance(v.type, TokenType | TensorType | SharedType)]


def _is_handed_on(value: SSAValue) -> bool:
    """Whether a value comes out of control flow inside of the function."""
    if isinstance(value, OpResult):
        return bool(value.op.regions)
    block = value.owner
    parent = block.parent_op() if not isinstance(block, Operation) else None
    return parent is not None and parent.name.startswith("scf.")
