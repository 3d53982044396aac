"""The table of rules for axis facts, and what several of them ask."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from xdsl.ir import Attribute, Operation

from tilewright.analysis.axis import Facts, Group, extents_of, in_equal_groups, step_of
from tilewright.analysis.strides import ADDRESS_BITS, stride_of
from tilewright.ir.types import width_bits
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.rules import RuleTable

Operands = tuple[Facts, ...]


Rule = Callable[[Operation, Operands], Facts]
"""From an op and the facts of its operands to those of each of its results."""


AXIS_RULES: RuleTable[Rule] = RuleTable("axis facts")


@AXIS_RULES.register(LoadOp)
def same_inputs(op: Operation, operands: Operands) -> Facts:
    """Elements are equal where those of every operand are; scalar operands always are."""
    type_ = op.results[0].type
    extents = extents_of(type_)
    return in_equal_groups(extents, joint_constancy(extents, operands), step=step_of(type_))


def groups_of(op: Operation, left: Facts, right: Facts) -> list[Group]:
    """Where both operands go by one stride, so does the result, if it has one (`strides`)."""
    numbers, groups = (left.constant, right.constant), list[Group]()
    for a, b in zip(left.runs, right.runs, strict=True):
        stride = stride_of(op, (a.stride, b.stride), numbers)
        groups.append((0, 1) if stride is None else (stride, gcd(a.length, b.length)))
    return groups


def joint_constancy(extents: tuple[int, ...], operands: Operands) -> tuple[int, ...]:
    """The lengths of groups in which every operand keeps its value."""
    groups = extents
    for operand in operands:
        if operand.extents == extents:
            groups = tuple(map(gcd, groups, operand.constancy))
    return groups


def wrapped(value: int, type_: Attribute) -> int:
    """An integer as a type holds it, signed."""
    bits = width_bits(type_)
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def may_wrap(type_: Attribute) -> bool:
    """Whether arithmetic in a type wraps in programs that use it for indices."""
    return width_bits(type_) < ADDRESS_BITS
