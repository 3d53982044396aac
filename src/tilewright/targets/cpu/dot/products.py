"""Matrix products: packing operands into the microkernel's form, and the call itself."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import element_of, shape_of
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.elementwise.ir import ELEMENTWISE
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.support.dataclass import replace
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.dot.direct import amx_redirection, redirection
from tilewright.targets.cpu.dot.fetching import fetch_address
from tilewright.targets.cpu.dot.kept_panels import Slot, forget, pack_unless_kept, slot_of
from tilewright.targets.cpu.dot.limits import limits_of, row_limit
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.dot.summary import summary_of
from tilewright.targets.cpu.dot.units import unit_key
from tilewright.targets.cpu.forms import STEPS
from tilewright.targets.cpu.nests import nest
from tilewright.targets.cpu.nests.coordinates import constant_coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.nests.whole_tiles import whole_tile
from tilewright.targets.cpu.report import CountedOp
from tilewright.targets.cpu.schedule.bufferization import PackForm, is_zero
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.lowering import Limits, Lowering
from tilewright.targets.cpu.schedule.materialization import is_direct, operand_spec
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
    dst = _packed_buffer(lowering, form)
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


def _packed_buffer(lowering: Lowering, form: PackForm) -> Buffer:
    """Where an operand is packed: a buffer of its own."""
    shape, spec = _operand_shape(form), _spec_of(lowering, form)
    layout = spec.a_layout if form.role == "a" else spec.b_layout
    count = layout.size_elems(*shape)
    buffer = lowering.allocate(shape, form.element, f"packed {form.role}", count)
    lowering.packed[form] = buffer
    return buffer


def _slot_of(ev: Evaluator, form: PackForm) -> Slot | None:
    """Where panels of B are that the next program may find; None where they are not kept."""
    if form.role != "b":
        return None
    spec, shape = _spec_of(ev.lowering, form), _operand_shape(form)
    address, _ = ev.lowering.sources[form]
    return slot_of(ev, form, address, shape, spec.b_layout.size_elems(*shape))


def _pack(
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
        **_unit_property(form.unit),
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
    _pack(lowering, emit, form, (source.base, stride), dst.base, form.transposed)


def _pack_load(lowering: Lowering, out: Block, form: PackForm) -> None:
    """Pack straight from memory where the whole tile is there in one piece.

    A mask that hides something, or an index that wraps inside the tile, takes the general
    road: materialise, then pack.
    """
    op = owner(form.value)
    assert isinstance(op, LoadOp)
    ev = Evaluator(lowering, Emitter(out, op.location))
    if lowering.bufferization.is_stored(form.value):
        dst = _packed_buffer(lowering, form)
        _pack_buffer(lowering, ev.emit, form, lowering.buffer(form.value), dst)
        return
    condition = whole_tile(ev, op)
    if condition is None:
        _pack_general(lowering, out, form, _packed_buffer(lowering, form))
        return
    lowering.sources[form] = _matrix(ev, op)
    slot = _slot_of(ev, form)
    dst = _packed_buffer(lowering, form) if slot is None else slot.panels
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
        _pack(ev.lowering, ev.emit, form, source, dst.base, transposed)
        return
    packing = Block()
    _pack(ev.lowering, Emitter(packing, op.location), form, source, dst.base, transposed)
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
        return in_memory
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


@STEPS.register(DotOp)
def emit_dot(lowering: Lowering, out: Block, op: DotOp) -> None:
    """The product itself; a batch is a loop over its matrices."""
    forms = lowering.bufferization.operands[op]
    spec = operand_spec(op, lowering.machine)
    lowering.report.add_product(op, summary_of(lowering, op, spec))
    emit = Emitter(out, op.location)
    batch = shape_of(op.results[0].type)[:-2]
    if not batch:
        (a, *stride), (b, *source) = (_operand(lowering, form, spec) for form in forms)
        is_across = forms[1] in lowering.bufferization.unpacked_transposes
        if source:
            room = b if is_across else _packed_buffer(lowering, forms[1]).base
            b, source = room, [b, *source]
        target = lowering.buffer(op.results[0])
        is_silent = spec.is_amx and not is_across
        fetch = () if is_silent else fetch_address(lowering, emit, op, forms[1])
        found, place = lowering.limits.get(op), ()
        if op in lowering.direct and spec.is_amx:
            place = amx_redirection(lowering, emit, op, a, stride, _whole(emit, spec))
        elif op in lowering.direct and stride and source:
            found = found or _whole(emit, spec)
            place = redirection(lowering, emit, op, ((a, stride[0]), (source[0], source[1])), found)
        limits = () if found is None else (found.rows, found.columns, found.depth)
        if found is None and not (is_across or spec.is_amx):
            rows = row_limit(lowering, emit, op)
            limits = () if rows is None else (rows,)
        spec = replace(spec, ldc=target.pitch, transposed_b=is_across)
        more = (stride, _room(lowering, spec), fetch, source, limits, place)
        _call(lowering, emit, op, spec, (a, b, target.base), more)
        return
    _emit_batch(lowering, emit, op, spec)


def _whole(emit: Emitter, spec: DotSpec) -> Limits:
    """The limits of a product that is seen whole."""
    m, n, k = (emit.constant(i64, size) for size in (spec.m, spec.n, spec.k))
    return Limits(m, n, k)


def _unit_property(unit: str) -> dict[str, Attribute]:
    """The property that names the unit of a product or of its packing; none for vectors."""
    return {"unit": StringAttr(unit)} if unit else {}


def _room(lowering: Lowering, spec: DotSpec) -> tuple[SSAValue, ...]:
    """Where a product copies rows of A, if it does."""
    size = spec.room_bytes
    return (lowering.allocate((size,), i8, "rows of a").base,) if size else ()


def _operand(lowering: Lowering, form: PackForm, spec: DotSpec) -> tuple[SSAValue, ...]:
    """Where an operand is, and the stride of its rows if they are not packed."""
    if form in lowering.unpacked:
        return lowering.unpacked[form]
    if is_direct(form, spec, lowering.bufferization):
        return (lowering.buffer(form.value).base,)
    return (lowering.packed[form].base,)


def _call(
    lowering: Lowering,
    emit: Emitter,
    op: DotOp,
    spec: DotSpec,
    operands: tuple[SSAValue, SSAValue, SSAValue],
    more: tuple[Sequence[SSAValue], ...] = ((), (), (), (), (), ()),
) -> None:
    """The call; `more`: the stride of A in place, the room for its rows, where to fetch from,
    the source of B, limits (all three, or that of the rows), where the sum goes."""
    stride, room, fetch, source, limits, place = more
    extents = (limits, limits[1:], limits[1:])
    groups = (fetch, fetch, source, source, *extents, *(place,) * 3, place[3:])
    sizes = (1, 1, 1, len(stride), len(room), *(int(bool(group)) for group in groups))
    properties: dict[str, Attribute] = {
        "operandSegmentSizes": DenseArrayBase.from_list(i32, list(sizes)),
        "m": IntegerAttr(spec.m, i64),
        "n": IntegerAttr(spec.n, i64),
        "k": IntegerAttr(spec.k, i64),
        **_unit_property(unit_key(spec)),
    }
    if spec.ldc is not None:
        properties["acc_stride"] = IntegerAttr(spec.ldc, i64)
    if spec.transposed_b:
        properties["transposed_b"] = UnitAttr()
    if is_zero(op.operands[2]):
        properties["zero_init"] = UnitAttr()
    values = (*operands, *stride, *room, *fetch, *source, *limits, *place)
    call = emit.effect(cpu.DotOp, values, (), properties)
    lowering.report.counted[call] = CountedOp(op)


def _emit_batch(lowering: Lowering, emit: Emitter, op: DotOp, spec: DotSpec) -> None:
    """Pack and multiply one matrix of the batch after the other."""
    shape = shape_of(op.results[0].type)
    count = 1
    for extent in shape[:-2]:
        count *= extent
    forms = lowering.bufferization.operands[op]
    variable, _ = emit.open_loop()
    bases = []
    for form in forms:
        stored = lowering.buffer(form.value)
        rows, columns = stored.shape[-2:]
        offset = emit.integer("muli", variable, emit.index(rows * columns))
        matrix = emit.advance(stored.base, offset)
        if not is_direct(form, spec, lowering.bufferization):
            dst = _packed_buffer(lowering, form)
            source = (matrix, emit.constant(i64, columns))
            _pack(lowering, emit, form, source, dst.base, form.transposed)
            matrix = dst.base
        bases.append(matrix)
    target = lowering.buffer(op.results[0])
    offset = emit.integer("muli", variable, emit.index(spec.m * spec.n))
    room = _room(lowering, spec)
    result = emit.advance(target.base, offset)
    _call(lowering, emit, op, spec, (bases[0], bases[1], result), ((), room, (), (), (), ()))
    emit.close_loop((0, count, 1))
