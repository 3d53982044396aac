"""Pipelines the loops that the schedule has stages for (T1 to T1); `expand` shows what becomes.

A loop that cannot be pipelined as its schedule says stays as it is, and notes why: what the
layouts made of its loads is known here only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.analysis.provenance import base_argument
from tilewright.ir.annotations import annotated
from tilewright.ir.effects import global_access, stopping_ops
from tilewright.ir.encoding import SharedType
from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ir.plans import CopyAttr
from tilewright.ir.schedule import Anchor, Channel, LoopSchedule, Schedule
from tilewright.ir.schedule_attributes import anchor_of, note_pipelining, schedule_of
from tilewright.ops.control_flow import ForOp, counted_loops
from tilewright.ops.function import find_kernel
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.ops.roles import find_roles
from tilewright.ops.staging import LaidOutDotOp, MemdescTransOp
from tilewright.schedule.pipeline.addressing import AddressPart, address_part, end_of
from tilewright.schedule.pipeline.expand import expand
from tilewright.schedule.pipeline.expansion import Engine, Expansion
from tilewright.schedule.pipeline.fetches import Fetch, fetch_of
from tilewright.schedule.plan.anchors import kind_of
from tilewright.schedule.plan.copies import is_volatile
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class PipelineLoops(Pass):
    """The pass; see the module."""

    engine: Engine | None = None
    name = "pipeline-loops"
    requires = "T1"
    produces = "T1"
    after = ("decide-schedule", "decide-copies")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        kernel = find_kernel(module)
        schedule = schedule_of(kernel)
        if schedule is None or find_roles(kernel) is not None:
            return  # rings bring what roles load
        for loop in counted_loops(kernel):
            anchor = anchor_of(loop)
            planned = None if anchor is None else schedule.loop_of(anchor)
            if planned is not None and planned.num_stages > 1:
                pipeline_loop(_Planned(loop, schedule, planned, self.engine))


def pipeline_loop(plan: _Planned) -> None:
    """Pipeline one loop, or note on it why not."""
    loop = plan.loop
    reason = plan.obstacle()
    if reason:
        note_pipelining(loop, f"not pipelined: {reason}")
        return
    expansion = plan.expansion()
    summary = _summary(expansion) + plan.left()
    note_pipelining(expand(expansion), summary)


def _summary(expansion: Expansion) -> str:
    """What a loop does ahead, in a line."""
    size = sum(fetch.slot_bytes for fetch in expansion.fetches)
    where = f"{expansion.slots} slots of {size} bytes" if size else "registers"
    late = "; products run on into the next iteration" if expansion.products else ""
    return f"loads run {expansion.lead} iterations ahead, to {where}{late}"


class _Planned:
    """What the schedule of a loop means for the ops that it has become at T1."""

    def __init__(
        self, loop: ForOp, schedule: Schedule, planned: LoopSchedule, engine: Engine | None
    ) -> None:
        self.loop, self.schedule, self.engine = loop, schedule, engine
        self.last = planned.num_stages - 1
        self.stages = {anchor: place.stage for anchor, place in planned.places}
        ops = list(loop.body.block.ops)
        self.others = [op for op in ops if kind_of(op) != "load" and self._fetch(op) is None]
        found = [self._fetch(op) for op in ops if self._is_ahead(op)]
        fetches = self._apart([fetch for fetch in found if fetch is not None])
        self.fetches = self._copied(fetches)
        self.loads = [fetch.load for fetch in self.fetches]
        self.late = [fetch.load for fetch in fetches if fetch not in self.fetches]

    def _fetch(self, op: Operation) -> Fetch | None:
        by_engine = None if self.engine is None else self.engine.fetch(op)
        if by_engine is not None:
            return by_engine
        return fetch_of(op) if isinstance(op, LoadOp) else None

    def _part(self) -> AddressPart:
        """What runs ahead beside the fetches."""
        inputs = [value for fetch in self.fetches for value in fetch.inputs]
        return address_part(self.loop, inputs)

    def _apart(self, fetches: Sequence[Fetch]) -> list[Fetch]:
        """The fetches, of which none needs what another has only just started.

        A load that addresses or masks are computed from is there at once, in registers. They are
        kept for an iteration that comes next; for a later one it loads again.
        """
        inputs = [value for fetch in fetches for value in fetch.inputs]
        early = set(address_part(self.loop, inputs).ops)
        apart = [fetch for fetch in fetches if fetch.load not in early]
        looked_up = [fetch for fetch in fetches if fetch.load in early]
        if not looked_up or self.last - self._stage(looked_up[0].load) > 1:
            return apart
        kept = {fetch.load: Fetch(fetch.load, fetch.inputs) for fetch in looked_up}
        return [kept.get(fetch.load, fetch) for fetch in fetches]

    def left(self) -> str:
        """What is said of loads that ought to run ahead and are made in time; '' for none."""
        return "".join(f"; {_not_ahead(load)}" for load in self.late)

    def _copied(self, fetches: list[Fetch]) -> list[Fetch]:
        """The fetches but those that must wait in registers and cannot: they are made in time."""
        lead = self.last - self._stage(fetches[0].load) if fetches else 0

        def waits(fetch: Fetch) -> bool:
            return bool(fetch.slot_bytes) or (lead == 1 and not _no_copy(fetch.load))

        return [fetch for fetch in fetches if fetch.by_engine or waits(fetch)] or fetches

    def _is_ahead(self, op: Operation) -> bool:
        return self._stage(op) < self.last

    def _stage(self, op: Operation) -> int:
        anchor = anchor_of(op)
        return self.last if anchor is None else self.stages.get(anchor, self.last)

    @property
    def lead(self) -> int:
        """How many iterations the loads run ahead."""
        return self.last - self._stage(self.loads[0])

    def _channels(self) -> list[Channel]:
        anchors: list[Anchor | None] = [anchor_of(load) for load in self.loads]
        found = [self.schedule.channel_of(a) for a in anchors if a is not None]
        return [channel for channel in found if channel is not None]

    @property
    def is_late(self) -> bool:
        """Whether products may run on across the end of an iteration."""
        channels = self._channels()
        return bool(channels) and all(channel.release == "late" for channel in channels)

    def obstacle(self) -> str:
        """Why the loop stays as it is; '' where it is rewritten."""
        early = next((op for op in self.others if self._is_ahead(op)), None)
        if early is not None:
            return f"{early.name} at {describe(early)} is ahead of other stages, and is no load"
        if not self.loads:
            return "none of its loads can run ahead"
        if isinstance(self.loop.lb.type, IndexType):
            return "its counter has no fixed width"
        if len({self._stage(load) for load in self.loads}) > 1:
            return "its loads are of different stages"
        plain = _loads_among(self.loads)
        by_engine = [fetch for fetch in self.fetches if fetch.by_engine]
        unfit = "" if self.engine is None else self.engine.unfit(by_engine)
        if unfit:
            return unfit
        volatile = next((load for load in plain if is_volatile(load)), None)
        if volatile is not None:
            return f"the load at {describe(volatile)} is volatile"
        copied = next((r for r in map(_no_copy, plain) if r), "")
        if copied:
            return copied
        registers = [fetch for fetch in self.fetches if fetch.tile is None]
        if registers and self.lead > 1:
            return _not_ahead(registers[0].load)
        return self._part().reason or self._stop()

    def _stop(self) -> str:
        """What in the loop its loads must not be done before; '' where there is nothing."""
        early = _loads_among(self._part().ops)
        read = [base_argument(load.operands[0]) for load in (*self.loads, *early)]
        for op in stopping_ops(self.loop):
            written = _written(op)
            if written is None or None in (*read, *written):
                return f"{op.name} at {describe(op)} may change what its loads find"
            if any(base in read for base in written):
                return f"{op.name} at {describe(op)} writes through the argument of a load"
        return ""

    def expansion(self) -> Expansion:
        """The rewrite."""
        products = self._products() if self.is_late else ()
        needed = self.lead + (2 if products else 1)
        part, fetches = self._part(), tuple(self.fetches)
        return Expansion(self.loop, fetches, part, self.lead, needed, products, self.engine)

    def _products(self) -> tuple[LaidOutDotOp, ...]:
        """The products of the loop if all may run on; () where one may not."""
        products = [op for op in self.loop.body.walk() if isinstance(op, LaidOutDotOp)]
        return tuple(products) if all(self._runs_on(op) for op in products) else ()

    def _runs_on(self, product: LaidOutDotOp) -> bool:
        """Whether nothing but the same product of the next iteration reads its result.

        Its operands are in shared memory, and nothing but products reads the slots.
        """
        if product.parent is not self.loop.body.block:
            return False
        end = end_of(self.loop)
        uses = [use for use in product.result.uses if use.operation is not end]
        numbers = [k for k, value in enumerate(end.arguments) if value is product.result]
        if product.product.data.instruction != "wgmma" or uses or len(numbers) != 1:
            return False
        carried = self.loop.body.block.args[1 + numbers[0]]
        is_own = product.c is carried and len(list(carried.uses)) == 1
        return is_own and all(map(self._stays, (product.a, product.b)))

    def _stays(self, operand: SSAValue) -> bool:
        """Whether an operand is a slot of the loop's ring, or lies as it is around the loop."""
        owner = operand.owner
        while isinstance(owner, MemdescTransOp):
            operand = owner.src
            owner = operand.owner
        if not isinstance(operand.type, SharedType):
            return False
        if any(fetch.alloc is owner for fetch in self.fetches):
            return True
        return isinstance(owner, Operation) and not self.loop.is_ancestor(owner)


def _not_ahead(load: Operation) -> str:
    return f"the load at {describe(load)} is no copy of 4, 8 or 16 bytes a lane to shared memory"


def _loads_among(ops: Iterable[Operation]) -> list[LoadOp]:
    return [op for op in ops if isinstance(op, LoadOp)]


def _no_copy(load: Operation) -> str:
    """Why a load that a product reads from shared memory is no copy to it; '' where it is one."""
    plan = annotated(load, CopyAttr)
    if plan is None or plan.is_async:
        return ""
    return f"the load at {describe(load)} passes registers: {plan.reason}"


def _written(op: Operation) -> Sequence[object] | None:
    """The arguments that a plain store writes through; None for what may write anything."""
    if not isinstance(op, StoreOp):
        return None
    access = global_access(op)
    return None if access is None or access.value is None else [base_argument(access.value)]
