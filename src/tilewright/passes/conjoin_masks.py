"""Writes masks as conjunctions of comparisons (T0 to T0).

    ~(i >= n | j >= m), (i >= n | j >= m) == 0, where(i < n, j < m, False), where(…, 1, 0) == 1
    ⇒ i < n & j < m

Why: what reads a mask, to run a loop's full chunks without it or to end a loop early, reads
comparisons and their conjunctions. Of floats a comparison keeps its negation, as NaN has none.
Requires and produces T0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.edits import erase_unused, insert_before
from tilewright.ir.op import ViewOp
from tilewright.ir.passes import Pass
from tilewright.ir.types import element_of, i1, i64, shape_of
from tilewright.ops.creation.ir import splatted_constant
from tilewright.ops.elementwise.comparisons import INTEGER_PREDICATES, NEGATED, CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, SelectOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass
from tilewright.support.deep_calls import with_room

_OR, _XOR, _EXTEND = (ELEMENTWISE[f"arith.{name}"] for name in ("ori", "xori", "extui"))
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}


@dataclass(frozen=True)
class ConjoinMasks(Pass):
    """The pass; see the module."""

    name = "conjoin-masks"

    def apply(self, module: ModuleOp) -> None:
        """Rewrite what is true or false in every function of a module, operands first."""
        replaced: list[Operation] = []
        for op in tuple(module.walk()):
            type_ = op.results[0].type if len(op.results) == 1 else None
            if type_ is None or element_of(type_) != i1 or not shape_of(type_):
                continue
            value = with_room(lambda op=op: _Writer(op).simpler())
            if value is not None:
                op.results[0].replace_all_uses_with(value)
                replaced.append(op)
        for op in reversed(replaced):
            erase_unused(op)


class _Writer:
    """Writes tiles of i1 in front of one op."""

    def __init__(self, op: Operation) -> None:
        self._op = op
        self._out = TileBuilder(op)

    def simpler(self) -> SSAValue | None:
        """What the op computes, as a comparison or with fewer kinds of ops; None: as it is."""
        if isinstance(self._op, SelectOp):
            return self._select(self._op)
        found = _choice_of(self._op)
        if found is None:
            return None
        condition, is_negated = found
        return self._negated(condition) if is_negated else condition

    def _select(self, op: SelectOp) -> SSAValue | None:
        """A choice of which one side is known, by a condition of each element."""
        if op.condition.type != op.result.type:
            return None
        condition, sides = op.condition, [_truth(op.lhs), _truth(op.rhs)]
        if sides in ([True, False], [False, True]):
            return self._negated(condition) if sides[1] else condition
        if sides[1] is False:
            return self._out.binary("andi", condition, op.lhs)
        if sides[0] is True:
            return self._out.binary("ori", condition, op.rhs)
        if sides[0] is False:
            return self._out.binary("andi", self._surely_negated(condition), op.rhs)
        return None

    def _negated(self, value: SSAValue) -> SSAValue | None:
        """What is true where a tile is false, without an op for the negation; else None."""
        op = value.owner
        if isinstance(op, CmpIOp):
            code = INTEGER_PREDICATES.index(NEGATED[op.predicate_name()])
            properties: dict[str, Attribute] = {"predicate": IntegerAttr(code, i64)}
            return self._out.emit(CmpIOp, op.operands, value.type, properties)
        if isinstance(op, _OR):
            return self._out.binary("andi", *map(self._surely_negated, op.operands))
        if isinstance(op, ViewOp) and shape_of(op.operands[0].type):
            inner = self._negated(op.operands[0])
            if inner is None:
                return None
            return insert_before(self._op, op.clone({op.operands[0]: inner})).results[0]
        found = _choice_of(op) if isinstance(op, Operation) else None
        return found[0] if found is not None and found[1] else None

    def _surely_negated(self, value: SSAValue) -> SSAValue:
        found = self._negated(value)
        if found is None:
            found = self._out.binary("xori", value, self._out.constant(value.type, True))
        return found


def _choice_of(op: Operation) -> tuple[SSAValue, bool] | None:
    """A tile of i1 that an op is, and whether negated; None where it is neither."""
    if isinstance(op, CmpIOp):
        return _compared(op)
    if isinstance(op, _XOR):
        for value, other in (op.operands, op.operands[::-1]):
            if _truth(other):
                return value, True
    return None


def _compared(op: CmpIOp) -> tuple[SSAValue, bool] | None:
    """Of a comparison of a constant with one of two numbers."""
    compare, number = _COMPARE.get(op.predicate_name()), splatted_constant(op.rhs)
    found = _numbers_of(op.lhs)
    if compare is None or found is None or not isinstance(number, int):
        return None
    condition, *numbers = found
    if element_of(op.lhs.type) == i1:
        if op.predicate_name() not in ("eq", "ne"):
            return None
        number = int(bool(number))
    where_true, where_false = (compare(each, number) for each in numbers)
    return None if where_true == where_false else (condition, where_false)


def _numbers_of(value: SSAValue) -> tuple[SSAValue, int, int] | None:
    """The condition that an integer depends on, and what it is where that holds, and where not."""
    op = value.owner
    if element_of(value.type) == i1:
        return value, 1, 0
    if isinstance(op, _EXTEND) and element_of(op.operands[0].type) == i1:
        return op.operands[0], 1, 0
    if not isinstance(op, SelectOp) or shape_of(op.condition.type) != shape_of(value.type):
        return None
    one, other = splatted_constant(op.lhs), splatted_constant(op.rhs)
    return (op.condition, one, other) if isinstance(one, int) and isinstance(other, int) else None


def _truth(value: SSAValue) -> bool | None:
    """What a tile of i1 is everywhere, where that is known."""
    number = splatted_constant(value)
    return None if number is None else bool(number)
