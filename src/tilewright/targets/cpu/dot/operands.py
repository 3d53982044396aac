"""Operands of matrix products: brought into the microkernel's form, or read where they are."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import element_of, i1, shape_of
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.dataclass import replace
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.dot.kept_panels import Slot, forget, pack_unless_kept, slot_of
from tilewright.targets.cpu.dot.limits import limits_of
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.nests import nest
from tilewright.targets.cpu.nests.coordinates import constant_coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.nests.whole_tiles import whole_tile
from tilewright.targets.cpu.report import CountedOp
from tilewright.targets.cpu.schedule.bufferization import PackForm
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.lowering import Limits, Lowering
from tilewright.targets.cpu.schedule.materialization import operand_spec
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
    emit = Emitter(out, _location(form))
    _pack_buffer(lowering, emit, form, lowering.buffer(form.value), dst)


def _location(form: PackForm) -> LocationAttr | None:
    """Where an operand comes from: the op that makes it, or the loop that carries it."""
    made = form.value.owner
    op = made.parent_op() if isinstance(made, Block) else made
    return None if op is None else op.location


def _spec_of(lowering: Lowering, form: PackForm) -> DotSpec:
    for op, forms in lowering.bufferization.operands.items():
        if form in forms:
            return operand_spec(op, lowering.machine)
    raise AssertionError("a packed operand belongs to a dot")


def _operand_shape(form: PackForm) -> tuple[int, int]:
    rows, columns = shape_of(form.value.type)[-2:]
    return (columns, rows) if form.transposed else (rows, columns)


def packed_buffer(lowering: Lowering, form: PackForm) -> Buffer:
    """Where an operand is packed: a buffer of its own."""
    shape, spec = _operand_shape(form), _spec_of(lowering, form)
    layout = spec.a_layout if form.role == "a" else spec.b_layout
    count = layout.size_elems(*shape)
    buffer = lowering.allocate(shape, form.element, f"packed {form.role}", count)
    lowering.packed[form] = buffer
    return buffer


def kept_slot(ev: Evaluator, form: PackForm) -> Slot | None:
    """Where panels of B are that the next program may find; None where they are not kept."""
    if form.role != "b":
        return None
    spec, shape = _spec_of(ev.lowering, form), _operand_shape(form)
    address, _ = ev.lowering.sources[form]
    return slot_of(ev, form, address, shape, spec.b_layout.size_elems(*shape))


def pack(
    lowering: Lowering,
    emit: Emitter,
    form: PackForm,
    source: tuple[SSAValue, SSAValue],
    dst: SSAValue,
    transposed: bool,
) -> None:
    """One cpu.pack from (address, stride); `transposed` as the source lies in memory."""
    rows, columns = _operand_shape(form)
    properties: dict[str, Attribute] = {
        "rows": IntegerAttr(rows, i64),
        "columns": IntegerAttr(columns, i64),
        "role": StringAttr(form.role),
        **unit_property(form.unit),
    }
    if transposed:
        properties["transposed"] = UnitAttr()
    op = emit.effect(cpu.PackOp, (*source, dst), (), properties)
    lowering.report.counted[op] = CountedOp(_products_of(lowering, form)[0], is_beside=True)


def _products_of(lowering: Lowering, form: PackForm) -> list[DotOp]:
    """The products that read an operand in one form."""
    return [op for op, forms in lowering.bufferization.operands.items() if form in forms]


def _pack_buffer(
    lowering: Lowering, emit: Emitter, form: PackForm, source: Buffer, dst: Buffer
) -> None:
    stride = emit.constant(i64, source.shape[-1])
    pack(lowering, emit, form, (source.base, stride), dst.base, form.transposed)


def _pack_load(lowering: Lowering, out: Block, form: PackForm) -> None:
    """Pack straight from memory where the whole tile is there in one piece.

    A mask that hides something, or an index that wraps inside the tile, takes the general
    road: materialise, then pack.
    """
    op = owner(form.value)
    assert isinstance(op, LoadOp)
    ev = Evaluator(lowering, Emitter(out, op.location))
    if lowering.bufferization.is_stored(form.value):
        dst = packed_buffer(lowering, form)
        _pack_buffer(lowering, ev.emit, form, lowering.buffer(form.value), dst)
        return
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
        _pack_general(lowering, slow, form, dst, is_rare=True)
        ev.emit.push(slow)
        if slot is not None:
            forget(ev.emit, slot)
        ev.emit.effect(YieldOp, ())
        ev.emit.pop()
        ev.emit.choose(condition, (fast, slow))


def _pack_direct(
    ev: Evaluator, form: PackForm, op: LoadOp, dst: Buffer, slot: Slot | None = None
) -> None:
    """Pack a tile from memory; with a slot only where it is not kept there."""
    transposed = form.transposed if _has_rows(ev.lowering, op) else not form.transposed
    source = ev.lowering.sources[form]
    if slot is None:
        pack(ev.lowering, ev.emit, form, source, dst.base, transposed)
        return
    packing = Block()
    pack(ev.lowering, Emitter(packing, op.location), form, source, dst.base, transposed)
    pack_unless_kept(ev.emit, slot, source, packing)


def _has_rows(lowering: Lowering, op: LoadOp) -> bool:
    """Whether a tile's rows, not its columns, are contiguous in memory."""
    stride = lowering.bufferization.structure.strides(op.operands[0])[1]
    return stride is not None and stride.as_int() == 1


