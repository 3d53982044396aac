"""Splits a masked lane loop into full chunks without masks and a masked rest.

A mask such as `offsets < n` holds for a prefix of the lanes. Where every mask along the lanes
is of this kind, the loop runs up to the last full chunk with the comparisons known to be true
(no mask, no blend), and only what is left is masked. What holds for all lanes or none, such as
`row < num_rows`, is a prefix of all of them or of none.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import i1, i32, i64, shape_of
from tilewright.ops.atomics.ir import AtomicRmwOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.support.dataclass import dataclass
from tilewright.support.worklist import once
from tilewright.targets.cpu.nests.coordinates import (
    LANE_LOOP,
    Coord,
    Coords,
    normalized,
    source_coords,
)
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.loop_order import MemoryAccess
from tilewright.targets.cpu.nests.masks import is_all_true
from tilewright.targets.cpu.nests.prefixes import Comparison, comparison, prefix_of, step_along
from tilewright.targets.cpu.schedule.inline import is_tile, owner


@dataclass(frozen=True)
class Prefix:
    """A condition that holds for the first elements along a loop, at its own coordinates.

    Without a `loop` it holds for all elements or for none.
    """

    value: SSAValue
    coords: Coords
    loop: int | None = LANE_LOOP


def find_prefixes(ev: Evaluator, accesses: tuple[MemoryAccess, ...]) -> tuple[Prefix, ...] | None:
    """The conditions that mask a nest's accesses; None if the lanes have none or other masks."""
    found: dict[Prefix, None] = {}
    for access in accesses:
        mask = mask_of(access.op)
        if mask is None or is_all_true(mask):
            continue
        for part in conjuncts(ev, mask, access.coords):
            prefix = _prefix(ev, *part)
            if prefix is None:
                return None
            found[prefix] = None
    return tuple(found) if any(prefix.loop is not None for prefix in found) else None


def mask_of(op: Operation | None) -> SSAValue | None:
    """The mask of a load, a store or an update."""
    return op.mask if isinstance(op, LoadOp | StoreOp | AtomicRmwOp) else None


def conjuncts(ev: Evaluator, mask: SSAValue, coords: Coords) -> list[tuple[SSAValue, Coords]]:
    """The conditions that a mask is the conjunction of, each once, at its own coordinates."""
    found = []
    pending = [(mask, coords)]
    for part, given in once(pending):
        place = normalized(given, shape_of(part.type))
        op = owner(part)
        if not is_tile(part) or op is None or ev.lowering.bufferization.is_stored(part):
            found.append((part, place))
            continue
        source = source_coords(op, place)
        if source is not None:
            pending.append((op.operands[0], source))
        elif op.name == "arith.andi":
            pending += [(operand, place) for operand in reversed(op.operands)]
        else:
            found.append((part, place))
    return found


def _prefix(ev: Evaluator, part: SSAValue, coords: Coords) -> Prefix | None:
    """A condition as a prefix of the lanes, of all or none of them, or neither."""
    if not is_tile(part) or ev.lane_stride(part, coords) == (0, False):
        return Prefix(part, coords, None)
    if ev.lowering.bufferization.is_stored(part):
        return None
    return Prefix(part, coords) if is_prefix(ev, part, coords, LANE_LOOP) else None


def is_prefix(ev: Evaluator, part: SSAValue, coords: Coords, loop: int) -> bool:
    """Whether a condition is a comparison that holds for the first elements along a loop."""
    op = owner(part)
    prefix = None if op is None else prefix_of(op)
    if op is None or prefix is None:
        return False
    left_grows, _ = prefix
    strides = [step_along(ev, operand, coords, loop) for operand in op.operands]
    return strides == ([1, 0] if left_grows else [0, 1])


def full_extent(ev: Evaluator, prefixes: Sequence[Prefix], size: int) -> SSAValue:
    """How many of `size` elements are within all prefixes, as i32."""
    emit = ev.emit
    end = emit.constant(i64, size)
    for prefix in prefixes:
        if prefix.loop is None:
            anywhere = tuple(at_start(coord, LANE_LOOP) for coord in prefix.coords)
            holds = ev.element(prefix.value, anywhere, False)
            end = emit.pure(SelectOp, (holds, end, emit.constant(i64, 0)), i64)
        else:
            end = emit.integer("minsi", end, _extent(ev, prefix))
    return emit.narrow(emit.integer("maxsi", end, emit.constant(i64, 0)), i32)


def _extent(ev: Evaluator, prefix: Prefix) -> SSAValue:
    """How many elements from the loop's start on satisfy a prefix comparison, as i64."""
    return comparison_of(ev, prefix).extent(ev)


def comparison_of(ev: Evaluator, prefix: Prefix) -> Comparison:
    """The comparison of a prefix along a loop."""
    op = owner(prefix.value)
    assert op is not None
    return comparison(ev, op, tuple(at_start(coord, prefix.loop) for coord in prefix.coords))


def at_start(coord: Coord, loop: int | None) -> Coord:
    """A coordinate where a loop begins."""
    return Coord(tuple(t for t in coord.terms if t[0] != loop), coord.offset)


def assume(ev: Evaluator, prefixes: tuple[Prefix, ...]) -> None:
    """Take conditions as true in the loop that is opened next: nothing is read outside of it."""
    true = ev.emit.constant(i1, 1)
    ev.emit.true_values.add(true)
    ev.emit.floor = len(ev.emit.blocks)
    for prefix in prefixes:
        ev.assumed[(prefix.value, prefix.coords)] = true
