"""Regions as data: how control, and values with it, go into, between and out of them.

An op whose regions run as part of the program (a loop, a branch; no combine function) is a
`ControlFlowOp`. It says once, as edges, what hands its values on to what; analyses and rewrites
read the edges and name no loop.

    for     outside ─iter_args→ body   body ─yield→ body   body ─yield→ outside
            outside ─iter_args→ outside, where it has no iteration
    while   outside ─arguments→ test   test ─condition→ body   body ─yield→ test
            test ─condition→ outside
    if      outside → then   then ─yield→ outside   outside → else   else ─yield→ outside
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue, Use

from tilewright.ir.edits import erase
from tilewright.ir.op import TileOp, build
from tilewright.support.dataclass import dataclass

Place = int | None
"""A region of an op by its index, or what is outside of the op: `OUTSIDE`."""
OUTSIDE: Final = None


@dataclass(frozen=True)
class Edge:
    """One way that control takes at a control-flow op, and the values that go with it.

    Control comes from the end of the region `source` (OUTSIDE: from before the op) to the start
    of the region `target` (OUTSIDE: behind the op). The operands of `giver` from number `first`
    on become the `receivers`, which are arguments of the region or results of the op.
    """

    source: Place
    target: Place
    giver: Operation
    first: int
    receivers: Sequence[SSAValue]

    @property
    def values(self) -> Sequence[SSAValue]:
        """What is handed on, one for each receiver."""
        return self.giver.operands[self.first :]

    @property
    def is_back(self) -> bool:
        """Whether this leads to a region that stands before its source, or to the same one."""
        return self.source is not None and self.target is not None and self.target <= self.source


@dataclass(frozen=True)
class Counter:
    """A number that a loop counts: `value` goes from `start` by `step` while it is below `end`.

    They are compared as signed numbers and `step` is positive. `value` is an argument of the
    region that counts.
    """

    value: BlockArgument
    start: SSAValue
    end: SSAValue
    step: SSAValue


@dataclass(frozen=True)
class Trips:
    """How often a loop runs: at least `fewest` times, at most `most` where that is known."""

    fewest: int
    most: int | None


@dataclass(frozen=True)
class Phi:
    """One value that control flow hands on, whichever way it comes.

    Each of `values`, which are arguments of regions or results of the op, is one of `incoming`:
    operands, by their op and their number in it.
    """

    incoming: tuple[tuple[Operation, int], ...]
    values: tuple[SSAValue, ...]

    def sources(self) -> tuple[SSAValue, ...]:
        """What is handed on, from each op that does."""
        return tuple(op.operands[number] for op, number in self.incoming)


class ControlFlowOp(TileOp):
    """The facet of ops whose regions run as part of the program."""

    def edges(self) -> tuple[Edge, ...]:
        """Every way through the op, those from outside first."""
        raise NotImplementedError(f"{self.name} does not say how control goes through it")

    def is_loop(self) -> bool:
        """Whether a region may run again."""
        raise NotImplementedError(f"{self.name} does not say whether it is a loop")

    def counter(self) -> Counter | None:
        """What the loop counts; None for one that counts nothing, and for what is no loop."""
        return None

    def trips(self) -> Trips:
        """How often the regions run: at most once, unless the op is a loop."""
        return Trips(0, None if self.is_loop() else 1)


def is_control_flow(op: Operation) -> bool:
    """Whether the regions of an op run as part of the program; other regions describe an op."""
    return bool(op.regions) and isinstance(op, ControlFlowOp)


def possible_edges(op: ControlFlowOp) -> tuple[Edge, ...]:
    """The edges of an op without the one around a loop that is known to run."""
    edges = op.edges()
    if op.trips().fewest == 0:
        return edges
    return tuple(e for e in edges if e.source is not OUTSIDE or e.target is not OUTSIDE)


def phis_of(op: ControlFlowOp) -> tuple[Phi, ...]:
    """The values that a loop or branch hands on: each one carried by a loop, each result."""
    edges = [edge for edge in op.edges() if edge.receivers]
    group_of = list(range(len(edges)))
    for one, other in combinations(range(len(edges)), 2):
        if _hand_on_the_same(edges[one], edges[other]):
            low, high = sorted((group_of[one], group_of[other]))
            group_of = [low if number == high else number for number in group_of]
    groups = [
        [edge for edge, at in zip(edges, group_of, strict=True) if at == number]
        for number in sorted(set(group_of))
    ]
    return tuple(
        Phi(
            tuple(dict.fromkeys((edge.giver, edge.first + index) for edge in group)),
            tuple(dict.fromkeys(edge.receivers[index] for edge in group)),
        )
        for group in groups
        for index in range(len(group[0].receivers))
    )


def _hand_on_the_same(one: Edge, other: Edge) -> bool:
    """Whether two edges have what they hand on, or what becomes of it, in common."""
    return one.giver is other.giver or one.target == other.target


def counter_of(op: Operation | None) -> Counter | None:
    """What a loop counts; None for one that counts nothing, and for what is no loop."""
    return op.counter() if isinstance(op, ControlFlowOp) else None


def sources_of(value: SSAValue) -> list[SSAValue] | None:
    """The values that control flow hands on as `value`; None where it does not come from there.

    A loop's counter comes from control flow and from no value.
    """
    op, place = _receiving(value)
    if op is None:
        return None
    sources: list[SSAValue] = []
    for edge in op.edges():
        if edge.target == place:
            sources += [v for v, to in zip(edge.values, edge.receivers, strict=True) if to is value]
    return sources


def _receiving(value: SSAValue) -> tuple[ControlFlowOp | None, Place]:
    """The control-flow op that a value is a result or an argument of, and where."""
    if isinstance(value, OpResult):
        return (value.op if isinstance(value.op, ControlFlowOp) else None), OUTSIDE
    assert isinstance(value, BlockArgument)
    region = value.block.parent
    op = None if region is None else region.parent
    if region is None or not isinstance(op, ControlFlowOp):
        return None, OUTSIDE
    return op, op.get_region_index(region)


def edges_given(op: Operation) -> tuple[Edge, ...]:
    """The edges along which an op hands values on: to its own regions, or as the end of one."""
    return tuple(
        edge
        for at in (op, op.parent_op())
        if isinstance(at, ControlFlowOp)
        for edge in at.edges()
        if edge.giver is op
    )


def receivers_of(use: Use) -> list[SSAValue]:
    """The values as which control flow hands an operand on: none for operands of other ops."""
    return [
        edge.receivers[use.index - edge.first]
        for edge in edges_given(use.operation)
        if use.index >= edge.first
    ]


def loops_around(op: Operation) -> Iterator[ControlFlowOp]:
    """The loops that an op stands in, inner ones first."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ControlFlowOp) and parent.is_loop():
            yield parent
        parent = parent.parent_op()


