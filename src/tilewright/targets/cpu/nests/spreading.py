"""Lanes that lie a few elements apart in memory, out of whole vectors and into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, SSAValue

from tilewright.ir.types import element_of, i1, i32, vector_of
from tilewright.machine.model import MachineModel
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.masks import NO_MASK, has_masks

_FARTHEST = 4
"""How many elements apart still pays. Chosen, not measured: at 4 a vector holds a quarter."""


def is_near(stride: int | None) -> bool:
    """Whether lanes lie so near to each other that vectors that hold them all pay."""
    return stride is not None and 1 < stride <= _FARTHEST


def can_spread(machine: MachineModel, stride: int | None) -> bool:
    """Whether masks of vectors are spread over memory on a machine, for such a stride."""
    return is_near(stride) and has_masks(machine)


def part_starts(lanes: int, stride: int) -> list[int]:
    """Where the vectors begin that hold `lanes` elements; the last ends with the last of them."""
    last = (lanes - 1) * stride + 1 - lanes
    return [*range(0, last, lanes), last]


def picked(
    emit: Emitter, lanes: int, parts: Sequence[tuple[int, SSAValue]], stride: int
) -> SSAValue:
    """Every `stride`-th element of vectors that follow each other; the last may overlap."""
    places = range(0, lanes * stride, stride)
    (_, value), *others = parts
    end, kept = lanes, [min(place, lanes - 1) for place in places]
    for start, part in others:
        pattern = [
            lanes + place - start if end <= place < start + lanes else old
            for place, old in zip(places, kept, strict=True)
        ]
        value = shuffle(emit, value, part, pattern)
        end, kept = start + lanes, list(range(lanes))
    return value


def read_near(
    emit: Emitter, lanes: int, pointer: SSAValue, result: Attribute, stride: int
) -> SSAValue:
    """The vector, of type `result`, of elements in the arena that lie `stride` apart."""
    parts = [
        (start, emit.pure(cpu.LoadOp, (emit.advance(pointer, start),), result, NO_MASK))
        for start in part_starts(lanes, stride)
    ]
    return picked(emit, lanes, parts, stride)


def spread(
    emit: Emitter, lanes: int, value: SSAValue, mask: SSAValue | None, stride: int
) -> Iterator[tuple[int, SSAValue, SSAValue]]:
    """The vectors that hold lane i of a value at element i * stride: start, lanes, their mask."""
    inside = emit.splat(emit.constant(i1, 1), lanes) if mask is None else mask
    for start in range(0, lanes * stride, lanes):
        places = range(start, start + lanes)
        part = shuffle(emit, value, value, [place // stride for place in places])
        yield start, part, spread_mask(emit, lanes, inside, start, stride)


def spread_mask(emit: Emitter, lanes: int, mask: SSAValue, start: int, stride: int) -> SSAValue:
    """The part from `start` on of a mask whose lanes lie `stride` apart."""
    outside = emit.splat(emit.constant(i1, 0), lanes)
    places = range(start, start + lanes)
    kept = [lanes if place % stride else place // stride for place in places]
    return shuffle(emit, mask, outside, kept)


def shuffle(emit: Emitter, lhs: SSAValue, rhs: SSAValue, pattern: list[int]) -> SSAValue:
    """The lanes of two vectors picked by a constant pattern."""
    result = vector_of(element_of(lhs.type), len(pattern))
    attribute = DenseArrayBase.from_list(i32, pattern)
    return emit.pure(cpu.ShuffleOp, (lhs, rhs), result, {"pattern": attribute})
