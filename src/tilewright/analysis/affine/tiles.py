"""What every tile of integers and pointers of a program holds, computed once per value.

tiles = AffineTiles()
tiles.of(pointers).dims[1].stride     # how the pointers change along dimension 1
tiles.strides(pointers)               # the strides alone, one per dimension
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import OpResult, SSAValue

from tilewright.analysis.affine.expression import ONE, ZERO
from tilewright.analysis.affine.rules import compute, tile_of_scalar
from tilewright.analysis.affine.tile import AffineTile, Along, Lookup, Strides, in_type
from tilewright.ir.types import is_integer, shape_of
from tilewright.support.worklist import needed_first


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
            self._found[needed] = self._compute(needed)
        return self._found[value]

    def strides(self, value: SSAValue) -> Strides:
        """One stride per dimension of `value`; None where it is general."""
        return self.of(value).strides

    def _compute(self, value: SSAValue) -> AffineTile:
        shape = shape_of(value.type)
        return _looked_up(value, in_type(compute(self.of, value), shape, value.type))


def _tile_operands(value: SSAValue) -> Sequence[SSAValue]:
    """What a tile is computed from: the tiles that an op without regions takes."""
    if not isinstance(value, OpResult) or value.op.regions:
        return ()
    return [operand for operand in value.op.operands if shape_of(operand.type)]


def _looked_up(value: SSAValue, tile: AffineTile) -> AffineTile:
    """A vector of integers that is not affine is looked up in itself."""
    if len(tile.dims) != 1 or not is_integer(value.type):
        return tile
    along = tile.dims[0]
    if along.is_still() or along.form is not None or along.is_linear():
        return tile
    return AffineTile((Along(along.stride, ZERO, Lookup(value, ONE)),))
