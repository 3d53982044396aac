"""What a launch has to keep to so that a loop of another form counts the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import Expression
from tilewright.analysis.affine.guards import Demand, Guard
from tilewright.ir.locations import describe
from tilewright.ir.types import i1, i32
from tilewright.ops.control_flow import IfOp
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.ir import ELEMENTWISE, SelectOp
from tilewright.ops.program.ir import GetNumProgramsOp, GetProgramIdOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.runtime.launch_numbers import LaunchGuard
from tilewright.targets.nvidia.tma.launch_conditions import launch_guard

_ADD, _SUBTRACT, _MULTIPLY, _EXTEND = (
    ELEMENTWISE[f"arith.{name}"] for name in ("addi", "subi", "muli", "extui")
)
_HIGHEST = (1 << 31) - 1
"""By definition: the last number of i32."""


class Sums:
    """Scalars of i32 as sums of products, modulo 2^32.

    What asks a launch for one number, wherever it stands, is one symbol: the first that was met.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[type[Operation], str], SSAValue] = {}
        self._known: dict[SSAValue, Expression] = {}

    def of(self, value: SSAValue) -> Expression:
        """A scalar taken apart as far as it is added, subtracted and multiplied."""
        if value not in self._known:
            self._known[value] = self._of(value)
        return self._known[value]

    def _of(self, value: SSAValue) -> Expression:
        number = constant_of(value)
        if isinstance(number, int):
            return integer(number)
        op = value.op if isinstance(value, OpResult) else None
        if isinstance(op, _ADD | _SUBTRACT | _MULTIPLY):
            left, right = map(self.of, op.operands)
            is_product = isinstance(op, _MULTIPLY)
            if not is_product and not left.is_large() and not right.is_large():
                return left.plus(right, 1 if isinstance(op, _ADD) else -1)
            if is_product and not left.is_large_with(right):
                return left.times(right)
        return Expression(((1, (self._symbol(value),)),))

    def _symbol(self, value: SSAValue) -> SSAValue:
        op = _asking(value)
        return value if op is None else self._asked.setdefault((type(op), str(op.axis)), value)


def _asking(value: SSAValue) -> GetNumProgramsOp | GetProgramIdOp | None:
    """The op that asks for the program's number or for how many there are."""
    op = value.owner
    return op if isinstance(op, GetNumProgramsOp | GetProgramIdOp) else None


def chosen(value: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue] | None:
    """A condition, what a value is where it holds, and what otherwise; None for no choice."""
    if not isinstance(value, OpResult):
        return None
    if isinstance(value.op, SelectOp):
        condition, one, other = value.op.operands
        return condition, one, other
    if not isinstance(value.op, IfOp):
        return None
    one, other = (region.block.last_op for region in value.op.regions)
    assert one is not None and other is not None
    return value.op.cond, one.operands[value.index], other.operands[value.index]


def one_more(count: SSAValue, sums: Sums) -> tuple[SSAValue, SSAValue] | None:
    """A number and a condition, of which a count is the first, and one more where it holds."""
    found = chosen(count)
    if found is not None and sums.of(found[1]).minus(sums.of(found[2])).as_int() == 1:
        return found[2], found[0]
    if not isinstance(count, OpResult) or not isinstance(count.op, _ADD):
        return None
    for number, more in (count.op.operands, reversed(count.op.operands)):
        if isinstance(more.owner, _EXTEND) and more.owner.operands[0].type == i1:
            return number, more.owner.operands[0]
        found = chosen(more)
        if found is not None and tuple(map(constant_of, found[1:])) == (1, 0):
            return number, found[0]
    return None


def integer(number: int) -> Expression:
    """An integer as an expression."""
    return Expression(((number, ()),) if number else ())


def emit(expression: Expression, make: TileBuilder) -> SSAValue:
    """The ops that compute a sum of products; a symbol alone is itself.

    What asks for the launch's numbers is asked again.
    """
    return make.sum_of(expression.terms, lambda symbol: _again(symbol, make))


def _again(symbol: SSAValue, make: TileBuilder) -> SSAValue:
    op = _asking(symbol)
    return symbol if op is None else make.emit(type(op), (), i32, {"axis": op.axis})


def is_seen_from(expression: Expression, op: Operation) -> bool:
    """Whether every symbol is a scalar of i32 that is there where `op` stands, outside of it."""
    around, block = set[Block | None](), op.parent
    while block is not None:
        around.add(block)
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return all(
        symbol.type == i32 and (_asking(symbol) is not None or _block_of(symbol) in around)
        for symbol in expression.symbols()
    )


def _block_of(value: SSAValue) -> Block | None:
    return value.owner.parent if isinstance(value.owner, Operation) else value.owner


def guards_of(loop: Operation, demands: Sequence[Guard]) -> list[LaunchGuard] | None:
    """The demands as a launch tests them; None where it cannot, or where one never holds."""
    text = f"{describe(loop)} counts in 32 bits"
    guards: list[LaunchGuard] = []
    for demand in demands:
        known = demand.number.as_int()
        if known is not None:
            is_least = demand.demand is Demand.AT_LEAST
            if not (known >= demand.bound if is_least else known <= demand.bound):
                return None
            continue
        guard = launch_guard(demand, text)
        if guard is None:
            return None
        guards.append(guard)
    return guards


def counts_within(end: Expression, step: Expression) -> list[Guard]:
    """That a counter below `end` takes positive steps, and none past the last number."""
    return [
        Guard(step, Demand.AT_LEAST, 1),
        Guard(end.plus(step), Demand.AT_MOST, _HIGHEST),
        *is_number(end),
        *is_number(step),
    ]


def is_number(expression: Expression) -> list[Guard]:
    """That a sum of products is a number of i32, so that none of it matters that wraps."""
    if [(coefficient, len(factors)) for coefficient, factors in expression.terms] == [(1, 1)]:
        return []
    return [
        Guard(expression, Demand.AT_LEAST, -_HIGHEST - 1),
        Guard(expression, Demand.AT_MOST, _HIGHEST),
    ]
