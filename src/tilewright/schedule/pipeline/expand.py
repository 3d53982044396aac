"""Rewrites a loop so that its loads run iterations ahead of what uses them (T1 to T1).

    for i iter(acc, p): x = load p; acc = dot x, acc; p = p + s
    ⇒ copy p → slot 0; p = p + s; copy p → slot 1; p = p + s            lead 2: the prologue
      for i iter(acc, p, r): wait; dot slot r, acc; copy p → slot r + 2 if i + 2 < n; p = p + s
      wait for what still runs

The loop keeps its number of iterations: there is no epilogue, as what runs ahead is masked where
no iteration is left for it. Each loaded tile has a slot for every iteration under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xdsl.dialects.builtin import IntegerAttr, IntegerType, UnitAttr, i32
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tilewright.ir.annotations import annotate, annotated
from tilewright.ir.attributes import integer_array
from tilewright.ir.effects import is_free
from tilewright.ir.encoding import TOKEN, has_layout, laid_out, layout_of, shared_tile
from tilewright.ir.op import build
from tilewright.ir.plans import AccessAttr, AccessPlan
from tilewright.ir.types import i1, i64, width_bits
from tilewright.ops.control_flow import ForOp, YieldOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.shape.ir import BroadcastOp
from tilewright.ops.staging import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    DotWaitOp,
    LaidOutDotOp,
    LocalAllocOp,
    LocalLoadOp,
    MemdescIndexOp,
)
from tilewright.schedule.annotations import equal_runs, set_equal_runs
from tilewright.schedule.pipeline.addressing import (
    AddressPart,
    end_of,
    needs_guard,
    taken_by,
)
from tilewright.schedule.pipeline.carrying import carry_through
from tilewright.schedule.pipeline.emitter import EQUAL, SIGNED_LESS, UNSIGNED_GREATER, Emitter
from tilewright.schedule.pipeline.fetches import Fetch
from tilewright.schedule.plan.copies import is_zero
from tilewright.support.dataclass import dataclass, replace


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


def expand(expansion: Expansion) -> ForOp:
    """Rewrite a loop; the new one."""
    return _Expander(expansion).run()


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


class _Expander:
    """One rewrite of one loop."""

    def __init__(self, expansion: Expansion) -> None:
        self.plan, self.loop = expansion, expansion.loop
        self.old = expansion.loop.body.block
        self.in_slots = [fetch for fetch in expansion.fetches if fetch.tile is not None]
        self.copies = [fetch for fetch in self.in_slots if not fetch.by_engine]
        self.by_engine = [fetch for fetch in self.in_slots if fetch.by_engine]
        self.kept_in_registers = [fetch for fetch in expansion.fetches if fetch.tile is None]
        loads = {fetch.load for fetch in expansion.fetches}
        part = set(expansion.part.ops)
        self.ahead = [op for op in self.old.ops if op in part or op in loads]
        self.fetch_of: dict[Operation, Fetch] = {f.load: f for f in expansion.fetches}
        self.rings: dict[Operation, SSAValue] = {}
        self.barriers = 0

    def run(self) -> ForOp:
        """Write the new loop in front of the old one, which goes away."""
        out = Emitter(self.loop, self.loop)
        self._allocate(out)
        position = [out.number(i32, 0) for _ in range(self._position_size())]
        state = self._prologue(out, position)
        needed = _needed(self.loop, set(self.fetch_of) | self._replaced())
        kept = [k for k in range(len(self.loop.iter_args)) if needed.carries(k)]
        inits = [self.loop.iter_args[k] for k in kept]
        starts = [*inits, *state.values(), *position]
        types = [value.type for value in starts]
        block = Block(arg_types=[self.loop.lb.type, *types])
        end = YieldOp.create(location=self.loop.location)
        block.add_op(end)
        operands = [self.loop.lb, self.loop.ub, self.loop.step, *starts]
        new = build(ForOp, operands, types, None, [Region(block)], self.loop.location)
        new.attributes = dict(self.loop.attributes)
        assert isinstance(new, ForOp)
        out.insert(new)
        inside = state.renamed(block.args[1 + len(kept) :])
        self._body(Emitter(end, self.loop), block, kept, needed.ops, inside)
        self._leave(out, new, kept, state)
        if self.by_engine:
            carry_through(new, position, new.results[-len(position) :])
        self.loop.detach()
        self.loop.erase()
        return new

    def _position_size(self) -> int:
        """The numbers that say where in its ring an iteration stands: a slot, and its phase."""
        return 2 if self.by_engine else int(bool(self.in_slots))

    def _replaced(self) -> set[Operation]:
        """Ops of the body whose place a wait for the ring takes."""
        engine = self.plan.engine
        return set() if engine is None else set(engine.waits(self.by_engine))

    # --- in front of the loop ---

    def _allocate(self, out: Emitter) -> None:
        if self.by_engine and self.plan.engine is not None:
            self.barriers = self.plan.engine.reserve(self.loop, self.plan.slots)
        for fetch in self.in_slots:
            assert fetch.tile is not None
            type_ = shared_tile(fetch.tile.element, layout_of(fetch.tile), self.plan.slots)
            at = Emitter(out.before, fetch.load)
            self.rings[fetch.load] = at.value(LocalAllocOp, (), type_)

    def _prologue(self, out: Emitter, position: Sequence[SSAValue]) -> _Ahead:
        """Load for the first iterations, as far as the loop has them."""
        loop = self.loop
        values = {k: loop.iter_args[k] for k in self.plan.part.carried}
        state = _Ahead(values, [], {fetch.load: [] for fetch in self.kept_in_registers})
        index: SSAValue = loop.lb
        for number in range(self.plan.lead):
            is_there = out.compare(SIGNED_LESS, loop.lb, loop.ub)
            if number:
                is_left = self._is_left(out, loop.lb, number)
                is_there = out.binary("andi", is_there, is_left)
                index = out.binary("addi", index, loop.step)
            slot = position[0] if position else index
            if number and self.by_engine:
                slot = out.advanced(slot, number, self.plan.slots)
            elif number and position:
                slot = out.number(i32, number)
            state = self._run_ahead(out, state, index, is_there, slot)
        return state

    def _is_left(self, out: Emitter, index: SSAValue, steps: int) -> SSAValue:
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

    # --- what runs ahead ---

    def _run_ahead(
        self, out: Emitter, state: _Ahead, index: SSAValue, is_there: SSAValue, slot: SSAValue
    ) -> _Ahead:
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
        return _Ahead(carried, groups, queues)

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

    # --- the loop ---

    def _body(
        self,
        out: Emitter,
        block: Block,
        kept: Sequence[int],
        needed: set[Operation],
        state: _Ahead,
    ) -> None:
        mapping: dict[SSAValue, SSAValue] = {self.old.args[0]: block.args[0]}
        for place, number in enumerate(kept):
            mapping[self.old.args[1 + number]] = block.args[1 + place]
        position = block.args[len(block.args) - self._position_size() :]
        slot = position[0] if position else block.args[0]
        if self.copies:
            self._wait(out, state, self.plan.lead - 1)
        behind = self.plan.products[0] if self.plan.products else None
        taken = state
        if behind is None:
            state = self._next_ahead(out, block.args[0], state, slot)
        self._take(out, mapping, taken, position)
        for op in self.old.ops:
            if op in needed:
                self._clone(Emitter(out.before, op), op, mapping)
            if op is behind:
                state = self._next_ahead(out, block.args[0], state, slot)
        self._wait_for_products(out, mapping)
        end = [mapping.get(v, v) for k, v in enumerate(end_of(self.loop).arguments) if k in kept]
        out.before.operands = [*end, *state.values(), *self._next_position(out, position)]

    def _next_position(self, out: Emitter, position: Sequence[SSAValue]) -> list[SSAValue]:
        """The next slot, and the phase that it is in: each time around the ring is a new one."""
        following = [out.advanced(slot, 1, self.plan.slots) for slot in position[:1]]
        for phase in position[1:]:
            zero = out.number(i32, 0)
            is_first = out.compare(EQUAL, following[0], zero)
            other = out.binary("xori", phase, out.number(i32, 1))
            following.append(out.select(is_first, other, phase))
        return following

    def _next_ahead(self, out: Emitter, index: SSAValue, state: _Ahead, slot: SSAValue) -> _Ahead:
        """Start the loads of the iteration `lead` behind; what was started first is had now."""
        lead = self.plan.lead
        is_left = self._is_left(out, index, lead)
        for _ in range(lead):
            index = out.binary("addi", index, self.loop.step)
        target = out.advanced(slot, lead, self.plan.slots) if self.in_slots else slot
        state = self._run_ahead(out, state, index, is_left, target)
        return state.without_oldest()

    def _take(
        self,
        out: Emitter,
        mapping: dict[SSAValue, SSAValue],
        state: _Ahead,
        position: Sequence[SSAValue],
    ) -> None:
        """Have the loads of this iteration, which an earlier one has started."""
        views: dict[Operation, SSAValue] = {}
        for fetch in self.in_slots:
            at = Emitter(out.before, fetch.load)
            ring = (self.rings[fetch.load], position[0])
            assert fetch.tile is not None
            views[fetch.load] = at.value(MemdescIndexOp, ring, fetch.tile)
        if self.plan.engine is not None and self.by_engine:
            own = [views[fetch.load] for fetch in self.by_engine]
            self.plan.engine.wait(out, own, position, self.barriers)
        for fetch in self.plan.fetches:
            result = fetch.load.results[0]
            if fetch.tile is None:
                mapping[result] = state.queues[fetch.load][0]
            elif fetch.alloc is not None:
                mapping[fetch.alloc.result] = views[fetch.load]
            else:
                at = Emitter(out.before, fetch.load)
                mapping[result] = at.value(LocalLoadOp, (views[fetch.load],), result.type)

    def _clone(self, out: Emitter, op: Operation, mapping: dict[SSAValue, SSAValue]) -> None:
        fetch = self.fetch_of.get(op)
        if fetch is not None:
            self._fill_in(out, fetch, mapping)
            return
        if any(fetch.alloc is op for fetch in self.in_slots):
            return
        clone = out.insert(op.clone(mapping))
        if op in self.plan.products:
            clone.properties["is_async"] = UnitAttr()

    def _fill_in(self, out: Emitter, fetch: Fetch, mapping: dict[SSAValue, SSAValue]) -> None:
        """What a load reads where its mask is off: a copy has filled in zeros."""
        if fetch.tile is None:
            return
        values = [mapping.get(value, value) for value in _filled_in_with(fetch.load)]
        if values:
            result = fetch.load.results[0]
            mapping[result] = out.select(values[0], mapping[result], values[1])

    def _wait(self, out: Emitter, state: _Ahead, pending: int) -> None:
        properties = {"num": IntegerAttr(pending, i32)}
        out.emit(AsyncWaitOp, state.groups[:1], [TOKEN], properties)

    def _wait_for_products(self, out: Emitter, mapping: dict[SSAValue, SSAValue]) -> None:
        """Let the products of this iteration run on; those of the last one are done then."""
        products = self.plan.products
        if not products:
            return
        tiles = [mapping[product.result] for product in products]
        properties = {"pending": IntegerAttr(len(products), i32)}
        wait = out.emit(DotWaitOp, tiles, [tile.type for tile in tiles], properties)
        for product, result in zip(products, wait.results, strict=True):
            mapping[product.result] = result

    # --- behind the loop ---

    def _leave(self, out: Emitter, new: ForOp, kept: Sequence[int], state: _Ahead) -> None:
        results: dict[int, SSAValue] = {k: new.results[i] for i, k in enumerate(kept)}
        if self.copies:
            groups = state.renamed(new.results[len(kept) :]).groups
            out.emit(AsyncWaitOp, groups, [TOKEN], {"num": IntegerAttr(0, i32)})
        if self.by_engine and self.plan.engine is not None:
            self.plan.engine.finish(out, [self.rings[fetch.load] for fetch in self.by_engine])
        if self.plan.products:
            numbers = [self._number_of(product) for product in self.plan.products]
            tiles = [results[number] for number in numbers]
            properties = {"pending": IntegerAttr(0, i32)}
            wait = out.emit(DotWaitOp, tiles, [tile.type for tile in tiles], properties)
            results |= dict(zip(numbers, wait.results, strict=True))
        for number, result in results.items():
            self.loop.results[number].replace_all_uses_with(result)

    def _number_of(self, product: LaidOutDotOp) -> int:
        """Which carried value a product makes."""
        return list(end_of(self.loop).arguments).index(product.result)


@dataclass(frozen=True)
class _Ahead:
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

    def renamed(self, values: Sequence[SSAValue]) -> _Ahead:
        """The same under other names: as many of `values`, in the order of `values()`."""
        left = iter(values)
        carried = {k: next(left) for k in self.carried}
        groups = [next(left) for _ in self.groups]
        queues = {op: [next(left) for _ in queue] for op, queue in self.queues.items()}
        return _Ahead(carried, groups, queues)

    def without_oldest(self) -> _Ahead:
        """After an iteration has had what was started for it."""
        queues = {op: queue[1:] for op, queue in self.queues.items()}
        return replace(self, groups=self.groups[1:], queues=queues)


@dataclass(frozen=True)
class _Needed:
    """What the rest of a loop needs: ops of its body, and carried values by number."""

    ops: set[Operation]
    numbers: set[int]

    def carries(self, number: int) -> bool:
        """Whether a carried value is needed."""
        return number in self.numbers


def _needed(loop: ForOp, fetched: set[Operation]) -> _Needed:
    """What has effects, or makes what is used behind the loop, with all it is computed from."""
    body, end = loop.body.block, end_of(loop)
    ops: set[Operation] = set()
    numbers: set[int] = set()
    pending: list[SSAValue] = []

    def need(op: Operation) -> None:
        if op in ops:
            return
        ops.add(op)
        if op in fetched:
            pending.extend(_filled_in_with(op))
        else:
            pending.extend(taken_by(op, body))

    for op in body.ops:
        is_idle = op in fetched or isinstance(op, LoadOp | LocalAllocOp) or is_free(op)
        if not is_idle and op is not end:
            need(op)
    for number, result in enumerate(loop.results):
        if result.uses:
            numbers.add(number)
            pending.append(end.arguments[number])
    while pending:
        value = pending.pop()
        if isinstance(value, OpResult) and value.op.parent is body:
            need(value.op)
        elif isinstance(value, BlockArgument) and value.block is body and value.index:
            number = value.index - 1
            pending += [end.arguments[number]] if number not in numbers else []
            numbers.add(number)
    return _Needed(ops, numbers)


def _filled_in_with(load: Operation) -> list[SSAValue]:
    """A mask and what a load reads where it is off, unless that is what a copy leaves there."""
    if not isinstance(load, LoadOp):
        return []
    if load.mask is None or load.other is None or is_zero(load.other):
        return []
    return [load.mask, load.other]


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
    element = like.type.get_element_type()  # type: ignore[attr-defined]  # a laid-out tile
    assert isinstance(element, IntegerType)
    return out.splat(out.number(element, 1), like.type)
