"""Starts the loads of an iteration ahead of it, where there is one (T1).

Addresses are computed again, masks are off where no iteration is left, and what was started is
handed from iteration to iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.annotations import annotate, annotated
from tilewright.ir.attributes import integer_array
from tilewright.ir.encoding import TOKEN, has_layout, laid_out, layout_of
from tilewright.ir.plans import AccessAttr, AccessPlan
from tilewright.ir.types import element_of, i1, i64, width_bits
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.shape.ir import BroadcastOp
from tilewright.ops.staging import AsyncCommitOp, AsyncCopyOp, MemdescIndexOp
from tilewright.schedule.annotations import equal_runs, set_equal_runs
from tilewright.schedule.pipeline.addressing import end_of, needs_guard
from tilewright.schedule.pipeline.emitter import UNSIGNED_GREATER, Emitter
from tilewright.schedule.pipeline.expansion import Expansion, Start
from tilewright.schedule.pipeline.fetches import Fetch
from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class Ahead:
    """What runs ahead leaves for the next iteration.

    `carried` are the values that addresses need, by number; `groups` the copies under way, the
    oldest first; `queues` the registers of loads, the oldest first.
    """

    carried: dict[int, SSAValue]
    groups: list[SSAValue]
    queues: dict[Operation, list[SSAValue]]

    def values(self) -> list[SSAValue]:
        """All of it, in one order."""
        queued = [value for queue in self.queues.values() for value in queue]
        return [*self.carried.values(), *self.groups, *queued]

    def renamed(self, values: Sequence[SSAValue]) -> Ahead:
        """The same under other names: as many of `values`, in the order of `values()`."""
        left = iter(values)
        carried = {k: next(left) for k in self.carried}
        groups = [next(left) for _ in self.groups]
        queues = {op: [next(left) for _ in queue] for op, queue in self.queues.items()}
        return Ahead(carried, groups, queues)

    def without_oldest(self) -> Ahead:
        """After an iteration has had what was started for it."""
        queues = {op: queue[1:] for op, queue in self.queues.items()}
        return replace(self, groups=self.groups[1:], queues=queues)


class Starter:
    """Starts the loads of one loop for later iterations of it.

    `rings` are the slots of the loads that have some, `barriers` the mbarrier of slot 0.
    """

    def __init__(
        self, expansion: Expansion, rings: Mapping[Operation, SSAValue], barriers: int
    ) -> None:
        self.plan, self.loop = expansion, expansion.loop
        self.old = expansion.loop.body.block
        self.rings, self.barriers = rings, barriers
        self.by_engine = [f for f in expansion.fetches if f.by_engine and f.tile is not None]
        self.fetch_of: dict[Operation, Fetch] = {f.load: f for f in expansion.fetches}
        part = set(expansion.part.ops)
        self.ahead = [op for op in self.old.ops if op in part or op in self.fetch_of]

    def is_left(self, out: Emitter, index: SSAValue, steps: int) -> SSAValue:
        """Whether an iteration comes `steps` after that of `index`, which is one of the loop."""
        loop = self.loop
        rest = out.binary("subi", loop.ub, index)
        distance, step = rest, loop.step
        known = int(constant_of(step) or 0)
        if 0 < known * steps < 1 << (width_bits(index.type) - 1):
            return out.compare(UNSIGNED_GREATER, rest, out.number(index.type, known * steps))
        if width_bits(index.type) < 64:
            # Of 64 bits no step that fits its type makes a distance that does not.
            distance = out.value(ExtSIOp, (rest,), i64)
            low = out.number(i64, (1 << width_bits(index.type)) - 1)
            distance = out.binary("andi", distance, low)
            step = out.value(ExtSIOp, (loop.step,), i64)
        ahead = out.binary("muli", step, out.number(i64, steps)) if steps > 1 else step
        return out.compare(UNSIGNED_GREATER, distance, ahead)

    def start_at(
        self, out: Emitter, state: Ahead, index: SSAValue, is_there: SSAValue, slot: SSAValue
    ) -> Ahead:
        """Start the loads of the iteration at `index`, where there is one."""
        arguments = self.old.args
        mapping: dict[SSAValue, SSAValue] = {arguments[0]: index}
        mapping |= {arguments[1 + k]: value for k, value in state.carried.items()}
        tokens: list[SSAValue] = []
        queues = dict(state.queues)
        for op in self.ahead:
            at = Emitter(out.before, op)
            fetch = self.fetch_of.get(op)
            if fetch is not None and fetch.by_engine:
                self._start(at, fetch, mapping, is_there, slot)
            elif fetch is None or fetch.tile is None:
                self._clone_guarded(at, op, mapping, is_there)
            else:
                tokens.append(self._copy(at, fetch, mapping, is_there, slot))
            if fetch is not None and fetch.tile is None:
                queues[op] = [*queues[op], mapping[op.results[0]]]
        groups = list(state.groups)
        if tokens:
            groups.append(out.value(AsyncCommitOp, tokens, TOKEN))
        end = end_of(self.loop).arguments
        carried = {k: mapping.get(end[k], end[k]) for k in state.carried}
        return Ahead(carried, groups, queues)

    def _clone_guarded(
        self, out: Emitter, op: Operation, mapping: dict[SSAValue, SSAValue], is_there: SSAValue
    ) -> None:
        """An op for an iteration that may not be: a load of nothing, a division by one."""
        clone = op.clone(mapping)
        if isinstance(op, LoadOp):
            mask = None if op.mask is None else mapping.get(op.mask, op.mask)
            pointers = mapping.get(op.ptr, op.ptr)
            guard = _guarded(out, mask, pointers, is_there)
            other = [] if op.other is None else [mapping.get(op.other, op.other)]
            clone.operands = [pointers, guard, *other]
            clone.properties["operandSegmentSizes"] = integer_array((1, 1, len(other)))
        elif needs_guard(op):
            left, right = clone.operands
            one = _ones(out, right)
            is_right = _guarded(out, None, right, is_there)
            clone.operands = [left, out.select(is_right, right, one)]
        out.insert(clone)

    def _start(
        self,
        out: Emitter,
        fetch: Fetch,
        mapping: dict[SSAValue, SSAValue],
        is_there: SSAValue,
        slot: SSAValue,
    ) -> None:
        """Have the engine load a tile to a slot; the first load of a slot announces all bytes."""
        assert self.plan.engine is not None and fetch.tile is not None
        view = out.value(MemdescIndexOp, (self.rings[fetch.load], slot), fetch.tile)
        total = sum(other.slot_bytes for other in self.by_engine)
        start = Start(
            view,
            slot,
            is_there,
            self.barriers,
            total if fetch is self.by_engine[0] else 0,
        )
        inputs = [mapping.get(value, value) for value in fetch.inputs]
        self.plan.engine.start(out, fetch.load, inputs, start)

    def _copy(
        self,
        out: Emitter,
        fetch: Fetch,
        mapping: dict[SSAValue, SSAValue],
        is_there: SSAValue,
        slot: SSAValue,
    ) -> SSAValue:
        load, tile = fetch.load, fetch.tile
        assert tile is not None and isinstance(load, LoadOp)
        view = out.value(MemdescIndexOp, (self.rings[load], slot), tile)
        mask = None if load.mask is None else mapping.get(load.mask, load.mask)
        pointers = mapping.get(load.ptr, load.ptr)
        guard = _guarded(out, mask, pointers, is_there)
        properties = {n: load.properties[n] for n in ("cache", "evict") if n in load.properties}
        properties["operandSegmentSizes"] = integer_array((1, 1, 1, 0))
        copy = out.emit(AsyncCopyOp, [pointers, view, guard], [TOKEN], properties)
        plan = annotated(load, AccessAttr)
        order = (0,) if plan is None else plan.order
        annotate(copy, AccessAttr(AccessPlan(fetch.elems, order)))
        return copy.results[0]


def _guarded(
    out: Emitter, mask: SSAValue | None, pointers: SSAValue, is_there: SSAValue
) -> SSAValue:
    """A mask that is off where there is no iteration."""
    if not has_layout(pointers.type):
        return is_there if mask is None else out.binary("andi", mask, is_there)
    if mask is None:
        return out.splat(is_there, laid_out(i1, layout_of(pointers.type)))
    owner = mask.owner
    if isinstance(owner, BroadcastOp):
        # Fewer elements before they are copied to all.
        narrow = _guarded(out, owner.src, owner.src, is_there)
        return out.value(BroadcastOp, (narrow,), mask.type)
    both = out.value(ELEMENTWISE["arith.andi"], (mask, out.splat(is_there, mask.type)), mask.type)
    runs = equal_runs(owner) if isinstance(owner, Operation) else ()
    if runs and isinstance(both, OpResult):
        set_equal_runs(both.op, runs)
    return both


def _ones(out: Emitter, like: SSAValue) -> SSAValue:
    """The number one, in the type of another value."""
    if not has_layout(like.type):
        return out.number(like.type, 1)
    element = element_of(like.type)
    assert isinstance(element, IntegerType)
    return out.splat(out.number(element, 1), like.type)
