"""Axis facts of casts: the same numbers, or the same bits, in another type."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from tilewright.analysis.axis import Facts, constant_facts, facts_from, scattered, step_of
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
    if source.constant is not None or not may_wrap(type_):
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
    return scattered(
        source.extents,
        source.constancy,
        source.divisor(),
        is_nonnegative=source.is_nonnegative,
        step=step,
    )
