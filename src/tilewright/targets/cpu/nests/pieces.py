"""Values that are affine by pieces along a loop: quotients, remainders, and what is made of them.

    j // d                 0 from one multiple of d to the next
    j % d                  moves as j does, from one multiple of d to the next
    j // d * s + j % d     one element on, but for jumps

Such a value may jump several times in a run of lanes, and jumps of several kinds could cancel, so
where a piece ends is not asked of the value but of its dividends: a *cut* is the next index whose
quotient is another one. A dividend that stays the same within a piece makes no cuts of its own, so
`j // w % h` and `j // (w * h)` of a nested index cost one cut for each number that `j` itself is
divided by.
"""

from __future__ import annotations

from xdsl.ir import Operation, OpResult, SSAValue

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.analysis.strides import Numbers, Strides, power_divided_by, stride_of
from tilewright.ir.op import ElementwiseOp, ViewOp
from tilewright.ir.types import is_integer, is_pointer, shape_of
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.support.dataclass import dataclass
from tilewright.support.deep_calls import with_room
from tilewright.targets.cpu.nests.coordinates import Coords, normalized, source_coords
from tilewright.targets.cpu.schedule.bufferization import Bufferization
from tilewright.targets.cpu.schedule.inline import is_tile, owner

# Chosen, not measured: each costs a division; an index of a tensor of five dimensions has four.
_MOST_CUTS = 4


@dataclass(frozen=True)
class Cut:
    """Where `dividend` divided by `divisor` changes; both at `coords`.

    The dividend changes by `step`, at least 1, from index to index. A divisor that is an integer is
    a power of two, and the quotient that of a shift. `size`: the divisor where it is a constant.
    """

    dividend: SSAValue
    divisor: SSAValue | int
    coords: Coords
    step: int
    size: int | None = None
    is_unsigned: bool = False


@dataclass(frozen=True)
class Pieces:
    """How much a value changes from index to index within a piece, and what ends one.

    `rise`: how much more from one piece to the next, where there is one cut and that is known.
    """

    step: int
    cuts: tuple[Cut, ...] = ()
    rise: int | None = None


def pieces_along(
    bufferization: Bufferization, value: SSAValue, coords: Coords, loop: int
) -> Pieces | None:
    """The pieces of a value along a loop; None where nothing is known, or they are too many."""
    found = with_room(lambda: _Finder(bufferization, loop).of(value, coords))
    return None if found is None or len(found.cuts) > _MOST_CUTS else found


class _Finder:
    """Finds pieces along one loop, once for each value at its coordinates."""

    def __init__(self, bufferization: Bufferization, loop: int) -> None:
        self.bufferization = bufferization
        self.loop = loop
        self._found: dict[tuple[SSAValue, Coords], Pieces | None] = {}
        self._indices: dict[SSAValue, bool] = {}

    def of(self, value: SSAValue, coords: Coords) -> Pieces | None:
        """The pieces of a value at `coords`."""
        if not is_tile(value):
            return Pieces(0)
        key = value, normalized(coords, shape_of(value.type))
        if key not in self._found:
            self._found[key] = self._compute(*key)
        return self._found[key]

    def _compute(self, value: SSAValue, coords: Coords) -> Pieces | None:
        exact = exact_step(self.bufferization.structure, value, coords, self.loop)
        if exact is not None:
            return Pieces(exact)
        op = owner(value)
        if op is None or (self.bufferization.is_stored(value) and not self._is_index(value)):
            return None
        is_address = is_pointer(value.type) or is_integer(value.type)
        if not isinstance(value, OpResult) or not is_address:
            return None
        source = source_coords(op, coords, value.index)
        if source is not None:
            return self.of(op.operands[0], source)
        if not isinstance(op, ElementwiseOp | AddPtrOp):
            return None
        operands = [self.of(operand, coords) for operand in op.operands]
        parts = [part for part in operands if part is not None]
        if len(parts) < len(operands):
            return None
        cuts = tuple({cut: None for part in parts for cut in part.cuts})
        numbers = [self.number(operand) for operand in op.operands]
        steps = [part.step for part in parts]
        step = stride_of(op, steps, numbers)
        if step is not None:
            return Pieces(step, cuts, _rise(op, parts, cuts, numbers))
        cut = self._cut(op, steps, numbers, coords)
        if cut is None:
            return None
        if op.name in _QUOTIENTS:
            return Pieces(0, (*cuts, cut), None if cuts else 1)
        return Pieces(cut.step, (*cuts, cut))

    def _is_index(self, value: SSAValue) -> bool:
        """Whether a tile in the arena is made of indices and scalars alone.

        What of it is a dividend is computed again.
        """
        op = owner(value)
        if not is_tile(value) or self.bufferization.costs.is_symbolic(value):
            return True
        if op is None or not isinstance(op, ElementwiseOp | ViewOp):
            return False
        if value not in self._indices:
            self._indices[value] = all(self._is_index(operand) for operand in op.operands)
        return self._indices[value]

    def _cut(self, op: Operation, steps: Strides, numbers: Numbers, coords: Coords) -> Cut | None:
        """The cut that a division makes."""
        if op.name not in _DIVISIONS or steps[0] < 1 or steps[1]:
            return None
        dividend, divisor = op.operands
        if exact_step(self.bufferization.structure, divisor, coords, self.loop) != 0:
            return None
        power = power_divided_by(op, numbers[1])
        if power is not None:
            return Cut(dividend, power, coords, steps[0], power)
        if op.name in _SHIFTS_AND_MASKS:
            return None
        return Cut(dividend, divisor, coords, steps[0], numbers[1], op.name.endswith("ui"))

    def number(self, value: SSAValue) -> int | None:
        """The integer that every element is; None where that is not known."""
        uniform = self.bufferization.structure.of(value).uniform()
        return None if uniform is None else uniform.as_int()


def _rise(
    op: Operation, parts: list[Pieces], cuts: tuple[Cut, ...], numbers: Numbers
) -> int | None:
    """How much more a result changes from one piece to the next."""
    rises = [part.rise if part.cuts else 0 for part in parts]
    known = [rise for rise in rises if rise is not None]
    if len(cuts) != 1 or len(known) < len(parts):
        return None
    return stride_of(op, known, numbers)


def exact_step(structure: AffineTiles, value: SSAValue, coords: Coords, loop: int) -> int | None:
    """How a value changes with a loop where it never jumps; None where that is not known."""
    total = 0
    for stride, coord in zip(structure.strides(value), coords, strict=True):
        scale = dict(coord.terms).get(loop, 0)
        if scale == 0:
            continue
        step = None if stride is None or stride.jumps else stride.as_int()
        if step is None:
            return None
        total += scale * step
    return total


_QUOTIENTS = frozenset(("arith.divsi", "arith.divui", "arith.shrsi"))
_SHIFTS_AND_MASKS = frozenset(("arith.shrsi", "arith.andi"))
_DIVISIONS = _QUOTIENTS | _SHIFTS_AND_MASKS | {"arith.remsi", "arith.remui"}
