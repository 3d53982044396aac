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

from collections.abc import Callable
from math import gcd

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.axis import (
    Facts,
    common_runs,
    constant_facts,
    extents_of,
    facts_from,
    power_of_two,
    scattered,
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
    return scattered(extents, extents)


@AXIS_RULES.register(MakeRangeOp)
def _range(op: Operation, _: Operands) -> Facts:
    assert isinstance(op, MakeRangeOp)
    start, end = op.start.value.data, op.end.value.data
    if end - start == 1:
        return constant_facts((1,), start)
    divisor = power_of_two(start)
    return Facts((end - start,), (divisor,), (end - start,), (1,), None, start >= 0)


@AXIS_RULES.register(UnsplatOp)
def _uniform(op: Operation, operands: Operands) -> Facts:
    (source,) = operands
    extents = extents_of(op.results[0].type)
    uniform = scattered(
        extents,
        extents,
        source.divisor(),
        is_nonnegative=source.is_nonnegative,
        step=source.step,
    )
    return replace(uniform, constant=source.constant)


@AXIS_RULES.register(GetProgramIdOp, GetNumProgramsOp, GetGridExtentOp)
def _grid(op: Operation, _: Operands) -> Facts:
    return scattered((1,), (1,), is_nonnegative=True)


def _folded(op: Operation, operands: Operands, function: Callable[[int, int], int]) -> Facts | None:
    """The facts of an op on two constants; one-bit integers are left alone."""
    left, right = (operand.constant for operand in operands)
    type_ = op.results[0].type
    if left is None or right is None or not is_integer(type_) or width_bits(type_) == 1:
        return None
    return constant_facts(extents_of(type_), wrapped(function(left, right), type_))


@AXIS_RULES.register(AddPtrOp)
def _offset(op: Operation, operands: Operands) -> Facts:
    """A run plus equal values is a run; the offset counts elements."""
    pointer, offset = operands
    if may_wrap(op.operands[1].type):
        offset = sign_extended(op.operands[1].type, offset)
    return _sum(op, (pointer, offset))


@AXIS_RULES.register(ELEMENTWISE["arith.addi"])
def _sum(op: Operation, operands: Operands) -> Facts:
    """A run plus equal values is a run."""
    left, right = operands
    folded = _folded(op, operands, lambda a, b: a + b)
    if folded is not None:
        return folded
    return facts_from(
        left.extents,
        tuple(
            max(
                gcd(left.contiguity[d], right.constancy[d]),
                gcd(left.constancy[d], right.contiguity[d]),
            )
            for d in left.dims()
        ),
        common_runs(left.constancy, right.constancy),
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
    equal = common_runs(left.constancy, right.constancy)
    parallel = common_runs(left.contiguity, right.contiguity)
    return facts_from(
        left.extents,
        common_runs(left.contiguity, right.constancy),
        tuple(map(max, equal, parallel)),
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
    return scattered(
        left.extents,
        common_runs(left.constancy, right.constancy),
        left.divisor() * right.divisor(),
        is_nonnegative=_stay_nonnegative(op, left, right),
    )


def _unbroken_run(dividend: Facts, divisor: Facts, dim: int) -> int:
    """The length of groups in which a run crosses no multiple of the divisor."""
    run = min(dividend.aligned_run(dim), divisor.divisor())
    return gcd(run, divisor.constancy[dim])


def _quotient_of(op: Operation, left: Facts, right: Facts, rounds_down: bool) -> Facts:
    constancy = common_runs(left.constancy, right.constancy)
    if rounds_down:
        runs = (_unbroken_run(left, right, d) for d in left.dims())
        constancy = tuple(max(a, b) for a, b in zip(constancy, runs, strict=True))
    by = right.constant
    is_exact = by is not None and by > 0 and by & (by - 1) == 0
    quotient = left.divisor() // by if is_exact and by is not None else 1
    is_nonnegative = left.is_nonnegative and _is_positive(op.operands[1], right)
    return scattered(left.extents, constancy, max(1, quotient), is_nonnegative=is_nonnegative)


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
    constancy = common_runs(left.constancy, right.constancy)
    contiguity = (1,) * len(left.extents)
    if op.name == "arith.remui" or left.is_nonnegative:
        contiguity = tuple(_unbroken_run(left, right, d) for d in left.dims())
    bound = right.divisor()
    return facts_from(
        left.extents,
        contiguity,
        constancy,
        lambda d, run: min(left.divisor_at(d, run), bound),
        is_nonnegative=left.is_nonnegative,
    )


@AXIS_RULES.register(ELEMENTWISE["arith.shli"])
def _left_shift(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    if right.constant == 0:
        return left
    shift = right.constant if right.constant is not None and 0 < right.constant < 62 else 0
    return scattered(
        left.extents,
        common_runs(left.constancy, right.constancy),
        left.divisor() << shift,
        is_nonnegative=_stay_nonnegative(op, left, right),
    )


@AXIS_RULES.register(ELEMENTWISE["arith.andi"])
def _and(op: Operation, operands: Operands) -> Facts:
    """With low bits a remainder, with high bits a rounding down; else just bits."""
    left, right = operands
    if left.constant is not None:
        left, right = right, left
    is_nonnegative = left.is_nonnegative or right.is_nonnegative
    bits = right.constant
    constancy = common_runs(left.constancy, right.constancy)
    if bits is not None and bits > 0 and bits & (bits + 1) == 0 and _is_wide(op):
        return facts_from(
            left.extents,
            tuple(min(left.aligned_run(d), bits + 1) for d in left.dims()),
            constancy,
            left.divisor_at,
            is_nonnegative=is_nonnegative,
        )
    if bits is not None and bits < 0 and -bits == power_of_two(bits) and _is_wide(op):
        runs = (min(left.aligned_run(d), -bits) for d in left.dims())
        constancy = tuple(max(a, b) for a, b in zip(constancy, runs, strict=True))
    divisor = max(left.divisor(), right.divisor()) if _is_wide(op) else 1
    return scattered(left.extents, constancy, divisor, is_nonnegative=is_nonnegative)


def _is_wide(op: Operation) -> bool:
    return width_bits(op.results[0].type) > 1


@AXIS_RULES.register(ELEMENTWISE["arith.ori"], ELEMENTWISE["arith.xori"])
def _or(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    return scattered(
        left.extents,
        common_runs(left.constancy, right.constancy),
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
    runs = common_runs(left.contiguity, right.contiguity)
    if may_wrap(op.results[0].type):
        runs = tuple(min(left.aligned_run(d), right.aligned_run(d)) for d in left.dims())
    return facts_from(
        left.extents,
        runs,
        common_runs(left.constancy, right.constancy),
        lambda d, run: min(left.divisor_at(d, run), right.divisor_at(d, run)),
        is_nonnegative=is_nonnegative,
    )


@AXIS_RULES.register(ELEMENTWISE["arith.minui"], ELEMENTWISE["arith.maxui"])
def _unsigned_extremum(op: Operation, operands: Operands) -> Facts:
    left, right = operands
    return scattered(
        left.extents,
        common_runs(left.constancy, right.constancy),
        min(left.divisor(), right.divisor()),
        is_nonnegative=left.is_nonnegative and right.is_nonnegative,
    )
