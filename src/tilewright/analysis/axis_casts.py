"""Axis facts of casts: the same numbers, or the same bits, in another type."""

from __future__ import annotations

from xdsl.ir import Attribute, Operation

from tilewright.analysis.axis import Facts, constant_facts, equal_like, facts_from, step_of
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
    return _kept(source, source.is_nonnegative, [run.adjacent() for run in source.runs])


def _aligned(source: Facts, bits: int, is_nonnegative: bool) -> Facts:
    """What low bits keep that may wrap."""
    longest = [min(source.aligned_run(d), 1 << (bits - 1)) for d in source.dims()]
    return _kept(source, is_nonnegative, longest)


def _kept(source: Facts, is_nonnegative: bool, lengths: list[int]) -> Facts:
    """Groups of equal elements, and of consecutive ones so many."""
    kept = zip(source.runs, lengths, strict=True)
    groups = [(1, length) if run.stride else (0, run.length) for run, length in kept]
    return facts_from(source.extents, groups, source.divisor_at, is_nonnegative=is_nonnegative)


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
    return replace(equal_like(source, source.extents, source.constancy), step=step)
