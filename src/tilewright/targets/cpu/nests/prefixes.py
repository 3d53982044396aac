"""How far the mask of a tile holds along each dimension, as far as comparisons tell."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import shape_of, width_bits
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.elementwise.comparisons import integer_predicate
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.support.dataclass import dataclass
from tilewright.support.worklist import once
from tilewright.targets.cpu.nests.coordinates import (
    Coord,
    Coords,
    loop_coord,
    normalized,
    source_coords,
)
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.loop_order import MemoryAccess, stride_along
from tilewright.targets.cpu.schedule.inline import is_tile, owner

PREFIX = {"slt": (True, 0), "sle": (True, 1), "sgt": (False, 0), "sge": (False, 1)}
"""Of a comparison: whether its left side is the growing one, and how many more elements hold
than the difference of its sides says."""


def prefix_of(op: Operation) -> tuple[bool, int] | None:
    """What PREFIX says of a comparison; None for other ops."""
    return PREFIX.get(integer_predicate(op))


def surely_false_from(ev: Evaluator, mask: SSAValue) -> dict[int, list[SSAValue]]:
    """By dimension, i64 values: the mask is false from each of them on, whatever overflows.

    What is no comparison of an index that grows with a value that does not is left out: the mask
    may be false in more places, never true in more.
    """
    found, sizes = _extents(ev, mask)[0], shape_of(mask.type)
    return {
        dim: [each.end(ev, sizes[dim]) for each in extents if not each.is_assumed]
        for dim, extents in found.items()
    }


def exact_extents(ev: Evaluator, mask: SSAValue) -> dict[int, list[Comparison]] | None:
    """By dimension the comparisons that are all of a mask; None where that is not known."""
    found, is_exact = _extents(ev, mask)
    is_known = is_exact and not any(each.is_assumed for some in found.values() for each in some)
    return found if is_known else None


@dataclass(frozen=True)
class Comparison:
    """`first + i < bound + more` of indices i along a dimension, both sides of one type.

    `is_assumed`: only unless what the sides are made of overflows, in a narrower type.
    """

    first: SSAValue
    bound: SSAValue
    more: int
    is_assumed: bool

    def extent(self, ev: Evaluator) -> SSAValue:
        """From which i on (i64) it is false, where no `first + i` wraps around."""
        extent = ev.emit.integer("subi", ev.emit.widen(self.bound), ev.emit.widen(self.first))
        if not self.more:
            return extent
        return ev.emit.integer("addi", extent, ev.emit.constant(i64, self.more))

    def end(self, ev: Evaluator, size: int) -> SSAValue:
        """From which of `size` indices on it is false: `size` where one might wrap around."""
        if self.starts_at_zero:
            return self.extent(ev)
        everything = ev.emit.constant(i64, size)
        return ev.emit.pure(SelectOp, (self.fits(ev, size), self.extent(ev), everything), i64)

    def fits(self, ev: Evaluator, size: int) -> SSAValue:
        """Whether no sum of the first and one of `size` indices wraps around."""
        emit, bits = ev.emit, width_bits(self.first.type)
        if self.starts_at_zero:
            return emit.constant(i1, 1)
        if bits < width_bits(i64):
            return self._is_within(ev, self.first, (1 << (bits - 1)) - size)
        # Half of what the type holds: the difference does not overflow either.
        most = (1 << (bits - 2)) - size
        sides = (self._is_within(ev, side, most) for side in (self.first, self.bound))
        return emit.integer("andi", next(sides), next(sides))

    @property
    def starts_at_zero(self) -> bool:
        """Whether it is `i < bound` in a type where neither side's difference overflows."""
        return self.first.type != i64 and constant_of(self.first) == 0

    def _is_within(self, ev: Evaluator, side: SSAValue, most: int) -> SSAValue:
        """Whether a number is at most `most`, and of 64 bits at least its negative."""
        emit, wide = ev.emit, ev.emit.widen(side)
        is_within = emit.compare("sle", wide, emit.constant(i64, most))
        if side.type != i64:
            return is_within
        above = emit.compare("sge", wide, emit.constant(i64, -most))
        return emit.integer("andi", is_within, above)


def _extents(ev: Evaluator, mask: SSAValue) -> tuple[dict[int, list[Comparison]], bool]:
    """The comparisons of a mask by dimension, and whether they say all."""
    found: dict[int, list[Comparison]] = {}
    is_exact = True
    pending = [(mask, tuple(loop_coord(dim) for dim in range(len(shape_of(mask.type)))))]
    for part, given in once(pending):
        op = owner(part)
        if not is_tile(part) or op is None or ev.lowering.bufferization.is_stored(part):
            is_exact = False
            continue
        place = normalized(given, shape_of(part.type))
        source = source_coords(op, place)
        if source is not None:
            pending.append((op.operands[0], source))
        elif op.name == "arith.andi":
            pending += [(operand, place) for operand in op.operands]
        else:
            is_exact = _add_extent(ev, op, place, found) and is_exact
    return found, is_exact


def _add_extent(
    ev: Evaluator, op: Operation, place: Coords, found: dict[int, list[Comparison]]
) -> bool:
    """Add what a comparison says; False where that is not known."""
    prefix = prefix_of(op)
    if prefix is None:
        return False
    left_grows, _ = prefix
    growing, fixed = op.operands if left_grows else reversed(op.operands)
    loops = {loop for coord in place for loop, _ in coord.terms}
    moving = [loop for loop in loops if step_along(ev, growing, place, loop) != 0]
    if len(moving) != 1 or step_along(ev, growing, place, moving[0]) != 1:
        return False
    if any(step_along(ev, fixed, place, loop) != 0 for loop in loops):
        return False
    start = tuple(Coord((), coord.offset) for coord in place)
    found.setdefault(moving[0], []).append(comparison(ev, op, start))
    return True


def comparison(ev: Evaluator, op: Operation, start: Coords) -> Comparison:
    """What an op of PREFIX compares, its sides read where the growing one starts."""
    known = prefix_of(op)
    assert known is not None
    left_grows, more = known
    sides = [ev.element(operand, start, False) for operand in op.operands]
    first, bound = sides if left_grows else sides[::-1]
    return Comparison(first, bound, more, is_assumed(ev, op))


def is_assumed(ev: Evaluator, op: Operation) -> bool:
    """Whether a comparison's sides grow evenly only unless a narrower type overflows."""
    structure = ev.lowering.bufferization.structure
    strides = (stride for value in op.operands for stride in structure.strides(value))
    return any(stride is not None and stride.is_assumed for stride in strides)


def step_along(ev: Evaluator, value: SSAValue, place: Coords, loop: int) -> int | None:
    """How a value changes with one index; None where that is not known."""
    structure = ev.lowering.bufferization.structure
    stride = stride_along(structure, MemoryAccess(value, place, None), loop)
    return None if stride is None or stride.jumps else stride.as_int()
