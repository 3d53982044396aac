"""Elements a few apart in memory, read and written by whole vectors.

    out[3 i] = value[i]      v0  .  .  v1  .  .  v2  .  .      a mask leaves the holes alone
    value[i] = x[3 i]        x0  x1 x2 x3  x4 x5 x6  ...       lanes are picked from what is read

A gather or a scatter takes the processor a load or store for each lane, and where lines come from
memory it has few of them on the way at a time. Between two elements that a load takes lies no
page's border, and after its last element nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import element_of, vector_of
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.masks import segments
from tilewright.targets.cpu.nests.spreading import part_starts, picked, spread, spread_mask


def load_near(ev: Evaluator, op: LoadOp, pointer: SSAValue, stride: int) -> SSAValue:
    """The vector whose lane i is element i * stride behind a scalar pointer.

    The last of the vectors that are read ends with the last lane's element.
    """
    starts = part_starts(ev.lanes, stride)
    parts = [(start, _read(ev, op, pointer, start, ())) for start in starts]
    return picked(ev.emit, ev.lanes, parts, stride)


def load_masked(
    ev: Evaluator, op: LoadOp, pointer: SSAValue, masks: Sequence[SSAValue], stride: int
) -> SSAValue:
    """The same where a mask allows it, else `other`; nothing else is read (`can_spread`)."""
    mask, *other = masks
    parts = [
        (start, _read(ev, op, pointer, start, (part,)))
        for start in range(0, ev.lanes * stride, ev.lanes)
        for part in (spread_mask(ev.emit, ev.lanes, mask, start, stride),)
    ]
    value = picked(ev.emit, ev.lanes, parts, stride)
    return ev.emit.pure(SelectOp, (mask, value, *other), value.type) if other else value


def _read(
    ev: Evaluator, op: LoadOp, pointer: SSAValue, start: int, masks: tuple[SSAValue, ...]
) -> SSAValue:
    """One of the vectors that hold the elements of a load."""
    operands = (ev.emit.advance(pointer, start), *masks)
    result = vector_of(element_of(op.result.type), ev.lanes)
    return ev.emit.read(cpu.LoadOp, operands, result, segments(1, len(masks), 0), op.location)


def store_spread(
    ev: Evaluator,
    op: Operation,
    pointer: SSAValue,
    value: SSAValue,
    masks: Sequence[SSAValue],
    stride: int,
) -> None:
    """Write lane i of a vector to element i * stride behind a scalar pointer."""
    mask = masks[0] if masks else None
    for start, part, inside in spread(ev.emit, ev.lanes, value, mask, stride):
        operands = (ev.emit.advance(pointer, start), part, inside)
        ev.emit.effect(cpu.StoreOp, operands, location=op.location)
