"""The structure of integer and pointer tiles: how a value changes along each dimension.

A dimension of a tile is *constant* (stride 0), *affine* with a stride that is a polynomial of
scalars, *affine but for jumps*, or *general* (`analysis.stride`). The same facts choose vector
loads on the CPU and will serve tensor-memory copies.

Strides are exact modulo the width of the value's type: sums, products and truncations wrap as they
do in the program. Widening is what breaks them: 250, 251, … 255, 0 has stride 1 in 8 bits, but not
in 32. A widened stride jumps, then; only that of a signed 32-bit value is *assumed* not to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.stride import ONE, ZERO, Stride, integer
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import is_integer, shape_of, width_bits
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.ir import (
    ELEMENTWISE,
    CmpIOp,
    ExtSIOp,
    ExtUIOp,
    SelectOp,
    TruncIOp,
)
from tilewright.ops.memory.ir import AddPtrOp, LoadOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp, ReshapeOp, TransOp
from tilewright.support.worklist import needed_first

Strides = tuple[Stride | None, ...]
# Signed arithmetic of at least this width is assumed not to overflow where it gives addresses.
_ADDRESS_BITS = 32
_OFFSET_BITS = 64
_ONE_SIDED = frozenset(("slt", "sle", "sgt", "sge"))


class PointerStructure:
    """Per-dimension strides of integer and pointer tiles, computed once per value."""

    def __init__(self) -> None:
        self._strides: dict[SSAValue, Strides] = {}
        self._polynomials: dict[SSAValue, Stride | None] = {}

    def strides(self, value: SSAValue) -> Strides:
        """One stride per dimension of `value`; None where it is general."""
        found = self._strides.get(value)
        if found is not None:
            return found
        for needed in needed_first(value, _tile_operands, self._strides.__contains__):
            shape = shape_of(needed.type)
            raw = self._compute(needed, len(shape))
            self._strides[needed] = tuple(
                ZERO if size == 1 else _in_type(stride, needed)
                for size, stride in zip(shape, raw, strict=True)
            )
        return self._strides[value]

    def constant_polynomial(self, value: SSAValue) -> Stride | None:
        """The value of a tile all of whose elements are equal, as a polynomial of scalars."""
        if not shape_of(value.type):
            return _scalar_polynomial(value)
        for needed in needed_first(value, _equal_operands, self._polynomials.__contains__):
            self._polynomials[needed] = self._compute_polynomial(needed)
        return self._polynomials[value]

    def _compute_polynomial(self, value: SSAValue) -> Stride | None:
        op = _owner(value)
        if isinstance(op, ConstantOp):
            return _constant(op)
        if isinstance(op, SplatOp):
            return _scalar_polynomial(op.operands[0])
        if isinstance(op, _SAME_VALUE):
            return self.constant_polynomial(op.operands[0])
        if isinstance(op, ExtSIOp):
            return _widened(self.constant_polynomial(op.operands[0]), op.operands[0])
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


def _tile_operands(value: SSAValue) -> Sequence[SSAValue]:
    """What strides are computed from: the tiles that an op without regions takes."""
    op = _owner(value)
    if op is None or op.regions:
        return ()
    return [operand for operand in op.operands if shape_of(operand.type)]


def _equal_operands(value: SSAValue) -> Sequence[SSAValue]:
    """The tiles whose polynomials make that of a tile."""
    op = _owner(value)
    if type(op) not in _SUMS_OF_SAME:
        return ()
    assert op is not None
    return [operand for operand in op.operands if shape_of(operand.type)]


def _constant(op: ConstantOp) -> Stride | None:
    value = op.splat_value()
    return integer(value) if isinstance(value, int) else None


def _scalar_polynomial(value: SSAValue) -> Stride | None:
    op = _owner(value)
    while isinstance(op, ExtSIOp):
        value = op.operands[0]
        op = _owner(value)
    if isinstance(op, ConstantOp):
        return _constant(op)
    return Stride(((1, (value,)),)) if is_integer(value.type) else None


def _in_type(stride: Stride | None, value: SSAValue) -> Stride | None:
    """A stride with coefficients in the range of the value's type; there is none in one bit."""
    if stride is None or stride.is_zero() or not is_integer(value.type):
        return stride
    bits = width_bits(value.type)
    return stride.reduced(bits) if bits > 1 else None


def _widened(polynomial: Stride | None, source: SSAValue) -> Stride | None:
    """A polynomial that was computed in the type of `source`, as a signed number of more bits."""
    if polynomial is None:
        return None
    number, bits = polynomial.as_int(), width_bits(source.type)
    if number is not None:
        return polynomial.reduced(bits)
    is_scalar = [(c, len(factors)) for c, factors in polynomial.terms] == [(1, 1)]
    if is_scalar:
        return polynomial
    return polynomial.assumed() if bits >= _ADDRESS_BITS else None


