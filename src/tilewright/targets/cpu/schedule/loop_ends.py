"""Masks that say where a k loop ends, for operands that say nothing of it themselves.

    for k in 0..K step B { a = load(p); b = load(q); acc = dot(a, b, acc); p += B; q += B·n }
    ⇒ … a = load(p, mask=s < ⌈K / B⌉·B - k, other=0) …                   s = 0, 1, … B - 1

No step of the loop is masked by that. But a step that is longer than the rest, as
`widen_k_loops.py` makes it, takes what is left of the loop, so that no loop of short steps is
behind it: `masked_ends.py` finds as much in masks that are written.
Measured on a Xeon with AMX, 2026-11-28, one thread, bf16 1024×1024×768, tiles of 128×256×64 in
groups of 8 rows, of torch's speed: 0.67 in steps of 512 and 64, 0.81 so; 0.63 and 0.84 of a depth
of 896. f32 in steps of 128 gains nothing.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import replace_by
from tilewright.ir.op import build
from tilewright.ir.types import i1, i32, i64, shape_of, tile_of
from tilewright.ops.control_flow import ForOp
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, constant_of
from tilewright.ops.elementwise.comparisons import INTEGER_PREDICATES, CmpIOp
from tilewright.ops.matmul.ir import ProductOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.passes.tile_builder import TileBuilder
from tilewright.targets.cpu.schedule.masked_ends import operands_of


def mask_behind_end(loop: ForOp, product: ProductOp, depth: int) -> bool:
    """Mask the operands of a loop from the end of its last step on, where no step reads; or not.

    Its steps are `depth` deep, whatever they count.
    """
    step, operands = constant_of(loop.step), operands_of(product)
    if step is None or step <= 0 or depth % step or operands[0][0] is operands[1][0]:
        return False
    left = _left(loop, int(step), depth)
    for load, dim in operands:
        assert isinstance(load, LoadOp)
        _add_mask(load, dim, left)
    return True


def _left(loop: ForOp, step: int, depth: int) -> SSAValue:
    """How many k (i64) there are from a step of a loop on, in its body."""
    first = loop.body.block.first_op
    assert first is not None
    before, inside = TileBuilder(loop), TileBuilder(first)
    low, high = before.wide(loop.lb), before.wide(loop.ub)
    span = before.binary("addi", before.binary("subi", high, low), _number(before, step - 1))
    count = before.binary("divsi", span, _number(before, step))
    total = before.binary("muli", count, _number(before, depth))
    past = inside.binary("subi", inside.wide(loop.body.block.args[0]), low)
    return inside.binary("subi", total, inside.binary("muli", past, _number(before, depth // step)))


def _number(builder: TileBuilder, value: int) -> SSAValue:
    return builder.emit(ConstantOp, (), i64, {"value": IntegerAttr(value, i64)})


def _add_mask(load: LoadOp, dim: int, left: SSAValue) -> None:
    """Hide what lies behind `left` elements along a dimension of a loaded tile."""
    builder, shape = TileBuilder(load), shape_of(load.result.type)
    size = shape[dim]
    ends = {"start": IntegerAttr(0, i32), "end": IntegerAttr(size, i32)}
    steps = builder.wide(builder.emit(MakeRangeOp, (), tile_of(i32, (size,)), {**ends}))
    sides = (steps, builder.splat(left, (size,)))
    code = {"predicate": IntegerAttr(INTEGER_PREDICATES.index("slt"), i64)}
    is_left = builder.emit(CmpIOp, sides, tile_of(i1, (size,)), {**code})
    mask = builder.along(is_left, dim, shape)
    if load.mask is not None:
        mask = builder.binary("andi", load.mask, mask)
    other = builder.constant(load.result.type, 0) if load.other is None else load.other
    properties = {**load.properties, "operandSegmentSizes": integer_array((1, 1, 1))}
    operands, types = (load.ptr, mask, other), (load.result.type,)
    masked = build(LoadOp, operands, types, properties, location=load.location)
    masked.attributes = dict(load.attributes)
    assert load.parent is not None
    load.parent.insert_op_before(masked, load)
    replace_by(load, masked.results[0])