def blocks_of(op: Operation) -> Iterator[Block]:
    """The blocks directly inside of an op, in the order of the text."""
    for region in op.regions:
        yield from region.blocks


def ancestor_in(block: Block, op: Operation) -> Operation:
    """The op of a block that is `op` or has it inside, which one is."""
    found = block.find_ancestor_op_in_block(op)
    assert found is not None
    return found


def rebuilt(
    op: Operation, operands: Sequence[SSAValue], result_types: Sequence[Attribute]
) -> Operation:
    """The same op with other operands and results, before the old one, which loses its regions."""
    assert op.parent is not None
    regions: list[Region] = [op.detach_region(region) for region in tuple(op.regions)]
    new = build(type(op), operands, result_types, dict(op.properties), regions, op.location)
    new.attributes = dict(op.attributes)
    op.parent.insert_op_before(new, op)
    return new


def replaced(
    op: Operation,
    operands: Sequence[SSAValue],
    kept: Sequence[OpResult],
    added: Sequence[Attribute] = (),
) -> Operation:
    """The same op with other operands, in its place: `kept` of its results, others behind them.

    Results that are not kept have no uses.
    """
    new = rebuilt(op, operands, [*(result.type for result in kept), *added])
    for old, result in zip(kept, new.results, strict=False):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    erase(op)
    return new


def without_phis(op: ControlFlowOp, dropped: Sequence[Phi]) -> Operation:
    """The op in its place, without values that it hands on, which have no uses but to be those."""
    gone = {value for phi in dropped for value in phi.values}
    numbers: dict[Operation, set[int]] = {}
    for phi in dropped:
        for giver, number in phi.incoming:
            numbers.setdefault(giver, set()).add(number)
    for giver, without in numbers.items():
        giver.operands = [v for number, v in enumerate(giver.operands) if number not in without]
    for value in gone:
        if isinstance(value, BlockArgument):
            value.block.erase_arg(value)
    kept = [result for result in op.results if result not in gone]
    return replaced(op, op.operands, kept)
