"""Copies of operands of which rows or columns at the end are missing in memory.

    load(a, mask=k < K, other=0) in the last step of k; rows % M in the last tile

What a mask hides reads as zero, and nobody sees what an index wraps to where the store is masked.
So such a tile is copied as far as it is there, with zeros behind it as far as its product reads:
`limits.py` says how far both go. Other tiles are computed element by element, then copied.
Measured on a Xeon with AMX, 2026-11-28, one thread, bf16 1000³, of torch's speed: tiles of 128x256
0.52 with no such copy, 0.80 so; of 1024³ 0.89.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Block, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import shape_of
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.targets.cpu.dot.limits import limits_of, there_is
from tilewright.targets.cpu.dot.packs import products_of, spec_of
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.whole_tiles import whole_tile
from tilewright.targets.cpu.schedule.bufferization import PackForm
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.lowering import Limits, Lowering


def limits_for(lowering: Lowering, emit: Emitter, form: PackForm) -> Limits | None:
    """The limits of the one product that reads an operand, computed for its first."""
    first = products_of(lowering, form)[0]
    if first not in lowering.limits:
        lowering.limits[first] = limits_of(lowering, emit, first)
    return lowering.limits[first]


def _known_limits(lowering: Lowering, form: PackForm) -> Limits | None:
    return lowering.limits.get(products_of(lowering, form)[0])


def choose_part(
    lowering: Lowering,
    out: Block,
    form: PackForm,
    copied: Callable[[Block, Sequence[SSAValue]], None],
    otherwise: Callable[[Block], None],
) -> None:
    """Append `copied`, with the rows and columns of the operand that there are, and those that its
    product reads, where the tile is in memory as far as that, and else `otherwise`."""
    op = owner(form.value)
    assert isinstance(op, LoadOp)
    ev = Evaluator(lowering, Emitter(out, op.location))
    is_limited = _known_limits(lowering, form) is not None
    # What other units than AMX read in place they read no further than their limits.
    is_read_there = is_limited and not spec_of(lowering, form).is_amx
    there = None if is_read_there else there_is(lowering, ev.emit, form, op)
    condition = None if there is None else whole_tile(ev, op, there)
    if there is None or not isinstance(condition, SSAValue):
        otherwise(out)
        return
    in_part, in_no_way = Block(), Block()
    filled = read_by(lowering, ev.emit, form)
    copied(in_part, [v for pair in (there, filled) for v in pair[:: -1 if form.transposed else 1]])
    otherwise(in_no_way)
    for block in (in_part, in_no_way):
        block.add_op(build(YieldOp, location=op.location))
    ev.emit.choose(condition, (in_part, in_no_way))


def read_by(lowering: Lowering, emit: Emitter, form: PackForm) -> tuple[SSAValue, SSAValue]:
    """How much of an operand's tile its product reads: as far as its limits, AMX whole blocks."""
    limits = _known_limits(lowering, form)
    if limits is None:
        rows, columns = (emit.constant(i64, size) for size in shape_of(form.value.type))
        return rows, columns
    blocks = spec_of(lowering, form).amx_blocks
    if blocks is None:
        return limits.of(form)

    def whole(limit: SSAValue, size: int) -> SSAValue:
        last = emit.integer("addi", limit, emit.constant(i64, size - 1))
        number = emit.integer("divui", last, emit.constant(i64, size))
        return emit.integer("muli", number, emit.constant(i64, size))

    extents = (limits.rows, limits.columns, limits.depth)
    sizes = (blocks.rows, blocks.row_columns, blocks.step_depth)
    return Limits(*map(whole, extents, sizes)).of(form)
