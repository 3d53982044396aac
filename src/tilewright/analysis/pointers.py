"""The structure of integer and pointer tiles: how a value changes along each dimension.

A dimension of a tile is *constant* (stride 0), *affine* with a stride that is a polynomial of
scalars, *affine but for jumps* (`(pid * B + arange) % M` wraps, `minimum(i, n)` saturates), or
*general*. The same facts choose vector loads on the CPU and will serve tensor-memory copies.

Index arithmetic inside a tile is taken as non-wrapping: `offsets + arange` that overflows its
integer type along the tile is outside of what a kernel may do with addresses. Scalars keep
their exact wrapping arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import is_integer, is_pointer, shape_of
from tilewright.ops.creation import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.debug import HintOp
from tilewright.ops.elementwise import (
    ELEMENTWISE,
    CastOp,
    CmpIOp,
    ExtSIOp,
    ExtUIOp,
    SelectOp,
    TruncIOp,
)
from tilewright.ops.memory import AddPtrOp, LoadOp
from tilewright.ops.shape import BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp
from tilewright.support.dataclass import dataclass

Term = tuple[int, tuple[SSAValue, ...]]


@dataclass(frozen=True)
class Stride:
    """A sum of integer multiples of products of scalars; `jumps`: affine but for jumps."""

    terms: tuple[Term, ...] = ()
    jumps: bool = False

    def is_zero(self) -> bool:
        """Whether the value is constant along the dimension."""
        return not self.terms

    def as_int(self) -> int | None:
        """The stride where it is a compile-time integer."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][1]:
            return self.terms[0][0]
        return None

    def plus(self, other: Stride, sign: int = 1) -> Stride:
        """The stride of a sum (or difference) of two values."""
        if not other.terms:
            return self
        merged = {factors: coefficient for coefficient, factors in self.terms}
        for coefficient, factors in other.terms:
            merged[factors] = merged.get(factors, 0) + sign * coefficient
        terms = tuple((c, factors) for factors, c in merged.items() if c)
        return Stride(terms, self.jumps or other.jumps)

    def times(self, other: Stride) -> Stride:
        """The stride of a value times a constant polynomial."""
        merged: dict[tuple[SSAValue, ...], int] = {}
        for left, left_factors in self.terms:
            for right, right_factors in other.terms:
                factors = (*left_factors, *right_factors)
                merged[factors] = merged.get(factors, 0) + left * right
        return Stride(tuple((c, f) for f, c in merged.items() if c), self.jumps)

    def with_jumps(self) -> Stride:
        """The same stride, valid but for jumps."""
        return self if not self.terms else Stride(self.terms, True)


ZERO = Stride()
ONE = Stride(((1, ()),))
Strides = tuple[Stride | None, ...]


def integer(value: int) -> Stride:
    """The polynomial that is one integer."""
    return Stride(((value, ()),)) if value else ZERO


class PointerStructure:
    """Per-dimension strides of integer and pointer tiles, computed once per value."""

    def __init__(self) -> None:
        self._strides: dict[SSAValue, Strides] = {}

    def strides(self, value: SSAValue) -> Strides:
        """One stride per dimension of `value`; None where it is general."""
        found = self._strides.get(value)
        if found is None:
            shape = shape_of(value.type)
            raw = self._compute(value, len(shape))
            found = tuple(
                ZERO if size == 1 else stride for size, stride in zip(shape, raw, strict=True)
            )
            self._strides[value] = found
        return found

    def constant_polynomial(self, value: SSAValue) -> Stride | None:
        """The value of a tile all of whose elements are equal, as a polynomial of scalars."""
        if not shape_of(value.type):
            return _scalar_polynomial(value)
        op = _owner(value)
        if isinstance(op, ConstantOp):
            return _constant(op)
        if isinstance(op, SplatOp):
            return _scalar_polynomial(op.operands[0])
        if isinstance(op, _SAME_VALUE):
            return self.constant_polynomial(op.operands[0])
        combine = None if op is None else _POLYNOMIAL.get(type(op))
        if op is None or combine is None:
            return None
        operands = [self.constant_polynomial(operand) for operand in op.operands]
        if operands[0] is None or operands[1] is None:
            return None
        return combine(operands[0], operands[1])

    def _compute(self, value: SSAValue, rank: int) -> Strides:
        op = _owner(value)
        if op is None:
            return (None,) * rank
        rule = _STRIDE_RULES.get(type(op))
        if rule is not None:
            return rule(self, op, rank)
        if isinstance(op, ElementwiseOp | LoadOp):
            return self.where_constant(op)
        return (None,) * rank

    def where_constant(self, op: Operation) -> Strides:
        """Zero along dimensions where every operand is constant, general elsewhere."""
        columns = zip(*(self._padded(v, op) for v in op.operands), strict=True)
        return tuple(
            ZERO if all(s is not None and s.is_zero() for s in c) else None for c in columns
        )

    def _padded(self, value: SSAValue, op: Operation) -> Strides:
        if not shape_of(value.type):
            return (ZERO,) * len(shape_of(op.results[0].type))
        return self.strides(value)


