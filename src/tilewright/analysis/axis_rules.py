"""How the facts of an op's result follow from those of its operands.

Signed index arithmetic of 32 bits or more is taken as non-wrapping, as in `analysis.affine.rules`;
a run of narrower numbers counts modulo their width, so only its aligned parts
(`Facts.aligned_run`) stay runs in a wider type, and sums of numbers that are not negative may be.
Signed division rounds towards zero, so its rules ask for a dividend that is not negative. A divisor
is known to be positive, or is one number computed from arguments, the grid and what loops count,
such as the group's size in `pid % (group * n) // size`: of those it is asked for (docs/limits.md).
One that is loaded, or differs from element to element, is not taken to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.axis import (
    Facts,
    Group,
    Run,
    constant_facts,
    equal_groups,
    extents_of,
    facts_from,
    in_equal_groups,
    power_of_two,
    shared_groups,
)
from tilewright.analysis.axis_casts import sign_extended
from tilewright.analysis.axis_conditions import is_known_at_least
from tilewright.analysis.axis_programs import is_counted_from_the_last
from tilewright.analysis.axis_table import AXIS_RULES, Operands, may_wrap, same_inputs, wrapped
from tilewright.analysis.launch_scalars import is_of_geometry
from tilewright.ir.types import is_integer, shape_of, width_bits
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, UnsplatOp, splatted
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.support.dataclass import replace


@AXIS_RULES.register(ConstantOp)
def _constant(op: Operation, _: Operands) -> Facts:
    assert isinstance(op, ConstantOp)
    extents = extents_of(op.result.type)
    value = op.splat_value()
    if isinstance(value, int) and is_integer(op.result.type):
        return constant_facts(extents, value)
    return in_equal_groups(extents, extents)


@AXIS_RULES.register(MakeRangeOp)
def _range(op: Operation, _: Operands) -> Facts:
    assert isinstance(op, MakeRangeOp)
    start, end = op.start.value.data, op.end.value.data
    if end - start == 1:
        return constant_facts((1,), start)
    run = Run(1, end - start, power_of_two(start))
    return Facts((end - start,), (run,), None, start >= 0)


@AXIS_RULES.register(UnsplatOp)
def _uniform(op: Operation, operands: Operands) -> Facts:
    (source,) = operands
    extents = extents_of(op.results[0].type)
    uniform = in_equal_groups(
        extents,
        extents,
        source.divisor(),
        is_nonnegative=source.is_nonnegative,
        step=source.step,
    )
    return replace(uniform, constant=source.constant)


@AXIS_RULES.register(GetProgramIdOp, GetNumProgramsOp, GetGridExtentOp)
def _grid(op: Operation, _: Operands) -> Facts:
    return in_equal_groups((1,), (1,), is_nonnegative=True)


def _folded(op: Operation, operands: Operands, function: Callable[[int, int], int]) -> Facts | None:
    """The facts of an op on two constants; one-bit integers are left alone."""
    left, right = (operand.constant for operand in operands)
    type_ = op.results[0].type
    if left is None or right is None or not is_integer(type_) or width_bits(type_) == 1:
        return None
    return constant_facts(extents_of(type_), wrapped(function(left, right), type_))


@AXIS_RULES.register(AddPtrOp)
def _offset(op: Operation, operands: Operands) -> Facts:
    """Strides add up; the offset, a signed number of any width, counts elements."""
    pointer, offset = operands
    return _sum(op, (pointer, sign_extended(op.operands[1].type, offset)))


@AXIS_RULES.register(ELEMENTWISE["arith.addi"])
def _sum(op: Operation, operands: Operands) -> Facts:
    """Strides add up where both hold."""
    left, right = operands
    folded = _folded(op, operands, lambda a, b: a + b)
    if folded is not None:
        return folded
    return facts_from(
        left.extents,
        _moved_together(left, right, 1),
        lambda d, run: min(left.divisor_at(d, run), right.divisor_at(d, run) * left.step),
        is_nonnegative=_stay_nonnegative(op, left, right),
        step=left.step,
    )


def _moved_together(left: Facts, right: Facts, sign: int) -> Iterator[Group]:
    """The groups of left + sign · right."""
    for a, b in zip(left.runs, right.runs, strict=True):
        yield a.stride + sign * b.stride, gcd(a.length, b.length)


def _stay_nonnegative(op: Operation, left: Facts, right: Facts) -> bool:
    """Whether neither the operands of a sum or product nor its result are negative."""
    result = op.results[0].type
    wraps = is_integer(result) and may_wrap(result)
    return left.is_nonnegative and right.is_nonnegative and not wraps


@AXIS_RULES.register(ELEMENTWISE["arith.subi"])
def _difference(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    folded = _folded(op, operands, lambda a, b: a - b)
    if folded is not None:
        return folded
    return facts_from(
        left.extents,
        _moved_together(left, right, -1),
        lambda d, run: min(left.divisor_at(d, run), right.divisor_at(d, run)),
        is_nonnegative=is_counted_from_the_last(op.results[0])
        or is_known_at_least(op, *op.operands),
    )


@AXIS_RULES.register(ELEMENTWISE["arith.muli"])
def _product(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    folded = _folded(op, operands, lambda a, b: a * b)
    if folded is not None:
        return folded
    if left.constant == 1:
        return right
    if right.constant == 1:
        return left
    if left.constant is not None:
        left, right = right, left
    return facts_from(
        left.extents,
        _scaled_groups(left, right),
        lambda d, run: left.divisor_at(d, run) * right.divisor_at(d, run),
        is_nonnegative=_stay_nonnegative(op, left, right),
    )


def _scaled_groups(value: Facts, factor: Facts) -> Iterator[Group]:
    """The groups of a product: of an unknown factor only those of equal elements."""
    for run, equal in zip(value.runs, equal_groups(value, factor), strict=True):
        by = factor.constant
        yield (0, equal) if by is None else (run.stride * by, run.length)


def _unbroken_run(dividend: Facts, divisor: Facts, dim: int) -> int:
    """The length of groups in which a run crosses no multiple of the divisor."""
    run = min(dividend.aligned_run(dim), divisor.divisor())
    return gcd(run, divisor.runs[dim].equal())


def _quotient_of(op: Operation, left: Facts, right: Facts, rounds_down: bool) -> Facts:
    lengths = equal_groups(left, right)
    if rounds_down:
        runs = (_unbroken_run(left, right, d) for d in left.dims())
        lengths = tuple(map(max, lengths, runs))
    by = right.constant
    is_exact = by is not None and by > 0 and by & (by - 1) == 0
    quotient = left.divisor() // by if is_exact and by is not None else 1
    is_nonnegative = left.is_nonnegative and _is_positive(op.operands[1], right)
    return in_equal_groups(
        left.extents, lengths, max(1, quotient), is_nonnegative=is_nonnegative
    )


def _is_positive(divisor: SSAValue, facts: Facts) -> bool:
    """Whether a divisor, which is never 0, is known or promised to be positive."""
    if facts.is_nonnegative or facts.constant is not None:
        return facts.is_nonnegative
    scalar = splatted(divisor) or divisor
    return not shape_of(scalar.type) and is_of_geometry(scalar)


@AXIS_RULES.register(ELEMENTWISE["arith.divsi"], ELEMENTWISE["arith.divui"])
def _quotient(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    if right.constant == 1:
        return left
    is_unsigned = op.name == "arith.divui"
    return _quotient_of(op, left, right, is_unsigned or left.is_nonnegative)


@AXIS_RULES.register(ELEMENTWISE["arith.shrsi"], ELEMENTWISE["arith.shrui"])
def _right_shift(op: Operation, operands: Operands) -> Facts:
    """A quotient by a power of two, rounded down."""
    left, right = operands
    if right.constant == 0:
        return left
    if right.constant is None or not 0 < right.constant < 62:
        return same_inputs(op, operands)
    divisor = constant_facts(right.extents, 1 << right.constant)
    return _quotient_of(op, left, divisor, True)


@AXIS_RULES.register(ELEMENTWISE["arith.remsi"], ELEMENTWISE["arith.remui"])
def _remainder(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    groups: list[Group] = [(0, equal) for equal in equal_groups(left, right)]
    if op.name == "arith.remui" or left.is_nonnegative:
        runs = (_unbroken_run(left, right, d) for d in left.dims())
        groups = [(1, run) if run > 1 else group for run, group in zip(runs, groups, strict=True)]
    bound = right.divisor()
    return facts_from(
        left.extents,
        groups,
        lambda d, run: min(left.divisor_at(d, run), bound),
        is_nonnegative=left.is_nonnegative,
    )


@AXIS_RULES.register(ELEMENTWISE["arith.shli"])
def _left_shift(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    if right.constant == 0:
        return left
    if right.constant is None or not 0 < right.constant < 62:
        return in_equal_groups(left.extents, equal_groups(left, right), left.divisor())
    return _product(op, (left, constant_facts(right.extents, 1 << right.constant)))


@AXIS_RULES.register(ELEMENTWISE["arith.andi"])
def _and(op: Operation, operands: Operands) -> Facts:
    """With low bits a remainder, with high bits a rounding down; else just bits."""
    left, right = operands
    if left.constant is not None:
        left, right = right, left
    is_nonnegative = left.is_nonnegative or right.is_nonnegative
    bits = right.constant
    equal = equal_groups(left, right)
    if bits is not None and bits > 0 and bits & (bits + 1) == 0 and _is_wide(op):
        runs = (min(left.aligned_run(d), bits + 1) for d in left.dims())
        groups = [(1, n) if n > 1 else (0, m) for n, m in zip(runs, equal, strict=True)]
        return facts_from(left.extents, groups, left.divisor_at, is_nonnegative=is_nonnegative)
    if bits is not None and bits < 0 and -bits == power_of_two(bits) and _is_wide(op):
        runs = (min(left.aligned_run(d), -bits) for d in left.dims())
        equal = tuple(map(max, equal, runs))
    divisor = max(left.divisor(), right.divisor()) if _is_wide(op) else 1
    return in_equal_groups(left.extents, equal, divisor, is_nonnegative=is_nonnegative)


def _is_wide(op: Operation) -> bool:
    return width_bits(op.results[0].type) > 1


@AXIS_RULES.register(ELEMENTWISE["arith.ori"], ELEMENTWISE["arith.xori"])
def _or(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    return in_equal_groups(
        left.extents,
        equal_groups(left, right),
        min(left.divisor(), right.divisor()) if _is_wide(op) else 1,
        is_nonnegative=left.is_nonnegative and right.is_nonnegative,
    )


@AXIS_RULES.register(ELEMENTWISE["arith.minsi"], ELEMENTWISE["arith.maxsi"])
def _extremum(op: Operation, operands: Operands) -> Facts:
    """Of two runs the one with the smaller (greater) start."""
    left, right = operands
    if op.name == "arith.maxsi":
        is_nonnegative = left.is_nonnegative or right.is_nonnegative
    else:
        is_nonnegative = left.is_nonnegative and right.is_nonnegative
    wraps = may_wrap(op.results[0].type)
    groups = [
        (stride, length if stride in (0, 1) else 1) for stride, length in shared_groups(left, right)
    ]
    for dim, (stride, _) in enumerate(groups):
        if stride and wraps:
            groups[dim] = 1, min(left.aligned_run(dim), right.aligned_run(dim))
    return facts_from(
        left.extents,
        groups,
        lambda d, run: min(left.divisor_at(d, run), right.divisor_at(d, run)),
        is_nonnegative=is_nonnegative,
    )


@AXIS_RULES.register(ELEMENTWISE["arith.minui"], ELEMENTWISE["arith.maxui"])
def _unsigned_extremum(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    return in_equal_groups(
        left.extents,
        equal_groups(left, right),
        min(left.divisor(), right.divisor()),
        is_nonnegative=left.is_nonnegative and right.is_nonnegative,
    )
