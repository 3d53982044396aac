"""Axis facts of comparisons and of choices by them."""

from __future__ import annotations

from math import gcd

from xdsl.ir import Operation

from tilewright.analysis.axis import Facts, in_equal_groups, of_both, power_of_two, shared_groups
from tilewright.analysis.axis_table import AXIS_RULES, Operands, joint_constancy, may_wrap
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import SelectOp


@AXIS_RULES.register(SelectOp)
def _select(op: Operation, operands: Operands) -> Facts:
    """One side or the other for as many elements as the condition keeps its value."""
    condition, left, right = operands
    kept = joint_constancy(left.extents, (condition,))
    shared = zip(kept, shared_groups(left, right), strict=True)
    return of_both(left, right, ((s, gcd(most, length)) for most, (s, length) in shared))


_BELOW = frozenset({"slt", "sge", "ult", "uge"})
"""Comparisons of a run with a bound that change at the bound itself."""


_MIRRORED = {
    "slt": "sgt",
    "sgt": "slt",
    "sle": "sge",
    "sge": "sle",
    "ult": "ugt",
    "ugt": "ult",
    "ule": "uge",
    "uge": "ule",
}


@AXIS_RULES.register(CmpIOp)
def _comparison(op: Operation, operands: Operands) -> Facts:
    """A mask keeps its value where its sides move alike, or a run does not meet the bound."""
    assert isinstance(op, CmpIOp)
    left, right = operands
    predicate = op.predicate_name()
    wraps = predicate[0] == "u" or may_wrap(op.operands[0].type)
    lengths = tuple(
        max(
            length if stride == 0 or (stride == 1 and not wraps) else 1,
            _beside_bound(left, right, predicate, d),
            _beside_bound(right, left, _MIRRORED.get(predicate, ""), d),
        )
        for d, (stride, length) in enumerate(shared_groups(left, right))
    )
    return in_equal_groups(left.extents, lengths)


def _beside_bound(run: Facts, bound: Facts, predicate: str, dim: int) -> int:
    """The length of groups of a run that lie on one side of equal bounds."""
    if predicate in _BELOW:
        divisor = bound.divisor()
    elif predicate in _MIRRORED and bound.constant is not None:
        divisor = power_of_two(bound.constant + 1)  # x <= c is x < c + 1
    else:
        return 1
    return gcd(min(run.aligned_run(dim), divisor), bound.runs[dim].equal())