def _extended(strides: Strides, source: SSAValue, is_signed: bool) -> Strides:
    """The strides of a value in a wider type, where it wraps no more where `source` did."""
    bits = width_bits(source.type)

    def extended(stride: Stride | None) -> Stride | None:
        if stride is None or stride.is_zero():
            return stride
        if is_signed and bits >= _ADDRESS_BITS:
            return stride.assumed()
        # Jumps of two kinds could cancel (`Stride.plus`).
        return None if stride.jumps else stride.with_jumps()

    return tuple(extended(stride) for stride in strides)


def _sum(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    left, right = (structure.strides(v) for v in op.operands)
    return tuple(
        None if a is None or b is None else a.plus(b) for a, b in zip(left, right, strict=True)
    )


def _offset(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    """ptr + offset: the offset is a signed number of any width."""
    pointer, offset = op.operands
    moved = structure.strides(offset)
    if width_bits(offset.type) < _OFFSET_BITS:
        moved = _extended(moved, offset, True)
    return tuple(
        None if a is None or b is None else a.plus(b)
        for a, b in zip(structure.strides(pointer), moved, strict=True)
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
    """min(x, m), max(x, m) with constant m: the strides of x, but for jumps."""
    if structure.constant_polynomial(op.operands[1]) is None:
        return structure.where_constant(op)
    return tuple(None if s is None else s.with_jumps() for s in structure.strides(op.operands[0]))


def _remainder(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    """x % m with constant m: the strides of x, but for jumps; general where x jumps already."""
    return tuple(
        stride if before is None or not before.jumps else None
        for stride, before in zip(
            _jumping(structure, op, rank), structure.strides(op.operands[0]), strict=True
        )
    )


def _select(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    """where(i < n, i, constant): the strides of i, but for jumps; general where i has no stride.

    The condition holds on one side of a bound, so that the constant is never only in the middle of
    a run: no equality, no unsigned number (`i - 4 < n` may hold around a gap), nothing that jumps.
    """
    condition, lhs, rhs = op.operands
    fixed, compared = structure.where_constant(op), _owner(condition)
    if not shape_of(condition.type) or not isinstance(compared, CmpIOp):
        return fixed
    if compared.predicate_name() not in _ONE_SIDED:
        return fixed
    if any(structure.constant_polynomial(v) is None for v in (rhs, compared.operands[1])):
        return fixed
    source = structure.strides(compared.operands[0])
    return tuple(
        f if f is not None else _chosen(s, c)
        for f, s, c in zip(fixed, structure.strides(lhs), source, strict=True)
    )


def _chosen(stride: Stride | None, compared: Stride | None) -> Stride | None:
    if stride is None or compared is None or compared.as_int() is None:
        return None
    # Of two constants only the jump between them is left, which a stride of nothing cannot say.
    return None if stride.is_zero() or stride.jumps or compared.jumps else stride.with_jumps()


def _first_operand(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    return structure.strides(op.operands[0])


def _sign_extended(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    return _extended(structure.strides(op.operands[0]), op.operands[0], True)


def _zero_extended(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    return _extended(structure.strides(op.operands[0]), op.operands[0], False)


def _truncated(structure: PointerStructure, op: Operation, rank: int) -> Strides:
    """The low bits; jumps could cancel in them, several to a multiple of the type's range."""
    strides = structure.strides(op.operands[0])
    return tuple(None if stride is None or stride.jumps else stride for stride in strides)


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
    AddPtrOp: _offset,
    ELEMENTWISE["arith.addi"]: _sum,
    ELEMENTWISE["arith.subi"]: _difference,
    ELEMENTWISE["arith.muli"]: _product,
    ELEMENTWISE["arith.shli"]: _shift,
    ELEMENTWISE["arith.remsi"]: _remainder,
    ELEMENTWISE["arith.remui"]: _remainder,
    ELEMENTWISE["arith.minsi"]: _jumping,
    ELEMENTWISE["arith.maxsi"]: _jumping,
    SelectOp: _select,
    HintOp: _first_operand,
    BroadcastOp: _first_operand,
    ExpandDimsOp: _expanded,
    TransOp: _transposed,
    ReshapeOp: _reshaped,
    ExtSIOp: _sign_extended,
    ExtUIOp: _zero_extended,
    TruncIOp: _truncated,
}
_SAME_VALUE = (BroadcastOp, ExpandDimsOp, TransOp, ReshapeOp, HintOp)
_POLYNOMIAL: dict[type[Operation], Callable[[Stride, Stride], Stride | None]] = {
    ELEMENTWISE["arith.addi"]: lambda a, b: a.plus(b),
    ELEMENTWISE["arith.subi"]: lambda a, b: a.plus(b, -1),
    ELEMENTWISE["arith.muli"]: lambda a, b: a.times(b),
}
_SUMS_OF_SAME = frozenset((*_SAME_VALUE, *_POLYNOMIAL, ExtSIOp))
