"""What minima, comparisons and choices between two tiles are."""

from __future__ import annotations

from math import gcd

from xdsl.ir import Operation, OpResult

from tilewright.analysis.affine.along import Along
from tilewright.analysis.affine.expression import ZERO
from tilewright.analysis.affine.rules.table import (
    RULES,
    Tiles,
    equal_dims,
    may_wrap,
    of_both,
    shared_dims,
)
from tilewright.analysis.affine.stride import Stride
from tilewright.analysis.affine.tile import AffineTile, kind_of, made, power_of_two
from tilewright.ir.types import shape_of
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, SelectOp

_ONE_SIDED = frozenset(("slt", "sle", "sgt", "sge"))


@RULES.register(ELEMENTWISE["arith.minsi"], ELEMENTWISE["arith.maxsi"])
def _extremum(tiles: Tiles, op: Operation) -> AffineTile:
    """Of two runs the one with the smaller (greater) start; min(x, m): x, but for jumps."""
    left, right = map(tiles, op.operands)
    kind, wraps = kind_of(op.results[0].type), may_wrap(op.results[0].type)
    dims = equal_dims(kind, (left, right))
    if right.uniform() is not None:
        dims = [Along(a.stride.with_jumps() if a.stride else None, None) for a in left.dims]
    for dim, along in enumerate(shared_dims(left, right)):
        length = along.length
        if along.step.terms and wraps:
            length = min(left.aligned_run(dim), right.aligned_run(dim))
        if along.step.terms and along.step.as_int() != 1:
            length = 1
        dims[dim] = dims[dim].grouped(along.step, length)
    is_either = op.name == "arith.maxsi" and (left.is_nonnegative or right.is_nonnegative)
    return of_both(kind, left, right, dims, is_nonnegative=True if is_either else None)


@RULES.register(ELEMENTWISE["arith.minui"], ELEMENTWISE["arith.maxui"])
def _unsigned_extremum(tiles: Tiles, op: Operation) -> AffineTile:
    left, right = map(tiles, op.operands)
    kind = kind_of(op.results[0].type)
    return of_both(kind, left, right, equal_dims(kind, (left, right)))


@RULES.register(SelectOp)
def _select(tiles: Tiles, op: Operation) -> AffineTile:
    """One side or the other for as many elements as the condition keeps its value."""
    condition, left, right = map(tiles, op.operands)
    kind = kind_of(op.results[0].type)
    fixed = equal_dims(kind, (condition, left, right))
    chosen = _strides_but_for_jumps(tiles, op)
    dims: list[Along] = []
    for dim, along in enumerate(shared_dims(left, right)):
        stride = chosen[dim] if not fixed[dim].is_still() and chosen else fixed[dim].stride
        kept = condition.dims[dim].equal() if condition.dims else along.length
        dims.append(Along(stride, None, None, along.step, gcd(kept, along.length)))
    return of_both(kind, left, right, dims)


def _strides_but_for_jumps(tiles: Tiles, op: Operation) -> list[Stride | None]:
    """where(i < n, i, constant): the strides of i, but for jumps; general where i has no stride.

    The condition holds on one side of a bound, so that the constant is never only in the middle of
    a run: no equality, no unsigned number (`i - 4 < n` may hold around a gap), nothing that jumps.
    """
    condition, lhs, rhs = op.operands
    compared = condition.op if isinstance(condition, OpResult) else None
    if not shape_of(condition.type) or type(compared) is not CmpIOp:
        return []
    if compared.predicate_name() not in _ONE_SIDED:
        return []
    left, right = map(tiles, compared.operands)
    if tiles(rhs).uniform() is None or right.uniform() is None:
        return []
    strides = zip(tiles(lhs).strides, left.strides, strict=True)
    return [_chosen(stride, of) for stride, of in strides]


def _chosen(stride: Stride | None, compared: Stride | None) -> Stride | None:
    if stride is None or compared is None or compared.as_int() is None:
        return None
    # Of two constants only the jump between them is left, which a stride of nothing cannot say.
    return None if stride.is_zero() or stride.jumps or compared.jumps else stride.with_jumps()


_BELOW = frozenset({"slt", "sge", "ult", "uge"})
"""Comparisons of a run with a bound that change at the bound itself."""
_MIRRORED = {
    "slt": "sgt",
    "sgt": "slt",
    "sle": "sge",
    "sge": "sle",
    "ult": "ugt",
    "ugt": "ult",
    "ule": "uge",
    "uge": "ule",
}


@RULES.register(CmpIOp)
def _comparison(tiles: Tiles, op: Operation) -> AffineTile:
    """A mask keeps its value where its sides move alike, or a run does not meet the bound."""
    assert isinstance(op, CmpIOp)
    left, right = map(tiles, op.operands)
    predicate, kind = op.predicate_name(), kind_of(op.results[0].type)
    wraps = predicate[0] == "u" or may_wrap(op.operands[0].type)
    dims: list[Along] = []
    for dim, along in enumerate(shared_dims(left, right)):
        is_kept = not along.step.terms or (along.step.as_int() == 1 and not wraps)
        length = max(
            along.length if is_kept else 1,
            _beside_bound(left, right, predicate, dim),
            _beside_bound(right, left, _MIRRORED.get(predicate, ""), dim),
        )
        dims.append(Along(None, None, None, ZERO, length))
    for dim, along in enumerate(equal_dims(kind, (left, right))):
        dims[dim] = along if along.is_still() else dims[dim]
    return made(kind, dims, None)


def _beside_bound(run: AffineTile, bound: AffineTile, predicate: str, dim: int) -> int:
    """The length of groups of a run that lie on one side of equal bounds."""
    if predicate in _BELOW:
        divisor = bound.divisor
    elif predicate in _MIRRORED and bound.constant is not None:
        divisor = power_of_two(bound.constant + 1)  # x <= c is x < c + 1
    else:
        return 1
    return gcd(min(run.aligned_run(dim), divisor), bound.dims[dim].equal())
