"""What each wait of a T2 kernel waits for, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.locations import describe
from tilewright.ops.function import FuncOp
from tilewright.ops.rings import (
    RingAccess,
    RingAcquireOp,
    RingDrainedOp,
    RingLandedOp,
    RingReleaseOp,
    RingWaitOp,
)
from tilewright.ops.roles import ClusterWaitOp, TurnWaitOp, role_around
from tilewright.ops.staging import AsyncWaitOp, DotWaitOp
from tilewright.support.dataclass import dataclass
from tilewright.support.rules import RuleTable
from tilewright.targets.nvidia.tma_ops import TmaStoreWaitOp, TmaWaitOp, TmaWaitSlotOp


@dataclass(frozen=True)
class WaitSummary:
    """One wait: the line of its op, the role that waits ('' where there are none), for what."""

    line: str
    role: str
    what: str


WAITS: RuleTable[Callable[[Operation], str]] = RuleTable("explained waits")


def explain_waits(kernel: FuncOp) -> tuple[WaitSummary, ...]:
    """The waits of a T2 kernel in the order of the text."""
    return tuple(_waits(kernel))


def _waits(kernel: FuncOp) -> Iterator[WaitSummary]:
    for op in kernel.walk():
        rule = WAITS.find(type(op))
        if rule is not None:
            yield WaitSummary(describe(op), _role(op), rule(op))


def _role(op: Operation) -> str:
    found = role_around(op)
    return "" if found is None else found[0].described()[found[1]].name


@WAITS.register(DotWaitOp)
def _products(op: DotWaitOp) -> str:
    pending = op.pending.value.data
    if pending == 0:
        return "every product that runs"
    return "all products but the last" if pending == 1 else f"all products but the last {pending}"


@WAITS.register(AsyncWaitOp)
def _copies(op: AsyncWaitOp) -> str:
    number = op.num.value.data
    groups = "youngest group" if number == 1 else f"{number} youngest groups"
    younger = "" if number == 0 else f" but those of the {groups}"
    return f"all copies of the threads{younger}{_from(op.tokens)}"


@WAITS.register(TmaWaitOp)
def _loads(op: TmaWaitOp) -> str:
    return f"loads of the copy engine{_from(op.tokens)}"


@WAITS.register(TmaWaitSlotOp)
def _slot(op: TmaWaitSlotOp) -> str:
    return "the loads of the copy engine to this iteration's slot"


@WAITS.register(TmaStoreWaitOp)
def _stores(op: TmaStoreWaitOp) -> str:
    what = "to be in memory" if op.is_complete is not None else "to have read their tiles"
    return f"stores of the copy engine {what}{_from(op.tokens)}"


@WAITS.register(RingAcquireOp)
def _free(op: RingAcquireOp) -> str:
    return f"a slot of ring {_ring_name(op)} to be released"


@WAITS.register(RingWaitOp)
def _full(op: RingWaitOp) -> str:
    return f"a slot of ring {_ring_name(op)} to be full"


@WAITS.register(RingLandedOp)
def _landed(op: RingLandedOp) -> str:
    return f"all loads that this role has started to ring {_ring_name(op)}"


@WAITS.register(RingDrainedOp)
def _drained(op: RingDrainedOp) -> str:
    return f"all slots of ring {_ring_name(op)} to be released, as the next ring has their memory"


@WAITS.register(RingReleaseOp)
def _released(op: RingReleaseOp) -> str:
    return f"nothing: releases a slot of ring {_ring_name(op)}"


@WAITS.register(TurnWaitOp)
def _turn(op: TurnWaitOp) -> str:
    return f"this replica's turn of {op.turns.data}"


@WAITS.register(ClusterWaitOp)
def _cluster(op: ClusterWaitOp) -> str:
    return "the other program of the cluster to be done with this one's rings"


def _ring_name(op: RingAccess) -> str:
    return op.ring_of().ring_name.data


def _from(tokens: tuple[SSAValue, ...]) -> str:
    """Where the accesses that are waited for were started."""
    starts = [value.op for value in tokens if isinstance(value, OpResult)]
    lines = dict.fromkeys(Path(describe(op)).name for op in starts)
    return f", started at {', '.join(lines)}" if lines else ""
