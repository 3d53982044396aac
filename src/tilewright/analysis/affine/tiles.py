"""What every tile of integers and pointers of a program holds, computed once per value.

tiles = AffineTiles()
tiles.of(pointers).dims[1].stride     # how the pointers change along dimension 1
tiles.strides(pointers)               # the strides alone, one per dimension

Nothing is known here of scalars but their names, and of tiles that control flow hands on; that is
found by going over a whole function (`analysis.facts`), by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import OpResult, SSAValue

from tilewright.analysis.affine.along import Lookup
from tilewright.analysis.affine.expression import ONE, ZERO, Expression, integer, symbol
from tilewright.analysis.affine.rules import arithmetic, casts, choices, quotients, shapes
from tilewright.analysis.affine.rules.table import RULES, Rule, Tiles, where_equal
from tilewright.analysis.affine.tile import (
    AffineTile,
    Strides,
    constant_tile,
    kind_of,
    uniform_tile,
    unknown,
)
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import is_integer, is_pointer, shape_of
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.ir import ExtSIOp
from tilewright.support.dataclass import replace
from tilewright.support.rules import RuleTable
from tilewright.support.worklist import needed_first

# Imported for the rules that they register.
REGISTERED = (arithmetic, casts, choices, quotients, shapes)


class AffineTiles:
    """Affine forms of integer and pointer tiles.

    *Constraints*: the program does not change while it is asked.
    """

    def __init__(self) -> None:
        self._found: dict[SSAValue, AffineTile] = {}

    def of(self, value: SSAValue) -> AffineTile:
        """What is known of a tile; a scalar is a tile without dimensions."""
        found = self._found.get(value)
        if found is not None:
            return found
        if not shape_of(value.type):
            return tile_of_scalar(value)
        for needed in needed_first(value, _tile_operands, self._found.__contains__):
            self._found[needed] = computed(self.of, needed)
        return self._found[value]

    def strides(self, value: SSAValue) -> Strides:
        """One stride per dimension of `value`; None where it is general."""
        return self.of(value).strides


def _tile_operands(value: SSAValue) -> Sequence[SSAValue]:
    """What a tile is computed from: the tiles that an op without regions takes."""
    if not isinstance(value, OpResult) or value.op.regions:
        return ()
    return [operand for operand in value.op.operands if shape_of(operand.type)]


def computed(tiles: Tiles, value: SSAValue, rules: RuleTable[Rule] = RULES) -> AffineTile:
    """What is known of a value by the rule of its op; `tiles` knows what it is computed from."""
    op = value.op if isinstance(value, OpResult) else None
    if op is None or op.regions:
        return named(value, unknown(kind_of(value.type)))
    rule = rules.find(type(op))
    if rule is not None:
        return named(value, rule(tiles, op))
    if isinstance(op, ElementwiseOp) and op.operands:
        return named(value, where_equal(tiles, op))
    return named(value, unknown(kind_of(value.type)))


def named(value: SSAValue, tile: AffineTile) -> AffineTile:
    """A scalar that is no known integer is itself; a vector that is not affine is looked up."""
    if not tile.dims:
        if tile.constant is not None:
            return tile
        rest, base = leaf_of(value)
        return AffineTile(
            (), rest, base, tile.kind, tile.divisors, tile.divisor, tile.is_nonnegative
        )
    if len(tile.dims) != 1 or not is_integer(value.type):
        return tile
    along = tile.dims[0]
    if along.is_still() or along.form is not None or along.is_linear():
        return tile
    looked_up = replace(along, start=ZERO, form=Lookup(value, ONE))
    return replace(tile, dims=(looked_up,), rest=ZERO, base=None)


def tile_of_scalar(value: SSAValue) -> AffineTile:
    """A scalar as a tile without dimensions."""
    rest, base = leaf_of(value)
    kind, number = kind_of(value.type), None if rest is None else rest.as_int()
    if number is None or base is not None:
        return uniform_tile(kind, rest, base=base)
    return constant_tile(kind, number)


def leaf_of(value: SSAValue) -> tuple[Expression | None, SSAValue | None]:
    """A scalar that is not taken apart, and its base: what it was sign-extended from, a symbol."""
    if is_pointer(value.type):
        return ZERO, value
    while isinstance(value, OpResult) and type(value.op) is ExtSIOp:
        value = value.op.operands[0]
    number = constant_of(value)
    if number is not None:
        return (integer(number) if isinstance(number, int) else None), None
    return (symbol(value) if is_integer(value.type) else None), None
