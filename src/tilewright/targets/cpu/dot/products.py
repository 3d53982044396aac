"""Matrix products: what each reads and where its sum goes, and the call itself."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import shape_of
from tilewright.ops.control_flow import YieldOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.support.dataclass import dataclass, replace
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.dot.direct import amx_redirection, redirection
from tilewright.targets.cpu.dot.fetching import fetch_address
from tilewright.targets.cpu.dot.kept_panels import Slot, is_in_loop, pack_unless_kept
from tilewright.targets.cpu.dot.limits import row_limit
from tilewright.targets.cpu.dot.packs import kept_slot, pack, packed_buffer, unit_property
from tilewright.targets.cpu.dot.spec import FEW_ROWS, DotSpec
from tilewright.targets.cpu.dot.summary import summary_of
from tilewright.targets.cpu.dot.units import unit_key
from tilewright.targets.cpu.forms import STEPS
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.report import CountedOp
from tilewright.targets.cpu.schedule.bufferization import PackForm, is_zero
from tilewright.targets.cpu.schedule.lowering import Limits, Lowering
from tilewright.targets.cpu.schedule.materialization import is_direct, operand_spec


@STEPS.register(DotOp)
def emit_dot(lowering: Lowering, out: Block, op: DotOp) -> None:
    """The product itself; a batch is a loop over its matrices."""
    spec, emit = operand_spec(op, lowering.machine), Emitter(out, op.location)
    if shape_of(op.results[0].type)[:-2]:
        _emit_batch(lowering, emit, op, spec)
    else:
        _emit_product(lowering, emit, op, spec)
    lowering.report.add_product(op, summary_of(lowering, op, spec))


def _emit_product(lowering: Lowering, emit: Emitter, op: DotOp, spec: DotSpec) -> None:
    forms = lowering.bufferization.operands[op]
    (a, *stride), (b, *source) = (_operand(lowering, form, spec) for form in forms)
    is_across = forms[1] in lowering.bufferization.unpacked_transposes
    if source:
        panels = b if is_across else packed_buffer(lowering, forms[1]).base
        b, source = panels, [b, *source]
    target = lowering.buffer(op.results[0])
    is_silent = spec.is_amx and not is_across
    fetch = () if is_silent else fetch_address(lowering, emit, op, forms[1])
    found, place = lowering.limits.get(op), ()
    if op in lowering.direct and spec.is_amx:
        place = amx_redirection(lowering, emit, op, a, stride, found or _whole(emit, spec))
    elif op in lowering.direct and stride and source:
        found = found or _whole(emit, spec)
        place = redirection(lowering, emit, op, ((a, stride[0]), (source[0], source[1])), found)
    limits = () if found is None else (found.rows, found.columns, found.depth)
    if found is None and not (is_across or spec.is_amx):
        rows = row_limit(lowering, emit, op)
        limits = () if rows is None else (rows,)
    spec = replace(spec, ldc=target.pitch, transposed_b=is_across)
    room = _room(lowering, spec)
    call = _Call(a, b, target.base, stride, room, fetch, source, limits, place)
    slot = None if is_across or not source else _slot_beside(lowering, emit, op, spec)
    if slot is None:
        _emit_call(lowering, emit, op, spec, call)
    else:
        _choose_call(lowering, emit, op, spec, call, slot)


def _slot_beside(lowering: Lowering, emit: Emitter, op: DotOp, spec: DotSpec) -> Slot | None:
    """Where the panels of a B are kept that the product else packs itself; None for nowhere."""
    form = lowering.bufferization.operands[op][1]
    if form not in lowering.in_memory or spec.m <= FEW_ROWS or not is_in_loop(form):
        return None
    return kept_slot(Evaluator(lowering, emit), form)


def _choose_call(
    lowering: Lowering, emit: Emitter, op: DotOp, spec: DotSpec, call: _Call, slot: Slot
) -> None:
    """A call that reads panels which are kept, where programs share them and the tile is whole, or
    the one that packs what it multiplies."""
    form = lowering.bufferization.operands[op][1]
    assert slot.is_used is not None
    is_kept = emit.integer("andi", slot.is_used, lowering.in_memory[form])
    for limit, size in zip(call.limits[1:], (spec.n, spec.k), strict=False):
        whole = emit.compare("eq", limit, emit.constant(i64, size))
        is_kept = emit.integer("andi", is_kept, whole)
    source = call.source[0], call.source[1]
    packing, keeping, other = Block(), Block(), Block()
    pack(lowering, Emitter(packing, op.location), form, source, slot.panels.base, False)
    inner = Emitter(keeping, op.location)
    pack_unless_kept(inner, slot, source, packing)
    panels = slot.panels.base
    # The same blocks of code fetch the next slot, row by row of a panel: a guess behind the last.
    following = inner.advance(panels, spec.b_layout.size_elems(spec.k, spec.n))
    fetch = (following, inner.constant(i64, spec.b_layout.columns))
    kept = replace(call, b=panels, fetch=fetch if call.fetch else (), source=())
    _emit_call(lowering, inner, op, spec, kept)
    _emit_call(lowering, Emitter(other, op.location), op, spec, call)
    for block in (keeping, other):
        block.add_op(build(YieldOp, location=op.location))
    emit.choose(is_kept, (keeping, other))


def _whole(emit: Emitter, spec: DotSpec) -> Limits:
    """The limits of a product that is seen whole."""
    m, n, k = (emit.constant(i64, size) for size in (spec.m, spec.n, spec.k))
    return Limits(m, n, k)


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


@dataclass(frozen=True)
class _Call:
    """The operands of a call: A, B and the sum, then what only some have.

    `stride`: of A in place. `room`: for its rows. `fetch`: from where what comes next is fetched.
    `source`: B that the product packs. `limits`: all three, or that of the rows. `place`: where the
    sum goes.
    """

    a: SSAValue
    b: SSAValue
    c: SSAValue
    stride: Sequence[SSAValue] = ()
    room: Sequence[SSAValue] = ()
    fetch: Sequence[SSAValue] = ()
    source: Sequence[SSAValue] = ()
    limits: Sequence[SSAValue] = ()
    place: Sequence[SSAValue] = ()


def _emit_call(lowering: Lowering, emit: Emitter, op: DotOp, spec: DotSpec, call: _Call) -> None:
    extents = (call.limits, call.limits[1:], call.limits[1:])
    pairs = (call.fetch, call.fetch, call.source, call.source)
    groups = (*pairs, *extents, *(call.place,) * 3, call.place[3:])
    sizes = (1, 1, 1, len(call.stride), len(call.room), *(int(bool(group)) for group in groups))
    properties: dict[str, Attribute] = {
        "operandSegmentSizes": DenseArrayBase.from_list(i32, list(sizes)),
        "m": IntegerAttr(spec.m, i64),
        "n": IntegerAttr(spec.n, i64),
        "k": IntegerAttr(spec.k, i64),
        **unit_property(unit_key(spec)),
    }
    if spec.ldc is not None:
        properties["acc_stride"] = IntegerAttr(spec.ldc, i64)
    if spec.transposed_b:
        properties["transposed_b"] = UnitAttr()
    if is_zero(op.operands[2]):
        properties["zero_init"] = UnitAttr()
    values = [call.a, call.b, call.c, *call.stride, *call.room, *call.fetch]
    values += [*call.source, *call.limits, *call.place]
    emitted = emit.effect(cpu.DotOp, values, (), properties)
    lowering.report.counted[emitted] = CountedOp(op)


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
            dst = packed_buffer(lowering, form)
            source = (matrix, emit.constant(i64, columns))
            pack(lowering, emit, form, source, dst.base, form.transposed)
            matrix = dst.base
        bases.append(matrix)
    target = lowering.buffer(op.results[0])
    offset = emit.integer("muli", variable, emit.index(spec.m * spec.n))
    room = _room(lowering, spec)
    result = emit.advance(target.base, offset)
    _emit_call(lowering, emit, op, spec, _Call(bases[0], bases[1], result, room=room))
    emit.close_loop((0, count, 1))
