"""Which operands of a product are read where the user has them, without a copy beforehand.

The microkernel broadcasts elements of A one by one, so rows that lie apart serve as well as
packed ones. Rows of B it packs itself, while it multiplies its first block of rows; the rows of a
transposed B it transposes in registers, where A has few rows (`dot/transposed_b.py`). What is
saved is a pass over the operand; what changes is the time of the reads, from the load to the
product, so nothing between the two may write memory.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.ir.effects import overtakes_reads
from tilewright.machine.model import MachineModel
from tilewright.ops.matmul.ir import DotOp
from tilewright.targets.cpu.schedule.bufferization import Bufferization, PackForm
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.materialization import operand_spec


def read_in_place(bufferization: Bufferization, machine: MachineModel) -> None:
    """Fill in the forms that no product needs packed."""
    users: dict[PackForm, list[DotOp]] = {}
    for op, forms in bufferization.operands.items():
        for form in forms:
            users.setdefault(form, []).append(op)
    for form, dots in users.items():
        if _is_transposed_b(form, bufferization) and all(
            operand_spec(op, machine).can_read_transposed_b and _finds_it(form, op) for op in dots
        ):
            bufferization.unpacked_transposes.add(form)
    for form, dots in users.items():
        if _is_row_major(form, bufferization) and all(
            _reads_rows(form, op, bufferization, machine) and _finds_it(form, op) for op in dots
        ):
            bufferization.unpacked.add(form)


def _is_row_major(form: PackForm, bufferization: Bufferization) -> bool:
    """Whether an operand's rows lie contiguously in memory."""
    return form.from_memory and not form.transposed and _has_rows(form, bufferization)


def _is_transposed_b(form: PackForm, bufferization: Bufferization) -> bool:
    """Whether an operand is a B whose columns lie contiguously in memory, for products alone."""
    if not form.from_memory or form.role != "b":
        return False
    return form.value.has_one_use() and form.transposed == _has_rows(form, bufferization)


def _has_rows(form: PackForm, bufferization: Bufferization) -> bool:
    """Whether the rows of a loaded tile lie contiguously in memory."""
    load = owner(form.value)
    assert load is not None
    stride = bufferization.structure.strides(load.operands[0])[1]
    return stride is not None and stride.as_int() == 1


def _reads_rows(
    form: PackForm, op: DotOp, bufferization: Bufferization, machine: MachineModel
) -> bool:
    """Whether a product reads the rows of an operand as they are.

    Beside the transpose of a B an A is read by k-groups, which may go on where it ends.
    """
    spec = operand_spec(op, machine)
    if form.role == "b":
        return spec.can_pack_b
    is_beside = bufferization.operands[op][1] in bufferization.unpacked_transposes
    return spec.can_read_a_in_place and not (is_beside and spec.multiply.k_group > 1)


def _finds_it(form: PackForm, op: DotOp) -> bool:
    """Whether a product finds in memory what the load would have read."""
    load = owner(form.value)
    assert load is not None
    if load.parent is not op.parent:
        return False
    between: Operation | None = load.next_op
    while between is not None and between is not op:
        if overtakes_reads(between):
            return False
        between = between.next_op
    return True
