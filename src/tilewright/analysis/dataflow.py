"""Dataflow over structured control flow: one driver for both directions, two kinds of facts.

The driver walks the ops of a block in order. At control flow it walks the regions that an edge
brings something new to, until none does; regions to walk are kept in a worklist, the first in
the text first, so that inner loops settle before what is behind them. What an analysis keeps is
kept while the loops around are walked again, and facts only weaken: nests of loops take a number
of walks that grows with their depth, and not two to the power of it.

`StateFlow` keeps one state for each point of the program (what is pending, what is live);
`ValueFlow` one fact for each value (how it is aligned, where it comes from).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Generic, Protocol, TypeVar

from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.locations import describe
from tilewright.ir.regions import (
    OUTSIDE,
    ControlFlowOp,
    Edge,
    Place,
    is_control_flow,
    possible_edges,
)
from tilewright.support.errors import InternalError

MAX_VISITS = 1000
"""How often a region may be walked for its op: far more than facts of any kind can weaken."""

State = TypeVar("State")
Fact = TypeVar("Fact")


class Walk(Protocol):
    """What a dataflow does at ops and along edges."""

    @property
    def is_backward(self) -> bool:
        """Whether ops are taken from the last to the first, and edges from target to source."""
        ...

    @property
    def is_sparse(self) -> bool:
        """Whether ops read more than edges bring, so that each region is walked at least once."""
        ...

    def visit(self, op: Operation) -> None:
        """Take an op where it reads its operands: a loop or branch before its regions."""
        ...

    def cross(self, op: ControlFlowOp, edge: Edge, visits: int) -> bool:
        """Hand on along an edge of `op`; whether that is news at its other end.

        `visits` is how often the region that the walk comes from was walked by now.
        """
        ...

    def start(self, op: ControlFlowOp, region: int) -> None:
        """Begin with a region of an op."""
        ...

    def leave(self, op: ControlFlowOp, edges: Sequence[Edge]) -> None:
        """Go on beyond an op whose regions have settled; `edges` are those that lead there."""
        ...


def run(walk: Walk, block: Block) -> None:
    """Walk a block and everything inside of it.

    *Raises* InternalError that names the values of a region that never settles.
    """
    ops = tuple(block.ops)
    for op in reversed(ops) if walk.is_backward else ops:
        if not is_control_flow(op):
            walk.visit(op)
            continue
        assert isinstance(op, ControlFlowOp)
        if not walk.is_backward:
            walk.visit(op)
        _run_regions(walk, op)
        if walk.is_backward:
            walk.visit(op)


def _run_regions(walk: Walk, op: ControlFlowOp) -> None:
    """Walk the regions of an op until no edge brings anything new to one."""
    edges = possible_edges(op)
    visits = [0] * len(op.regions)
    pending = _crossed(walk, op, edges, OUTSIDE, visits)
    while pending:
        region = max(pending) if walk.is_backward else min(pending)
        pending.remove(region)
        visits[region] += 1
        if visits[region] > MAX_VISITS:
            raise _unsettled(op, [e for e in edges if e.target == region])
        walk.start(op, region)
        run(walk, op.regions[region].block)
        pending |= _crossed(walk, op, edges, region, visits)
    walk.leave(op, [edge for edge in edges if _ends(walk, edge)[1] is OUTSIDE])


def _crossed(
    walk: Walk, op: ControlFlowOp, edges: Sequence[Edge], source: Place, visits: Sequence[int]
) -> set[int]:
    """Hand on along the edges from one place; the regions that are to be walked after that."""
    reached: set[int] = set()
    for edge in edges:
        tail, head = _ends(walk, edge)
        if tail != source:
            continue
        is_new = walk.cross(op, edge, 0 if tail is None else visits[tail])
        if head is not None and (is_new or (walk.is_sparse and not visits[head])):
            reached.add(head)
    return reached


def _ends(walk: Walk, edge: Edge) -> tuple[Place, Place]:
    """Where a walk crosses an edge from, and where it comes to."""
    return (edge.target, edge.source) if walk.is_backward else (edge.source, edge.target)


def _unsettled(op: ControlFlowOp, edges: Sequence[Edge]) -> InternalError:
    receivers = dict.fromkeys(value for edge in edges for value in edge.receivers)
    named = ", ".join(map(name_of, receivers))
    return InternalError(f"what is known of {named} does not settle in {op.name} at {describe(op)}")


def name_of(value: SSAValue) -> str:
    """A value for a message: its name in the source, where it has one, and its type."""
    name = "a value" if value.name_hint is None else f"`{value.name_hint}`"
    return f"{name} of type {value.type}"


class StateFlow(Generic[State]):
    """A dataflow of one state at each point, which `step` changes and `join` unites.

    `state` is that of where the walk is. *Constraints*: `join` is commutative, and joining again
    and again comes to an end.
    """

    is_backward: bool = False
    is_sparse: bool = False

    def __init__(self, state: State) -> None:
        self.state = state
        self._at: dict[tuple[Operation, Place], State] = {}

    def step(self, op: Operation, state: State) -> State:
        """The state beyond an op, from that at it."""
        raise NotImplementedError

    def join(self, left: State, right: State) -> State:
        """What holds where control comes from two sides."""
        raise NotImplementedError

    def visit(self, op: Operation) -> None:
        """Take a step."""
        self.state = self.step(op, self.state)

    def cross(self, op: ControlFlowOp, edge: Edge, visits: int) -> bool:
        """Join the state to what came to the end of the edge before."""
        key = op, (edge.source if self.is_backward else edge.target)
        known = self._at.get(key)
        joined = self.state if known is None else self.join(known, self.state)
        self._at[key] = joined
        return known is None or joined != known

    def start(self, op: ControlFlowOp, region: int) -> None:
        """The state where a region begins."""
        self.state = self._at[op, region]

    def leave(self, op: ControlFlowOp, edges: Sequence[Edge]) -> None:
        """The state beyond an op."""
        self.state = self._at[op, OUTSIDE]


class ValueFlow(Generic[Fact]):
    """A dataflow forward of one fact for each value, which `meet` weakens.

    Facts of what a region receives start from what is handed to it from outside, and go down to
    what all its iterations agree on; after `rounds` walks, those that still change are given up.
    """

    is_backward: bool = False
    is_sparse: bool = True
    rounds: int = 8

    def __init__(self) -> None:
        self._facts: dict[SSAValue, Fact] = {}
        # What edges brought to the arguments of regions, before anything else is known of them.
        self._received: dict[SSAValue, Fact] = {}

    def unknown(self, value: SSAValue) -> Fact:
        """What holds of any value of its type."""
        raise NotImplementedError

    def meet(self, left: Fact, right: Fact) -> Fact:
        """What holds of a value that is one of two."""
        raise NotImplementedError

    def handed_on(self, fact: Fact) -> Fact:
        """What holds of a value where control hands it to others: by default all of it."""
        return fact

    def visit(self, op: Operation) -> None:
        """Find the facts of the results of an op; control flow gives facts to arguments alone."""
        raise NotImplementedError

    def of(self, value: SSAValue) -> Fact:
        """What is known of a value."""
        found = self._facts.get(value)
        return self.unknown(value) if found is None else found

    def put(self, value: SSAValue, fact: Fact) -> None:
        """Note what is known of a value."""
        self._facts[value] = fact

    def cross(self, op: ControlFlowOp, edge: Edge, visits: int) -> bool:
        """Weaken the facts of the arguments that receive."""
        if edge.target is OUTSIDE:
            return False
        is_new = False
        for value, receiver in zip(edge.values, edge.receivers, strict=True):
            known, fact = self._received.get(receiver), self.handed_on(self.of(value))
            if known is not None:
                fact = self.meet(known, fact)
                if fact != known and visits > self.rounds:
                    fact = self.unknown(receiver)
            if fact != known:
                is_new = True
                self._received[receiver] = fact
                self.put(receiver, fact)
        return is_new

    def start(self, op: ControlFlowOp, region: int) -> None:
        """Begin with a region, whose arguments have their facts."""

    def leave(self, op: ControlFlowOp, edges: Sequence[Edge]) -> None:
        """Give the results the facts that all ways out of the op agree on."""
        for index, result in enumerate(op.results):
            facts = [self.handed_on(self.of(edge.values[index])) for edge in edges]
            self.put(result, reduce(self.meet, facts))
