"""`tl.gather`: elements of a materialised tile whose index along one axis is a value."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.ir.types import i32, i64, shape_of, vector_of, width_bits
from tilewright.ops.indexing.ir import GatherOp
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.nests.coordinates import Coords, combine
from tilewright.targets.cpu.nests.evaluate import ELEMENT_RULES, Evaluator
from tilewright.targets.cpu.nests.masks import NO_MASK, segments


@ELEMENT_RULES.register(GatherOp)
def _gather(ev: Evaluator, op: Operation, coords: Coords, wide: bool) -> SSAValue:
    """An element of a materialised tile whose index along one axis is a value."""
    assert isinstance(op, GatherOp)
    emit, axis = ev.emit, op.axis.value.data
    buffer = ev.lowering.buffer(op.operands[0])
    strides = buffer.strides()
    others = [(c, s) for dim, (c, s) in enumerate(zip(coords, strides, strict=True)) if dim != axis]
    rest = combine(others)
    position = ev.element(op.operands[1], coords, wide)
    kind = i64 if width_bits(position.type) == 64 else i32
    position = emit.widen(position, kind)
    is_wide = bool(shape_of(position.type))
    lanes = ev.lanes if wide else 1
    moves = rest.lane_scale() if wide else 0
    pointer = emit.advance(buffer.base, ev.index(rest))
    if strides[axis] != 1:
        factor = emit.splat(emit.constant(kind, strides[axis]), lanes if is_wide else 1)
        position = emit.integer("muli", position, factor)
    if not is_wide and not moves:
        element = emit.advance(pointer, position)
        return emit.read(cpu.LoadOp, (element,), buffer.element, NO_MASK, op.location)
    offsets = emit.splat(position, lanes)
    if moves:
        offsets = emit.integer("addi", offsets, emit.iota(kind, lanes, moves))
    result = vector_of(buffer.element, lanes)
    limit = ev.limits()
    sizes = segments(1, 1, len(limit), 0)
    return emit.read(cpu.GatherOp, (pointer, offsets, *limit), result, sizes, op.location)
