"""Whether what lies beyond a bound is ever looked at: the other side of `% M`.

    rows = (pid * 64 + arange) % M;  x = load(a + rows * stride + …);  …;  store(…, mask=rows' < M)

The rows that wrap are loaded so that the load needs no mask. Where every use of theirs ends in a
store that leaves them out, it does not matter what is loaded in their place.

Row r of a product depends on row r of its first operand and on no other, column c on column c of
the second; elementwise ops and views keep elements where they are. What goes through anything else
counts as looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue, Use

from tilewright.analysis.affine.access import Accesses
from tilewright.analysis.affine.expression import Expression
from tilewright.ir.effects import is_free
from tilewright.ir.op import ElementwiseOp, ViewOp
from tilewright.ir.regions import receivers_of
from tilewright.ir.types import shape_of
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import StoreOp

_VALUE = 1


def is_cut_off(accesses: Accesses, value: SSAValue, dim: int, length: Expression) -> bool:
    """Whether no index of `dim` of a tile from `length` on reaches memory or anything else.

    *Constraints*: `length` is resolved, as the bounds of an access are.
    """
    return _Demand(accesses, length).is_cut_off(value, dim)


class _Demand:
    """Follows the elements of one tile."""

    def __init__(self, accesses: Accesses, length: Expression) -> None:
        self._accesses, self._length = accesses, length

    def is_cut_off(self, value: SSAValue, dim: int) -> bool:
        pending, seen = [(value, dim)], {(value, dim)}
        while pending:
            current, along = pending.pop()
            for use in current.uses:
                found = self._reached(use, along)
                if found is None:
                    return False
                new = [place for place in found if place not in seen]
                seen.update(new)
                pending += new
        return True

    def _reached(self, use: Use, dim: int) -> Sequence[tuple[SSAValue, int]] | None:
        """The tiles that an operand's elements go to, and along which dimension; None: anything."""
        op = use.operation
        rule = _RULES.get(type(op))
        if rule is not None:
            return rule(self, op, use.index, dim)
        handed = receivers_of(use)
        if handed:
            return [(receiver, dim) for receiver in handed]
        if isinstance(op, ViewOp):
            return [(op.results[0], op.source_dims()[dim])]
        if isinstance(op, ElementwiseOp) and is_free(op):
            return [(result, dim) for result in op.results]
        return None

    def product(self, op: Operation, index: int, dim: int) -> Sequence[tuple[SSAValue, int]] | None:
        """Rows of a, columns of b, and everything of c stay where they are; K is summed up."""
        rank = len(shape_of(op.results[0].type))
        summed = {0: rank - 1, 1: rank - 2}
        return None if summed.get(index) == dim else [(op.results[0], dim)]

    def store(self, op: Operation, index: int, dim: int) -> Sequence[tuple[SSAValue, int]] | None:
        """What is masked out is not stored."""
        access = self._accesses.of(op) if index == _VALUE else ""
        if isinstance(access, str):
            return None
        beyond = (upper.minus(self._length).as_int() for upper in access.dims[dim].upper)
        return [] if any(number is not None and number <= 0 for number in beyond) else None


_RULES: dict[
    type[Operation],
    Callable[[_Demand, Operation, int, int], Sequence[tuple[SSAValue, int]] | None],
] = {DotOp: _Demand.product, StoreOp: _Demand.store}
