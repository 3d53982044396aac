"""What the author promises about values: hints on a value, and assumptions of scalars.

A promised divisor is that of the first element of each run as it really is. It counts for runs
that the author promises too (`max_contiguous(multiple_of(x, 8), 8)`) and along a dimension that
is one run; else only as far as the runs that are known reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import gcd
from operator import attrgetter

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.expression import ONE, ZERO
from tilewright.analysis.affine.rules.table import Tiles
from tilewright.analysis.affine.tile import AffineTile, divided, power_of_two
from tilewright.ir.attributes import integers_of
from tilewright.ir.types import shape_of
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.debug.ir import AssumeOp, HintOp
from tilewright.ops.elementwise.comparisons import ComparisonOp, integer_predicate
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.support.dataclass import dataclass, replace
from tilewright.support.worklist import once


def hinted(tiles: Tiles, op: Operation) -> AffineTile:
    """What is known of a value, and the groups and divisors that a hint adds."""
    assert isinstance(op, HintOp)
    source = tiles(op.src)
    extents = source.kind.shape or (1,)
    divisors = _promised(op, "divisibility", len(extents))
    runs = _promised(op, "contiguity", len(extents))
    equals = _promised(op, "constancy", len(extents))
    runs = tuple(map(gcd, runs, extents))
    # Of two that contradict each other the longer one, at first what is known without a promise.
    dims = [
        max(along, along.grouped(ONE, run), along.grouped(ZERO, equal), key=attrgetter("length"))
        for along, run, equal in zip(source.dims, runs, map(gcd, equals, extents), strict=False)
    ]

    def divisor(dim: int, run: int) -> int:
        promised = power_of_two(divisors[dim])
        reach = run if dims and dims[dim].step.as_int() == 1 else 1
        is_one_run = reach == extents[dim] or source.is_constant_along(dim)
        is_promised_run = reach == runs[dim] > 1
        if not is_one_run and not is_promised_run:
            promised = min(promised, power_of_two(reach) * source.kind.unit)
        return max(promised, source.divisor_at(dim, run))

    return divided(replace(source, dims=tuple(dims)), divisor)


def _promised(hint: HintOp, name: str, rank: int) -> tuple[int, ...]:
    """The greatest promise of one kind per dimension, in a chain of hints on one value."""
    found = (1,) * rank
    for link in _chain(hint):
        values = integers_of(link.properties.get(name))
        if len(values) == rank:
            found = tuple(map(max, found, values))
    return found


def _chain(hint: HintOp) -> Iterator[HintOp]:
    value: SSAValue = hint.result
    while isinstance(value, OpResult) and isinstance(value.op, HintOp):
        yield value.op
        value = value.op.src


@dataclass(frozen=True)
class Promise:
    """What an assumption says of a scalar."""

    divisor: int = 1
    is_nonnegative: bool = False

    def __or__(self, other: Promise) -> Promise:
        divisor = max(self.divisor, other.divisor)
        return Promise(divisor, self.is_nonnegative or other.is_nonnegative)

    def refine(self, facts: AffineTile) -> AffineTile:
        """The facts of a scalar of which this holds."""
        return replace(
            divided(facts, max(facts.divisor, self.divisor)),
            is_nonnegative=facts.is_nonnegative or self.is_nonnegative,
        )


def assumed(top: Operation) -> Mapping[SSAValue, Promise]:
    """What the assumptions inside `top` say of scalars, wherever these are used.

    An assumption counts for a scalar of its own block: whoever makes the one makes the other.
    """
    promises: dict[SSAValue, Promise] = {}
    for op in top.walk():
        # An `isinstance` of an op class goes through Python's abstract classes, 20 times as slow.
        if type(op) is not AssumeOp:
            continue
        assert isinstance(op, AssumeOp)
        for subject, promise in _conditions(op.condition):
            if _block_of(subject) is op.parent:
                promises[subject] = promises.get(subject, Promise()) | promise
    return promises


def _block_of(value: SSAValue) -> object:
    return value.op.parent if isinstance(value, OpResult) else value.owner


def _conditions(condition: SSAValue) -> Iterator[tuple[SSAValue, Promise]]:
    pending = [condition]
    for part in once(pending):
        op = part.owner
        if isinstance(op, ELEMENTWISE["arith.andi"]):
            pending += reversed(op.operands)
        elif isinstance(op, ComparisonOp) and not shape_of(op.lhs.type):
            yield from _comparison(op)


def _comparison(op: ComparisonOp) -> Iterator[tuple[SSAValue, Promise]]:
    predicate = integer_predicate(op)
    bound = _integer(op.rhs)
    if predicate == "eq" and bound == 0:
        yield from _multiples(op.lhs)
    elif bound is not None and _MEANS_NONNEGATIVE.get(predicate, _never)(bound):
        yield op.lhs, Promise(is_nonnegative=True)


def _multiples(value: SSAValue) -> Iterator[tuple[SSAValue, Promise]]:
    """What it means that `x % n` or `x & (n - 1)` is zero."""
    op = value.owner
    if not isinstance(op, Operation) or len(op.operands) != 2:
        return
    subject, by = op.operands[0], _integer(op.operands[1])
    if by is None:
        return
    if op.name in ("arith.remsi", "arith.remui") and by > 0:
        yield subject, Promise(divisor=power_of_two(by))
    elif op.name == "arith.andi" and by > 0:
        yield subject, Promise(divisor=power_of_two(by + 1))


def _integer(value: SSAValue) -> int | None:
    number = constant_of(value)
    return number if isinstance(number, int) else None


def _never(bound: int) -> bool:
    return False


_MEANS_NONNEGATIVE: Mapping[str, Callable[[int], bool]] = {
    "sge": lambda bound: bound >= 0,
    "sgt": lambda bound: bound >= -1,
    "eq": lambda bound: bound >= 0,
}
