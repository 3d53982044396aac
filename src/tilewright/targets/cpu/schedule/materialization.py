"""What must be materialised whatever the schedule: decided once for the whole kernel.

Also brings T0 into the form that the schedule expects: values that a loop hands on get a
definition of their own inside the loop, and a dot accumulates in the microkernel's type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilewright.analysis.affine.tiles import AffineTiles
from tilewright.ir.edits import replace_by
from tilewright.ir.effects import global_access, is_plain_read
from tilewright.ir.op import ViewOp, build
from tilewright.ir.regions import OUTSIDE, ControlFlowOp, Edge, edges_given
from tilewright.ir.types import element_of, shape_of, tile_of, width_bits
from tilewright.machine.model import MachineModel
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.ir import ExtFOp, TruncFOp
from tilewright.ops.function import FuncOp
from tilewright.ops.indexing.ir import GatherOp
from tilewright.ops.matmul.ir import DotOp, ProductOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.reduction.ir import ReduceOp
from tilewright.ops.shape.ir import BroadcastOp, ReshapeOp
from tilewright.support.rules import RuleTable
from tilewright.targets.cpu.dot.panels import RowLayout
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.dot.types import dot_spec, dtype_key, packed_element
from tilewright.targets.cpu.dot.units import choose_unit, unit_key
from tilewright.targets.cpu.nests.access import is_volatile
from tilewright.targets.cpu.schedule.bufferization import Bufferization, PackForm
from tilewright.targets.cpu.schedule.few_elements import sources_of_exchange
from tilewright.targets.cpu.schedule.inline import (
    EXPENSIVE,
    is_inline,
    is_splitting,
    is_tile,
    num_folded,
    owner,
)

NORMAL_FORMS: RuleTable[Callable[[Operation, MachineModel], None]] = RuleTable("cpu normal forms")
"""How an op is brought into the form that the schedule expects."""
Tiles = Iterable[SSAValue]
NEEDS: RuleTable[Callable[[Operation, Bufferization, MachineModel], Tiles]] = RuleTable(
    "cpu tiles in memory"
)
"""The tiles that an op needs in memory whatever the schedule, and what it decides of its own."""


def normalize(kernel: FuncOp, machine: MachineModel) -> None:
    """Rewrite T0 into the form that the schedule expects."""
    for op in tuple(kernel.walk()):
        rule = NORMAL_FORMS.find(type(op))
        if rule is not None:
            rule(op, machine)
        elif isinstance(op, ControlFlowOp):
            _define_handed_on(op)


@NORMAL_FORMS.register(DotOp)
def _accumulate_wide(op: DotOp, machine: MachineModel) -> None:
    """A dot whose accumulator is narrower than the microkernel's goes through that type."""
    narrow = element_of(op.results[0].type)
    wide = packed_element(operand_spec(op, machine).acc_dtype)
    if narrow == wide or width_bits(narrow) > width_bits(wide):
        return
    block = op.parent
    assert block is not None
    type_ = tile_of(wide, shape_of(op.results[0].type))
    addend = build(ExtFOp, (op.operands[2],), (type_,), location=op.location)
    operands = (op.operands[0], op.operands[1], addend.results[0])
    dot = build(DotOp, operands, (type_,), dict(op.properties), location=op.location)
    result = build(TruncFOp, dot.results, (op.results[0].type,), location=op.location)
    for new in (addend, dot, result):
        block.insert_op_before(new, op)
    replace_by(op, result.results[0])


def _define_handed_on(op: ControlFlowOp) -> None:
    """A carried tile handed on under another name needs a copy that is taken in time."""
    edges = [edge for edge in op.edges() if edge.target is not OUTSIDE]
    entered = {value for edge in edges if edge.source is OUTSIDE for value in edge.receivers}
    inner = [edge for edge in edges if edge.source is not OUTSIDE]
    for edge in inner:
        for index, (value, receiver) in enumerate(zip(edge.values, edge.receivers, strict=True)):
            if is_tile(value) and _needs_definition(edge, value, receiver, receiver in entered):
                _define(edge.giver, edge.first + index)


def _define(end: Operation, index: int) -> None:
    """Let the end of a region hand on a copy of an operand."""
    value, block = end.operands[index], end.parent
    assert block is not None
    copy = build(HintOp, (value,), (value.type,), location=end.location)
    block.insert_op_before(copy, end)
    end.operands[index] = copy.results[0]


