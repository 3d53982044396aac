"""Axis facts of casts: the same numbers, or the same bits, in another type."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from tilewright.analysis.axis import (
    Facts,
    Group,
    constant_facts,
    facts_from,
    in_equal_groups,
    step_of,
)
from tilewright.analysis.axis_table import AXIS_RULES, Operands, may_wrap, same_inputs, wrapped
from tilewright.ir.types import is_integer, is_pointer, width_bits
from tilewright.ops.elementwise.ir import (
    BitcastOp,
    ExtSIOp,
    ExtUIOp,
    IndexCastOp,
    IntToPtrOp,
    PtrToIntOp,
    TruncIOp,
)
from tilewright.support.dataclass import replace


@AXIS_RULES.register(IndexCastOp)
def same_numbers(op: Operation, operands: Operands) -> Facts:
    """The same numbers in another type or layout."""
    return operands[0]


@AXIS_RULES.register(ExtSIOp)
def _extended(op: Operation, operands: Operands) -> Facts:
    return sign_extended(op.operands[0].type, operands[0])


def sign_extended(type_: Attribute, source: Facts) -> Facts:
    """Signed numbers in a wider type than `type_`: of narrow ones only what aligned runs keep."""
    if source.constant is not None:
        return source
    if not may_wrap(type_):
        return _counted(source)
    return _aligned(source, width_bits(type_), source.is_nonnegative)


def _counted(source: Facts) -> Facts:
    """Facts without strides but those of indices: other products may be meant to wrap."""
    if all(run.stride in (0, 1) for run in source.runs):
        return source
    runs = ((r.stride, r.length) if r.stride in (0, 1) else (0, 1) for r in source.runs)
    divisor, is_nonnegative = source.divisor_at, source.is_nonnegative
    return facts_from(source.extents, runs, divisor, is_nonnegative=is_nonnegative)


def _aligned(source: Facts, bits: int, is_nonnegative: bool) -> Facts:
    groups = (_aligned_group(source, dim, bits) for dim in source.dims())
    return facts_from(source.extents, groups, source.divisor_at, is_nonnegative=is_nonnegative)


def _aligned_group(source: Facts, dim: int, bits: int) -> Group:
    """What is left of groups in which the low bits may wrap."""
    if source.runs[dim].stride == 0:
        return 0, source.runs[dim].length
    return 1, min(source.aligned_run(dim), 1 << (bits - 1))


@AXIS_RULES.register(ExtUIOp)
def _zero_extended(op: Operation, operands: Operands) -> Facts:
    """The same bits as an unsigned number: of one that is not negative, itself."""
    (source,) = operands
    bits = width_bits(op.operands[0].type)
    if source.constant is not None:
        return constant_facts(source.extents, source.constant & ((1 << bits) - 1))
    if source.is_nonnegative:
        return _counted(source)
    return _aligned(source, bits, is_nonnegative=True)


@AXIS_RULES.register(TruncIOp)
def _truncated(op: Operation, operands: Operands) -> Facts:
    """The low bits: what aligned runs keep."""
    (source,) = operands
    type_ = op.results[0].type
    if source.constant is not None:
        low = source.constant & ((1 << width_bits(type_)) - 1)
        return constant_facts(source.extents, wrapped(low, type_))
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
    return in_equal_groups(
        source.extents,
        source.constancy,
        source.divisor(),
        is_nonnegative=source.is_nonnegative,
        step=step,
    )
