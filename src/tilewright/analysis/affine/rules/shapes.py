"""What tiles are whose elements are moved without computing, and what hints add."""

from __future__ import annotations

from math import gcd

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.along import AT_REST, GENERAL, Along
from tilewright.analysis.affine.expression import ZERO, Expression, integer
from tilewright.analysis.affine.rules.table import RULES, Tiles, of_both, shared_dims
from tilewright.analysis.affine.tile import AffineTile, kind_of, made, uniform_tile
from tilewright.analysis.reshapes import matching_groups, split_groups
from tilewright.ir.op import ViewOp
from tilewright.ops.creation.ir import SplatOp
from tilewright.ops.shape.ir import (
    BroadcastOp,
    CatOp,
    ExpandDimsOp,
    FlipOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)
from tilewright.support.dataclass import replace


@RULES.register(BroadcastOp, ExpandDimsOp, SplatOp, TransOp)
def _viewed(tiles: Tiles, op: Operation) -> AffineTile:
    """Elements as they are, at other indices; a new dimension repeats them."""
    assert isinstance(op, ViewOp)
    source = tiles(op.operands[0])
    kind = source.kind.with_shape(op.results[0].type)
    dims, divisors = [AT_REST] * len(kind.shape), [source.divisor] * len(kind.shape)
    for dim, target in enumerate(op.source_dims()):
        dims[target] = source.dims[dim]
        if source.kind.shape[dim] > 1:
            divisors[target] = source.divisors[dim]
    return made(
        kind,
        dims,
        source.rest,
        (tuple(divisors), source.divisor),
        base=source.base,
        is_nonnegative=source.is_nonnegative,
    )


@RULES.register(ReshapeOp)
def _reshaped(tiles: Tiles, op: Operation) -> AffineTile:
    """Row-major order: dimensions that split or merge keep the groups of the innermost one.

    Unit dimensions come and go; a split of one affine dimension stays affine.
    """
    assert isinstance(op, ReshapeOp)
    source, kind = tiles(op.operands[0]), kind_of(op.result.type)
    extents, is_nonnegative = kind.shape, source.is_nonnegative
    if all(along.is_still() for along in source.dims):
        value, divisor = source.uniform(), source.divisor
        return uniform_tile(kind, value, divisor, base=source.base, is_nonnegative=is_nonnegative)
    if op.allow_reorder is not None:
        dims = [GENERAL] * len(extents)
        return made(kind, dims, None, source.divisor, is_nonnegative=is_nonnegative)
    dims, rest, base = _split(source, extents)
    origin = dict[int, int]()
    for befores, afters in matching_groups(source.kind.shape, extents):
        inner, along = afters[-1], source.dims[befores[-1]]
        origin[inner] = befores[-1]
        equal = _merged_equal(source, befores)
        is_whole = along.length == source.kind.shape[befores[-1]]
        for after in reversed(afters):
            if not (is_whole and dims[after].is_exact()):
                dims[after] = dims[after].grouped(ZERO, gcd(equal, extents[after]))
            equal = equal // extents[after] if equal % extents[after] == 0 else 1
        if along.step.terms and not (is_whole and dims[inner].is_exact()):
            dims[inner] = dims[inner].grouped(along.step, gcd(along.length, extents[inner]))

    def divisor_at(dim: int, run: int) -> int:
        return source.divisor_at(origin[dim], run) if dim in origin else source.divisor

    return made(kind, dims, rest, divisor_at, base=base, is_nonnegative=is_nonnegative)


def _split(
    source: AffineTile, after: tuple[int, ...]
) -> tuple[list[Along], Expression | None, SSAValue | None]:
    """The strides where no dimensions merge, the rest, and the base."""
    groups = split_groups(source.kind.shape, after)
    if groups is None:
        return [GENERAL] * len(after), None, None
    dims, kept = [AT_REST] * len(after), set[int]()
    for dim, targets in groups:
        along = source.dims[dim]
        kept.add(dim)
        for place, (target, scale) in enumerate(targets):
            part = along if not place else replace(along, start=ZERO)
            dims[target] = along if len(targets) == 1 else part.split(scale)
    rest = source.rest
    for start in (along.start for dim, along in enumerate(source.dims) if dim not in kept):
        rest = None if rest is None or start is None else rest.plus(start)
    return dims, rest, source.base


def _merged_equal(source: AffineTile, dims: list[int]) -> int:
    """Equal elements of the row-major sequence of some dimensions."""
    equal = 1
    for dim in reversed(dims):
        equal *= source.dims[dim].equal()
        if not source.is_constant_along(dim):
            break
    return equal


@RULES.register(JoinOp)
def _join(tiles: Tiles, op: Operation) -> AffineTile:
    """A new last dimension of two."""
    left, right = map(tiles, op.operands)
    both = of_both(left.kind, left, right, shared_dims(left, right))
    last = len(both.dims)

    def divisor(dim: int, run: int) -> int:
        return both.divisor if dim == last else both.divisor_at(dim, run)

    kind, nonnegative = kind_of(op.results[0].type), both.is_nonnegative
    return made(kind, (*both.dims, GENERAL), None, divisor, is_nonnegative=nonnegative)


@RULES.register(SplitOp)
def _halves(tiles: Tiles, op: Operation) -> AffineTile:
    source, kind = tiles(op.operands[0]), kind_of(op.results[0].type)
    dims = [replace(along, start=None, form=None) for along in source.dims[:-1]]
    nonnegative = source.is_nonnegative
    return made(kind, dims, None, source.divisor_at, is_nonnegative=nonnegative)


@RULES.register(CatOp)
def _concatenate(tiles: Tiles, op: Operation) -> AffineTile:
    """Both operands have one extent, which their groups divide."""
    left, right = map(tiles, op.operands)
    return of_both(kind_of(op.results[0].type), left, right, shared_dims(left, right))


@RULES.register(FlipOp)
def _flip(tiles: Tiles, op: Operation) -> AffineTile:
    """What rises falls along the flipped dimension; groups stay."""
    assert isinstance(op, FlipOp)
    source, axis = tiles(op.operands[0]), op.axis.value.data
    dims = list(source.dims)
    dims[axis] = replace(dims[axis].times(integer(-1)), start=None, form=None)
    return made(
        source.kind,
        dims,
        None,
        lambda d, run: source.divisor if d == axis else source.divisor_at(d, run),
        is_nonnegative=source.is_nonnegative,
    )
