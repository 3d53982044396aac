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

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.ir.encoding import TOKEN, layout_of, shared_tile
from tilewright.ir.op import build
from tilewright.ops.control_flow import ForOp, YieldOp
from tilewright.ops.staging import (
    AsyncWaitOp,
    DotWaitOp,
    LaidOutDotOp,
    LocalAllocOp,
    LocalLoadOp,
    MemdescIndexOp,
)
from tilewright.schedule.pipeline.addressing import end_of
from tilewright.schedule.pipeline.ahead import Ahead, Starter
from tilewright.schedule.pipeline.carrying import carry_through
from tilewright.schedule.pipeline.emitter import EQUAL, SIGNED_LESS, Emitter
from tilewright.schedule.pipeline.expansion import Expansion
from tilewright.schedule.pipeline.fetches import Fetch
from tilewright.schedule.pipeline.needed import filled_in_with, needed_by


def expand(expansion: Expansion) -> ForOp:
    """Rewrite a loop; the new one."""
    return _Expander(expansion).run()


class _Expander:
    """One rewrite of one loop."""

    def __init__(self, expansion: Expansion) -> None:
        self.plan, self.loop = expansion, expansion.loop
        self.old = expansion.loop.body.block
        self.in_slots = [fetch for fetch in expansion.fetches if fetch.tile is not None]
        self.copies = [fetch for fetch in self.in_slots if not fetch.by_engine]
        self.by_engine = [fetch for fetch in self.in_slots if fetch.by_engine]
        self.kept_in_registers = [fetch for fetch in expansion.fetches if fetch.tile is None]
        self.starter = self._allocated(Emitter(self.loop, self.loop))

    def run(self) -> ForOp:
        """Write the new loop in front of the old one, which goes away."""
        out = Emitter(self.loop, self.loop)
        position = [out.number(i32, 0) for _ in range(self._position_size())]
        state = self._prologue(out, position)
        needed = needed_by(self.loop, set(self.starter.fetch_of) | self._replaced())
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

    def _allocated(self, out: Emitter) -> Starter:
        """Give each load that goes to shared memory its slots, and those their mbarriers."""
        barriers = 0
        if self.by_engine and self.plan.engine is not None:
            barriers = self.plan.engine.reserve(self.loop, self.plan.slots)
        rings: dict[Operation, SSAValue] = {}
        for fetch in self.in_slots:
            assert fetch.tile is not None
            type_ = shared_tile(fetch.tile.element, layout_of(fetch.tile), self.plan.slots)
            at = Emitter(out.before, fetch.load)
            rings[fetch.load] = at.value(LocalAllocOp, (), type_)
        return Starter(self.plan, rings, barriers)

    def _prologue(self, out: Emitter, position: Sequence[SSAValue]) -> Ahead:
        """Load for the first iterations, as far as the loop has them."""
        loop = self.loop
        values = {k: loop.iter_args[k] for k in self.plan.part.carried}
        state = Ahead(values, [], {fetch.load: [] for fetch in self.kept_in_registers})
        index: SSAValue = loop.lb
        for number in range(self.plan.lead):
            is_there = out.compare(SIGNED_LESS, loop.lb, loop.ub)
            if number:
                is_left = self.starter.is_left(out, loop.lb, number)
                is_there = out.binary("andi", is_there, is_left)
                index = out.binary("addi", index, loop.step)
            slot = position[0] if position else index
            if number and self.by_engine:
                slot = out.advanced(slot, number, self.plan.slots)
            elif number and position:
                slot = out.number(i32, number)
            state = self.starter.start_at(out, state, index, is_there, slot)
        return state

    # --- the loop ---

    def _body(
        self,
        out: Emitter,
        block: Block,
        kept: Sequence[int],
        needed: set[Operation],
        state: Ahead,
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

    def _next_ahead(self, out: Emitter, index: SSAValue, state: Ahead, slot: SSAValue) -> Ahead:
        """Start the loads of the iteration `lead` behind; what was started first is had now."""
        lead = self.plan.lead
        is_left = self.starter.is_left(out, index, lead)
        for _ in range(lead):
            index = out.binary("addi", index, self.loop.step)
        target = out.advanced(slot, lead, self.plan.slots) if self.in_slots else slot
        state = self.starter.start_at(out, state, index, is_left, target)
        return state.without_oldest()

    def _take(
        self,
        out: Emitter,
        mapping: dict[SSAValue, SSAValue],
        state: Ahead,
        position: Sequence[SSAValue],
    ) -> None:
        """Have the loads of this iteration, which an earlier one has started."""
        views: dict[Operation, SSAValue] = {}
        for fetch in self.in_slots:
            at = Emitter(out.before, fetch.load)
            ring = (self.starter.rings[fetch.load], position[0])
            assert fetch.tile is not None
            views[fetch.load] = at.value(MemdescIndexOp, ring, fetch.tile)
        if self.plan.engine is not None and self.by_engine:
            own = [views[fetch.load] for fetch in self.by_engine]
            self.plan.engine.wait(out, own, position, self.starter.barriers)
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
        fetch = self.starter.fetch_of.get(op)
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
        values = [mapping.get(value, value) for value in filled_in_with(fetch.load)]
        if values:
            result = fetch.load.results[0]
            mapping[result] = out.select(values[0], mapping[result], values[1])

    def _wait(self, out: Emitter, state: Ahead, pending: int) -> None:
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

    def _leave(self, out: Emitter, new: ForOp, kept: Sequence[int], state: Ahead) -> None:
        results: dict[int, SSAValue] = {k: new.results[i] for i, k in enumerate(kept)}
        if self.copies:
            groups = state.renamed(new.results[len(kept) :]).groups
            out.emit(AsyncWaitOp, groups, [TOKEN], {"num": IntegerAttr(0, i32)})
        if self.by_engine and self.plan.engine is not None:
            self.plan.engine.finish(
                out, [self.starter.rings[fetch.load] for fetch in self.by_engine]
            )
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
