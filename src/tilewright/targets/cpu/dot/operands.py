"""Operands of matrix products: brought into the microkernel's form, or read where they are."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    i64,
)
from xdsl.ir import Block, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import element_of, i1, shape_of
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.dot.kept_panels import Slot, forget, pack_unless_kept
from tilewright.targets.cpu.dot.packs import (
    has_rows,
    kept_slot,
    location_of,
    pack,
    packed_buffer,
    spec_of,
)
from tilewright.targets.cpu.dot.part_copies import choose_part, limits_for, read_by
from tilewright.targets.cpu.nests import nest
from tilewright.targets.cpu.nests.coordinates import constant_coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.nests.whole_tiles import whole_tile
from tilewright.targets.cpu.schedule.bufferization import PackForm
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import Root, RootKind
from tilewright.targets.cpu.schedule.storage import Buffer


def emit_pack(lowering: Lowering, out: Block, form: PackForm) -> None:
    """Pack an operand right here, from memory or from its buffer."""
    if lowering.bufferization.is_in_place(form):
        lowering.unpacked[form] = _rows_in_place(lowering, out, form)
        return
    if form.from_memory:
        _pack_load(lowering, out, form)
        return
    dst = packed_buffer(lowering, form)
    emit = Emitter(out, location_of(form))
    _pack_buffer(lowering, emit, form, lowering.buffer(form.value), dst)


def _pack_buffer(
    lowering: Lowering, emit: Emitter, form: PackForm, source: Buffer, dst: Buffer
) -> None:
    stride = emit.constant(i64, source.shape[-1])
    pack(lowering, emit, form, (source.base, stride), dst.base, form.transposed)


def _pack_load(lowering: Lowering, out: Block, form: PackForm) -> None:
    """Pack straight from memory where the whole tile is there in one piece, or as far as it is.

    What a mask hides or an index wraps in other ways is materialised, then packed.
    """
    op = owner(form.value)
    assert isinstance(op, LoadOp)
    ev = Evaluator(lowering, Emitter(out, op.location))
    if lowering.bufferization.is_stored(form.value):
        dst = packed_buffer(lowering, form)
        _pack_buffer(lowering, ev.emit, form, lowering.buffer(form.value), dst)
        return
    limits_for(lowering, ev.emit, form)
    condition = whole_tile(ev, op)
    if condition is None:
        _pack_general(lowering, out, form, packed_buffer(lowering, form))
        return
    lowering.sources[form] = _matrix(ev, op)
    slot = kept_slot(ev, form)
    dst = packed_buffer(lowering, form) if slot is None else slot.panels
    lowering.packed[form] = dst
    if condition is True:
        _pack_direct(ev, form, op, dst, slot)
    else:
        assert isinstance(condition, SSAValue)
        fast, slow = Block(), Block()
        ev.emit.push(fast)
        ev.emit.pin = len(ev.emit.blocks) - 1
        _pack_direct(ev, form, op, dst, slot)
        ev.emit.effect(YieldOp, ())
        ev.emit.pin = 0
        ev.emit.pop()
        _pack_part(lowering, slow, form, dst, slot)
        ev.emit.push(slow)
        ev.emit.effect(YieldOp, ())
        ev.emit.pop()
        ev.emit.choose(condition, (fast, slow))


def _pack_direct(
    ev: Evaluator, form: PackForm, op: LoadOp, dst: Buffer, slot: Slot | None = None
) -> None:
    """Pack a tile from memory; with a slot only where it is not kept there."""
    transposed = form.transposed if has_rows(ev.lowering, op) else not form.transposed
    source = ev.lowering.sources[form]
    if slot is None:
        pack(ev.lowering, ev.emit, form, source, dst.base, transposed)
        return
    packing = Block()
    pack(ev.lowering, Emitter(packing, op.location), form, source, dst.base, transposed)
    pack_unless_kept(ev.emit, slot, source, packing)


def _matrix(ev: Evaluator, op: LoadOp) -> tuple[SSAValue, SSAValue]:
    """Where a tile starts in memory, and how many elements its rows (columns) lie apart."""
    strides = ev.lowering.bufferization.structure.strides(op.operands[0])
    pitch = strides[0] if has_rows(ev.lowering, op) else strides[1]
    assert pitch is not None
    source = ev.element(op.operands[0], constant_coords((0, 0)), False)
    return source, polynomial(ev, pitch)


def _rows_in_place(lowering: Lowering, out: Block, form: PackForm) -> tuple[SSAValue, SSAValue]:
    """The (address, stride) of rows in memory; of a copy where the tile is not there as such."""
    op = owner(form.value)
    assert isinstance(op, LoadOp)
    ev = Evaluator(lowering, Emitter(out, op.location))
    along = 1 if has_rows(lowering, op) else 0
    length = ev.emit.constant(i64, shape_of(form.value.type)[along])
    if lowering.bufferization.is_stored(form.value):
        assert along == 1, "a tile that is stored has rows"
        return lowering.buffer(form.value).base, length
    limits = limits_for(lowering, ev.emit, form)
    condition = whole_tile(ev, op, () if limits is None else read_by(lowering, ev.emit, form))
    if condition is None:
        return _materialize(lowering, out, form, along).base, length
    in_memory = lowering.sources[form] = _matrix(ev, op)
    if not isinstance(condition, SSAValue):
        lowering.in_memory[form] = ev.emit.constant(i1, 1)
        return in_memory
    lowering.in_memory[form] = condition
    copying = Block()
    copied = _copy_of_rows(lowering, copying, form, along).base, length
    copying.add_op(build(YieldOp, location=op.location))
    ev.emit.choose(condition, (Block([build(YieldOp, location=op.location)]), copying))
    select = ELEMENTWISE["arith.select"]
    address, stride = (
        ev.emit.pure(select, (condition, there, here), there.type)
        for there, here in zip(in_memory, copied, strict=True)
    )
    return address, stride


def _copy_of_rows(lowering: Lowering, out: Block, form: PackForm, along: int) -> Buffer:
    """A copy of a tile that is not in memory as such, contiguous along dimension `along`."""
    temporary = _room_for(lowering, form, along)

    def copied(block: Block, there: Sequence[SSAValue]) -> None:
        emit = Emitter(block, location_of(form))
        pack(lowering, emit, form, lowering.sources[form], temporary.base, False, there)

    def otherwise(block: Block) -> None:
        _fill(lowering, block, form, temporary, is_rare=True)

    length, layout = shape_of(form.value.type)[1], spec_of(lowering, form).a_layout
    if form.role == "a" and along == 1 and layout.stride_elems(length) == length:
        choose_part(lowering, out, form, copied, otherwise)
    else:
        otherwise(out)
    return temporary


def _pack_part(
    lowering: Lowering, out: Block, form: PackForm, dst: Buffer, slot: Slot | None
) -> None:
    """Pack a tile of which rows or columns at the end are missing; by the general road if more.

    With a slot only where so much of the tile is not kept there.
    """
    source = lowering.sources[form]

    def copied(block: Block, there: Sequence[SSAValue]) -> None:
        op = owner(form.value)
        assert isinstance(op, LoadOp)
        transposed = form.transposed if has_rows(lowering, op) else not form.transposed
        packing = block if slot is None else Block()
        emit = Emitter(packing, op.location)
        pack(lowering, emit, form, source, dst.base, transposed, there)
        if slot is not None:
            pack_unless_kept(Emitter(block, op.location), slot, source, packing, there)

    def otherwise(block: Block) -> None:
        _pack_general(lowering, block, form, dst, is_rare=True)
        if slot is not None:
            forget(Emitter(block, location_of(form)), slot)

    choose_part(lowering, out, form, copied, otherwise)


def _pack_general(
    lowering: Lowering, out: Block, form: PackForm, dst: Buffer, is_rare: bool = False
) -> None:
    """Materialise the tile with a nest of its own, then pack the buffer."""
    temporary = _materialize(lowering, out, form, is_rare=is_rare)
    op = owner(form.value)
    assert op is not None
    _pack_buffer(lowering, Emitter(out, op.location), form, temporary, dst)


def _materialize(
    lowering: Lowering, out: Block, form: PackForm, last: int = 1, is_rare: bool = False
) -> Buffer:
    """A copy of the tile in the arena, made right here; contiguous along dimension `last`."""
    temporary = _room_for(lowering, form, last)
    _fill(lowering, out, form, temporary, is_rare)
    return temporary


def _room_for(lowering: Lowering, form: PackForm, last: int) -> Buffer:
    """A buffer for a tile that is copied, contiguous along dimension `last`."""
    type_ = form.value.type
    temporary = lowering.allocate(shape_of(type_), element_of(type_), "unpacked")
    return replace(temporary, last=None if last else 0)


def _fill(lowering: Lowering, out: Block, form: PackForm, temporary: Buffer, is_rare: bool) -> None:
    """Compute a tile into a buffer, right here."""
    op = owner(form.value)
    assert op is not None
    lowering.buffers[form.value] = temporary
    root = Root(RootKind.MATERIALIZE, op, (form.value,), shape_of(form.value.type), 0)
    nest.emit_nest(lowering, out, [root], is_rare=is_rare)
    del lowering.buffers[form.value]
