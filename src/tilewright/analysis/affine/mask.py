"""What a mask lets through: along each dimension the indices between two bounds.

A mask is taken apart into the parts that all have to hold. A comparison whose sides differ by a
number that moves along one dimension alone, by an integer from index to index, is a bound of that
dimension; one that moves nowhere is a condition of the whole tile. What is neither stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.along import total
from tilewright.analysis.affine.expression import ONE, Expression, integer
from tilewright.analysis.affine.scalars import Scalars
from tilewright.analysis.affine.tile import AffineTile
from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.analysis.reshapes import split_groups
from tilewright.analysis.strides import ADDRESS_BITS
from tilewright.ir.op import ViewOp
from tilewright.ir.types import is_integer, shape_of, width_bits
from tilewright.ops.creation.ir import ConstantOp, SplatOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.comparisons import NEGATED, CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.shape.ir import ReshapeOp
from tilewright.support.dataclass import dataclass
from tilewright.support.worklist import once

Places = tuple[int | None, ...]
"""For each dimension of a part of a mask, the one of the mask that it lies along, if any."""
# The comparison of a difference with 0 that each predicate is, and that of the negated one.
_SIGNED = frozenset(("slt", "sle", "sgt", "sge"))
_TURNED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}
_WIDE_BITS = 64


@dataclass(frozen=True)
class Bound:
    """Indices along `dim` below `limit`, or, for a lower bound, from `limit` on."""

    dim: int
    limit: Expression
    is_upper: bool


@dataclass(frozen=True)
class Choice:
    """Indices along `dim` at which the vector `value` of i1 holds, or, negated, does not."""

    dim: int
    value: SSAValue
    is_negated: bool


@dataclass
class MaskForm:
    """The parts of a mask: a tile's element is accessed where all of them hold.

    `positive` are numbers that have to be more than 0, `conditions` scalars that have to hold, and
    `opaque` the parts, each a tile of i1, that nothing is known of. Those of them that lie along
    one dimension are `choices` as well.
    """

    bounds: list[Bound] = field(default_factory=list)
    positive: list[Expression] = field(default_factory=list)
    conditions: list[SSAValue] = field(default_factory=list)
    opaque: list[SSAValue] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)


@dataclass(frozen=True)
class _Part:
    value: SSAValue
    places: Places
    is_negated: bool = False


def mask_form(tiles: AffineTiles, scalars: Scalars, mask: SSAValue | None) -> MaskForm:
    """The parts of a mask; none for an access without one."""
    return _Reader(tiles, scalars).read(mask)


class _Reader:
    """Takes one mask apart."""

    def __init__(self, tiles: AffineTiles, scalars: Scalars) -> None:
        self._tiles, self._scalars = tiles, scalars
        self._form = MaskForm()

    def read(self, mask: SSAValue | None) -> MaskForm:
        if mask is None:
            return self._form
        if not shape_of(mask.type):
            self._form.conditions.append(mask)
            return self._form
        pending = [_Part(mask, tuple(range(len(shape_of(mask.type)))))]
        for part in once(pending):
            op = part.value.op if isinstance(part.value, OpResult) else None
            rule = None if op is None else _RULES.get(type(op))
            inner = None if op is None or rule is None else rule(self, op, part)
            if isinstance(op, ViewOp) and rule is None:
                inner = self.view(op, part)
            if inner is None:
                self._leave(part)
            else:
                pending += reversed(inner)
        return self._form

    def _leave(self, part: _Part) -> None:
        """Note a part that is no bound."""
        self._form.opaque.append(part.value)
        if len(part.places) == 1 and part.places[0] is not None:
            self._form.choices.append(Choice(part.places[0], part.value, part.is_negated))

    def constant(self, op: Operation, part: _Part) -> list[_Part] | None:
        """All true says nothing."""
        assert isinstance(op, ConstantOp)
        return [] if bool(op.splat_value()) is not part.is_negated else None

    def splat(self, op: Operation, part: _Part) -> list[_Part] | None:
        """One scalar for the whole tile."""
        if part.is_negated:
            return None
        self._form.conditions.append(op.operands[0])
        return []

    def conjunction(self, op: Operation, part: _Part) -> list[_Part] | None:
        """a & b; not (a | b) is the same of what is negated."""
        wants_or = type(op) is ELEMENTWISE["arith.ori"]
        if wants_or is not part.is_negated:
            return None
        return [_Part(side, part.places, part.is_negated) for side in op.operands]

    def negation(self, op: Operation, part: _Part) -> list[_Part] | None:
        """x ^ true."""
        for side, other in (op.operands, op.operands[::-1]):
            made = other.op if isinstance(other, OpResult) else None
            if type(made) is ConstantOp and made.splat_value():
                return [_Part(side, part.places, not part.is_negated)]
        return None

    def comparison(self, op: Operation, part: _Part) -> list[_Part] | None:
        """A bound of one dimension, or a condition of the whole tile."""
        assert isinstance(op, CmpIOp)
        predicate, bits = op.predicate_name(), width_bits(op.lhs.type)
        if predicate not in _SIGNED or not is_integer(op.lhs.type) or bits < ADDRESS_BITS:
            return None
        predicate = NEGATED[predicate] if part.is_negated else predicate
        left, right = self._tiles.of(op.lhs), self._tiles.of(op.rhs)
        difference = _difference(left, right)
        start = difference.start()
        if start is None:
            return None
        start = self._scalars.resolve(start)
        start = start if bits == _WIDE_BITS else start.assumed()
        if shape_of(op.lhs.type) == (1,) and part.places[0] is not None:
            # The one index is 0, whichever step there is.
            return [] if self._add(part.places[0], start, 1, predicate) else None
        return [] if self._bound(difference, start, predicate, part.places) else None

    def _bound(
        self, difference: AffineTile, start: Expression, predicate: str, places: Places
    ) -> bool:
        """Note what `start + step · i`, compared with 0, demands; whether that could be said."""
        moving = [d for d, along in enumerate(difference.dims) if not along.is_still()]
        if not moving:
            self._form.positive.append(_positive(start, predicate))
            return True
        along = difference.dims[moving[0]]
        place = places[moving[0]]
        step = None if along.stride is None else along.stride.as_int()
        if len(moving) > 1 or not along.is_linear() or place is None or step is None:
            return False
        return self._add(place, start, step, predicate)

    def _add(self, dim: int, start: Expression, step: int, predicate: str) -> bool:
        if step < 0:
            start, step, predicate = start.scaled(-1), -step, _TURNED[predicate]
        limit = start.scaled(-1).divided_by(integer(step))
        if limit is None:
            return False
        if predicate in ("sle", "sgt"):
            limit = limit.plus(ONE)
        self._form.bounds.append(Bound(dim, limit, predicate in ("slt", "sle")))
        return True

    def same(self, op: Operation, part: _Part) -> list[_Part]:
        """The same elements."""
        return [_Part(op.operands[0], part.places, part.is_negated)]

    def view(self, op: ViewOp, part: _Part) -> list[_Part]:
        """Elements at other indices; a dimension that is repeated lies along none of the mask's."""
        before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
        pairs = zip(op.source_dims(), before, strict=True)
        places = tuple(part.places[d] if after[d] == size else None for d, size in pairs)
        return [_Part(op.operands[0], places, part.is_negated)]

    def reshaped(self, op: Operation, part: _Part) -> list[_Part] | None:
        """Dimensions of one element come and go."""
        before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
        groups = split_groups(before, after)
        if groups is None or any(len(targets) != 1 for _, targets in groups):
            return None
        places: list[int | None] = [None] * len(before)
        for dim, ((target, _),) in groups:
            places[dim] = part.places[target]
        return [_Part(op.operands[0], tuple(places), part.is_negated)]


def _difference(left: AffineTile, right: AffineTile) -> AffineTile:
    dims = tuple(a.plus(b, -1) for a, b in zip(left.dims, right.dims, strict=True))
    return AffineTile(dims, total(left.rest, right.rest, -1))


def _positive(number: Expression, predicate: str) -> Expression:
    """The number that is more than 0 where `number` compares so with 0."""
    turned = number if predicate in ("sgt", "sge") else number.scaled(-1)
    return turned if predicate in ("sgt", "slt") else turned.plus(ONE)


_Rule = Callable[[_Reader, Operation, _Part], Sequence[_Part] | None]
_RULES: dict[type[Operation], _Rule] = {
    ConstantOp: _Reader.constant,
    SplatOp: _Reader.splat,
    ELEMENTWISE["arith.andi"]: _Reader.conjunction,
    ELEMENTWISE["arith.ori"]: _Reader.conjunction,
    ELEMENTWISE["arith.xori"]: _Reader.negation,
    CmpIOp: _Reader.comparison,
    HintOp: _Reader.same,
    ReshapeOp: _Reader.reshaped,
}
