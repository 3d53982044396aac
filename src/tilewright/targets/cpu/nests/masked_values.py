"""What tiles are where a mask hides what they are made of, as far as that is a plain number.

`tl.load(w, mask=k < K, other=0.0) * tl.load(x, mask=k < K, other=0.0)` is 0 from K on. Only
numbers count that every way to compute them gives alike, such as zeros and infinities. Where it
takes a scalar to know them, as `exp(-inf - maximum)` is 0 unless the maximum is -inf, what the
scalar must be above is told with the number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.ir.types import shape_of
from tilewright.ops.creation.ir import constant_of, splatted
from tilewright.ops.elementwise.comparisons import integer_predicate
from tilewright.ops.elementwise.ir import ElementwiseOp, SelectOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.dataclass import dataclass
from tilewright.support.worklist import needed_first
from tilewright.targets.cpu.nests.coordinates import (
    LANE_LOOP,
    Coords,
    normalized,
    source_coords,
)
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.full_chunks import Prefix, conjuncts
from tilewright.targets.cpu.schedule.inline import is_tile, owner

Number = int | float
Place = tuple[SSAValue, Coords]

# Of zeros, ones, twos, halves and infinities every target and every rounding computes these alike,
# and functions of zeros and infinities; a result that is none of them counts for nothing.
_PLAIN: tuple[Number, ...] = (0, 1, -1, 2, -2, 0.5, -0.5, math.inf, -math.inf)
_EXACT: dict[str, Callable[..., float]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
    "arith.divf": lambda a, b: a / b,
    "arith.negf": lambda number: -number,
    "arith.extf": float,
    # Some types of a byte have no infinity.
    "arith.truncf": lambda number: math.nan if math.isinf(number) else number,
    "math.absf": lambda number: abs(number),
}
_AT_ZERO_AND_INFINITY: dict[str, Callable[[float], float]] = {
    "math.exp": math.exp,
    "math.exp2": math.exp2,
    "math.erf": math.erf,
    "math.tanh": math.tanh,
    "math.sin": math.sin,
    "math.sqrt": math.sqrt,
}
_ZERO_TO_ZERO: dict[str, Number] = {
    **dict.fromkeys(
        (f"arith.{name}" for name in ("addi", "subi", "muli", "extsi", "extui", "trunci")), 0
    ),
    **dict.fromkeys(("arith.sitofp", "arith.uitofp"), 0.0),
}
_KNOWN = frozenset((*_EXACT, *_AT_ZERO_AND_INFINITY, *_ZERO_TO_ZERO))
_MOST_STORED = 4
"""Through how many stored tiles a search looks: all nests of a chain would look through all of it.