def _needs_definition(edge: Edge, value: SSAValue, receiver: SSAValue, is_entered: bool) -> bool:
    """Whether the end of a region hands on what may be overwritten before it is copied."""
    block = edge.giver.parent
    if edge.source == edge.target:
        return isinstance(value, BlockArgument) and value.block is block and value is not receiver
    stays = (
        not is_entered
        and isinstance(value, BlockArgument)
        and sum(operand is value for operand in edge.giver.operands) == 1
    )
    return not _is_made_in(value, block) and not stays


def decide(kernel: FuncOp, bufferization: Bufferization, machine: MachineModel) -> None:
    """Fill in the tiles that must be materialised and the operands that must be packed."""
    for op in kernel.walk():
        rule = NEEDS.find(type(op))
        needed = _carried_from(op) if rule is None else rule(op, bufferization, machine)
        for value in needed:
            if is_inline(value):
                bufferization.stored.add(value)


def _carried_from(op: Operation) -> Tiles:
    """The tiles that the end of a region makes there and hands on to a region."""
    if op.next_op is not None or op.regions:
        return ()
    inner = [edge for edge in edges_given(op) if edge.target is not OUTSIDE]
    return [v for edge in inner for v in edge.values if is_tile(v) and _is_made_in(v, op.parent)]


@NEEDS.register(LoadOp)
def _loaded_once(op: LoadOp, bufferization: Bufferization, machine: MachineModel) -> Tiles:
    return op.results if is_volatile(op) else ()


@NEEDS.register(GatherOp)
def _gathered_from(op: GatherOp, bufferization: Bufferization, machine: MachineModel) -> Tiles:
    return op.operands[:1]


@NEEDS.register(ReshapeOp)
def _viewed(op: ReshapeOp, bufferization: Bufferization, machine: MachineModel) -> Tiles:
    return () if is_splitting(op) else op.operands


@NEEDS.register(ReduceOp)
def _folded(op: ReduceOp, bufferization: Bufferization, machine: MachineModel) -> Tiles:
    if num_folded(op) < 2 or not is_inline(op.results[0]):
        return ()
    shared = sources_of_exchange(op, bufferization)
    return op.results if shared is None else shared


def _is_made_in(value: SSAValue, block: Block | None) -> bool:
    definition = owner(value)
    return definition is not None and definition.parent is block


@NEEDS.register(BroadcastOp)
def _expensive_source(
    op: BroadcastOp, bufferization: Bufferization, machine: MachineModel
) -> Tiles:
    """A broadcast repeats its source: what is dear is computed once, before."""
    source = op.operands[0]
    definition = owner(source)
    while definition is not None and definition.name in ("tt.expand_dims", "tt.reshape"):
        source = definition.operands[0]
        definition = owner(source)
    if not is_tile(source) or _is_read_in_place(definition, op, bufferization):
        return ()
    if bufferization.costs.is_symbolic(source) or _is_inline_fold(source, bufferization):
        return ()
    is_dear = bufferization.costs.recompute(source, bufferization.stored) >= EXPENSIVE
    return (source,) if is_dear else ()


def _is_read_in_place(
    definition: Operation | None, op: BroadcastOp, bufferization: Bufferization
) -> bool:
    """Whether the source of a broadcast is memory that is as well read again for every row.

    A gather costs a load for each element, once for every row: a causal convolution with its taps
    four apart took 16 ns an element, and 3 with the taps kept (one thread of a Zen 5, 2026-11-23).
    Where each row takes one element, that is read outside of the loop along the row.
    """
    if definition is None or global_access(definition) is None:
        return False
    is_row = shape_of(op.operands[0].type)[-1] > 1
    return not (
        is_row and is_plain_read(definition) and bufferization.costs.is_gathered(definition)
    )


def _is_inline_fold(value: SSAValue, bufferization: Bufferization) -> bool:
    """Whether a value is a fold of a few elements that was found to need no tile in memory."""
    op = owner(value)
    return op is not None and num_folded(op) > 1 and not bufferization.is_stored(value)


def operand_spec(op: ProductOp, machine: MachineModel) -> DotSpec:
    """The microkernel that multiplies the operands of a dot (one matrix of a batch)."""
    a, b = (shape_of(v.type) for v in op.operands[:2])
    left, right = (element_of(v.type) for v in op.operands[:2])
    shape = (a[-2], b[-1], a[-1])
    spec = dot_spec(left, right, shape, machine.enabled_features, machine.vector_bytes)
    return choose_unit(spec).spec


