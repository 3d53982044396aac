"""Matrix products: packing operands into the microkernel's form, and the call itself."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, StringAttr, UnitAttr, i64
from xdsl.dialects.scf import YieldOp
from xdsl.ir import Attribute, Block, SSAValue

from tilewright.ir.types import element_of, i1, shape_of
from tilewright.ops.elementwise import CmpIOp
from tilewright.ops.matmul import DotOp
from tilewright.ops.memory import LoadOp
from tilewright.targets.cpu import access, nests
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.coordinates import Coords, constant_coords
from tilewright.targets.cpu.emitter import Emitter
from tilewright.targets.cpu.evaluate import Evaluator
from tilewright.targets.cpu.hazards import polynomial
from tilewright.targets.cpu.inline import owner
from tilewright.targets.cpu.lowering import Lowering
from tilewright.targets.cpu.microkernel import DotSpec
from tilewright.targets.cpu.placement import PackForm, is_zero
from tilewright.targets.cpu.requirements import is_direct, operand_spec
from tilewright.targets.cpu.roots import Root, RootKind
from tilewright.targets.cpu.storage import Buffer

_LESS = frozenset(("slt", "sle", "ult", "ule"))
_MORE = frozenset(("sgt", "sge", "ugt", "uge"))


def emit_pack(lowering: Lowering, out: Block, form: PackForm) -> None:
    """Pack an operand right here, from memory or from its buffer."""
    spec = _spec_of(lowering, form)
    dst = _packed_buffer(lowering, form, spec)
    lowering.packed[form] = dst
    if form.from_memory:
        _pack_load(lowering, out, form, dst)
        return
    emit = Emitter(out, _location(form))
    _pack_buffer(emit, form, lowering.buffer(form.value), dst)


def _location(form: PackForm) -> LocationAttr | None:
    op = owner(form.value)
    return None if op is None else op.location


def _spec_of(lowering: Lowering, form: PackForm) -> DotSpec:
    for op, forms in lowering.placement.operands.items():
        if form in forms:
            return operand_spec(op, lowering.machine)
    raise AssertionError("a packed operand belongs to a dot")


def _operand_shape(form: PackForm) -> tuple[int, int]:
    rows, columns = shape_of(form.value.type)[-2:]
    return (columns, rows) if form.transposed else (rows, columns)


def _packed_buffer(lowering: Lowering, form: PackForm, spec: DotSpec) -> Buffer:
    rows, columns = _operand_shape(form)
    if form.role == "a":
        count = rows * spec.a_layout.stride_elems(columns)
    else:
        count = spec.b_layout.size_elems(rows, columns)
    return lowering.allocate((rows, columns), form.element, f"packed {form.role}", count)


def _pack(
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
    }
    if transposed:
        properties["transposed"] = UnitAttr()
    emit.effect(cpu.PackOp, (*source, dst), (), properties)


def _pack_buffer(emit: Emitter, form: PackForm, source: Buffer, dst: Buffer) -> None:
    stride = emit.constant(i64, source.shape[-1])
    _pack(emit, form, (source.base, stride), dst.base, form.transposed)


def _pack_load(lowering: Lowering, out: Block, form: PackForm, dst: Buffer) -> None:
    """Pack straight from memory where the whole tile is there in one piece.

    A mask that hides something, or an index that wraps inside the tile, takes the general
    road: materialise, then pack.
    """
    op = owner(form.value)
    assert isinstance(op, LoadOp)
    ev = Evaluator(lowering, Emitter(out, op.location))
    if lowering.placement.is_stored(form.value):
        _pack_buffer(ev.emit, form, lowering.buffer(form.value), dst)
        return
    condition = _whole_tile(ev, op)
    if condition is True:
        _pack_direct(ev, form, op, dst)
    elif condition is None:
        _pack_general(lowering, out, form, dst)
    else:
        assert isinstance(condition, SSAValue)
        fast, slow = Block(), Block()
        ev.emit.push(fast)
        ev.emit.pin = len(ev.emit.blocks) - 1
        _pack_direct(ev, form, op, dst)
        ev.emit.effect(YieldOp, ())
        ev.emit.pin = 0
        ev.emit.pop()
        _pack_general(lowering, slow, form, dst)
        ev.emit.push(slow)
        ev.emit.effect(YieldOp, ())
        ev.emit.pop()
        ev.emit.choose(condition, (fast, slow))


def _pack_direct(ev: Evaluator, form: PackForm, op: LoadOp, dst: Buffer) -> None:
    strides = ev.lowering.placement.structure.strides(op.operands[0])
    along_columns = strides[1] is not None and strides[1].as_int() == 1
    pitch = strides[0] if along_columns else strides[1]
    assert pitch is not None
    source = ev.element(op.operands[0], constant_coords((0, 0)), False)
    transposed = form.transposed if along_columns else not form.transposed
    _pack(ev.emit, form, (source, polynomial(ev, pitch)), dst.base, transposed)


def _pack_general(lowering: Lowering, out: Block, form: PackForm, dst: Buffer) -> None:
    """Materialise the tile with a nest of its own, then pack the buffer."""
    op = owner(form.value)
    assert op is not None
    shape = shape_of(form.value.type)
    temporary = lowering.allocate(shape, element_of(form.value.type), "unpacked")
    lowering.buffers[form.value] = temporary
    root = Root(RootKind.MATERIALIZE, op, (form.value,), shape, 0)
    nests.emit_nest(lowering, out, [root])
    del lowering.buffers[form.value]
    _pack_buffer(Emitter(out, op.location), form, temporary, dst)


def _whole_tile(ev: Evaluator, op: LoadOp) -> SSAValue | bool | None:
    """Whether every element is loaded and no index jumps: True, an i1, or None for no way."""
    conditions: list[SSAValue] = []
    if op.mask is not None and not access.is_all_true(op.mask):
        held = all_true(ev, op.mask)
        if held is None:
            return None
        conditions += held
    strides = ev.lowering.placement.structure.strides(op.operands[0])
    for dim, stride in enumerate(strides):
        assert stride is not None
        if stride.jumps:
            conditions.append(_is_straight(ev, op.operands[0], dim))
    if not conditions:
        return True
    total = conditions[0]
    for condition in conditions[1:]:
        total = ev.emit.integer("andi", total, condition)
    return total


def _is_straight(ev: Evaluator, ptr: SSAValue, dim: int) -> SSAValue:
    """Whether the addresses along one dimension lie one stride apart."""
    emit = ev.emit
    shape = shape_of(ptr.type)
    stride = ev.lowering.placement.structure.strides(ptr)[dim]
    assert stride is not None
    size = access.pointee_bytes(ptr)

    def at(index: int) -> SSAValue:
        coords = constant_coords(tuple(index if d == dim else 0 for d in range(len(shape))))
        return access.address(ev, ev.element(ptr, coords, False))

    straight: SSAValue | None = None
    for index in access.ends(shape[dim])[1:]:
        expected = emit.integer("addi", at(0), polynomial(ev, stride, index * size))
        equal = emit.compare(0, at(index), expected)
        straight = equal if straight is None else emit.integer("andi", straight, equal)
    return emit.constant(i1, 1) if straight is None else straight


def all_true(ev: Evaluator, mask: SSAValue) -> list[SSAValue] | None:
    """Scalar conditions that together say that a mask holds everywhere; None if unknown.

    An affine comparison holds everywhere when it holds at the corner where it is hardest.
    """
    op = owner(mask)
    if op is None:
        return None
    if op.name in ("tt.broadcast", "tt.expand_dims", "tt.trans", "tt.reshape", "tw.hint"):
        return all_true(ev, op.operands[0])
    if op.name == "tt.splat":
        return [ev.lowering.scalar(op.operands[0])]
    if op.name == "arith.andi":
        sides = [all_true(ev, operand) for operand in op.operands]
        return None if sides[0] is None or sides[1] is None else [*sides[0], *sides[1]]
    if access.is_all_true(mask):
        return []
    if not isinstance(op, CmpIOp) or op.predicate_name() not in _LESS | _MORE:
        return None
    want_low = op.predicate_name() in _MORE
    corners = [_corner(ev, op.operands[0], want_low), _corner(ev, op.operands[1], not want_low)]
    if corners[0] is None or corners[1] is None:
        return None
    sides = [
        ev.element(v, c, False) for v, c in zip(op.operands, corners, strict=True) if c is not None
    ]
    return [ev.emit.compare(op.predicate.value.data, sides[0], sides[1])]


def _corner(ev: Evaluator, value: SSAValue, want_low: bool) -> Coords | None:
    """The element of an affine tile with the least or the greatest value."""
    indices = []
    strides = ev.lowering.placement.structure.strides(value)
    for stride, extent in zip(strides, shape_of(value.type), strict=True):
        step = None if stride is None or stride.jumps else stride.as_int()
        if step is None:
            return None
        indices.append(0 if (step >= 0) == want_low else extent - 1)
    return constant_coords(tuple(indices))


def emit_dot(lowering: Lowering, out: Block, op: DotOp) -> None:
    """The product itself; a batch is a loop over its matrices."""
    forms = lowering.placement.operands[op]
    spec = operand_spec(op, lowering.machine)
    emit = Emitter(out, op.location)
    batch = shape_of(op.results[0].type)[:-2]
    if not batch:
        a, b = (_packed_base(lowering, form, spec) for form in forms)
        _call(lowering, emit, op, spec, (a, b, lowering.buffer(op.results[0]).base))
        return
    _emit_batch(lowering, emit, op, spec)


def _packed_base(lowering: Lowering, form: PackForm, spec: DotSpec) -> SSAValue:
    if is_direct(form, spec, lowering.placement):
        return lowering.buffer(form.value).base
    return lowering.packed[form].base


def _call(
    lowering: Lowering,
    emit: Emitter,
    op: DotOp,
    spec: DotSpec,
    operands: tuple[SSAValue, SSAValue, SSAValue],
) -> None:
    properties: dict[str, Attribute] = {
        "m": IntegerAttr(spec.m, i64),
        "n": IntegerAttr(spec.n, i64),
        "k": IntegerAttr(spec.k, i64),
    }
    if is_zero(op.operands[2]):
        properties["zero_init"] = UnitAttr()
    emit.effect(cpu.DotOp, operands, (), properties)


def _emit_batch(lowering: Lowering, emit: Emitter, op: DotOp, spec: DotSpec) -> None:
    """Pack and multiply one matrix of the batch after the other."""
    shape = shape_of(op.results[0].type)
    count = 1
    for extent in shape[:-2]:
        count *= extent
    forms = lowering.placement.operands[op]
    variable, _ = emit.open_loop()
    bases = []
    for form in forms:
        stored = lowering.buffer(form.value)
        rows, columns = stored.shape[-2:]
        offset = emit.integer("muli", variable, emit.index(rows * columns))
        matrix = emit.advance(stored.base, offset)
        if not is_direct(form, spec, lowering.placement):
            dst = _packed_buffer(lowering, form, spec)
            source = (matrix, emit.constant(i64, columns))
            _pack(emit, form, source, dst.base, form.transposed)
            matrix = dst.base
        bases.append(matrix)
    target = lowering.buffer(op.results[0])
    offset = emit.integer("muli", variable, emit.index(spec.m * spec.n))
    _call(lowering, emit, op, spec, (bases[0], bases[1], emit.advance(target.base, offset)))
    emit.close_loop((0, count, 1))
