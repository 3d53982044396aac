"""Proves that barriers order every two conflicting accesses of a kernel to shared memory.

Independent of how they were put there: it follows the program with the accesses that some path
leaves unordered, goes around loops until nothing is new, and looks at each access when it starts.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation

from tilewright.analysis.liveness import runs_once
from tilewright.ir.effects import Extent, Order
from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.function import FuncOp
from tilewright.schedule.shared_touches import Touch, TouchMap
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

Touches = frozenset[Touch]


@dataclass(frozen=True)
class _State:
    """Accesses that some path has left in a state.

    `unordered`: done, and no barrier since. `hidden`: written by threads, and no fence since;
    `shown`: fenced, and no barrier since. `running`: started and not ended.
    """

    unordered: Touches = frozenset()
    hidden: Touches = frozenset()
    shown: Touches = frozenset()
    running: Touches = frozenset()

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
    _Walk(TouchMap()).block(kernel.body.block, _State())


def is_ordered(kernel: FuncOp, touches: TouchMap) -> bool:
    """Whether `check_ordering` accepts a kernel whose touches are known."""
    try:
        _Walk(touches).block(kernel.body.block, _State())
    except InternalError:
        return False
    return True


class _Walk:
    """One check of one kernel."""

    def __init__(self, touches: TouchMap) -> None:
        self._touches = touches
        # The state behind a loop by that before it: loops around it come here again and again.
        self._behind: dict[tuple[Operation, _State], _State] = {}

    def block(self, block: Block, state: _State) -> _State:
        """The state after a block."""
        for op in block.ops:
            state = self._op(op, state)
        return state

    def _op(self, op: Operation, state: _State) -> _State:
        if not op.regions:
            for step in self._touches.steps(op):
                state = self._step(step, state)
            return state
        if isinstance(op, IfOp):
            sides = [self.block(region.block, state) for region in op.regions if region.blocks]
            return sides[0] | (sides[1] if len(sides) > 1 else state)
        if isinstance(op, ForOp | WhileOp):
            found = self._behind.get((op, state))
            if found is None:
                found = self._behind[op, state] = self._iterate(op, state)
            return found
        for step in self._touches.steps(op):
            state = self._step(step, state)
        return state

    def _iterate(self, op: ForOp | WhileOp, state: _State) -> _State:
        if isinstance(op, WhileOp):
            return self._while(op, state)
        entered = self.block(op.body.block, state) if runs_once(op) else state
        return self._loop(op.body.block, entered)

    def _loop(self, body: Block, state: _State) -> _State:
        while (after := state | self.block(body, state)) != state:
            state = after
        return state

    def _while(self, loop: WhileOp, state: _State) -> _State:
        test, body = loop.before_region.block, loop.after_region.block
        while True:
            tested = self.block(test, state)
            after = state | self.block(body, tested)
            if after == state:
                return tested
            state = after

    def _step(self, step: Touch | Order, state: _State) -> _State:
        if step is Order.BARRIER:
            return _State(frozenset(), state.hidden, frozenset(), state.running)
        if step is Order.FENCE:
            return _State(state.unordered, frozenset(), state.shown | state.hidden, state.running)
        assert isinstance(step, Touch)
        if step.access.starts:
            self._check(step, state)
        return _touched(step, state)

    def _check(self, touch: Touch, state: _State) -> None:
        for earlier in state.unordered:
            if earlier.conflicts(touch):
                raise _unordered(earlier, touch, "barrier")
        for earlier in state.hidden | state.shown:
            if earlier.hides_from(touch):
                missing = "fence" if earlier in state.hidden else "barrier behind the fence"
                raise _unordered(earlier, touch, missing)
        for earlier in state.running:
            if earlier.conflicts(touch):
                raise _unordered(earlier, touch, "wait")


def _touched(touch: Touch, state: _State) -> _State:
    access = touch.access
    if access.extent is Extent.START:
        return _State(state.unordered, state.hidden, state.shown, state.running | {touch})
    running = state.running
    if access.extent is Extent.END:
        running = frozenset(t for t in running if t.access.op is not access.op)
    hidden, shown = state.hidden, state.shown
    if access.is_write and not access.is_async:
        hidden, shown = hidden | {touch}, shown - {touch}
    unordered = state.unordered if access.is_joint else state.unordered | {touch}
    return _State(unordered, hidden, shown, running)


def _unordered(earlier: Touch, later: Touch, missing: str) -> InternalError:
    return InternalError(f"no {missing} between {earlier} and {later}")
