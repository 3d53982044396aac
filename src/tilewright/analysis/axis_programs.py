"""Numbers of programs that count from the last one: `num_programs(0) - 1 - program_id(0)`.

Attention under a mask takes its longest blocks first so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.program.ir import GetNumProgramsOp, GetProgramIdOp

_SIGNS: Mapping[type[Operation], int] = {
    ELEMENTWISE["arith.addi"]: 1,
    ELEMENTWISE["arith.subi"]: -1,
}
_OF_GRID = (GetProgramIdOp, GetNumProgramsOp)
# By definition: two programs, a constant, and one more.
_MOST_NESTED = 3
_Term = tuple[type[Operation], int] | None
"""A number of the grid along an axis, or None for one."""


def is_counted_from_the_last(value: SSAValue) -> bool:
    """Whether a scalar is how many programs follow along an axis, or more: never negative.

    *Semantics*: num_programs(axis) - program_id(axis) + c with c >= -1, in any order.
    """
    terms = _terms(value, _MOST_NESTED)
    if terms is None or terms.pop(None, 0) < -1 or len(terms) != 2:
        return False
    return any(
        terms.get((GetNumProgramsOp, axis)) == 1 and terms.get((GetProgramIdOp, axis)) == -1
        for _, axis in filter(None, terms)
    )


def _terms(value: SSAValue, nested: int) -> Counter[_Term] | None:
    """How often a sum holds each number of the grid, and one; None for a sum of anything else."""
    number, op = constant_of(value), value.owner
    if isinstance(number, int):
        return Counter({None: number})
    if not isinstance(op, Operation):
        return None
    axis = op.properties.get("axis")
    if type(op) in _OF_GRID and isinstance(axis, IntegerAttr):
        return Counter({(type(op), axis.value.data): 1})
    if type(op) not in _SIGNS or not nested:
        return None
    left, right = (_terms(operand, nested - 1) for operand in op.operands)
    if left is None or right is None:
        return None
    for term, count in right.items():
        left[term] += _SIGNS[type(op)] * count
    return left
