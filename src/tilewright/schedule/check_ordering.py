"""Proves that barriers order every two conflicting accesses of a kernel to shared memory.

Independent of how they were put there: it follows the program with the accesses that some path
leaves unordered, goes around loops until nothing is new, and looks at each access when it starts.

Slots of a ring are told apart where the IR shows that they are: what is known of an access counts
from a value of the iteration that control is in, so it is counted anew where control goes on to
the next one.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.dataflow import StateFlow, run
from tilewright.ir.effects import Extent, Group, Order
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge, is_control_flow
from tilewright.ops.function import FuncOp
from tilewright.schedule.placed_accesses import PlacedAccess, PlacedAccesses, PlacedStep
from tilewright.schedule.ring_positions import Count, RingPosition
from tilewright.schedule.shared_effects import Counted
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.errors import InternalError

Placed = frozenset[PlacedAccess]
_MOST_GROUPS = 64
"""Beyond this many newer groups no wait makes a difference. Chosen, not measured: more are counted
as this many, which only asks for an earlier wait."""


@dataclass(frozen=True)
class _Running:
    """An access that was started and has not ended, as far as some path goes.

    `newer` is how many groups came after its own; None before its group is closed.
    """

    placed: PlacedAccess
    newer: int | None = None

    def closed(self, group: Group) -> _Running:
        """This after a group has been closed."""
        if not isinstance(self.placed.access.op, group.of):
            return self
        newer = 0 if self.newer is None else min(self.newer + 1, _MOST_GROUPS)
        return _Running(self.placed, newer)

    def is_ended(self, wait: Counted) -> bool:
        """Whether a wait that counts is the end of this."""
        is_counted = isinstance(self.placed.access.op, wait.started_by)
        return is_counted and self.newer is not None and self.newer >= wait.pending


@dataclass(frozen=True)
class _State:
    """Accesses that some path has left in a state.

    `unordered`: done, and no barrier since. `hidden`: written by threads, and no fence since;
    `shown`: fenced, and no barrier since. `running`: started and not ended.
    """

    unordered: Placed = frozenset()
    hidden: Placed = frozenset()
    shown: Placed = frozenset()
    running: frozenset[_Running] = frozenset()

    def __or__(self, other: _State) -> _State:
        return _State(
            self.unordered | other.unordered,
            self.hidden | other.hidden,
            self.shown | other.shown,
            self.running | other.running,
        )


def check_ordering(kernel: FuncOp) -> None:
    """Check every pair of accesses on every path.

    *Raises* InternalError that names the two that have no barrier, fence or wait between them.
    """
    accesses = PlacedAccesses()
    accesses.all_accesses(kernel.body.block)
    require_ordered(kernel, accesses)


def require_ordered(kernel: FuncOp, accesses: PlacedAccesses) -> None:
    """`check_ordering` of a kernel all of whose accesses are known already."""
    run(_Check(accesses), kernel.body.block)


def is_ordered(kernel: FuncOp, accesses: PlacedAccesses) -> bool:
    """Whether `check_ordering` accepts a kernel whose accesses are known."""
    try:
        require_ordered(kernel, accesses)
    except InternalError:
        return False
    return True


class _Check(StateFlow[_State]):
    """One check of one kernel."""

    def __init__(self, accesses: PlacedAccesses) -> None:
        super().__init__(_State())
        self._accesses = accesses

    def join(self, left: _State, right: _State) -> _State:
        """What either way has left."""
        return left | right

    def cross(self, op: ControlFlowOp, edge: Edge, visits: int) -> bool:
        """Join the state to what came before, its positions counted from what goes on."""
        state = self.state
        self.state = _recounted(state, op, edge, self._accesses)
        is_new = super().cross(op, edge, visits)
        self.state = state
        return is_new

    def step(self, op: Operation, state: _State) -> _State:
        """The state behind an op, each access of which is checked when it starts."""
        if not is_control_flow(op):
            for step in self._accesses.steps(op):
                state = self._step(step, state)
        return state

    def _step(self, step: PlacedStep, state: _State) -> _State:
        if step is Order.BARRIER:
            return _State(frozenset(), state.hidden, frozenset(), state.running)
        if step is Order.FENCE:
            return _State(state.unordered, frozenset(), state.shown | state.hidden, state.running)
        if isinstance(step, Group):
            running = frozenset(running.closed(step) for running in state.running)
            return replace(state, running=running)
        if isinstance(step, Counted):
            return _drained(step, state)
        if isinstance(step, Order):
            return state
        if step.access.is_counted:
            return state  # what ends is said by the wait that counts, behind it
        if step.access.starts:
            self._check(step, state)
        return _accessed(step, state)

    def _check(self, placed: PlacedAccess, state: _State) -> None:
        for earlier in state.unordered:
            if earlier.conflicts(placed):
                raise _unordered(earlier, placed, "barrier")
        for earlier in state.hidden | state.shown:
            if earlier.hides_from(placed):
                missing = "fence" if earlier in state.hidden else "barrier behind the fence"
                raise _unordered(earlier, placed, missing)
        for running in state.running:
            if running.placed.conflicts(placed):
                raise _unordered(running.placed, placed, "wait")


def _accessed(placed: PlacedAccess, state: _State) -> _State:
    access = placed.access
    if access.extent is Extent.START:
        return replace(state, running=state.running | {_Running(placed)})
    running = state.running
    if access.extent is Extent.END:
        running = frozenset(r for r in running if not _is_end_of(placed, r.placed))
    return _ended(placed, replace(state, running=running))


def _is_end_of(end: PlacedAccess, running: PlacedAccess) -> bool:
    """Whether an access that runs is the one that ends: by the op that started it, or its slot."""
    if running.access.op is end.access.op:
        return True
    if end.access.tile is None or not end.access.is_joint or not end.waits_itself:
        return False
    is_load = running.access.is_async and running.access.is_write
    # A wait for a whole ring is one for all of its slots.
    return is_load and end.position in (None, running.position) and end.covers(running)


def _ended(placed: PlacedAccess, state: _State) -> _State:
    """The state behind the end of an access."""
    access = placed.access
    hidden, shown = state.hidden, state.shown
    if access.is_write and not access.is_async:
        hidden, shown = hidden | {placed}, shown - {placed}
    unordered = state.unordered if access.is_joint else state.unordered | {placed}
    return _State(unordered, hidden, shown, state.running)


def _drained(wait: Counted, state: _State) -> _State:
    """The state behind a wait that counts groups."""
    ended = [running for running in state.running if running.is_ended(wait)]
    state = replace(state, running=state.running - frozenset(ended))
    for running in ended:
        state = _ended(running.placed, state)
    return state


# --- slots of rings ---


def _recounted(state: _State, op: ControlFlowOp, edge: Edge, accesses: PlacedAccesses) -> _State:
    """A state whose positions count from what an edge hands on."""
    if not accesses.bases:
        return state
    handed = zip(edge.values, edge.receivers, strict=True)
    counters = [(value, receiver) for value, receiver in handed if receiver in accesses.bases]
    moved: dict[RingPosition, RingPosition | None] = {}

    def along(placed: PlacedAccess) -> PlacedAccess:
        position = placed.position
        if position is None:
            return placed
        if position not in moved:
            after = _moved(position, counters, accesses.counted_from)
            is_kept = after is None and not _is_left(position, op, edge)
            moved[position] = position if is_kept else after
        return replace(placed, position=moved[position])

    def all_along(accesses: Iterable[PlacedAccess]) -> Placed:
        return frozenset(map(along, accesses))

    running = frozenset(_Running(along(r.placed), r.newer) for r in state.running)
    hidden, shown = all_along(state.hidden), all_along(state.shown)
    return _State(all_along(state.unordered), hidden, shown, running)


def _moved(
    position: RingPosition, counters: Iterable[tuple[SSAValue, SSAValue]], count: Count
) -> RingPosition | None:
    """A position counted from what receives its base, or what is so far behind it."""
    for value, receiver in counters:
        base, steps = count(value, position.slots)
        if base is position.base:
            return replace(position, base=receiver, steps=(position.steps - steps) % position.slots)
    return None


def _is_left(position: RingPosition, op: ControlFlowOp, edge: Edge) -> bool:
    """Whether an edge leaves the iteration that a position is counted in."""
    is_left = edge.source is not OUTSIDE and position.base is not None
    return is_left and _is_inside(position.base, op)


def _is_inside(value: SSAValue | None, op: Operation) -> bool:
    if value is None:
        return False
    owner = value.owner
    holder = owner.parent_op() if isinstance(owner, Block) else owner
    return holder is not None and (holder is op or op.is_ancestor(holder))


def _unordered(earlier: PlacedAccess, later: PlacedAccess, missing: str) -> InternalError:
    return InternalError(f"no {missing} between {earlier} and {later}")
