"""The table of rules for tiles, and what several of them ask.

Sums, products and truncations wrap as they do in the program, so that strides and steps are exact
modulo the width of the value's type. Widening is what breaks it: 250, 251, … 255, 0 has stride 1 in
8 bits, but not in 32. A widened stride jumps, then, and only aligned runs stay; that of a signed
value of ADDRESS_BITS and more is *assumed* not to. What counts on divisors asks for numbers that
are not negative, where the sign would show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.analysis.affine.along import Along, in_groups
from tilewright.analysis.affine.expression import ZERO, Expression
from tilewright.analysis.affine.tile import AffineTile, Kind, kind_of, least_of, made
from tilewright.analysis.strides import ADDRESS_BITS
from tilewright.ir.types import width_bits
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.rules import RuleTable

Tiles = Callable[[SSAValue], AffineTile]
"""What is known of a value: of every operand, and of what these were computed from."""
Rule = Callable[[Tiles, Operation], AffineTile]
"""From an op to what is known of each of its results, which differ in nothing that it knows."""
RULES: RuleTable[Rule] = RuleTable("tiles")


@RULES.register(LoadOp)
def where_equal(tiles: Tiles, op: Operation) -> AffineTile:
    """Equal elements where those of every operand are; scalar operands always are."""
    return equal_tile(tiles, op, 1)


def equal_tile(
    tiles: Tiles, op: Operation, divisor: int, *, is_nonnegative: bool = False
) -> AffineTile:
    """Multiples of a number that are equal where those of every operand are."""
    kind = kind_of(op.results[0].type)
    dims = equal_dims(kind, map(tiles, op.operands))
    return made(kind, dims, None, divisor, is_nonnegative=is_nonnegative)


def equal_dims(kind: Kind, operands: Iterable[AffineTile]) -> list[Along]:
    """Dimensions with equal elements in groups in which every operand has them."""
    tiles = [tile for tile in operands if tile.dims]
    return [
        _equal([tile.dims[dim] for tile in tiles], extent) for dim, extent in enumerate(kind.shape)
    ]


def _equal(sides: list[Along], extent: int) -> Along:
    if all(along.is_still() for along in sides):
        return in_groups(extent, extent)
    return Along(None, None, None, ZERO, gcd(*(along.equal() for along in sides)))


def shared_dims(left: AffineTile, right: AffineTile) -> list[Along]:
    """Dimensions with the groups in which both go by the same step."""
    pairs = zip(left.dims, right.dims, strict=True)
    return [Along(None, None, None, *a.shared_with(b)) for a, b in pairs]


def of_both(
    kind: Kind,
    left: AffineTile,
    right: AffineTile,
    dims: Iterable[Along],
    rest: Expression | None = None,
    *,
    base: SSAValue | None = None,
    is_nonnegative: bool | None = None,
) -> AffineTile:
    """A tile of multiples of what divides two; not negative, unless told, as both are."""
    if is_nonnegative is None:
        is_nonnegative = left.is_nonnegative and right.is_nonnegative
    return made(
        kind,
        dims,
        rest,
        least_of(left, right),
        base=base,
        is_nonnegative=is_nonnegative,
    )


def wrapped(value: int, bits: int) -> int:
    """An integer as so many bits hold it, signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def may_wrap(type_: Attribute) -> bool:
    """Whether arithmetic in a type wraps in programs that use it for indices."""
    return width_bits(type_) < ADDRESS_BITS
