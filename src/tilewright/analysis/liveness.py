"""Between which points of a function a piece of shared memory is in use.

Ops are numbered in the order of the text; an op with regions spans the numbers inside of it. An
allocation lives from its op to its last use, found by walking backward. What one iteration of a
loop leaves to the next one lives all through the loop.

    alloc a ── 2        a: 2…9, since iterations to come read it
    for ────── 3
      read a ─ 4
    end ────── 9
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.alias import SharedAliases, is_shared
from tilewright.analysis.dataflow import StateFlow, run
from tilewright.ir.effects import Allocation, Resource, own_effects
from tilewright.ir.regions import ControlFlowOp, Edge, blocks_of, is_control_flow
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class LiveRange:
    """The first and the last point at which an allocation is in use."""

    start: int
    end: int

    def overlaps(self, other: LiveRange) -> bool:
        """Whether both are in use at one point."""
        return self.start <= other.end and other.start <= self.end

    def united(self, other: LiveRange) -> LiveRange:
        """From the first point of both to the last."""
        return LiveRange(min(self.start, other.start), max(self.end, other.end))


class Numbering:
    """The points of a function: for each op where it starts and ends."""

    def __init__(self, block: Block) -> None:
        self.spans: dict[Operation, LiveRange] = {}
        self._counter = 0
        self._block(block)

    def _block(self, block: Block) -> None:
        for op in block.ops:
            start = self._counter
            self._counter += 1
            if is_control_flow(op):
                for inner in blocks_of(op):
                    self._block(inner)
                self._counter += 1
            self.spans[op] = LiveRange(start, self._counter - 1)

    def ops(self) -> list[Operation]:
        """Every op in the order of the text."""
        return sorted(self.spans, key=lambda op: self.spans[op].start)


UsesOf = Callable[[Operation], Sequence[SSAValue]]


def shared_operands(op: Operation) -> Sequence[SSAValue]:
    """The shared tiles among the operands of an op."""
    return [operand for operand in op.operands if is_shared(operand)]


def live_ranges(
    block: Block, aliases: SharedAliases, uses: UsesOf = shared_operands
) -> dict[Operation, LiveRange]:
    """The live range of each op that allocates shared tiles, in the order of the text.

    `uses` names the shared tiles that an op touches, those of asynchronous ops that it waits
    for included.
    """
    numbering = Numbering(block)
    made = (op for op in numbering.ops() if _allocates(op))
    liveness = _Liveness({op: numbering.spans[op] for op in made}, numbering, aliases, uses)
    run(liveness, block)
    return liveness.ranges


def _allocates(op: Operation) -> bool:
    effects = own_effects(op)
    return any(isinstance(e, Allocation) and e.resource is Resource.SHARED for e in effects)


class _Liveness(StateFlow[frozenset[Operation]]):
    """Backward: the allocations that some way from a point on still uses."""

    is_backward = True

    def __init__(
        self,
        ranges: dict[Operation, LiveRange],
        numbering: Numbering,
        aliases: SharedAliases,
        uses: UsesOf,
    ) -> None:
        super().__init__(frozenset())
        self.ranges = ranges
        self._spans = numbering.spans
        self._aliases = aliases
        self._uses = uses
        self._used: dict[Operation, frozenset[Operation]] = {}

    def step(self, op: Operation, state: frozenset[Operation]) -> frozenset[Operation]:
        """What was live behind an op, and what it uses, less what it makes."""
        used = self._used.get(op)
        if used is None:
            roots = (root for value in self._uses(op) for root in self._aliases.roots(value))
            used = self._used[op] = frozenset(roots)
            start = self._spans[op].start
            self._extend(used, LiveRange(start, start))
        live = state | used if used else state
        return live - {op} if op in self.ranges else live

    def join(self, left: frozenset[Operation], right: frozenset[Operation]) -> frozenset[Operation]:
        """What is live on either way."""
        return left | right

    def cross(self, op: ControlFlowOp, edge: Edge, visits: int) -> bool:
        """What is live from one iteration to the next lives all through the loop."""
        if edge.is_back:
            self._extend(self.state, self._spans[op])
        return super().cross(op, edge, visits)

    def _extend(self, roots: frozenset[Operation], used: LiveRange) -> None:
        for root in roots:
            self.ranges[root] = self.ranges[root].united(used)
