"""Groups the ops of one block into steps: fused nests, packed operands, and single ops.

Roots are taken in program order. A root joins the open nest when it has the same space and
needs nothing that the nest completes only at its end; otherwise the nest is closed. Then
values that several steps would recompute are materialised, loads that a store might overtake
too, and the block is grouped again until nothing changes (the set only grows).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from math import prod

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.effects import (
    Order,
    global_access,
    is_plain_read,
    overtakes_reads,
    own_effects,
)
from tilewright.ir.op import AccumulatingOp
from tilewright.ir.regions import ControlFlowOp, is_control_flow
from tilewright.ops.atomics.ir import AtomicOp
from tilewright.ops.creation.ir import UnsplatOp
from tilewright.ops.debug.ir import AssertOp, PrintOp, is_assumption
from tilewright.ops.memory.ir import StoreOp
from tilewright.ops.reduction.ir import CombineOp, ReduceOp, ScanOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.forms import ELEMENTS, STEPS
from tilewright.targets.cpu.schedule.bufferization import Bufferization, PackForm, chain_head
from tilewright.targets.cpu.schedule.inline import EXPENSIVE, is_inline, is_tile, num_folded, owner
from tilewright.targets.cpu.schedule.roots import (
    SCALAR_KINDS,
    Root,
    RootKind,
    Sources,
    reach,
    sources_of,
    space_of,
    viewed,
)
from tilewright.targets.cpu.schedule.rows import is_loaded_row
from tilewright.targets.cpu.schedule.transposed_loads import transposed_loads
from tilewright.targets.cpu.schedule.uses import Uses

# Chosen, not measured: it bounds the code and the registers of a nest; what does not fit runs in a
# nest of its own.
_MAX_ROOTS = 12
_ROOTS: dict[type[Operation], RootKind] = {
    StoreOp: RootKind.STORE,
    ReduceOp: RootKind.REDUCE,
    ScanOp: RootKind.SCAN,
    **dict.fromkeys(AtomicOp.__subclasses__(), RootKind.ATOMIC),
    **dict.fromkeys((PrintOp, AssertOp), RootKind.PRINT),
}


@dataclass(eq=False)
class Step:
    """One unit of emission: a fused nest, a packing, or one op."""

    position: int
    roots: list[Root] = field(default_factory=list)
    op: Operation | None = None
    pack: PackForm | None = None
    reached: dict[SSAValue, bool] = field(default_factory=dict)


def kind_of_root(op: type[Operation]) -> RootKind | None:
    """What ops of a class are as roots of a nest; None where they are none."""
    if ELEMENTS.find(op) is not None:
        return _ROOTS.get(op, RootKind.ELEMENTS)
    return _ROOTS.get(op)


def visited_one_by_one(op: Operation) -> tuple[SSAValue, ...]:
    """The operands whose elements a root for an op takes in order, each by itself."""
    operands = tuple(op.operands)
    if not operands or not is_tile(operands[0]):
        return ()
    kind = kind_of_root(type(op))
    if kind is RootKind.ELEMENTS:
        return operands[:1]
    if kind is not RootKind.SCAN:
        return ()
    assert isinstance(op, ScanOp)
    space = space_of(operands[0])
    return operands if space[op.axis.value.data] == prod(space) else ()


def captured_tiles(op: Operation) -> tuple[SSAValue, ...]:
    """The tiles from outside that an op with regions uses inside."""
    inside = set(op.walk())
    found: dict[SSAValue, None] = {}
    for inner in op.walk():
        if inner is op:
            continue
        for operand in inner.operands:
            definition = operand.owner
            anchor = definition.parent_op() if isinstance(definition, Block) else definition
            if is_tile(operand) and anchor not in inside:
                found[operand] = None
    return tuple(found)


class BlockPlanner:
    """Plans one block of tile ops."""

    def __init__(self, bufferization: Bufferization, block: Block) -> None:
        self.bufferization = bufferization
        self.block = block
        self.ops = list(block.ops)
        self.positions = {op: index for index, op in enumerate(self.ops)}
        self.barriers = [op for op in self.ops if overtakes_reads(op)]
        # Where the block reads each value from memory.
        self.loaded: dict[SSAValue, int] = {
            v: at for at, op in enumerate(self.ops) if is_plain_read(op) for v in op.results
        }
        self.captured = {op: captured_tiles(op) for op in self.ops if is_control_flow(op)}
        self.inlined = {op: [v for v in op.results if is_inline(v)] for op in self.ops}
        self.refused: set[SSAValue] = set()
        self.sources: Sources = {}
        self.steps: list[Step] = []
        self.open: Step | None = None
        self.open_at: list[Step | None] = []

    def plan(self) -> list[Step]:
        """Group until the set of materialised tiles is stable."""
        while True:
            self._group()
            if not self._materialize_more() and not self._update_in_place():
                return self.steps

    def _reach(
        self, values: tuple[SSAValue, ...], computed: SSAValue | None = None
    ) -> dict[SSAValue, bool]:
        return reach(values, self.bufferization.stored, computed, self.sources)

    # -- grouping -----------------------------------------------------------------------

    def _group(self) -> None:
        self.steps, self.open, self.open_at = [], None, []
        for position, op in enumerate(self.ops):
            self._place(op, position)
        self._flush()

    def _place(self, op: Operation, position: int) -> None:
        self.open_at.append(self.open)
        is_view = bool(op.results) and viewed(op.results[0]) is not None
        if not is_view:  # a view shares its operand's buffer: `reach` goes through it
            self._place_made(op, position)
        for value in op.results:
            for form in self.bufferization.packs_after.get(value, ()):
                self._place_pack(form, position)

    def _place_made(self, op: Operation, position: int) -> None:
        """Place an op whose results, if any, have elements of their own."""
        stored, inlined = self.bufferization.stored, self.inlined[op]
        if num_folded(op) > 1 and not stored.isdisjoint(inlined):
            self._place_root(op, position)
        elif inlined:
            for value in inlined:
                if value in stored:
                    self._add(Root(RootKind.MATERIALIZE, op, (value,), space_of(value), position))
        elif not self._place_root(op, position):
            self._place_op(op, position)

    def _place_root(self, op: Operation, position: int) -> bool:
        """Place an op that becomes roots of a nest; False when it does not."""
        operands = tuple(op.operands)
        if not operands or not is_tile(operands[0]):
            return False
        space = space_of(operands[0])
        kind = kind_of_root(type(op))
        if kind is None:
            return False
        axis = op.axis.value.data if isinstance(op, CombineOp) else None
        self._add(Root(kind, op, operands, space, position, axis))
        return True

    def _place_op(self, op: Operation, position: int) -> None:
        """Place an op that is a step of its own, with the copies that it needs before."""
        if is_assumption(op) or Order.BARRIER in own_effects(op):
            return
        is_end = op.has_trait(IsTerminator)
        if is_end or is_control_flow(op) or STEPS.find(type(op)) is not None:
            self._place_copies(op, position)
            self._flush()
        elif self._must_close_before(op):
            self._flush()
        self._op_step(op, position)

    def _must_close_before(self, op: Operation) -> bool:
        """Whether a scalar op needs results or memory effects of the open nest."""
        if self.open is None:
            return False
        outputs = {v for root in self.open.roots for v in root.outputs()}
        if isinstance(op, UnsplatOp):
            return bool(outputs & self._reach(tuple(op.operands)).keys())
        if any(operand in outputs for operand in op.operands):
            return True
        if kind_of_root(type(op)) is RootKind.PRINT:  # what is said comes in the author's order
            return any(root.kind is RootKind.PRINT for root in self.open.roots)
        if overtakes_reads(op):
            return True
        is_access = global_access(op) is not None
        return is_access and any(root.kind is not RootKind.REDUCE for root in self.open.roots)

    def _place_copies(self, op: Operation, position: int) -> None:
        for copy in self.bufferization.copies_into(op):
            value = copy.value
            root = Root(RootKind.COPY, op, (value,), space_of(value), position, None, copy.target)
            root.offset, root.strides = copy.offset, copy.strides
            self._add(root)
        for form in self.bufferization.packs_before.get(op, ()):
            self._place_pack(form, position)

    def _place_pack(self, form: PackForm, position: int) -> None:
        step = Step(position, pack=form)
        step.reached = self._reach((form.value,))
        if self.open is not None and (not form.from_memory or self._must_close_for(step.reached)):
            self._flush()
        self.steps.append(step)

    def _must_close_for(self, reached: dict[SSAValue, bool]) -> bool:
        """Whether packing from memory needs what the open nest computes or writes."""
        assert self.open is not None
        roots = self.open.roots
        if any(root.kind in (RootKind.STORE, RootKind.ATOMIC) for root in roots):
            return True
        return any(v in reached for root in roots for v in root.outputs())

    def _op_step(self, op: Operation, position: int) -> None:
        step = Step(position, op=op)
        tiles = tuple(v for v in op.operands if is_tile(v))
        step.reached = dict.fromkeys(self._reach((*tiles, *self.captured.get(op, ()))), False)
        self.steps.append(step)

    def _add(self, root: Root) -> None:
        computed = root.values[0] if root.kind is RootKind.MATERIALIZE else None
        root.reached = self._reach(root.values, computed)
        if self.open is not None and not self._fits(self.open, root):
            self._flush()
        if self.open is None:
            self.open = Step(root.position)
        self.open.roots.append(root)
        self.open.reached.update(
            (v, same and self.open.reached.get(v, True)) for v, same in root.reached.items()
        )

    def _fits(self, step: Step, root: Root) -> bool:
        """Whether a root may run in the same loops as the step's roots."""
        first = step.roots[0]
        if first.space != root.space or len(step.roots) >= _MAX_ROOTS:
            return False
        kinds = {other.kind for other in step.roots} | {root.kind}
        if kinds & SCALAR_KINDS or RootKind.SCAN in kinds:
            return False
        axes = {other.axis for other in (*step.roots, root) if other.axis is not None}
        if len(axes) > 1:
            return False
        return not any(self._conflicts(other, root) for other in step.roots)

    def _conflicts(self, earlier: Root, root: Root) -> bool:
        if earlier.kind is RootKind.REDUCE and any(v in root.reached for v in earlier.outputs()):
            return True
        if earlier.kind is RootKind.MATERIALIZE:
            is_pointwise = root.reached.get(earlier.values[0])
            is_crossed = earlier.values[0] in self.bufferization.crossed
            if is_pointwise is False or (is_crossed and is_pointwise is not None):
                return True
        if earlier.kind is RootKind.STORE:
            if self._moves_store(root, earlier):
                return True
            computed = root.values[0] if root.kind is RootKind.MATERIALIZE else None
            return any(
                self.loaded.get(v, -1) > earlier.position
                and (v is computed or v not in self.bufferization.stored)
                for v in root.reached
            )
        return self._buffer_conflict(earlier, root) or self._buffer_conflict(root, earlier)

    def _buffer_conflict(self, writer: Root, reader: Root) -> bool:
        """Whether `reader` reads the writer's buffer at other indices, or through a copy."""
        buffer = self._buffer_of(writer)
        elsewhere = (v for v, pointwise in reader.reached.items() if not pointwise and is_tile(v))
        return buffer is not None and any(self.bufferization.key(v) is buffer for v in elsewhere)

    def _moves_store(self, writer: Root, store: Root) -> bool:
        """Whether a store would go elsewhere once the writer's buffer is written.

        A store that waits in the arena for the end of its nest (`hazards`) evaluates its
        addresses and its mask again there, after all that the nest writes.
        """
        buffer = self._buffer_of(writer)
        places = (v for v in self._places_of(store) if is_tile(v))
        return buffer is not None and any(self.bufferization.key(v) is buffer for v in places)

    def _places_of(self, store: Root) -> dict[SSAValue, bool]:
        """What the addresses and the mask of a store are made of."""
        return self._reach((store.values[0], *store.values[2:]))

    def _buffer_of(self, writer: Root) -> SSAValue | None:
        """What tells the buffer that a root fills from others."""
        if writer.kind is RootKind.COPY:
            assert writer.target is not None
            return self.bufferization.key(writer.target)
        if writer.kind is RootKind.MATERIALIZE:
            return self.bufferization.key(writer.values[0])
        return None

    def _flush(self) -> None:
        if self.open is not None:
            self.steps.append(self.open)
            self.open = None

    # -- what has to be materialised --------------------------------------------------------

    def _materialize_more(self) -> bool:
        before = len(self.bufferization.stored)
        self._keep_loads_before_stores()
        if len(self.bufferization.stored) == before:
            self._keep_shared_values()
        if len(self.bufferization.stored) == before:
            self._keep_transposed_loads()
        return len(self.bufferization.stored) != before

    def _keep_loads_before_stores(self) -> None:
        """Materialise loads that a possibly aliasing write would overtake."""
        for step in self.steps:
            for value in step.reached:
                start = self.loaded.get(value)
                if start is None or not is_tile(value) or value in self.bufferization.stored:
                    continue
                if not self._is_overtaken(start, step):
                    continue
                stores = self._numbers_stored(start, step)
                if stores and self._is_loaded_row(value):
                    for op in stores:
                        self.bufferization.guarded.setdefault(op, {})[value] = None
                else:
                    self.bufferization.stored.add(value)
        for step in self.steps:
            for root in step.roots:
                if root.kind is RootKind.STORE:
                    self._keep_loads((root.values[0], *root.values[2:]))
                elif root.kind is RootKind.ATOMIC:
                    self._keep_loads(root.values)
                self._keep_elements(visited_one_by_one(root.op))
            if step.op is not None:
                for inner in step.op.walk():
                    self._keep_elements(visited_one_by_one(inner))

    def _is_overtaken(self, start: int, step: Step) -> bool:
        """Whether what is read at a position may be written before a step."""
        if step.op is not None and step.op.regions and overtakes_reads(step.op):
            return True
        return bool(self._written_between(start, step))

    def _written_between(self, start: int, step: Step) -> list[Operation]:
        """The ops that may write memory after a position and before a step."""
        end = max([step.position, *(root.position for root in step.roots)])
        inside = {root.op for root in step.roots}
        return [op for op in self.barriers if start < self.positions[op] < end and op not in inside]

    def _is_loaded_row(self, value: SSAValue) -> bool:
        """Whether a tile that is loaded lies in a row."""
        pointer = self.ops[self.loaded[value]].operands[0]
        return is_loaded_row(self.bufferization.structure, value, pointer)

    def _numbers_stored(self, start: int, step: Step) -> list[Operation]:
        """The stores between a position and a nest if each writes one number; else none."""
        stores = self._written_between(start, step)
        is_plain = all(
            kind_of_root(type(op)) is RootKind.STORE and not is_tile(op.operands[0])
            for op in stores
        )
        return stores if step.roots and is_plain else []

    def _keep_loads(self, values: tuple[SSAValue, ...]) -> None:
        """Addresses and masks of a store must not change while it stores."""
        for value in self._reach(values):
            if value in self.loaded and is_tile(value):
                self.bufferization.stored.add(value)

    def _keep_elements(self, values: tuple[SSAValue, ...]) -> None:
        """What is visited one by one is computed by vectors before: where it is made."""
        for value in values:
            is_made = self._is_made_here(value) and is_inline(value)
            if is_made and not self.bufferization.costs.is_symbolic(value):
                self.bufferization.stored.add(value)

    def _is_made_here(self, value: SSAValue) -> bool:
        """Whether this block makes a value: one that another makes has its nest there, or none."""
        made = owner(value)
        return made is not None and made.parent is self.block

    def _keep_transposed_loads(self) -> None:
        """Materialise what a nest would load across the rows that it writes."""
        for step in self.steps:
            if step.roots:
                found = set(
                    filter(self._is_made_here, transposed_loads(self.bufferization, step.roots))
                )
                self.bufferization.crossed |= found
                self.bufferization.stored |= found

    def _keep_shared_values(self) -> None:
        """Materialise values that several steps, or a loop, would recompute at a price."""
        stored, uses = self.bufferization.stored, self._direct_uses()
        for position in reversed(range(len(self.ops))):
            for value in self.inlined[self.ops[position]]:
                if uses.count(value) > 1 and self._is_dear(value):
                    stored.add(value)
                    uses.materialize(value, self._step_to_join(value, position))
                uses.hand_on(value, self._sources(value))

    def _is_dear(self, value: SSAValue) -> bool:
        """Whether a tile that is not materialised would better be, if it is evaluated twice."""
        stored, costs = self.bufferization.stored, self.bufferization.costs
        if value in stored or costs.is_symbolic(value):
            return False
        return costs.recompute(value, stored) >= EXPENSIVE

    def _step_to_join(self, value: SSAValue, position: int) -> Step | None:
        """The nest in which a tile would be materialised: the one that is open there."""
        step = self.open_at[position]
        return step if step is not None and step.roots[0].space == space_of(value) else None

    def _sources(self, value: SSAValue) -> Iterable[SSAValue]:
        if value not in self.sources:
            self.sources[value] = sources_of(value)
        return [source for source, _ in self.sources[value]]

    def _direct_uses(self) -> Uses:
        uses = Uses()
        for step in self.steps:
            is_loop = isinstance(step.op, ControlFlowOp) and step.op.is_loop()
            bit = uses.add_step(step, is_repeated=is_loop)
            if step.op is not None:
                tiles = (v for v in step.op.operands if is_tile(v))
                uses.take((*tiles, *self.captured.get(step.op, ())), bit)
            elif step.pack is not None:
                uses.take((step.pack.value,), bit)
            for root in step.roots:
                if root.kind is RootKind.MATERIALIZE:
                    uses.materialize(root.values[0], step)
                else:
                    uses.take(root.values, bit)
        return uses

    # -- loop-carried tiles ----------------------------------------------------------------

    def _update_in_place(self) -> bool:
        """Choose the yielded values that may overwrite the carried tile where they are made.

        True when the choice changed, which changes the copies at the block's end.
        """
        bufferization, changed = self.bufferization, False
        for argument, value in bufferization.carried_tiles(self.block):
            if value in self.refused or value is argument:
                continue
            is_chosen = bufferization.in_place.get(value) is argument
            made = self._step_of(chain_head(value))
            fits = made is not None and self._is_last_use(argument, made)
            if fits and value not in bufferization.in_place:
                bufferization.in_place[value] = argument
                changed = True
            elif is_chosen and not fits:
                del bufferization.in_place[value]
                self.refused.add(value)
                changed = True
        return changed

    def _step_of(self, value: SSAValue) -> int | None:
        for number, step in enumerate(self.steps):
            if step.op is not None and value in step.op.results:
                return number if self.bufferization.works_in_place(step.op, value) else None
            if any(value in root.outputs() for root in step.roots):
                return number
        return None

    def _is_last_use(self, argument: SSAValue, made: int) -> bool:
        if any(argument in step.reached for step in self.steps[made + 1 :]):
            return False
        step = self.steps[made]
        if step.op is None:
            stores = (root for root in step.roots if root.kind is RootKind.STORE)
            return step.reached.get(argument, True) and not any(
                argument in self._places_of(store) for store in stores
            )
        if isinstance(step.op, AccumulatingOp):
            added_to = step.op.accumulator_index()
            factors = [v for index, v in enumerate(step.op.operands) if index != added_to]
            return argument not in self._reach(tuple(factors))
        return argument not in self.captured[step.op]
