"""Scalars taken apart: sums and products down to arguments, program ids and loops' counters.

A quotient that leaves a rest, a remainder, a minimum, a loaded number: what is no sum or product is
a symbol of its own. A number that a loop carries and moves by the same amount in every iteration is
its first value plus that amount times the iterations so far; with c the counter that goes from `lb`
by `s`,

    carried = first + (step / s) · (c - lb)        where s divides the step

Sums of fewer than 64 bits are taken not to overflow and marked as assumed; those of fewer than 32
bits are symbols, because programs let them wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import Expression, symbol
from tilewright.analysis.affine.tiles import leaf_of
from tilewright.analysis.strides import ADDRESS_BITS
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Counter, counter_of
from tilewright.ir.types import is_integer, shape_of, width_bits
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp, IndexCastOp
from tilewright.support.dataclass import dataclass
from tilewright.support.worklist import needed_first

_WIDE_BITS = 64
_MAX_SHIFT = 63


class Scalars:
    """Integers of a program as expressions over what cannot be taken apart.

    *Constraints*: the program does not change while it is asked.
    """

    def __init__(self) -> None:
        self._found: dict[SSAValue, Expression] = {}
        self._carried: dict[SSAValue, Expression | None] = {}

    def of(self, value: SSAValue) -> Expression:
        """A scalar integer, carried numbers by their loop's counter."""
        return self._without_carried(self._sums(value))

    def resolve(self, expression: Expression) -> Expression:
        """An expression with each of its scalars taken apart."""
        return substituted(expression, self.of)

    def _without_carried(self, expression: Expression) -> Expression:
        if not any(isinstance(value, BlockArgument) for value in expression.symbols()):
            return expression
        return substituted(expression, self._by_counter)

    def _sums(self, value: SSAValue) -> Expression:
        """A scalar taken apart as far as its sums and products go."""
        for needed in needed_first(value, _summands, self._found.__contains__):
            self._found[needed] = self._compute(needed)
        return self._found[value]

    def _compute(self, value: SSAValue) -> Expression:
        op = value.op if isinstance(value, OpResult) else None
        rule = None if op is None else _RULES.get(type(op))
        if op is None or rule is None or width_bits(value.type) < ADDRESS_BITS:
            return _leaf(value)
        operands = [self._found[operand] for operand in op.operands]
        if type(op) is _MULTIPLY and operands[0].is_large_with(operands[1]):
            return symbol(value)
        found = rule(value, operands)
        if found.is_large():
            return symbol(value)
        is_narrow = type(op) not in _SAME and width_bits(value.type) < _WIDE_BITS
        return found.assumed() if is_narrow and found.as_int() is None else found

    def _by_counter(self, value: SSAValue) -> Expression:
        """A carried number by the counter of its loop; any other scalar as it is."""
        if value not in self._carried:
            self._carried[value] = None
            self._carried[value] = self._compute_by_counter(value)
        return self._carried[value] or symbol(value)

    def _compute_by_counter(self, value: SSAValue) -> Expression | None:
        carried = carried_by(value)
        step = None if carried is None else self.step(value)
        if carried is None or step is None:
            return None
        counter = carried.counter
        each = step.divided_by(self.of(counter.step))
        if each is None:
            return None
        so_far = symbol(counter.value).minus(self.of(counter.start))
        total = self.of(carried.first).plus(each.times(so_far))
        return total if width_bits(value.type) == _WIDE_BITS else total.assumed()

    def step(self, value: SSAValue) -> Expression | None:
        """What each iteration adds to a loop's counter or a carried number.

        None where that is not the same in every iteration, and for any other value.
        """
        loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
        counter, carried = counter_of(loop), carried_by(value)
        if counter is not None and value is counter.value:
            return self.of(counter.step)
        if loop is None or carried is None or not is_integer(value.type) or shape_of(value.type):
            return None
        step = self._without_carried(self._sums(carried.following).minus(symbol(value)))
        return step if all(is_outside(scalar, loop) for scalar in step.symbols()) else None


@dataclass(frozen=True)
class Carried:
    """A number that a loop with a counter carries: its first value, and the one that follows."""

    counter: Counter
    first: SSAValue
    following: SSAValue


def carried_by(value: SSAValue) -> Carried | None:
    """What is known of a number that a loop with a counter carries; None of any other value."""
    loop = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    counter = counter_of(loop)
    if counter is None or value is counter.value or not isinstance(loop, ControlFlowOp):
        return None
    given: dict[bool, list[SSAValue]] = {False: [], True: []}
    for edge in loop.edges():
        for handed, receiver in zip(edge.values, edge.receivers, strict=True):
            if receiver is value:
                given[edge.source is not OUTSIDE].append(handed)
    if len(given[False]) != 1 or len(given[True]) != 1:
        return None
    return Carried(counter, given[False][0], given[True][0])


def substituted(expression: Expression, by: Callable[[SSAValue], Expression]) -> Expression:
    """An expression with an equal expression in place of each scalar, where it stays small."""
    total = Expression((), expression.is_assumed)
    for coefficient, factors in expression.terms:
        term = Expression(((coefficient, ()),))
        for factor in factors:
            found = by(factor)
            term = term.times(symbol(factor) if term.is_large_with(found) else found)
        total = total.plus(term)
    return expression if total.is_large() else total


def is_outside(value: SSAValue, op: Operation) -> bool:
    """Whether a value is made outside of the regions of an op."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None:
        around = block.parent_op()
        if around is op:
            return False
        block = None if around is None else around.parent
    return True


def _leaf(value: SSAValue) -> Expression:
    """A scalar that is not taken apart: what it is widened from, or an integer."""
    return leaf_of(value)[0] or symbol(value)


def _summands(value: SSAValue) -> Sequence[SSAValue]:
    """The scalars of which a scalar is a sum, a product or a copy."""
    op = value.op if isinstance(value, OpResult) else None
    if op is None or type(op) not in _RULES or shape_of(value.type):
        return ()
    return op.operands


_Rule = Callable[[SSAValue, Sequence[Expression]], Expression]


def _shifted(value: SSAValue, operands: Sequence[Expression]) -> Expression:
    count = operands[1].as_int()
    if count is None or not 0 <= count < _MAX_SHIFT:
        return symbol(value)
    return operands[0].scaled(1 << count)


def _quotient(value: SSAValue, operands: Sequence[Expression]) -> Expression:
    """x / d with an integer d that divides every term of x, unless sums in x overflowed."""
    dividend, divisor = operands
    by = divisor.as_int()
    exact = None if by is None or by < 1 else dividend.divided_by(divisor)
    return symbol(value) if exact is None else exact.assumed()


_MULTIPLY = ELEMENTWISE["arith.muli"]
_SAME = (ExtSIOp, IndexCastOp, HintOp)
_RULES: dict[type[Operation], _Rule] = {
    **dict[type[Operation], _Rule].fromkeys(_SAME, lambda _, operands: operands[0]),
    ELEMENTWISE["arith.addi"]: lambda _, operands: operands[0].plus(operands[1]),
    ELEMENTWISE["arith.subi"]: lambda _, operands: operands[0].minus(operands[1]),
    _MULTIPLY: lambda _, operands: operands[0].times(operands[1]),
    ELEMENTWISE["arith.shli"]: _shifted,
    ELEMENTWISE["arith.divsi"]: _quotient,
}