def _owner(value: SSAValue) -> Operation | None:
    return value.op if isinstance(value, OpResult) else None


def _constant(op: ConstantOp) -> Stride | None:
    value = op.splat_value()
    return integer(value) if isinstance(value, int) else None


def _scalar_polynomial(value: SSAValue) -> Stride | None:
    op = _owner(value)
    if isinstance(op, ConstantOp):
        return _constant(op)
    if isinstance(op, ExtSIOp):
        return _scalar_polynomial(op.operands[0])
    return Stride(((1, (value,)),)) if is_integer(value.type) else None


def _sum(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    left, right = (structure.strides(v) for v in op.operands)
    return tuple(
        None if a is None or b is None else a.plus(b) for a, b in zip(left, right, strict=True)
    )


def _difference(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    left, right = (structure.strides(v) for v in op.operands)
    return tuple(
        None if a is None or b is None else a.plus(b, -1) for a, b in zip(left, right, strict=True)
    )


def _scaled(strides: Strides, factor: Stride | None) -> Strides:
    return tuple(
        s
        if s is not None and s.is_zero()
        else None
        if s is None or factor is None
        else s.times(factor)
        for s in strides
    )


def _product(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    left, right = op.operands
    factor = structure.constant_polynomial(right)
    if factor is not None:
        return _scaled(structure.strides(left), factor)
    factor = structure.constant_polynomial(left)
    if factor is not None:
        return _scaled(structure.strides(right), factor)
    return structure.where_constant(op)


def _shift(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    amount = structure.constant_polynomial(op.operands[1])
    count = None if amount is None else amount.as_int()
    if count is None or not 0 <= count < 63:
        return structure.where_constant(op)
    return _scaled(structure.strides(op.operands[0]), integer(1 << count))


def _jumping(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    """x % m, min(x, m), max(x, m) with constant m: the strides of x, but for jumps."""
    if structure.constant_polynomial(op.operands[1]) is None:
        return structure.where_constant(op)
    return tuple(None if s is None else s.with_jumps() for s in structure.strides(op.operands[0]))


def _select(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    """where(i < n, i, constant): the strides of i, but for jumps."""
    condition, lhs, rhs = op.operands
    if not shape_of(condition.type) or not isinstance(_owner(condition), CmpIOp):
        return structure.where_constant(op)
    if structure.constant_polynomial(rhs) is None:
        return structure.where_constant(op)
    compared = _owner(condition)
    assert compared is not None
    if structure.constant_polynomial(compared.operands[1]) is None:
        return structure.where_constant(op)
    fixed = structure.where_constant(op)
    source = structure.strides(compared.operands[0])
    return tuple(
        f
        if f is not None
        else (None if s is None or c is None or c.as_int() is None else s.with_jumps())
        for f, s, c in zip(fixed, structure.strides(lhs), source, strict=True)
    )


def _first_operand(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    return structure.strides(op.operands[0])


def _cast(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    source = op.operands[0]
    if is_integer(source.type) or is_pointer(source.type):
        return structure.strides(source)
    return structure.where_constant(op)


def _expanded(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    assert isinstance(op, ExpandDimsOp)
    axis = op.axis.value.data
    source = structure.strides(op.operands[0]) if rank > 1 else ()
    return (*source[:axis], ZERO, *source[axis:])


def _transposed(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    assert isinstance(op, TransOp)
    source = structure.strides(op.operands[0])
    return tuple(source[d] for d in op.permutation())


def _reshaped(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    """Unit dimensions come and go; a split of one affine dimension stays affine."""
    source = op.operands[0]
    strides = structure.strides(source)
    if all(s is not None and s.is_zero() for s in strides):
        return (ZERO,) * rank
    groups = split_groups(shape_of(source.type), shape_of(op.results[0].type))
    if groups is None:
        return (None,) * rank
    result: list[Stride | None] = [ZERO] * rank
    for source_dim, targets in groups:
        stride = strides[source_dim]
        for target, scale in targets:
            result[target] = None if stride is None else stride.times(integer(scale))
    return tuple(result)


SplitGroups = list[tuple[int, list[tuple[int, int]]]]


def split_groups(source: tuple[int, ...], target: tuple[int, ...]) -> SplitGroups | None:
    """How each source dimension of a reshape splits into target dimensions with their scale.

    Entry (d, [(t0, s0), …]): source index d = Σ target index t × s. None where the reshape
    merges source dimensions.
    """
    groups: SplitGroups = []
    position = 0
    for dim, size in enumerate(source):
        if size == 1:
            continue
        taken: list[int] = []
        product = 1
        while product < size and position < len(target):
            product *= target[position]
            taken.append(position)
            position += 1
        if product != size:
            return None
        scales: list[tuple[int, int]] = []
        scale = size
        for index in taken:
            scale //= target[index]
            if target[index] > 1:
                scales.append((index, scale))
        groups.append((dim, scales))
    return groups


def _fixed(strides: Strides) -> Callable[[PointerStructure, Operation, int], Strides]:
    def rule(structure: PointerStructure, op: Operation, rank: int) -> Strides:
        return strides * rank

    return rule


_Rule = Callable[[PointerStructure, Operation, int], Strides]
_STRIDE_RULES: dict[type[Operation], _Rule] = {
    ConstantOp: _fixed((ZERO,)),
    SplatOp: _fixed((ZERO,)),
    MakeRangeOp: _fixed((ONE,)),
    AddPtrOp: _sum,
    ELEMENTWISE["arith.addi"]: _sum,
    ELEMENTWISE["arith.subi"]: _difference,
    ELEMENTWISE["arith.muli"]: _product,
    ELEMENTWISE["arith.shli"]: _shift,
    ELEMENTWISE["arith.remsi"]: _jumping,
    ELEMENTWISE["arith.remui"]: _jumping,
    ELEMENTWISE["arith.minsi"]: _jumping,
    ELEMENTWISE["arith.maxsi"]: _jumping,
    SelectOp: _select,
    HintOp: _first_operand,
    BroadcastOp: _first_operand,
    ExpandDimsOp: _expanded,
    TransOp: _transposed,
    ReshapeOp: _reshaped,
    ExtSIOp: _cast,
    ExtUIOp: _cast,
    TruncIOp: _cast,
}
_SAME_VALUE = (BroadcastOp, ExpandDimsOp, TransOp, ReshapeOp, HintOp, ExtSIOp)
_POLYNOMIAL: dict[type[Operation], Callable[[Stride, Stride], Stride]] = {
    ELEMENTWISE["arith.addi"]: lambda a, b: a.plus(b),
    ELEMENTWISE["arith.subi"]: lambda a, b: a.plus(b, -1),
    ELEMENTWISE["arith.muli"]: lambda a, b: a.times(b),
}
assert all(issubclass(cls, CastOp) for cls in (ExtSIOp, ExtUIOp, TruncIOp))