Chosen, not measured: a fold of which less is known runs to its end and computes the same."""
# Scalars that keep minus infinity as it is, and what each of them must be above.
_KEEPS_MINUS_INFINITY: dict[str, float] = {"arith.subf": -math.inf, "arith.mulf": 0.0}


@dataclass(frozen=True)
class Above:
    """A condition: what all lanes have of a tile, at `coords`, is a number above `bound`."""

    value: SSAValue
    coords: Coords
    bound: float


@dataclass(frozen=True)
class Masked:
    """What a tile is where a mask hides it: `number`, if all of `conditions` hold."""

    number: Number
    conditions: tuple[Above, ...] = ()


class MaskedValues:
    """The numbers that tiles are at the elements where a prefix does not hold."""

    def __init__(self, ev: Evaluator, prefix: Prefix) -> None:
        self._ev = ev
        self._reach = Reach(ev)
        self._loop = prefix.loop
        self._hidden = _identity(prefix.value, prefix.coords)
        self._known: dict[Place, Masked | None] = {}

    def number(self, value: SSAValue, coords: Coords) -> Masked | None:
        """What a tile is at `coords` there; None where that depends on more."""
        place = (value, normalized(coords, shape_of(value.type)))
        for needed in needed_first(place, self._needs, self._known.__contains__):
            self._known[needed] = self._evaluate(needed)
        return self._known[place]

    def hides(self, mask: SSAValue, coords: Coords) -> bool:
        """Whether a mask is false where the prefix is."""
        if not is_tile(mask):
            return False
        return any(_identity(*part) == self._hidden for part in conjuncts(self._ev, mask, coords))

    def _needs(self, place: Place) -> list[Place]:
        value, coords = place
        if not isinstance(value, OpResult) or not self._reach.covers(value):
            return []
        op = value.op
        scalar = splatted(value)
        if scalar is not None:
            return [_at(scalar, coords)]
        source = source_coords(op, coords, value.index)
        if source is not None and len(op.operands) == 1:
            return [_at(op.operands[0], source)]
        if isinstance(op, SelectOp):
            return [_at(op.rhs, coords)] if self.hides(op.condition, coords) else []
        if isinstance(op, LoadOp):
            is_hidden = op.mask is not None and self.hides(op.mask, coords)
            return [_at(op.other, coords)] if is_hidden and op.other is not None else []
        is_known = op.name in _KNOWN
        return [_at(operand, coords) for operand in op.operands] if is_known else []

    def _evaluate(self, place: Place) -> Masked | None:
        value, _ = place
        op = owner(value)
        constant = constant_of(value)
        if op is None or constant is not None:
            return None if constant is None else Masked(constant)
        needs = self._needs(place)
        operands = [self._known[needed] for needed in needs]
        known = [operand for operand in operands if operand is not None]
        if not known or len(known) < len(operands):
            return self._with_scalar(op, needs, operands)
        numbers = [operand.number for operand in known]
        number = computed(op.name, numbers)
        conditions = tuple(dict.fromkeys(each for operand in known for each in operand.conditions))
        return None if number is None else Masked(number, conditions)

    def _with_scalar(
        self, op: Operation, places: Sequence[Place], operands: Sequence[Masked | None]
    ) -> Masked | None:
        """Minus infinity less a scalar, or times one, is what it was unless the scalar is odd."""
        bound = _KEEPS_MINUS_INFINITY.get(op.name)
        if bound is None or self._loop != LANE_LOOP or len(operands) != 2:
            return None
        sides = [*zip(operands, reversed(places), strict=True)]
        for kept, (value, coords) in sides if op.name == "arith.mulf" else sides[:1]:
            is_uniform = is_tile(value) and self._ev.lane_stride(value, coords) == (0, False)
            if kept is not None and kept.number == -math.inf and is_uniform:
                return Masked(-math.inf, (*kept.conditions, Above(value, coords, bound)))
        return None


def computed(name: str, numbers: Sequence[Number]) -> Number | None:
    """What an op makes of numbers, as far as every way to compute it gives the same."""
    if name in _ZERO_TO_ZERO:
        return None if any(numbers) else _ZERO_TO_ZERO[name]
    function = _EXACT.get(name) or _AT_ZERO_AND_INFINITY.get(name)
    if function is None:
        return numbers[0]
    is_extreme = [number == 0 or math.isinf(number) for number in numbers]
    if name in _AT_ZERO_AND_INFINITY:
        is_exact = all(is_extreme)
    else:  # a product with 0 or an infinity is one whatever the other factor is
        is_exact = name == "arith.mulf" and any(is_extreme)
        is_exact = is_exact or set(numbers) <= set(_PLAIN)
    try:
        result = function(*map(float, numbers)) if is_exact else math.nan
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return result if result in _PLAIN else None


class Reach:
    """How far a search looks at what tiles are made of: through a few that are stored."""

    def __init__(self, ev: Evaluator) -> None:
        self._ev = ev
        self._stored: set[SSAValue] = set()

    def covers(self, value: SSAValue) -> bool:
        """Whether a search looks at what a tile is made of, at the same place."""
        ev = self._ev
        if not is_tile(value) or value in ev.fresh or value in self._stored:
            return True
        if not ev.lowering.bufferization.is_stored(value):
            return True
        if not isinstance(owner(value), ElementwiseOp | LoadOp):
            return False
        if len(self._stored) == _MOST_STORED:
            return False
        self._stored.add(value)
        return True


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
