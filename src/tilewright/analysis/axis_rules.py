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

from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.analysis.axis import (
    Facts,
    common_runs,
    constant_facts,
    extents_of,
    facts_from,
    power_of_two,
    scattered,
    step_of,
)
from tilewright.analysis.launch_scalars import is_of_geometry
from tilewright.ir.types import is_integer, is_pointer, shape_of, width_bits
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp, UnsplatOp, splatted
from tilewright.ops.elementwise.ir import (
    ELEMENTWISE,
    BitcastOp,
    CmpIOp,
    ExtSIOp,
    ExtUIOp,
    IndexCastOp,
    IntToPtrOp,
    PtrToIntOp,
    SelectOp,
    TruncIOp,
)
from tilewright.ops.memory.ir import AddPtrOp, LoadOp
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.support.dataclass import replace
from tilewright.support.rules import RuleTable

Operands = tuple[Facts, ...]
# Signed arithmetic of at least this width is taken as non-wrapping.
_ADDRESS_BITS = 32
Rule = Callable[[Operation, Operands], Facts]
"""From an op and the facts of its operands to those of each of its results."""

AXIS_RULES: RuleTable[Rule] = RuleTable("axis facts")


@AXIS_RULES.register(LoadOp)
def same_inputs(op: Operation, operands: Operands) -> Facts:
    """Elements are equal where those of every operand are; scalar operands always are."""
    type_ = op.results[0].type
    extents = extents_of(type_)
    return scattered(extents, _constancy(extents, operands), step=step_of(type_))


def _constancy(extents: tuple[int, ...], operands: Operands) -> tuple[int, ...]:
    groups = extents
    for operand in operands:
        if len(operand.extents) == len(extents) and operand.extents == extents:
            groups = common_runs(groups, operand.constancy)
    return groups


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


@AXIS_RULES.register(SplatOp, UnsplatOp)
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


def _wrapped(value: int, type_: Attribute) -> int:
    bits = width_bits(type_)
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _folded(op: Operation, operands: Operands, function: Callable[[int, int], int]) -> Facts | None:
    """The facts of an op on two constants; one-bit integers are left alone."""
    left, right = (operand.constant for operand in operands)
    type_ = op.results[0].type
    if left is None or right is None or not is_integer(type_) or width_bits(type_) == 1:
        return None
    return constant_facts(extents_of(type_), _wrapped(function(left, right), type_))


def _may_wrap(type_: Attribute) -> bool:
    """Whether arithmetic in a type wraps in programs that use it for indices."""
    return width_bits(type_) < _ADDRESS_BITS


@AXIS_RULES.register(AddPtrOp)
def _offset(op: Operation, operands: Operands) -> Facts:
    """A run plus equal values is a run; the offset counts elements."""
    pointer, offset = operands
    if _may_wrap(op.operands[1].type):
        offset = _sign_extended(op.operands[1].type, offset)
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
    wraps = is_integer(result) and _may_wrap(result)
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
    if _may_wrap(op.results[0].type):
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


@AXIS_RULES.register(SelectOp)
def _select(op: Operation, operands: Operands) -> Facts:
    """One side or the other for as many elements as the condition keeps its value."""
    condition, left, right = operands
    groups = _constancy(left.extents, (condition,))
    return facts_from(
        left.extents,
        common_runs(groups, common_runs(left.contiguity, right.contiguity)),
        common_runs(groups, common_runs(left.constancy, right.constancy)),
        lambda d, run: min(left.divisor_at(d, run), right.divisor_at(d, run)),
        is_nonnegative=left.is_nonnegative and right.is_nonnegative,
        step=left.step,
    )


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


@AXIS_RULES.register(CmpIOp)
def _comparison(op: Operation, operands: Operands) -> Facts:
    """A mask keeps its value where both sides do, or where a run does not meet the bound."""
    assert isinstance(op, CmpIOp)
    left, right = operands
    predicate = op.predicate_name()
    wraps = predicate[0] == "u" or _may_wrap(op.operands[0].type)
    constancy = tuple(
        max(
            gcd(left.constancy[d], right.constancy[d]),
            _beside_bound(left, right, predicate, d),
            _beside_bound(right, left, _MIRRORED.get(predicate, ""), d),
            1 if wraps else gcd(left.contiguity[d], right.contiguity[d]),
        )
        for d in left.dims()
    )
    return scattered(left.extents, constancy)


def _beside_bound(run: Facts, bound: Facts, predicate: str, dim: int) -> int:
    """The length of groups of a run that lie on one side of equal bounds."""
    if predicate in _BELOW:
        divisor = bound.divisor()
    elif predicate in _MIRRORED and bound.constant is not None:
        divisor = power_of_two(bound.constant + 1)  # x <= c is x < c + 1
    else:
        return 1
    return gcd(min(run.aligned_run(dim), divisor), bound.constancy[dim])


@AXIS_RULES.register(IndexCastOp)
def same_numbers(op: Operation, operands: Operands) -> Facts:
    """The same numbers in another type or layout."""
    return operands[0]


@AXIS_RULES.register(ExtSIOp)
def _extended(op: Operation, operands: Operands) -> Facts:
    return _sign_extended(op.operands[0].type, operands[0])


def _sign_extended(type_: Attribute, source: Facts) -> Facts:
    """Signed numbers in a wider type than `type_`: of narrow ones only what aligned runs keep."""
    if source.constant is not None or not _may_wrap(type_):
        return source
    return _aligned(source, width_bits(type_), source.is_nonnegative)


def _aligned(source: Facts, bits: int, is_nonnegative: bool) -> Facts:
    return facts_from(
        source.extents,
        tuple(min(source.aligned_run(d), 1 << (bits - 1)) for d in source.dims()),
        source.constancy,
        source.divisor_at,
        is_nonnegative=is_nonnegative,
    )


@AXIS_RULES.register(ExtUIOp)
def _zero_extended(op: Operation, operands: Operands) -> Facts:
    """The same bits as an unsigned number: of one that is not negative, itself."""
    (source,) = operands
    bits = width_bits(op.operands[0].type)
    if source.constant is not None:
        return constant_facts(source.extents, source.constant & ((1 << bits) - 1))
    return source if source.is_nonnegative else _aligned(source, bits, is_nonnegative=True)


@AXIS_RULES.register(TruncIOp)
def _truncated(op: Operation, operands: Operands) -> Facts:
    """The low bits: what aligned runs keep."""
    (source,) = operands
    type_ = op.results[0].type
    if source.constant is not None:
        low = source.constant & ((1 << width_bits(type_)) - 1)
        return constant_facts(source.extents, _wrapped(low, type_))
    return _aligned(source, width_bits(type_), is_nonnegative=False)


@AXIS_RULES.register(BitcastOp, IntToPtrOp, PtrToIntOp)
def _recast(op: Operation, operands: Operands) -> Facts:
    """The same bits, where a pointer's elements may have another size now."""
    (source,) = operands
    before, after = op.operands[0].type, op.results[0].type
    if not all(is_integer(t) or is_pointer(t) for t in (before, after)):
        return same_inputs(op, operands)
    step = step_of(after)
    if step == source.step:
        return replace(source, constant=None)
    return scattered(
        source.extents,
        source.constancy,
        source.divisor(),
        is_nonnegative=source.is_nonnegative,
        step=step,
    )