@NEEDS.register(DotOp)
def _decide_dot(op: DotOp, bufferization: Bufferization, machine: MachineModel) -> Tiles:
    """Operands that are packed; what the microkernel reads itself is noted as stored here."""
    spec = operand_spec(op, machine)
    forms = (
        _operand_form(op, 0, spec, bufferization, machine),
        _operand_form(op, 1, spec, bufferization, machine),
    )
    bufferization.operands[op] = forms
    packed = {(op, index) for index, form in enumerate(forms) if form.from_memory}
    bufferization.packed_operands |= packed
    return ()


def _operand_form(
    op: DotOp, index: int, spec: DotSpec, bufferization: Bufferization, machine: MachineModel
) -> PackForm:
    """How one operand reaches the microkernel, with the packing placed where it belongs."""
    operand, role = op.operands[index], "ab"[index]
    multiply = spec.multiply
    element = packed_element(multiply.a_element if role == "a" else multiply.b_element)
    value, transposed = _untransposed(operand)
    from_memory = len(shape_of(value.type)) == 2 and _is_packable(value, bufferization.structure)
    form = PackForm(value, role, transposed, from_memory, element, unit_key(spec))
    if from_memory:
        return _place_after(form, bufferization)
    if is_inline(value):
        bufferization.stored.add(value)
    if form.role == "a" and _is_direct(form, spec, bufferization, machine):
        return form
    if len(shape_of(value.type)) > 2:
        return form  # packed matrix by matrix where the product is
    made = owner(value)
    if made is not None and made.parent is not op.parent:
        return _place_after(form, bufferization)
    bufferization.packs_before.setdefault(op, []).append(form)
    return form


def _place_after(form: PackForm, bufferization: Bufferization) -> PackForm:
    """Pack right where the value is made, once for all dots that take it in this form."""
    placed = bufferization.packs_after.setdefault(form.value, [])
    for other in placed:
        if other.form == form.form:
            return other
    placed.append(form)
    return form


def _is_direct(
    form: PackForm, spec: DotSpec, bufferization: Bufferization, machine: MachineModel
) -> bool:
    """Whether A as materialised is what the microkernel reads; may widen its buffer."""
    value = form.value
    rows, columns = shape_of(value.type)[-2:]
    layout = spec.a_layout
    if form.transposed or not _is_plain(layout, columns):
        return False
    assert layout.parts == 1, "the rows of several parts are longer"
    if element_of(value.type) == form.element:
        return True
    widens = dtype_key(element_of(value.type)) not in ("i8", "u8") and rows > 0
    if widens and is_inline(value) and _is_only_a(value, form.element, machine):
        bufferization.elements[value] = form.element
        return True
    return False


def _is_only_a(value: SSAValue, element: Attribute, machine: MachineModel) -> bool:
    """Whether all that is done with a tile are products that take it as an A of `element`."""
    for use in value.uses:
        op = use.operation
        if not isinstance(op, ProductOp) or use.index != 0:
            return False
        if packed_element(operand_spec(op, machine).multiply.a_element) != element:
            return False
    return True


def is_direct(form: PackForm, spec: DotSpec, bufferization: Bufferization) -> bool:
    """Whether a form that was decided needs no packing."""
    if form.from_memory or form.role != "a" or form.transposed:
        return False
    columns = shape_of(form.value.type)[-1]
    layout = spec.a_layout
    stored = bufferization.elements.get(form.value) or element_of(form.value.type)
    return _is_plain(layout, columns) and stored == form.element


def _is_plain(layout: RowLayout, columns: int) -> bool:
    """Whether the rows of an A of so many columns are those of any other tile."""
    has_gaps = layout.stride_elems(columns) != columns
    return not (layout.bias or has_gaps or layout.rows > 1)


def _untransposed(value: SSAValue) -> tuple[SSAValue, bool]:
    """The source of a 2-D transposition and True, or the value itself."""
    op = owner(value)
    if isinstance(op, ViewOp) and op.source_dims() == (1, 0):
        return op.operands[0], True
    return value, False


def _is_packable(value: SSAValue, structure: AffineTiles) -> bool:
    """Whether a tile is a load whose rows or columns lie contiguously in memory."""
    op = owner(value)
    if op is None or not is_plain_read(op) or is_volatile(op):
        return False
    strides = structure.strides(op.operands[0])
    if any(stride is None for stride in strides):
        return False
    return any(stride is not None and stride.as_int() == 1 for stride in strides)
