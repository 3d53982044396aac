"""How a loop is to be rewritten so that its loads run ahead, and who makes the copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from tilewright.ops.control_flow import ForOp
from tilewright.ops.staging import LaidOutDotOp
from tilewright.schedule.pipeline.addressing import AddressPart
from tilewright.schedule.pipeline.emitter import Emitter
from tilewright.schedule.pipeline.fetches import Fetch
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Expansion:
    """How a loop is to be rewritten: which loads run `lead` iterations ahead, over how many slots.

    `products` are those that run on across the end of an iteration; what they read stays in its
    slot one iteration longer. `part` is what the loads' addresses are computed from. `engine`
    makes the copies that are not the threads' own.
    """

    loop: ForOp
    fetches: tuple[Fetch, ...]
    part: AddressPart
    lead: int
    slots: int
    products: tuple[LaidOutDotOp, ...] = ()
    engine: Engine | None = None


@dataclass(frozen=True)
class Start:
    """Where an engine's load goes: a view of a slot, which slot that is, and if it is there at all.

    `barriers` is the mbarrier of slot 0; `announced_bytes` are those of all loads of the slot, on
    the first of them.
    """

    view: SSAValue
    slot: SSAValue
    is_there: SSAValue
    barriers: int
    announced_bytes: int


class Engine(Protocol):
    """What copies tiles to shared memory beside the threads."""

    def fetch(self, op: Operation) -> Fetch | None:
        """How one of its loads runs ahead; None for any other op."""
        ...

    def waits(self, fetches: Sequence[Fetch]) -> Sequence[Operation]:
        """The waits for some loads as they are in the loop."""
        ...

    def unfit(self, fetches: Sequence[Fetch]) -> str:
        """Why these loads do not run ahead without others; '' where they do."""
        ...

    def reserve(self, loop: Operation, slots: int) -> int:
        """Have an mbarrier for each slot; the first."""
        ...

    def start(
        self, out: Emitter, load: Operation, inputs: Sequence[SSAValue], start: Start
    ) -> None:
        """Start a load with other inputs, to a slot."""
        ...

    def finish(self, out: Emitter, rings: Sequence[SSAValue]) -> None:
        """Note behind the loop that all has come."""
        ...

    def wait(
        self,
        out: Emitter,
        views: Sequence[SSAValue],
        position: Sequence[SSAValue],
        barriers: int,
    ) -> None:
        """Wait until the tiles of a slot, of a phase, have come."""
        ...
