"""Elements a few apart in memory, read and written by whole vectors.

    out[3 i] = value[i]      v0  .  .  v1  .  .  v2  .  .      a mask leaves the holes alone
    value[i] = x[3 i]        x0  x1 x2 x3  x4 x5 x6  ...       lanes are picked from what is read

A gather or a scatter takes the processor a load or store for each lane, and where lines come from
memory it has few of them on the way at a time. Between two elements that a load takes lies no
page's border, and after its last element nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import element_of, i1, i32, vector_of
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.masks import segments

_FARTHEST = 4
"""How many elements apart still pays. Chosen, not measured: at 4 a vector holds a quarter."""
_MASKED_ACCESSES = ("avx512f", "avx512bw", "avx512vl")


def is_near(stride: int | None) -> bool:
    """Whether lanes lie so near to each other that vectors that hold them all pay."""
    return stride is not None and 1 < stride <= _FARTHEST


def can_spread(ev: Evaluator, stride: int | None) -> bool:
    """Whether masks of vectors are spread over memory on this machine, for such a stride."""
    features = ev.lowering.machine.enabled_features
    return is_near(stride) and all(name in features for name in _MASKED_ACCESSES)


def load_near(ev: Evaluator, op: LoadOp, pointer: SSAValue, stride: int) -> SSAValue:
    """The vector whose lane i is element i * stride behind a scalar pointer.

    The last of the vectors that are read ends with the last lane's element.
    """
    lanes = ev.lanes
    last = (lanes - 1) * stride + 1 - lanes
    parts = [(start, _read(ev, op, pointer, start, ())) for start in (*range(0, last, lanes), last)]
    return _picked(ev, parts, stride)


def load_masked(
    ev: Evaluator, op: LoadOp, pointer: SSAValue, masks: Sequence[SSAValue], stride: int
) -> SSAValue:
    """The same where a mask allows it, else `other`; nothing else is read (`can_spread`)."""
    mask, *other = masks
    parts = [
        (start, _read(ev, op, pointer, start, (_spread_mask(ev, mask, start, stride),)))
        for start in range(0, ev.lanes * stride, ev.lanes)
    ]
    value = _picked(ev, parts, stride)
    return ev.emit.pure(SelectOp, (mask, value, *other), value.type) if other else value


def _read(
    ev: Evaluator, op: LoadOp, pointer: SSAValue, start: int, masks: tuple[SSAValue, ...]
) -> SSAValue:
    """One of the vectors that hold the elements of a load."""
    operands = (ev.emit.advance(pointer, start), *masks)
    result = vector_of(element_of(op.result.type), ev.lanes)
    return ev.emit.pure(cpu.LoadOp, operands, result, segments(1, len(masks), 0), op.location)


def _picked(ev: Evaluator, parts: Sequence[tuple[int, SSAValue]], stride: int) -> SSAValue:
    """Every `stride`-th element of vectors that follow each other; the last may overlap."""
    lanes, places = ev.lanes, range(0, ev.lanes * stride, stride)
    (_, value), *others = parts
    end, kept = lanes, [min(place, lanes - 1) for place in places]
    for start, part in others:
        pattern = [
            lanes + place - start if end <= place < start + lanes else old
            for place, old in zip(places, kept, strict=True)
        ]
        value = shuffle(ev.emit, value, part, pattern)
        end, kept = start + lanes, list(range(lanes))
    return value


def store_spread(
    ev: Evaluator,
    op: Operation,
    pointer: SSAValue,
    value: SSAValue,
    masks: Sequence[SSAValue],
    stride: int,
) -> None:
    """Write lane i of a vector to element i * stride behind a scalar pointer."""
    emit, lanes = ev.emit, ev.lanes
    inside = masks[0] if masks else emit.splat(emit.constant(i1, 1), lanes)
    for start in range(0, lanes * stride, lanes):
        places = range(start, start + lanes)
        part = shuffle(emit, value, value, [place // stride for place in places])
        operands = (emit.advance(pointer, start), part, _spread_mask(ev, inside, start, stride))
        emit.effect(cpu.StoreOp, operands, location=op.location)


def _spread_mask(ev: Evaluator, mask: SSAValue, start: int, stride: int) -> SSAValue:
    """The part from `start` on of a mask whose lanes lie `stride` apart."""
    outside = ev.emit.splat(ev.emit.constant(i1, 0), ev.lanes)
    places = range(start, start + ev.lanes)
    kept = [ev.lanes if place % stride else place // stride for place in places]
    return shuffle(ev.emit, mask, outside, kept)


def shuffle(emit: Emitter, lhs: SSAValue, rhs: SSAValue, pattern: list[int]) -> SSAValue:
    """The lanes of two vectors picked by a constant pattern."""
    result = vector_of(element_of(lhs.type), len(pattern))
    attribute = DenseArrayBase.from_list(i32, pattern)
    return emit.pure(cpu.ShuffleOp, (lhs, rhs), result, {"pattern": attribute})
