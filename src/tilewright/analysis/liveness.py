"""Between which points of a function a piece of shared memory is in use.

Ops are numbered in the order of the text; an op with regions spans the numbers inside of it. An
allocation lives from its op to its last use. A use inside of a loop that began before the
allocation was made lasts to the end of the loop, and what a loop carries lives all through it.

    alloc a ── 2        a: 2…9, since iterations to come read it
    for ────── 3
      read a ─ 4
    end ────── 9
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilewright.analysis.alias import SharedAliases, is_shared
from tilewright.ir.effects import Allocation, Resource, own_effects
from tilewright.ops.control_flow import ForOp, IfOp, WhileOp
from tilewright.ops.creation import ConstantOp
from tilewright.support.dataclass import dataclass

_CONTROL_FLOW = (ForOp, IfOp, WhileOp)


def is_control_flow(op: Operation) -> bool:
    """Whether the regions of an op run as part of the program; other regions describe an op."""
    return bool(op.regions) and type(op) in _CONTROL_FLOW


@dataclass(frozen=True)
class LiveRange:
    """The first and the last point at which an allocation is in use."""

    start: int
    end: int

    def overlaps(self, other: LiveRange) -> bool:
        """Whether both are in use at one point."""
        return self.start <= other.end and other.start <= self.end


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
                for region in op.regions:
                    for inner in region.blocks:
                        self._block(inner)
                self._counter += 1
            self.spans[op] = LiveRange(start, self._counter - 1)

    def ops(self) -> list[Operation]:
        """Every op in the order of the text."""
        return sorted(self.spans, key=lambda op: self.spans[op].start)


UsesOf = Callable[[Operation], Sequence[SSAValue]]


def runs_once(loop: ForOp) -> bool:
    """Whether a loop is known to have an iteration: constant bounds say so."""
    low, high = loop.lb.owner, loop.ub.owner
    if not isinstance(low, ConstantOp) or not isinstance(high, ConstantOp):
        return False
    return low.splat_value() < high.splat_value()


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
    ranges: dict[Operation, LiveRange] = {}
    for op in numbering.ops():
        if _allocates(op):
            ranges[op] = numbering.spans[op]
    for op in numbering.ops():
        for value in uses(op):
            for root in aliases.roots(value):
                used = _use(numbering, root, op, value)
                before = ranges[root]
                ranges[root] = LiveRange(min(before.start, used.start), max(before.end, used.end))
    return ranges


def _allocates(op: Operation) -> bool:
    effects = own_effects(op)
    return any(isinstance(e, Allocation) and e.resource is Resource.SHARED for e in effects)


def _use(numbering: Numbering, root: Operation, op: Operation, value: SSAValue) -> LiveRange:
    """The points at which a use keeps an allocation alive."""
    span = numbering.spans[op]
    start, end = span.start, span.start
    inside = set(_loops_around(root))
    for loop in _loops_around(op):
        if loop not in inside:
            end = max(end, numbering.spans[loop].end)
    for loop in _carrying(value):
        start = min(start, numbering.spans[loop].start)
        end = max(end, numbering.spans[loop].end)
    return LiveRange(start, end)


def _loops_around(op: Operation) -> Iterator[Operation]:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp | WhileOp):
            yield parent
        parent = parent.parent_op()


def _carrying(value: SSAValue) -> Iterator[Operation]:
    """The loops that carry a value, or what it is a view of."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        owner = current.owner
        if isinstance(current, BlockArgument):
            parent = current.owner.parent_op()
            if isinstance(parent, ForOp | WhileOp):
                yield parent
            continue
        assert isinstance(owner, Operation)
        for operand in shared_operands(owner):
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
