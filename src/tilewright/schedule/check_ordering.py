"""Proves that barriers order every two conflicting accesses of a kernel to shared memory.

Independent of how they were put there: it follows the program with the accesses that some path
leaves unordered, goes around loops until nothing is new, and looks at each access when it starts.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.analysis.dataflow import StateFlow, run
from tilewright.ir.effects import Extent, Order
from tilewright.ir.regions import is_control_flow
from tilewright.ops.function import FuncOp
from tilewright.schedule.placed_accesses import PlacedAccess, PlacedAccesses
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

Placed = frozenset[PlacedAccess]


@dataclass(frozen=True)
class _State:
    """Accesses that some path has left in a state.

    `unordered`: done, and no barrier since. `hidden`: written by threads, and no fence since;
    `shown`: fenced, and no barrier since. `running`: started and not ended.
    """

    unordered: Placed = frozenset()
    hidden: Placed = frozenset()
    shown: Placed = frozenset()
    running: Placed = frozenset()

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
    require_ordered(kernel, PlacedAccesses())


def require_ordered(kernel: FuncOp, accesses: PlacedAccesses) -> None:
    """`check_ordering` of a kernel whose accesses are known already."""
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

    def step(self, op: Operation, state: _State) -> _State:
        """The state behind an op, each access of which is checked when it starts."""
        if not is_control_flow(op):
            for step in self._accesses.steps(op):
                state = self._step(step, state)
        return state

    def _step(self, step: PlacedAccess | Order, state: _State) -> _State:
        if step is Order.BARRIER:
            return _State(frozenset(), state.hidden, frozenset(), state.running)
        if step is Order.FENCE:
            return _State(state.unordered, frozenset(), state.shown | state.hidden, state.running)
        assert isinstance(step, PlacedAccess)
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
        for earlier in state.running:
            if earlier.conflicts(placed):
                raise _unordered(earlier, placed, "wait")


def _accessed(placed: PlacedAccess, state: _State) -> _State:
    access = placed.access
    if access.extent is Extent.START:
        return _State(state.unordered, state.hidden, state.shown, state.running | {placed})
    running = state.running
    if access.extent is Extent.END:
        running = frozenset(t for t in running if t.access.op is not access.op)
    hidden, shown = state.hidden, state.shown
    if access.is_write and not access.is_async:
        hidden, shown = hidden | {placed}, shown - {placed}
    unordered = state.unordered if access.is_joint else state.unordered | {placed}
    return _State(unordered, hidden, shown, running)


def _unordered(earlier: PlacedAccess, later: PlacedAccess, missing: str) -> InternalError:
    return InternalError(f"no {missing} between {earlier} and {later}")
