"""Which values of a loop or branch may live in one buffer: what its edges say.

edge e hands v on as argument a; the same giver hands v on as result r:  r lives with a
a region that is not entered from outside gets argument b of another unchanged:  it stays in b
the end of a branch hands v on as result r, and nothing else takes v:  v is made in r
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge, is_control_flow
from tilewright.support.dataclass import dataclass

Given = tuple[Operation, int]
"""An operand of the op that hands it on, by its number."""


@dataclass(frozen=True)
class Carried:
    """The values of one op that may share.

    `beside`: the argument that a result lives with. `results`: the reverse, for arguments of
    regions that are entered from outside; `initial` is what they get there. `unchanged`: the
    argument that another region hands on as this one. `taken`: the result as which the end of
    a branch hands an operand on.
    """

    beside: Mapping[SSAValue, SSAValue]
    results: Mapping[SSAValue, SSAValue]
    initial: Mapping[SSAValue, SSAValue]
    unchanged: Mapping[SSAValue, SSAValue]
    taken: Mapping[Given, SSAValue]


NOTHING = Carried({}, {}, {}, {}, {})
"""What an op has that is no control flow."""


def carried_by(op: Operation | None) -> Carried:
    """What the edges of an op say."""
    if op is None or not is_control_flow(op):
        return NOTHING
    assert isinstance(op, ControlFlowOp)
    edges = op.edges()
    beside = _beside(op, edges)
    initial: dict[SSAValue, SSAValue] = {}
    unchanged: dict[SSAValue, SSAValue] = {}
    for argument, edges_in in _given(edges).items():
        entering = [value for edge, value in edges_in if edge.source is OUTSIDE]
        if len(entering) == 1:
            initial[argument] = entering[0]
        source = _unchanged(edges_in)
        if source is not None:
            unchanged[argument] = source
    results = {argument: result for result, argument in beside.items() if argument in initial}
    return Carried(beside, results, initial, unchanged, {} if op.is_loop() else _taken(edges))


def _given(edges: Sequence[Edge]) -> dict[SSAValue, list[tuple[Edge, SSAValue]]]:
    """What each argument of a region gets, and along which edges."""
    given: dict[SSAValue, list[tuple[Edge, SSAValue]]] = {}
    for edge in edges:
        if edge.target is not OUTSIDE:
            for value, argument in zip(edge.values, edge.receivers, strict=True):
                given.setdefault(argument, []).append((edge, value))
    return given


def _beside(op: ControlFlowOp, edges: Sequence[Edge]) -> dict[SSAValue, SSAValue]:
    """The argument that each result lives with: on every way out, both are handed one value."""
    beside: dict[SSAValue, SSAValue] = {}
    leaving = [edge for edge in edges if edge.target is OUTSIDE]
    for index, result in enumerate(op.results):
        found = [_handed_on_too(edges, edge, edge.first + index) for edge in leaving]
        if found and found[0] is not None and all(argument is found[0] for argument in found):
            beside[result] = found[0]
    return beside


def _handed_on_too(edges: Sequence[Edge], leaving: Edge, operand: int) -> SSAValue | None:
    """The argument as which the giver of an edge hands an operand on to a region."""
    for edge in edges:
        if edge.giver is leaving.giver and edge.target is not OUTSIDE and operand >= edge.first:
            return edge.receivers[operand - edge.first]
    return None


def _unchanged(edges_in: Sequence[tuple[Edge, SSAValue]]) -> SSAValue | None:
    """The argument of another region that is handed on here, once, and that alone comes in."""
    edge, value = edges_in[0]
    if len(edges_in) > 1 or edge.source is OUTSIDE or edge.source == edge.target:
        return None
    if not isinstance(value, BlockArgument) or value.block is not edge.giver.parent:
        return None
    return value if _times(edge.giver, value) == 1 else None


def _times(giver: Operation, value: SSAValue) -> int:
    return sum(operand is value for operand in giver.operands)


def _taken(edges: Sequence[Edge]) -> dict[Given, SSAValue]:
    """The results as which the ends of branches hand operands on, where nothing else gets them."""
    taken: dict[Given, SSAValue] = {}
    for edge in edges:
        is_only = sum(other.giver is edge.giver for other in edges) == 1
        if edge.source is OUTSIDE or edge.target is not OUTSIDE or not is_only:
            continue
        for index, result in enumerate(edge.receivers):
            taken[edge.giver, edge.first + index] = result
    return taken
