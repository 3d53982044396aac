"""How axis facts follow from those of a tile whose elements are moved without computing."""

from __future__ import annotations

from math import gcd

from xdsl.ir import Operation

from tilewright.analysis.axis import (
    Facts,
    Group,
    Run,
    equal_like,
    extents_of,
    facts_from,
    meet,
    of_both,
    shared_groups,
)
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
    divisor = source.divisor()
    runs = [Run(0, extent, divisor) for extent in extents]
    for dim, target in enumerate(op.source_dims()):
        if source.extents[dim] > 1:
            runs[target] = source.runs[dim]
    return Facts(extents, tuple(runs), source.constant, source.is_nonnegative, source.step)


@SHAPE_RULES.register(ReshapeOp)
def _reshape(op: Operation, operands: Operands) -> Facts:
    """Row-major order: dimensions that split or merge keep the runs of the innermost one."""
    assert isinstance(op, ReshapeOp)
    (source,) = operands
    extents = extents_of(op.result.type)
    if all(source.is_constant_along(d) for d in source.dims()):
        return replace(equal_like(source, extents, extents), constant=source.constant)
    if op.allow_reorder is not None:
        return equal_like(source, extents, (1,) * len(extents))
    groups: list[Group] = [(0, 1)] * len(extents)
    origin = dict[int, int]()
    for befores, afters in matching_groups(source.extents, extents):
        inner, run = afters[-1], source.runs[befores[-1]]
        origin[inner] = befores[-1]
        equal = _merged_equal(source, befores)
        for after in reversed(afters):
            groups[after] = 0, gcd(equal, extents[after])
            equal = equal // extents[after] if equal % extents[after] == 0 else 1
        if run.stride:
            groups[inner] = run.stride, gcd(run.length, extents[inner])

    def divisor(dim: int, run: int) -> int:
        return source.divisor_at(origin[dim], run) if dim in origin else source.divisor()

    return facts_from(
        extents,
        groups,
        divisor,
        is_nonnegative=source.is_nonnegative,
        step=source.step,
    )


def _merged_equal(source: Facts, dims: list[int]) -> int:
    """Equal elements of the row-major sequence of some dimensions."""
    equal = 1
    for dim in reversed(dims):
        equal *= source.runs[dim].equal()
        if not source.is_constant_along(dim):
            break
    return equal


@SHAPE_RULES.register(JoinOp)
def _join(op: Operation, operands: Operands) -> Facts:
    """A new last dimension of two."""
    left, right = operands
    both = meet(left, right)
    last = Run(0, 1, both.divisor())
    extents = extents_of(op.results[0].type)
    return replace(both, extents=extents, runs=(*both.runs, last), constant=None)


@SHAPE_RULES.register(SplitOp)
def _split(op: Operation, operands: Operands) -> Facts:
    (source,) = operands
    return replace(
        source,
        extents=source.extents[:-1],
        runs=source.runs[:-1],
    )


@SHAPE_RULES.register(CatOp)
def _concatenate(op: Operation, operands: Operands) -> Facts:
    """Both operands have one extent, which their groups divide."""
    left, right = operands
    extents = extents_of(op.results[0].type)
    return of_both(left, right, shared_groups(left, right), extents=extents)


@SHAPE_RULES.register(FlipOp)
def _flip(op: Operation, operands: Operands) -> Facts:
    """What rises falls along the flipped dimension; groups stay."""
    assert isinstance(op, FlipOp)
    (source,) = operands
    axis = op.axis.value.data
    signs = (-1 if dim == axis else 1 for dim in source.dims())
    return facts_from(
        source.extents,
        ((sign * run.stride, run.length) for sign, run in zip(signs, source.runs, strict=True)),
        lambda d, run: source.divisor() if d == axis else source.divisor_at(d, run),
        is_nonnegative=source.is_nonnegative,
        step=source.step,
    )
