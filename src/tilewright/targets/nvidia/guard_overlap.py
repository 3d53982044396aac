"""Demands of a launch what lets loads run ahead of stores through other arguments (T0 to T0).

    for row … { %x = load %a + row·s; store %b + row·s }      loads run 2 iterations ahead
    ⇒ the same, right where %a and %b are apart, or are one array whose rows do not overlap

In the order of the text a load finds what an earlier iteration has stored. Through one argument no
load runs ahead of a store (`pipeline-loops`); through two it may, unless they point to the same
elements. The launch knows: it bounds where each access may start, over all programs and iterations,
and where the bounds meet it takes the kernel that is compiled with `may_overlap`, in which this
pass takes the loop's stages away. So it does where a launch could not tell.

*Why here*: behind `decide-schedule`, which says what runs ahead.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.access import Accesses, TileAccess
from tilewright.analysis.affine.expression import Expression, Term
from tilewright.analysis.affine.guards import is_known_at_launch, is_of_launch
from tilewright.analysis.provenance import base_argument
from tilewright.ir.effects import global_access, is_plain_read, stopping_ops, writes_global
from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ir.regions import counter_of
from tilewright.ir.schedule import LoopSchedule, Schedule
from tilewright.ir.schedule_attributes import anchor_of, annotate_schedule, schedule_of
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.ops.roles import find_roles
from tilewright.runtime.launch_numbers import LaunchGuard, LaunchNumber
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.address_ranges import apart, no_overlap, span_of, subtract, symbol
from tilewright.targets.nvidia.tma.launch_conditions import add_guards, range_of

# By definition: a launch computes in as many bits as addresses have.
_BITS = 64


@dataclass(frozen=True)
class GuardOverlap(Pass):
    """The pass; see the module."""

    may_overlap: bool = False
    name = "guard-overlap"
    requires = "T0r"
    produces = "T0r"
    after = ("decide-schedule",)

    def apply(self, module: ModuleOp) -> None:
        """Add the guards of the kernel's loops, or take their stages away."""
        kernel = find_kernel(module)
        schedule = schedule_of(kernel)
        if schedule is None or find_roles(kernel) is not None:
            return
        accesses, kept, reasons = Accesses(), list[LoopSchedule](), list[str]()
        for planned in schedule.loops:
            loop = _loop_of(kernel, planned)
            guards = [] if loop is None else _guards_of(loop, planned, accesses)
            if isinstance(guards, str) or (guards and self.may_overlap):
                assert loop is not None
                why = guards if isinstance(guards, str) else "arguments may overlap"
                reasons.append(f"{describe(loop)}: loads do not run ahead of stores: {why}")
            else:
                kept.append(planned)
                add_guards(kernel, guards)
        if reasons:
            annotate_schedule(kernel, _with_loops(schedule, kept, reasons))


def _with_loops(
    schedule: Schedule, loops: Sequence[LoopSchedule], reasons: Sequence[str]
) -> Schedule:
    """The schedule without its other loops, and without the rings that those fill."""
    names = {anchor for loop in loops for anchor, _ in loop.places}
    channels = tuple(c for c in schedule.channels if c.tiles[0] in names)
    reasons = (*schedule.reasons, *reasons)
    return replace(schedule, loops=tuple(loops), channels=channels, reasons=reasons)


def _loop_of(kernel: FuncOp, planned: LoopSchedule) -> Operation | None:
    """The loop of a schedule, where it has several stages."""
    if planned.num_stages < 2:
        return None
    return next((op for op in kernel.walk() if anchor_of(op) == planned.loop), None)


def _guards_of(
    loop: Operation, planned: LoopSchedule, accesses: Accesses
) -> list[LaunchGuard] | str:
    """What a launch has to keep to; why it cannot tell whether it does."""
    ahead = {anchor for anchor, place in planned.places if place.stage < planned.num_stages - 1}
    ops = list(loop.regions[0].block.ops)
    loads = _needed([op for op in ops if anchor_of(op) in ahead], loop)
    stores = list(filter(writes_global, stopping_ops(loop)))
    guards: list[LaunchGuard] = []
    for load in loads:
        for store in stores:
            guard = _Pair(loop, accesses).guard(load, store)
            if isinstance(guard, str):
                return guard
            guards += guard
    return guards


def _needed(ahead: Sequence[Operation], loop: Operation) -> list[Operation]:
    """The loads that run ahead, with those that their addresses come from."""
    pending, seen = list(ahead), set(ahead)
    while pending:
        owners = [operand.owner for operand in pending.pop().operands]
        for owner in owners:
            is_inside = isinstance(owner, Operation) and loop.is_ancestor(owner)
            if isinstance(owner, Operation) and is_inside and owner not in seen:
                seen.add(owner)
                pending.append(owner)
    return [op for op in loop.walk() if op in seen and is_plain_read(op)]


