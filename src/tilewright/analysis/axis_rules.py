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

from collections.abc import Callable, Iterable
from math import gcd

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.axis import (
    Facts,
    Group,
    Run,
    constant_facts,
    equal_groups,
    equal_like,
    extents_of,
    facts_from,
    in_equal_groups,
    of_both,
    power_of_two,
    shared_groups,
)
from tilewright.analysis.axis_casts import sign_extended
from tilewright.analysis.axis_conditions import is_known_at_least
from tilewright.analysis.axis_programs import is_counted_from_the_last
from tilewright.analysis.axis_table import (
    AXIS_RULES,
    Operands,
    groups_of,
    may_wrap,
    same_inputs,
    wrapped,
)
from tilewright.analysis.launch_scalars import is_of_geometry
from tilewright.analysis.strides import power_divided_by
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
    extents = extents_of(op.results[0].type)
    return replace(equal_like(operands[0], extents, extents), constant=operands[0].constant)


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
    """The offset, a signed number of any width, counts elements."""
    pointer, offset = operands
    return _sum(op, (pointer, sign_extended(op.operands[1].type, offset)))


@AXIS_RULES.register(ELEMENTWISE["arith.addi"])
def _sum(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    folded = _folded(op, operands, lambda a, b: a + b)
    if folded is not None:
        return folded
    return facts_from(
        left.extents,
        groups_of(op, left, right),
        lambda d, run: min(left.divisor_at(d, run), right.divisor_at(d, run) * left.step),
        is_nonnegative=_stay_nonnegative(op, left, right),
        step=left.step,
    )


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
    is_nonnegative = is_counted_from_the_last(op.results[0])
    is_nonnegative = is_nonnegative or is_known_at_least(op, *op.operands)
    return of_both(left, right, groups_of(op, left, right), is_nonnegative=is_nonnegative)


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
    return _multiplied(op, operands, groups_of(op, left, right))


def _multiplied(op: Operation, operands: Operands, groups: Iterable[Group]) -> Facts:
    left, right = operands
    return facts_from(
        left.extents,
        groups,
        lambda d, run: left.divisor_at(d, run) * right.divisor_at(d, run),
        is_nonnegative=_stay_nonnegative(op, left, right),
    )


@AXIS_RULES.register(ELEMENTWISE["arith.shli"])
def _left_shift(op: Operation, operands: Operands) -> Facts:
    """A product with a power of two."""
    left, right = operands
    count = right.constant
    if count == 0:
        return left
    if count is None or not 0 < count < 62:
        is_nonnegative = _stay_nonnegative(op, left, right)
        lengths = equal_groups(left, right)
        return in_equal_groups(left.extents, lengths, left.divisor(), is_nonnegative=is_nonnegative)
    groups = ((run.stride << count, run.length) for run in left.runs)
    return _multiplied(op, (left, constant_facts(right.extents, 1 << count)), groups)


def _unbroken_run(dividend: Facts, divisor: Facts, dim: int) -> int:
    """The length of groups in which a run crosses no multiple of the divisor."""
    run = min(dividend.aligned_run(dim), divisor.divisor())
    return gcd(run, divisor.runs[dim].equal())


@AXIS_RULES.register(ELEMENTWISE["arith.divsi"], ELEMENTWISE["arith.divui"])
def _quotient(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    if right.constant == 1:
        return left
    is_unsigned = op.name == "arith.divui"
    return _quotient_of(op, left, right, is_unsigned or left.is_nonnegative)


@AXIS_RULES.register(ELEMENTWISE["arith.shrsi"], ELEMENTWISE["arith.shrui"])
def _right_shift(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    power = power_divided_by(op, right.constant)
    if right.constant == 0:
        return left
    if power is None:
        return same_inputs(op, operands)
    return _quotient_of(op, left, constant_facts(right.extents, power), True)


def _quotient_of(op: Operation, left: Facts, right: Facts, rounds_down: bool) -> Facts:
    lengths = equal_groups(left, right)
    if rounds_down:
        runs = (_unbroken_run(left, right, d) for d in left.dims())
        lengths = tuple(map(max, lengths, runs))
    by = right.constant
    is_exact = by is not None and by > 0 and by & (by - 1) == 0
    quotient = left.divisor() // by if is_exact and by is not None else 1
    is_nonnegative = left.is_nonnegative and _is_positive(op.operands[1], right)
    return in_equal_groups(left.extents, lengths, max(1, quotient), is_nonnegative=is_nonnegative)


def _is_positive(divisor: SSAValue, facts: Facts) -> bool:
    """Whether a divisor, which is never 0, is known or promised to be positive."""
    if facts.is_nonnegative or facts.constant is not None:
        return facts.is_nonnegative
    scalar = splatted(divisor) or divisor
    return not shape_of(scalar.type) and is_of_geometry(scalar)


@AXIS_RULES.register(ELEMENTWISE["arith.remsi"], ELEMENTWISE["arith.remui"])
def _remainder(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    rounds_down = op.name == "arith.remui" or left.is_nonnegative
    return _remainder_of(left, right, rounds_down, left.is_nonnegative)


def _remainder_of(left: Facts, right: Facts, rounds_down: bool, is_nonnegative: bool) -> Facts:
    groups: list[Group] = [(0, equal) for equal in equal_groups(left, right)]
    if rounds_down:
        groups = [_run_or(_unbroken_run(left, right, d), groups[d]) for d in left.dims()]
    bound = right.divisor()
    return facts_from(
        left.extents,
        groups,
        lambda d, run: min(left.divisor_at(d, run), bound),
        is_nonnegative=is_nonnegative,
    )


def _run_or(length: int, group: Group) -> Group:
    """Consecutive elements where there are several, else another group."""
    return (1, length) if length > 1 else group


@AXIS_RULES.register(ELEMENTWISE["arith.andi"])
def _and(op: Operation, operands: Operands) -> Facts:
    """With low bits a remainder, with high bits a rounding down; else just bits."""
    left, right = operands
    if left.constant is not None:
        left, right = right, left
    is_nonnegative = left.is_nonnegative or right.is_nonnegative
    equal = equal_groups(left, right)
    bits = right.constant
    power = power_divided_by(op, bits)
    if power is not None:
        divisor = constant_facts(left.extents, power)
        return _remainder_of(left, divisor, True, is_nonnegative)
    if bits is not None and bits < 0 and -bits == power_of_two(bits):
        equal = tuple(map(max, equal, (min(left.aligned_run(d), -bits) for d in left.dims())))
    divisor = max(left.divisor(), right.divisor())
    return in_equal_groups(left.extents, equal, divisor, is_nonnegative=is_nonnegative)


@AXIS_RULES.register(ELEMENTWISE["arith.ori"], ELEMENTWISE["arith.xori"])
def _or(op: Operation, operands: Operands) -> Facts:
    """A run goes on where the bits of the other side are those of multiples of its length."""
    left, right = operands
    groups: list[Group] = [(0, equal) for equal in equal_groups(left, right)]
    for dim in left.dims():
        run = max(_unbroken_run(left, right, dim), _unbroken_run(right, left, dim))
        groups[dim] = _run_or(run, groups[dim])
    return of_both(left, right, groups)


@AXIS_RULES.register(ELEMENTWISE["arith.minsi"], ELEMENTWISE["arith.maxsi"])
def _extremum(op: Operation, operands: Operands) -> Facts:
    """Of two runs the one with the smaller (greater) start."""
    left, right = operands
    wraps = may_wrap(op.results[0].type)
    groups = [(s, n) if s in (0, 1) else (0, 1) for s, n in shared_groups(left, right)]
    for dim, (stride, _) in enumerate(groups):
        if stride and wraps:
            groups[dim] = 1, min(left.aligned_run(dim), right.aligned_run(dim))
    is_either = op.name == "arith.maxsi" and (left.is_nonnegative or right.is_nonnegative)
    return of_both(left, right, groups, is_nonnegative=True if is_either else None)


@AXIS_RULES.register(ELEMENTWISE["arith.minui"], ELEMENTWISE["arith.maxui"])
def _unsigned_extremum(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    return of_both(left, right, ((0, equal) for equal in equal_groups(left, right)))
