"""What constants, ranges, sums and products are."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation

from tilewright.analysis.affine.along import Along, total
from tilewright.analysis.affine.expression import ZERO, Expression, integer
from tilewright.analysis.affine.rules.casts import sign_extended
from tilewright.analysis.affine.rules.table import (
    RULES,
    Tiles,
    equal_tile,
    may_wrap,
    of_both,
    wrapped,
)
from tilewright.analysis.affine.stride import UNIT
from tilewright.analysis.affine.tile import (
    AffineTile,
    Divisor,
    constant_tile,
    divided,
    kind_of,
    least_of,
    made,
    power_of_two,
    uniform_tile,
)
from tilewright.analysis.axis_conditions import is_known_at_least
from tilewright.analysis.axis_programs import is_counted_from_the_last
from tilewright.ir.types import is_integer
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, UnsplatOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.support.dataclass import replace

_MAX_SHIFT = 62


@RULES.register(ConstantOp)
def _constant(tiles: Tiles, op: Operation) -> AffineTile:
    assert isinstance(op, ConstantOp)
    kind, value = kind_of(op.result.type), op.splat_value()
    if not isinstance(value, int):
        return uniform_tile(kind, None)
    return constant_tile(kind, value) if kind.bits else uniform_tile(kind, integer(value))


@RULES.register(MakeRangeOp)
def _range(tiles: Tiles, op: Operation) -> AffineTile:
    assert isinstance(op, MakeRangeOp)
    start, end = op.start.value.data, op.end.value.data
    first = power_of_two(start)
    return made(
        kind_of(op.result.type),
        [Along(UNIT, integer(start))],
        ZERO,
        lambda dim, run: first if run == end - start else min(first, power_of_two(run)),
        is_nonnegative=start >= 0,
    )


@RULES.register(UnsplatOp)
def _uniform(tiles: Tiles, op: Operation) -> AffineTile:
    source = tiles(op.operands[0])
    kind, number = kind_of(op.results[0].type), source.constant
    if number is not None and kind.bits:
        return constant_tile(kind, number)
    return uniform_tile(kind, None, source.divisor, is_nonnegative=source.is_nonnegative)


@RULES.register(GetProgramIdOp, GetNumProgramsOp, GetGridExtentOp)
def _grid(tiles: Tiles, op: Operation) -> AffineTile:
    return uniform_tile(kind_of(op.results[0].type), None, is_nonnegative=True)


def _folded(
    op: Operation, left: AffineTile, right: AffineTile, function: Callable[[int, int], int]
) -> AffineTile | None:
    """An op on two constants; one-bit integers are left alone."""
    kind = left.kind
    if kind.bits < 2:
        return None
    one, other = left.constant, right.constant
    if one is None or other is None:
        return None
    return constant_tile(kind, wrapped(function(one, other), kind.bits))


@RULES.register(AddPtrOp)
def _offset(tiles: Tiles, op: Operation) -> AffineTile:
    """The offset, a signed number of any width, counts elements."""
    pointer, offset = map(tiles, op.operands)
    return _combined(op, pointer, sign_extended(offset, op.operands[1].type, 64))


@RULES.register(ELEMENTWISE["arith.addi"])
def _sum(tiles: Tiles, op: Operation) -> AffineTile:
    left, right = map(tiles, op.operands)
    folded = _folded(op, left, right, lambda a, b: a + b)
    return _combined(op, left, right) if folded is None else folded


def _combined(op: Operation, left: AffineTile, right: AffineTile) -> AffineTile:
    return made(
        left.kind,
        [a.plus(b) for a, b in zip(left.dims, right.dims, strict=True)],
        total(left.rest, right.rest, 1),
        least_of(left, right, left.kind.unit),
        base=left.base,
        is_nonnegative=_stay_nonnegative(op, left, right),
    )


def _stay_nonnegative(op: Operation, left: AffineTile, right: AffineTile) -> bool:
    """Whether neither the operands of a sum or product nor its result are negative."""
    result = op.results[0].type
    wraps = is_integer(result) and may_wrap(result)
    return left.is_nonnegative and right.is_nonnegative and not wraps


@RULES.register(ELEMENTWISE["arith.subi"])
def _difference(tiles: Tiles, op: Operation) -> AffineTile:
    left, right = map(tiles, op.operands)
    folded = _folded(op, left, right, lambda a, b: a - b)
    if folded is not None:
        return folded
    is_nonnegative = is_counted_from_the_last(op.results[0])
    is_nonnegative = is_nonnegative or is_known_at_least(op, *op.operands)
    dims = [a.plus(b, -1) for a, b in zip(left.dims, right.dims, strict=True)]
    rest = total(left.rest, right.rest, -1)
    return of_both(left.kind, left, right, dims, rest, is_nonnegative=is_nonnegative)


@RULES.register(ELEMENTWISE["arith.muli"])
def _product(tiles: Tiles, op: Operation) -> AffineTile:
    left, right = map(tiles, op.operands)
    folded = _folded(op, left, right, lambda a, b: a * b)
    if folded is not None:
        return folded
    is_nonnegative = _stay_nonnegative(op, left, right)
    for value, other in ((left, right), (right, left)):
        factor = other.uniform()
        if factor is not None and factor.as_int() == 1:
            return value
        scaled = None if factor is None else _scaled(value, factor)
        if scaled is not None:
            found = replace(scaled, is_nonnegative=is_nonnegative)
            return divided(found, _product_of(left, right))
    found = equal_tile(tiles, op, 1, is_nonnegative=is_nonnegative)
    return divided(found, _product_of(left, right))


def _product_of(left: AffineTile, right: AffineTile) -> Divisor:
    return lambda d, run: left.divisor_at(d, run) * right.divisor_at(d, run)


def _scaled(tile: AffineTile, factor: Expression) -> AffineTile | None:
    """The product with one number, without its divisors; None where it would be large."""
    rest = tile.rest
    if rest is not None and rest.is_large_with(factor):
        return None
    if any(along.is_large_with(factor) for along in tile.dims):
        return None
    rest = None if rest is None else rest.times(factor)
    return made(tile.kind, [along.times(factor) for along in tile.dims], rest)


@RULES.register(ELEMENTWISE["arith.shli"])
def _left_shift(tiles: Tiles, op: Operation) -> AffineTile:
    """A product with a power of two."""
    left, right = map(tiles, op.operands)
    is_nonnegative = _stay_nonnegative(op, left, right)
    count = right.constant
    if count == 0:
        return left
    is_power = count is not None and 0 < count < _MAX_SHIFT
    power = 1 << count if count is not None and is_power else 1
    scaled = _scaled(left, integer(power)) if is_power else None
    if scaled is None:
        return equal_tile(tiles, op, left.divisor, is_nonnegative=is_nonnegative)
    found = replace(scaled, is_nonnegative=is_nonnegative)
    return divided(found, lambda d, run: left.divisor_at(d, run) * power)
