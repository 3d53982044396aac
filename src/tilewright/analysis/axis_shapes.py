"""How axis facts follow from those of a tile whose elements are moved without computing."""

from __future__ import annotations

from math import gcd

from xdsl.ir import Operation

from tilewright.analysis.axis import Facts, common_runs, extents_of, facts_from, scattered
from tilewright.analysis.axis_table import AXIS_RULES, Operands, Rule
from tilewright.analysis.reshapes import matching_groups
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
from tilewright.support.rules import RuleTable

SHAPE_RULES: RuleTable[Rule] = RuleTable("axis facts of moved tiles", AXIS_RULES)


@SHAPE_RULES.register(BroadcastOp, ExpandDimsOp, SplatOp, TransOp)
def viewed(op: Operation, operands: Operands) -> Facts:
    """Elements as they are, at other indices; those along a dimension that repeats are equal."""
    assert isinstance(op, ViewOp)
    (source,) = operands
    extents = extents_of(op.results[0].type)
    divisors, runs, equal = [source.divisor()] * len(extents), [1] * len(extents), list(extents)
    for dim, target in enumerate(op.source_dims()):
        divisors[target], runs[target] = source.divisibility[dim], source.contiguity[dim]
        if source.extents[dim] > 1:
            equal[target] = source.constancy[dim]
    return replace(
        source,
        extents=extents,
        divisibility=tuple(divisors),
        contiguity=tuple(runs),
        constancy=tuple(equal),
    )


@SHAPE_RULES.register(ReshapeOp)
def _reshape(op: Operation, operands: Operands) -> Facts:
    """Row-major order: dimensions that split or merge keep the runs of the innermost one."""
    assert isinstance(op, ReshapeOp)
    (source,) = operands
    extents = extents_of(op.result.type)
    if all(source.is_constant_along(d) for d in source.dims()):
        return replace(_scattered_like(source, extents, extents), constant=source.constant)
    if op.allow_reorder is not None:
        return _scattered_like(source, extents, (1,) * len(extents))
    ones = [1] * len(extents)
    contiguity, constancy, origin = ones[:], ones[:], dict[int, int]()
    for befores, afters in matching_groups(source.extents, extents):
        inner = afters[-1]
        origin[inner] = befores[-1]
        contiguity[inner] = gcd(source.contiguity[befores[-1]], extents[inner])
        equal = _merged_constancy(source, befores)
        for after in reversed(afters):
            constancy[after] = gcd(equal, extents[after])
            equal = equal // extents[after] if equal % extents[after] == 0 else 1

    def divisor(dim: int, run: int) -> int:
        return source.divisor_at(origin[dim], run) if dim in origin else source.divisor()

    return facts_from(
        extents,
        tuple(contiguity),
        tuple(constancy),
        divisor,
        is_nonnegative=source.is_nonnegative,
        step=source.step,
    )


def _scattered_like(source: Facts, extents: tuple[int, ...], constancy: tuple[int, ...]) -> Facts:
    return scattered(
        extents,
        constancy,
        source.divisor(),
        is_nonnegative=source.is_nonnegative,
        step=source.step,
    )


def _merged_constancy(source: Facts, dims: list[int]) -> int:
    """Equal elements of the row-major sequence of some dimensions."""
    equal = 1
    for dim in reversed(dims):
        equal *= source.constancy[dim]
        if not source.is_constant_along(dim):
            break
    return equal


@SHAPE_RULES.register(JoinOp)
def _join(op: Operation, operands: Operands) -> Facts:
    """A new last dimension of two."""
    left, right = operands
    divisor = min(left.divisor(), right.divisor())

    def at(dim: int, run: int) -> int:
        if dim == len(left.extents):
            return divisor
        return min(left.divisor_at(dim, run), right.divisor_at(dim, run))

    return facts_from(
        extents_of(op.results[0].type),
        (*common_runs(left.contiguity, right.contiguity), 1),
        (*common_runs(left.constancy, right.constancy), 1),
        at,
        is_nonnegative=left.is_nonnegative and right.is_nonnegative,
        step=left.step,
    )


@SHAPE_RULES.register(SplitOp)
def _split(op: Operation, operands: Operands) -> Facts:
    (source,) = operands
    return replace(
        source,
        extents=source.extents[:-1],
        divisibility=source.divisibility[:-1],
        contiguity=source.contiguity[:-1],
        constancy=source.constancy[:-1],
    )


@SHAPE_RULES.register(CatOp)
def _concatenate(op: Operation, operands: Operands) -> Facts:
    """Both operands have one extent, which their groups divide."""
    left, right = operands
    return facts_from(
        extents_of(op.results[0].type),
        common_runs(left.contiguity, right.contiguity),
        common_runs(left.constancy, right.constancy),
        lambda d, run: min(left.divisor_at(d, run), right.divisor_at(d, run)),
        is_nonnegative=left.is_nonnegative and right.is_nonnegative,
        step=left.step,
    )


@SHAPE_RULES.register(FlipOp)
def _flip(op: Operation, operands: Operands) -> Facts:
    """Runs fall along the flipped dimension; groups of equal values stay."""
    assert isinstance(op, FlipOp)
    (source,) = operands
    axis = op.axis.value.data
    contiguity = list(source.contiguity)
    contiguity[axis] = 1
    return facts_from(
        source.extents,
        tuple(contiguity),
        source.constancy,
        lambda d, run: source.divisor() if d == axis else source.divisor_at(d, run),
        is_nonnegative=source.is_nonnegative,
        step=source.step,
    )