def _matrix(ev: Evaluator, op: LoadOp) -> tuple[SSAValue, SSAValue]:
    """Where a tile starts in memory, and how many elements its rows (columns) lie apart."""
    strides = ev.lowering.bufferization.structure.strides(op.operands[0])
    pitch = strides[0] if _has_rows(ev.lowering, op) else strides[1]
    assert pitch is not None
    source = ev.element(op.operands[0], constant_coords((0, 0)), False)
    return source, polynomial(ev, pitch)


def _rows_in_place(lowering: Lowering, out: Block, form: PackForm) -> tuple[SSAValue, SSAValue]:
    """The (address, stride) of rows in memory; of a copy where the tile is not there as such."""
    op = owner(form.value)
    assert isinstance(op, LoadOp)
    ev = Evaluator(lowering, Emitter(out, op.location))
    along = 1 if _has_rows(lowering, op) else 0
    length = ev.emit.constant(i64, shape_of(form.value.type)[along])
    if lowering.bufferization.is_stored(form.value):
        assert along == 1, "a tile that is stored has rows"
        return lowering.buffer(form.value).base, length
    limits = _limits(lowering, ev.emit, form)
    condition = whole_tile(ev, op, () if limits is None else limits.of(form))
    if condition is None:
        return _materialize(lowering, out, form, along).base, length
    in_memory = lowering.sources[form] = _matrix(ev, op)
    if not isinstance(condition, SSAValue):
        lowering.in_memory[form] = ev.emit.constant(i1, 1)
        return in_memory
    lowering.in_memory[form] = condition
    copying = Block()
    copied = _materialize(lowering, copying, form, along, is_rare=True).base, length
    copying.add_op(build(YieldOp, location=op.location))
    ev.emit.choose(condition, (Block([build(YieldOp, location=op.location)]), copying))
    select = ELEMENTWISE["arith.select"]
    address, stride = (
        ev.emit.pure(select, (condition, there, here), there.type)
        for there, here in zip(in_memory, copied, strict=True)
    )
    return address, stride


def _limits(lowering: Lowering, emit: Emitter, form: PackForm) -> Limits | None:
    """The limits of the one product that reads an operand in place, computed for its first."""
    first = _products_of(lowering, form)[0]
    if first not in lowering.limits:
        lowering.limits[first] = limits_of(lowering, emit, first)
    return lowering.limits[first]


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
    op = owner(form.value)
    assert op is not None
    shape = shape_of(form.value.type)
    temporary = lowering.allocate(shape, element_of(form.value.type), "unpacked")
    lowering.buffers[form.value] = temporary = replace(temporary, last=None if last else 0)
    root = Root(RootKind.MATERIALIZE, op, (form.value,), shape, 0)
    nest.emit_nest(lowering, out, [root], is_rare=is_rare)
    del lowering.buffers[form.value]
    return temporary


def unit_property(unit: str) -> dict[str, Attribute]:
    """The property that names the unit of a product or of its packing; none for vectors."""
    return {"unit": StringAttr(unit)} if unit else {}
