"""Gives every access of a ring its slot, and its fill where it waits (T2 to T2).

A role goes through the slots of a ring in turn, so both are scalars that loops and branches
around the accesses carry:

    for … { %t = ring_wait %ab … ring_release %ab }
    ⇒ for … iter_args(%s = 0, %f = 0)
        { %t = ring_wait %ab, %s, %f … ring_release %ab, %s; %s', %f' = ring_seek %ab, 1, %s, %f }

Rings of as many slots that a role accesses in step share their scalars, but for those of which
replicas skip fills: they go on by counts of their own. A role that fills a ring and reads it
stands at two places of it. What commits or releases stands behind what acquires or waits in one
block, and means the first slot that is still held.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.attributes import integer_array, integers_of
from tilewright.ir.edits import erase
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp, is_control_flow
from tilewright.ops.carried_values import carry
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.function import find_kernel
from tilewright.ops.rings import (
    RingAcquireOp,
    RingCommitOp,
    RingFill,
    RingOp,
    RingReleaseOp,
    RingSeekOp,
    RingSettled,
    RingWaitOp,
)
from tilewright.ops.roles import find_roles
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

ENTRIES = (RingAcquireOp, RingWaitOp)
EXITS = (RingCommitOp, RingReleaseOp)
Position = tuple[SSAValue, SSAValue]
"""A slot and a fill."""
End = tuple[RingOp, bool]
"""A ring, and whether who goes through it there reads it: else it fills it."""


@dataclass(frozen=True)
class CountRings(Pass):
    """The pass; see the module."""

    name = "count-rings"
    requires = "T2"
    produces = "T2"
    after = ("stage-channels", "place-shared")

    def apply(self, module: ModuleOp) -> None:
        """Give the rings of every role their counters."""
        roles = find_roles(find_kernel(module))
        for region in () if roles is None else roles.regions:
            count_rings(region.block)


def count_rings(body: Block) -> None:
    """Give the accesses of rings in the body of a role their positions."""
    ends = dict.fromkeys(end for op in body.walk() if (end := entered_end(op)) is not None)
    groups: dict[object, list[End]] = {}
    skipped = {op.ring_of() for op in body.walk() if isinstance(op, RingSeekOp)}
    for end in ends:
        ring, _ = end
        own = ring if ring in skipped else None
        groups.setdefault((ring.num_slots, _steps(body, end), own), []).append(end)
    for group in groups.values():
        _Counting(group, body).run()


def entered_end(op: Operation) -> End | None:
    """The end of a ring that an op goes through in turn; None for other ops."""
    if not isinstance(op, (*ENTRIES, *EXITS)):
        return None
    return op.ring_of(), isinstance(op, RingWaitOp | RingReleaseOp)


def _named_end(op: Operation, ends: Sequence[End]) -> End | None:
    """The one of `ends` whose slot an op names: that of its turn, or one that it fills or seeks."""
    end = entered_end(op)
    if end is not None:
        return end if end in ends else None
    if isinstance(op, RingFill | RingSettled):
        return next((one for one in ends if one == (op.ring.owner, False)), None)
    if isinstance(op, RingSeekOp) and not op.before:
        return next((one for one in ends if one[0] is op.ring_of()), None)
    return None


def _steps(block: Block, end: End) -> tuple[object, ...]:
    """How often an end is entered between which loops and branches: ends alike go in step."""
    steps: list[object] = []
    count = 0
    for op in block.ops:
        if is_control_flow(op):
            inner = tuple(_steps(b, end) for region in op.regions for b in region.blocks)
            if any(inner):
                steps += [count, id(op), inner]
                count = 0
        elif isinstance(op, ENTRIES) and entered_end(op) == end:
            count += 1
    return (*steps, count) if steps or count else ()


class _Counting:
    """The walk over a role for ends of rings that go in step."""

    def __init__(self, ends: Sequence[End], body: Block) -> None:
        self._ends = ends
        self._body = body
        first = body.first_op
        assert first is not None
        self._zero, self._one = (_constant(value, first) for value in (0, 1))

    def run(self) -> None:
        """Count through the whole body."""
        self._block(self._body, (self._zero, self._zero))

    def _block(self, block: Block, position: Position) -> Position:
        """Give the accesses of a block their positions; that behind it."""
        line = _Line(self._ends, position, self._one)
        for op in tuple(block.ops):
            if is_control_flow(op):
                assert isinstance(op, ControlFlowOp)
                if any(_named_end(inner, self._ends) for inner in op.walk()):
                    line = _Line(self._ends, self._through(op, line.end(op)), self._one)
            elif isinstance(op, RingSeekOp) and _named_end(op, self._ends):
                line = _Line(self._ends, _sought(op, line.end(op)), self._one)
            elif not isinstance(op, RingSeekOp) and _named_end(op, self._ends):
                line.place(op)
        end = block.last_op
        assert end is not None
        return line.end(end)

    def _through(self, op: ControlFlowOp, position: Position) -> Position:
        """Let a loop or branch carry a position."""

        def inside(block: Block, values: Sequence[SSAValue]) -> Position:
            slot, phase = values
            return self._block(block, (slot, phase))

        slot, phase = carry(op, position, inside)
        return slot, phase


class _Line:
    """A straight line of accesses: the positions from its start on, made as they are needed."""

    def __init__(self, ends: Sequence[End], start: Position, one: SSAValue) -> None:
        self._ends = ends
        self._positions = [start]
        self._one = one
        self._entered = dict.fromkeys(ends, 0)
        self._left = dict.fromkeys(ends, 0)

    def place(self, op: Operation) -> None:
        """Give an access its position."""
        end = _named_end(op, self._ends)
        assert end is not None
        if isinstance(op, ENTRIES):
            number = self._entered[end]
            self._entered[end] += 1
            op.operands = [op.operands[0], *self._positions[number]]
            if number + 1 == len(self._positions):
                self._positions.append(self._following(op, end[0]))
        elif isinstance(op, EXITS):
            number = self._left[end]
            self._left[end] += 1
            if number >= self._entered[end]:
                raise InternalError(f"{op.name} at {describe(op)} leaves no slot of its block")
            _give_slot(op, 1, self._positions[number][0])
        elif isinstance(op, RingSettled):
            op.operands = [op.operands[0], *self._positions[self._entered[end]]]
        else:
            number = self._entered[end] - 1
            if number < 0:
                raise InternalError(f"{op.name} at {describe(op)} fills no slot of its block")
            _give_slot(op, 3, self._positions[number][0])

    def end(self, op: Operation) -> Position:
        """The position behind the line, which ends before `op`. All that was entered is left."""
        for end, entered in self._entered.items():
            if entered != self._left[end]:
                name = end[0].ring_name.data
                raise InternalError(f"a slot of ring {name} is held at {describe(op)}")
        return self._positions[max(self._entered.values())]

    def _following(self, op: Operation, ring: RingOp) -> Position:
        operands = [ring.result, self._one, *self._positions[-1]]
        seek = build(RingSeekOp, operands, [i32, i32], location=op.location)
        assert op.parent is not None
        op.parent.insert_op_after(seek, op)
        return seek.results[0], seek.results[1]


def _sought(op: RingSeekOp, position: Position) -> Position:
    """Let a seek go on from a position; where it leads."""
    operands = [op.operands[0], op.count, *position]
    seek = build(RingSeekOp, operands, [i32, i32], location=op.location)
    assert op.parent is not None
    op.parent.insert_op_before(seek, op)
    erase(op)
    return seek.results[0], seek.results[1]


def _give_slot(op: Operation, index: int, slot: SSAValue) -> None:
    """Insert the optional slot of an op at an operand's index."""
    sizes = op.properties.get("operandSegmentSizes")
    op.operands = [*op.operands[:index], slot, *op.operands[index:]]
    if sizes is not None:
        counts = list(integers_of(sizes))
        counts[index] = 1
        op.properties["operandSegmentSizes"] = integer_array(tuple(counts))


def _constant(value: int, before: Operation) -> SSAValue:
    properties: dict[str, Attribute] = {"value": IntegerAttr(value, i32)}
    op = build(ConstantOp, (), [i32], properties, location=before.location)
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.results[0]
