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

from tilewright.analysis.affine.access import AccessDim, Accesses, TileAccess
from tilewright.analysis.affine.expression import Expression, Term
from tilewright.analysis.affine.guards import is_known_at_launch, is_of_launch
from tilewright.ir.effects import stops_reads
from tilewright.ir.locations import describe
from tilewright.ir.passes import Pass
from tilewright.ir.regions import counter_of
from tilewright.ir.schedule import LoopSchedule, Schedule
from tilewright.ir.schedule_attributes import anchor_of, annotate_schedule, schedule_of
from tilewright.ops.function import FuncOp, find_kernel, is_argument
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.ops.roles import find_roles
from tilewright.runtime.launch_numbers import LaunchGuard, LaunchNumber
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.nvidia.tma.launch_conditions import add_guards, place_of

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
    stores = [op for op in ops if isinstance(op, StoreOp) and stops_reads(op)]
    guards: list[LaunchGuard] = []
    for load in loads:
        for store in stores:
            guard = _Pair(loop, accesses).guard(load, store)
            if isinstance(guard, str):
                return guard
            guards += guard
    return guards


def _needed(ahead: Sequence[Operation], loop: Operation) -> list[LoadOp]:
    """The loads of plain pointers that run ahead, with those that their addresses come from."""
    pending, seen = list(ahead), set(ahead)
    while pending:
        owners = [operand.owner for operand in pending.pop().operands]
        for owner in owners:
            is_inside = isinstance(owner, Operation) and loop.is_ancestor(owner)
            if isinstance(owner, Operation) and is_inside and owner not in seen:
                seen.add(owner)
                pending.append(owner)
    return [op for op in loop.walk() if isinstance(op, LoadOp) and op in seen]


class _Pair:
    """A load that runs ahead and a store of the same loop."""

    def __init__(self, loop: Operation, accesses: Accesses) -> None:
        self._loop, self._accesses = loop, accesses

    def guard(self, load: LoadOp, store: StoreOp) -> list[LaunchGuard] | str:
        """The test that they touch no element in another order; a reason where there is none."""
        read, written = self._accesses.of(load), self._accesses.of(store)
        pair = f"{describe(load)} and {describe(store)}"
        for found in (read, written):
            if isinstance(found, str):
                return f"a launch cannot tell whether {pair} touch the same elements: {found}"
        assert isinstance(read, TileAccess) and isinstance(written, TileAccess)
        if read.base is written.base:
            return []  # `pipeline-loops` keeps their order
        places = [_address_of(access) for access in (read, written)]
        if None in places:
            return f"a launch cannot tell whether {pair} touch the same elements"
        first, second = (place for place in places if place is not None)
        ways = [
            _sub(_sub(second, first), ("constant", read.element_bytes)),
            _sub(_sub(first, second), ("constant", written.element_bytes)),
            *self._in_place(read, written),
        ]
        number = ways[0]
        for way in ways[1:]:
            number = ("max", _BITS, number, way)
        text = f"{_name(read.base)} and {_name(written.base)} do not overlap"
        return [LaunchGuard(number, "at_least", 0, text)]

    def _in_place(self, read: TileAccess, written: TileAccess) -> list[LaunchNumber]:
        """Numbers of which one is positive where both go through one array, row by row.

        The same elements of an iteration, and iterations further apart than elements of one are.
        """
        same, step = _sameness(read, written), self._step_of(read)
        ours, theirs = _span_of(read), _span_of(written)
        if same is None or step is None or ours is None or theirs is None:
            return []
        # How far an element that is read lies behind one that is written, in one iteration.
        within = _sub(ours, theirs)
        forward: LaunchNumber = ("add", _BITS, step, within)
        backward = _sub(_sub(("constant", 0), step), within)
        return [("min", _BITS, same, _sub(way, ("constant", 1))) for way in (forward, backward)]

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
        each, step = place_of(Expression(tuple(ahead))), place_of(_symbol(counter.step))
        return None if each is None or step is None else ("mul", _BITS, each, step)

    def _stays(self, value: SSAValue) -> bool:
        """Whether a scalar is the same in each iteration: it is made outside of the loop."""
        owner = value.owner
        inside = owner if isinstance(owner, Operation) else owner.parent_op()
        return inside is not None and not self._loop.is_ancestor(inside)


def _symbol(value: SSAValue) -> Expression:
    return Expression(((1, (value,)),))


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
    differences = [_symbol(written.base).minus(_symbol(read.base))]
    for one, other in zip(read.dims, written.dims, strict=True):
        if not (one.is_plain() and other.is_plain() and one.extent == other.extent):
            return None
        differences.append(other.stride.minus(one.stride))
    differences += _known_parts(_start_of(written).minus(_start_of(read)))
    number: LaunchNumber = ("constant", 0)
    for difference in differences:
        found = place_of(difference)
        if found is None or not is_of_launch(difference):
            return None
        distance: LaunchNumber = ("max", _BITS, found, _sub(("constant", 0), found))
        number = ("min", _BITS, number, _sub(("constant", 0), distance))
    return number


def _known_parts(expression: Expression) -> list[Expression]:
    """What each product of scalars that a launch does not know is multiplied by."""
    parts: dict[tuple[SSAValue, ...], list[Term]] = {}
    for coefficient, factors in expression.terms:
        known = tuple(factor for factor in factors if is_known_at_launch(factor))
        varying = tuple(factor for factor in factors if factor not in known)
        parts.setdefault(varying, []).append((coefficient, known))
    return [Expression(tuple(terms)) for terms in parts.values()]


def _address_of(access: TileAccess) -> LaunchNumber | None:
    """The address of an element that an access may touch, in bytes; None if it is not known."""
    base, start, span = place_of(_symbol(access.base)), place_of(access.offset), _span_of(access)
    starts = [place_of(dim.stride.times(dim.start)) for dim in access.dims if dim.modulus is None]
    if not is_argument(access.base) or base is None or start is None or span is None:
        return None
    total: LaunchNumber = ("add", _BITS, start, span)
    for part in starts:
        if part is None:
            return None
        total = ("add", _BITS, total, part)
    scaled: LaunchNumber = ("mul", _BITS, total, ("constant", access.element_bytes))
    return ("add", _BITS, base, scaled)


def _span_of(access: TileAccess) -> LaunchNumber | None:
    """How far behind its start an element of an access may lie, in elements."""
    total: LaunchNumber = ("constant", 0)
    for dim in access.dims:
        stride, count = place_of(dim.stride), _count_of(dim)
        if stride is None or count is None:
            return None
        total = ("add", _BITS, total, ("mul", _BITS, stride, count))
    return total


def _count_of(dim: AccessDim) -> LaunchNumber | None:
    """An index of a dimension: those that the mask hides do not count."""
    if dim.indices is not None:
        return None
    end: LaunchNumber = ("constant", dim.extent)
    if dim.modulus is not None:
        period = place_of(dim.modulus)
        if period is None:
            return None
        end = period
    else:
        for limit in map(place_of, dim.upper):
            end = end if limit is None else ("min", _BITS, end, limit)
    return ("count", _BITS, ("constant", 0), end, ("constant", 1))


def _sub(left: LaunchNumber, right: LaunchNumber) -> LaunchNumber:
    return ("sub", _BITS, left, right)


def _name(argument: SSAValue) -> str:
    return argument.name_hint or "an argument"
