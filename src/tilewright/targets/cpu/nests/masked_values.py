"""What tiles are where a mask hides what they are made of, as far as that is a plain number.

`tl.load(w, mask=k < K, other=0.0) * tl.load(x, mask=k < K, other=0.0)` is 0 from K on. Only
numbers count that every way to compute them gives alike: zeros, ones and infinities.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.ir import OpResult, SSAValue

from tilewright.ir.types import shape_of
from tilewright.ops.creation.ir import constant_of, splatted
from tilewright.ops.elementwise.comparisons import integer_predicate
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.worklist import needed_first
from tilewright.targets.cpu.nests.coordinates import Coords, normalized, source_coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.full_chunks import Prefix, conjuncts
from tilewright.targets.cpu.schedule.inline import is_tile, owner

Number = int | float
Place = tuple[SSAValue, Coords]

# Of zeros, ones and infinities every target and every rounding computes these alike; a result that
# is none of them counts for nothing.
_PLAIN: tuple[Number, ...] = (0, 1, -1, math.inf, -math.inf)
_EXACT: dict[str, Callable[[list[Number]], Number]] = {
    "arith.addf": lambda numbers: numbers[0] + numbers[1],
    "arith.subf": lambda numbers: numbers[0] - numbers[1],
    "arith.mulf": lambda numbers: numbers[0] * numbers[1],
    "arith.negf": lambda numbers: -numbers[0],
    "arith.extf": lambda numbers: numbers[0],
    "arith.truncf": lambda numbers: numbers[0],
    "math.absf": lambda numbers: abs(numbers[0]),
}
_ZERO_TO_ZERO = frozenset(
    f"arith.{name}"
    for name in ("addi", "subi", "muli", "extsi", "extui", "trunci", "sitofp", "uitofp")
)


class MaskedValues:
    """The numbers that tiles are at the elements where a prefix does not hold."""

    def __init__(self, ev: Evaluator, prefix: Prefix) -> None:
        self._ev = ev
        self._hidden = _identity(prefix.value, prefix.coords)
        self._known: dict[Place, Number | None] = {}

    def number(self, value: SSAValue, coords: Coords) -> Number | None:
        """What a tile is at `coords` there; None where that depends on more."""
        place = (value, normalized(coords, shape_of(value.type)))
        for needed in needed_first(place, self._needs, self._known.__contains__):
            self._known[needed] = self._evaluate(needed)
        return self._known[place]

    def _needs(self, place: Place) -> list[Place]:
        value, coords = place
        is_stored = is_tile(value) and self._ev.lowering.bufferization.is_stored(value)
        if is_stored or not isinstance(value, OpResult):
            return []
        op = value.op
        scalar = splatted(value)
        if scalar is not None:
            return [_at(scalar, coords)]
        source = source_coords(op, coords, value.index)
        if source is not None and len(op.operands) == 1:
            return [_at(op.operands[0], source)]
        if isinstance(op, SelectOp):
            return [_at(op.rhs, coords)] if self._is_hidden(op.condition, coords) else []
        if isinstance(op, LoadOp):
            is_hidden = op.mask is not None and self._is_hidden(op.mask, coords)
            return [_at(op.other, coords)] if is_hidden and op.other is not None else []
        is_known = op.name in _EXACT or op.name in _ZERO_TO_ZERO
        return [_at(operand, coords) for operand in op.operands] if is_known else []

    def _is_hidden(self, mask: SSAValue, coords: Coords) -> bool:
        """Whether a mask is false where the prefix is."""
        if not is_tile(mask):
            return False
        return any(_identity(*part) == self._hidden for part in conjuncts(self._ev, mask, coords))

    def _evaluate(self, place: Place) -> Number | None:
        value, _ = place
        op = owner(value)
        constant = constant_of(value)
        if constant is not None or op is None:
            return constant
        numbers = [self._known[needed] for needed in self._needs(place)]
        known = [number for number in numbers if number is not None]
        if not known or len(known) < len(numbers):
            return None
        if op.name in _EXACT:
            result = _EXACT[op.name](known)
            return result if result in _PLAIN and set(known) <= set(_PLAIN) else None
        if op.name in _ZERO_TO_ZERO:
            return None if any(known) else 0
        return known[0]


def _identity(condition: SSAValue, coords: Coords) -> tuple[object, ...]:
    """What two comparisons share that are one: `i[None, :] < n` is `i < n` in a row."""
    op = owner(condition)
    if op is None or not integer_predicate(op):
        return condition, coords
    return (integer_predicate(op), *(_origin(operand, coords) for operand in op.operands))


def _origin(value: SSAValue, coords: Coords) -> Place:
    """Where a tile that only shows another one has its element from."""
    op = owner(value)
    while is_tile(value) and op is not None and len(op.operands) == 1:
        source = source_coords(op, coords)
        if source is None and splatted(value) is None:
            break
        value, coords = _at(op.operands[0], source or ())
        op = owner(value)
    return _at(value, coords)


def _at(value: SSAValue, coords: Coords) -> Place:
    return value, normalized(coords, shape_of(value.type)) if is_tile(value) else ()
