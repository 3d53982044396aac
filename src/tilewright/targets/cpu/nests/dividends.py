"""Signed divisions by a constant of what is not negative: unsigned ones, which cost less.

    (program * N + arange) % 8      below zero only where the sum wrapped around

Where only the run knows, the lane loop asks once, before it: whether the dividend starts at zero
or above, and cannot wrap on its way. Else its chunks are done as those are that masks hide.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import element_of, i1, shape_of, vector_of, width_bits
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP, Coords
from tilewright.targets.cpu.nests.evaluate import ELEMENT_RULES, Evaluator
from tilewright.targets.cpu.nests.full_chunks import at_start
from tilewright.targets.cpu.nests.loop_order import SIGNED_DIVISIONS, Place
from tilewright.targets.cpu.nests.pieces import exact_step
from tilewright.targets.cpu.schedule.inline import owner

_UNSIGNED: dict[str, str] = dict(zip(SIGNED_DIVISIONS, ("arith.divui", "arith.remui"), strict=True))


@dataclass(frozen=True)
class Dividend:
    """What a signed division by a positive constant divides, `step` more from lane to lane."""

    value: SSAValue
    coords: Coords
    step: int


def find_dividends(ev: Evaluator, quotients: Sequence[Place]) -> tuple[Dividend, ...]:
    """The dividends of a nest's signed divisions that move along the lanes and may be negative."""
    structure, ranges = ev.lowering.bufferization.structure, ev.lowering.bufferization.ranges
    found: dict[Dividend, None] = {}
    for quotient, coords in quotients:
        op = owner(quotient)
        if op is None or not _is_by_positive(ev, op):
            continue
        value = op.operands[0]
        if ranges.is_nonnegative(value):
            continue
        strides = zip(structure.strides(value), coords, strict=True)
        if any(s is not None and s.is_assumed for s, c in strides if c.lane_scale()):
            continue
        step = exact_step(structure, value, coords, LANE_LOOP)
        if step is not None and step > 0:
            found[Dividend(value, coords, step)] = None
    return tuple(found)


def _is_by_positive(ev: Evaluator, op: Operation) -> bool:
    """Whether a division is by a positive constant."""
    least, most = ev.lowering.bufferization.ranges.of(op.operands[1])
    return least == most > 0


def are_nonnegative(ev: Evaluator, dividends: Sequence[Dividend], size: int) -> SSAValue:
    """An i1: no dividend is negative at any of `size` indices along the lanes."""
    emit, holds = ev.emit, ev.emit.constant(i1, 1)
    for each in dividends:
        first = ev.element(each.value, tuple(at_start(c, LANE_LOOP) for c in each.coords), False)
        last = (1 << width_bits(first.type) - 1) - 1 - each.step * (size - 1)
        if last < 0:
            return emit.constant(i1, 0)
        # One comparison: what is negative is above as an unsigned number.
        is_within = emit.compare("ule", first, emit.constant(first.type, last))
        holds = emit.integer("andi", holds, is_within)
    return holds


def assume_nonnegative(ev: Evaluator, dividends: Sequence[Dividend]) -> None:
    """Take dividends as not negative in the loop that is opened next."""
    ev.nonnegative.update((each.value, each.coords) for each in dividends)


@ELEMENT_RULES.register(*(ELEMENTWISE[name] for name in _UNSIGNED))
def _divide(ev: Evaluator, op: Operation, coords: Coords, wide: bool) -> SSAValue:
    ranges, dividend = ev.lowering.bufferization.ranges, op.operands[0]
    is_known = (dividend, coords) in ev.nonnegative or ranges.is_nonnegative(dividend)
    if not (is_known and _is_by_positive(ev, op)):
        return ev.elementwise(op, coords, wide)
    sides = [ev.element(operand, coords, wide) for operand in op.operands]
    lanes = ev.lanes if wide and any(shape_of(side.type) for side in sides) else 1
    sides = [ev.emit.splat(side, lanes) for side in sides]
    result = vector_of(element_of(op.results[0].type), lanes)
    cls = ELEMENTWISE[_UNSIGNED[op.name]]
    return ev.emit.pure(cls, sides, result, location=op.location)