class _Pair:
    """A load that runs ahead and a store of the same loop."""

    def __init__(self, loop: Operation, accesses: Accesses) -> None:
        self._loop, self._accesses = loop, accesses

    def guard(self, load: Operation, store: Operation) -> list[LaunchGuard] | str:
        """The test that they touch no element in another order; a reason where there is none."""
        read, written = _argument_of(load), _argument_of(store)
        if read is not None and read is written:
            return []  # `pipeline-loops` keeps their order
        number = apart(load, store, self._accesses)
        if isinstance(number, str) or read is None or written is None:
            pair = f"{describe(load)} and {describe(store)}"
            why = number if isinstance(number, str) else "they may be of several arguments"
            return f"a launch cannot tell whether {pair} touch the same elements: {why}"
        for way in self._in_place(load, store):
            number = ("max", _BITS, number, way)
        return [LaunchGuard(number, "at_least", 0, no_overlap(read, written))]

    def _in_place(self, load: Operation, store: Operation) -> list[LaunchNumber]:
        """Numbers of which one is positive where both go through one array, row by row.

        The same elements of an iteration, and iterations further apart than elements of one are.
        """
        if not (isinstance(load, LoadOp) and isinstance(store, StoreOp)):
            return []
        read, written = self._accesses.of(load), self._accesses.of(store)
        if isinstance(read, str) or isinstance(written, str):
            return []
        same, step = _sameness(read, written), self._step_of(read)
        ours, theirs = span_of(read), span_of(written)
        if same is None or step is None or ours is None or theirs is None:
            return []
        # How far an element that is read lies behind one that is written, in one iteration.
        within = subtract(ours, theirs)
        forward: LaunchNumber = ("add", _BITS, step, within)
        backward = subtract(subtract(("constant", 0), step), within)
        return [("min", _BITS, same, subtract(way, ("constant", 1))) for way in (forward, backward)]

    def _step_of(self, access: TileAccess) -> LaunchNumber | None:
        """How many elements an iteration starts behind the one before; None if that varies."""
        counter = counter_of(self._loop)
        if counter is None:
            return None
        start = _start_of(access)
        ahead: list[tuple[int, tuple[SSAValue, ...]]] = []
        for coefficient, factors in start.terms:
            others = tuple(factor for factor in factors if factor is not counter.value)
            if len(others) == len(factors) - 1:
                ahead.append((coefficient, others))
            elif len(others) < len(factors) or not all(map(self._stays, factors)):
                return None
        if not all(self._stays(factor) for _, factors in ahead for factor in factors):
            return None
        each, step = range_of(Expression(tuple(ahead))), range_of(symbol(counter.step))
        return None if each is None or step is None else ("mul", _BITS, each, step)

    def _stays(self, value: SSAValue) -> bool:
        """Whether a scalar is the same in each iteration: it is made outside of the loop."""
        owner = value.owner
        inside = owner if isinstance(owner, Operation) else owner.parent_op()
        return inside is not None and not self._loop.is_ancestor(inside)


def _start_of(access: TileAccess) -> Expression:
    """Where an access starts, in elements behind its base."""
    start = access.offset
    for dim in access.dims:
        start = start.plus(dim.stride.times(dim.start))
    return start


def _sameness(read: TileAccess, written: TileAccess) -> LaunchNumber | None:
    """A number that is 0 where two accesses of an iteration start at one element and go on alike.

    It is negative where they may not; None where a launch cannot tell.
    """
    if read.element_bytes != written.element_bytes or len(read.dims) != len(written.dims):
        return None
    differences = [symbol(written.base).minus(symbol(read.base))]
    for one, other in zip(read.dims, written.dims, strict=True):
        if not (one.is_plain() and other.is_plain() and one.extent == other.extent):
            return None
        differences.append(other.stride.minus(one.stride))
    differences += _known_parts(_start_of(written).minus(_start_of(read)))
    number: LaunchNumber = ("constant", 0)
    for difference in differences:
        found = range_of(difference)
        if found is None or not is_of_launch(difference):
            return None
        distance: LaunchNumber = ("max", _BITS, found, subtract(("constant", 0), found))
        number = ("min", _BITS, number, subtract(("constant", 0), distance))
    return number


def _known_parts(expression: Expression) -> list[Expression]:
    """What each product of scalars that a launch does not know is multiplied by."""
    parts: dict[tuple[SSAValue, ...], list[Term]] = {}
    for coefficient, factors in expression.terms:
        known = tuple(factor for factor in factors if is_known_at_launch(factor))
        varying = tuple(factor for factor in factors if factor not in known)
        parts.setdefault(varying, []).append((coefficient, known))
    return [Expression(tuple(terms)) for terms in parts.values()]


def _argument_of(op: Operation) -> SSAValue | None:
    """The argument that an access goes through; None where it may be any of several."""
    access = global_access(op)
    return None if access is None or access.value is None else base_argument(access.value)
