"""Between which numbers the elements of an index lie, as a nest finds out when it runs.

    j % 129            0 to 128, where j is not negative
    j // 129           from the quotient of the least j to that of the greatest

An affine index is least and greatest at its corners. What is computed of bounded indices is
bounded by interval arithmetic; what is loaded is not. Indices that wrap around, as hashes do before
`%`, have no such bounds: all that is computed on the way must fit its type, else none hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.affine.stride import Stride
from tilewright.analysis.strides import ADDRESS_BITS
from tilewright.ir.types import i64, is_integer, shape_of, width_bits
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.support.deep_calls import with_room
from tilewright.targets.cpu.nests.coordinates import constant_coords, source_coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.schedule.inline import is_tile, owner

Interval = tuple[SSAValue, SSAValue]
"""The least and the greatest number, as i64."""

# By definition: sums of a few numbers of 48 bits, and products of two of 32, fit 64 bits.
_SUM_BITS, _FACTOR_BITS = 48, 32


class Bounds:
    """Computes bounds in one nest; they hold where all `conditions` do, which are i1."""

    def __init__(self, ev: Evaluator) -> None:
        self.ev = ev
        self.emit = ev.emit
        self.conditions: dict[SSAValue, None] = {}
        self._found: dict[SSAValue, Interval] = {}

    def of(self, value: SSAValue) -> Interval:
        """The bounds of a tile of integers for which `is_bounded` holds."""
        return with_room(lambda: self._of(value))

    def _of(self, value: SSAValue) -> Interval:
        if value not in self._found:
            self._found[value] = self._compute(value)
            self.fit(self._found[value], min(width_bits(value.type), _SUM_BITS))
        return self._found[value]

    def _compute(self, value: SSAValue) -> Interval:
        if not is_tile(value):
            scalar = self.emit.widen(self.ev.lowering.scalar(value))
            return scalar, scalar
        if is_affine(self.ev, value):
            return self._at_corners(value)
        op = owner(value)
        assert op is not None
        if is_arrangement(op):
            return self._of(op.operands[0])
        return _RULES[op.name](self, *(self._of(operand) for operand in op.operands[-2:]))

    def _at_corners(self, value: SSAValue) -> Interval:
        emit, shape = self.emit, shape_of(value.type)
        origin = constant_coords((0,) * len(shape))
        low = high = emit.widen(self.ev.element(value, origin, False))
        zero = emit.constant(i64, 0)
        for stride, extent in zip(_strides(self.ev, value), shape, strict=True):
            assert stride is not None
            if stride.is_zero() or extent == 1:
                continue
            step = polynomial(self.ev, stride, 1)
            self.fit((step, step), _FACTOR_BITS)
            span = polynomial(self.ev, stride, extent - 1)
            low = emit.integer("addi", low, emit.integer("minsi", span, zero))
            high = emit.integer("addi", high, emit.integer("maxsi", span, zero))
        return low, high

    def fit(self, interval: Interval, bits: int) -> None:
        """Let bounds hold only where an interval fits signed numbers of so many bits."""
        half = 1 << (bits - 1)
        self.demand("sge", interval[0], -half)
        self.demand("slt", interval[1], half)

    def demand(self, predicate: str, value: SSAValue, number: int) -> None:
        """Let bounds hold only where a comparison of `value` with a number does."""
        condition = self.emit.compare(predicate, value, self.emit.constant(i64, number))
        self.conditions[condition] = None


def is_bounded(ev: Evaluator, value: SSAValue) -> bool:
    """Whether the bounds of a tile of integers can be told."""
    return with_room(lambda: _is_bounded(ev, value, {}))


def _is_bounded(ev: Evaluator, value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    if not is_tile(value):
        return True
    if value not in known:
        known[value] = is_affine(ev, value) or _is_computed(ev, value, known)
    return known[value]


def _is_computed(ev: Evaluator, value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    op = owner(value)
    if op is None or not is_integer(value.type) or ev.lowering.bufferization.is_stored(value):
        return False
    if is_arrangement(op):
        return _is_bounded(ev, op.operands[0], known)
    if op.name not in _RULES or width_bits(value.type) < ADDRESS_BITS:
        return False
    return all(_is_bounded(ev, operand, known) for operand in op.operands[-2:])


def is_affine(ev: Evaluator, value: SSAValue) -> bool:
    """Whether every stride of a tile is known and holds everywhere, and none is beyond bounds."""
    return all(
        stride is not None and not stride.jumps and _is_short(stride)
        for stride in _strides(ev, value)
    )


def _is_short(stride: Stride) -> bool:
    return all(abs(coefficient) < 1 << (_FACTOR_BITS - 1) for coefficient, _ in stride.terms)


def _strides(ev: Evaluator, value: SSAValue) -> tuple[Stride | None, ...]:
    return ev.lowering.bufferization.structure.strides(value)


def is_arrangement(op: Operation) -> bool:
    """Whether an op only puts the elements of its operand in other places."""
    if len(op.results) != 1:
        return False
    origin = constant_coords((0,) * len(shape_of(op.results[0].type)))
    return source_coords(op, origin) is not None


def _same(bounds: Bounds, *operands: Interval) -> Interval:
    return operands[-1]


def _sum(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    emit = bounds.emit
    low, high = (emit.integer("addi", a, b) for a, b in zip(left, right, strict=True))
    return low, high


def _difference(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    emit = bounds.emit
    return emit.integer("subi", left[0], right[1]), emit.integer("subi", left[1], right[0])


def _product(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    for factor in (left, right):
        bounds.fit(factor, _FACTOR_BITS)
    return _corners(bounds, "muli", left, right)


def _quotient(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    bounds.demand("sgt", right[0], 0)
    least = bounds.emit.constant(i64, 1)
    low, high = (bounds.emit.integer("maxsi", divisor, least) for divisor in right)
    return _corners(bounds, "divsi", left, (low, high))


def _unsigned_quotient(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    bounds.demand("sge", left[0], 0)
    return _quotient(bounds, left, right)


def _remainder(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    """It has the sign of the dividend, and is no further from 0 than that."""
    bounds.demand("sgt", right[0], 0)
    emit, zero = bounds.emit, bounds.emit.constant(i64, 0)
    most = emit.integer("subi", right[1], emit.constant(i64, 1))
    least = emit.integer("subi", zero, most)
    low = emit.integer("minsi", emit.integer("maxsi", left[0], least), zero)
    high = emit.integer("maxsi", emit.integer("minsi", left[1], most), zero)
    return low, high


def _unsigned_remainder(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    bounds.demand("sge", left[0], 0)
    return _remainder(bounds, left, right)


def _shifted(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    bounds.demand("sge", right[0], 0)
    bounds.demand("slt", right[1], width_bits(i64))
    return _corners(bounds, "shrsi", left, right)


def _masked(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    """Bits of a number that is not negative."""
    bounds.demand("sge", right[0], 0)
    return bounds.emit.constant(i64, 0), right[1]


def _corners(bounds: Bounds, name: str, left: Interval, right: Interval) -> Interval:
    emit = bounds.emit
    pairs = dict.fromkeys((a, b) for a in left for b in right)
    corners = [emit.integer(name, a, b) for a, b in pairs]
    low = high = corners[0]
    for corner in corners[1:]:
        low = emit.integer("minsi", low, corner)
        high = emit.integer("maxsi", high, corner)
    return low, high


def _lesser(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    return _each(bounds, "minsi", left, right)


def _greater(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    return _each(bounds, "maxsi", left, right)


def _each(bounds: Bounds, name: str, left: Interval, right: Interval) -> Interval:
    low, high = (bounds.emit.integer(name, a, b) for a, b in zip(left, right, strict=True))
    return low, high


def _either(bounds: Bounds, left: Interval, right: Interval) -> Interval:
    emit = bounds.emit
    return emit.integer("minsi", left[0], right[0]), emit.integer("maxsi", left[1], right[1])


_RULES: Mapping[str, Callable[..., Interval]] = {
    "arith.addi": _sum,
    "arith.subi": _difference,
    "arith.muli": _product,
    "arith.divsi": _quotient,
    "arith.divui": _unsigned_quotient,
    "arith.remsi": _remainder,
    "arith.remui": _unsigned_remainder,
    "arith.shrsi": _shifted,
    "arith.andi": _masked,
    "arith.extsi": _same,
    "arith.minsi": _lesser,
    "arith.maxsi": _greater,
    SelectOp.name: _either,  # of its last two operands
}
"""By op, from the bounds of its last two operands, or of its only one."""
