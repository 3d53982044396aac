"""`cpu.pack`: the copy of an operand, where it is packed, and what is known of its form."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue

from tilewright.ir.types import shape_of
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import LoadOp
from tilewright.targets.cpu import ops as cpu
from tilewright.targets.cpu.dot.kept_panels import Slot, slot_of
from tilewright.targets.cpu.dot.spec import DotSpec
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.report import CountedOp
from tilewright.targets.cpu.schedule.bufferization import PackForm
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.materialization import operand_spec
from tilewright.targets.cpu.schedule.storage import Buffer


def location_of(form: PackForm) -> LocationAttr | None:
    """Where an operand comes from: the op that makes it, or the loop that carries it."""
    made = form.value.owner
    op = made.parent_op() if isinstance(made, Block) else made
    return None if op is None else op.location


def spec_of(lowering: Lowering, form: PackForm) -> DotSpec:
    """The microkernel that reads an operand."""
    for op, forms in lowering.bufferization.operands.items():
        if form in forms:
            return operand_spec(op, lowering.machine)
    raise AssertionError("a packed operand belongs to a dot")


def _operand_shape(form: PackForm) -> tuple[int, int]:
    rows, columns = shape_of(form.value.type)[-2:]
    return (columns, rows) if form.transposed else (rows, columns)


def products_of(lowering: Lowering, form: PackForm) -> list[DotOp]:
    """The products that read an operand in one form."""
    return [op for op, forms in lowering.bufferization.operands.items() if form in forms]


def packed_buffer(lowering: Lowering, form: PackForm) -> Buffer:
    """Where an operand is packed: a buffer of its own."""
    shape, spec = _operand_shape(form), spec_of(lowering, form)
    layout = spec.a_layout if form.role == "a" else spec.b_layout
    count = layout.size_elems(*shape)
    buffer = lowering.allocate(shape, form.element, f"packed {form.role}", count)
    lowering.packed[form] = buffer
    return buffer


def kept_slot(ev: Evaluator, form: PackForm) -> Slot | None:
    """Where panels of B are that the next program may find; None where they are not kept."""
    if form.role != "b":
        return None
    spec, shape = spec_of(ev.lowering, form), _operand_shape(form)
    address, _ = ev.lowering.sources[form]
    return slot_of(ev, form, address, shape, spec.b_layout.size_elems(*shape))


def pack(
    lowering: Lowering,
    emit: Emitter,
    form: PackForm,
    source: tuple[SSAValue, SSAValue],
    dst: SSAValue,
    transposed: bool,
    there: Sequence[SSAValue] = (),
) -> None:
    """One cpu.pack from (address, stride); `transposed` as the source lies in memory.

    `there`: how many rows and columns of the operand are read, and how many are filled, if not
    all.
    """
    rows, columns = _operand_shape(form)
    properties: dict[str, Attribute] = {
        "rows": IntegerAttr(rows, i64),
        "columns": IntegerAttr(columns, i64),
        "role": StringAttr(form.role),
        **unit_property(form.unit),
    }
    if transposed:
        properties["transposed"] = UnitAttr()
    sizes = [1, 1, 1, *([len(there) // 4] * 4)]
    properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes)
    op = emit.effect(cpu.PackOp, (*source, dst, *there), (), properties)
    lowering.report.counted[op] = CountedOp(products_of(lowering, form)[0], is_beside=True)


def has_rows(lowering: Lowering, op: LoadOp) -> bool:
    """Whether a tile's rows, not its columns, are contiguous in memory."""
    stride = lowering.bufferization.structure.strides(op.operands[0])[1]
    return stride is not None and stride.as_int() == 1


def unit_property(unit: str) -> dict[str, Attribute]:
    """The property that names the unit of a product or of its packing; none for vectors."""
    return {"unit": StringAttr(unit)} if unit else {}
