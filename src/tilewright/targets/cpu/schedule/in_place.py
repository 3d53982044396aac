"""Which operands of a product are read where the user has them, without a copy beforehand.

The microkernel broadcasts elements of A one by one, so rows that lie apart serve as well as
packed ones. Rows of B it packs itself, while it multiplies its first block of rows. What is
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
        if _is_row_major(form, bufferization) and all(_can_wait(form, op, machine) for op in dots):
            bufferization.unpacked.add(form)


def _is_row_major(form: PackForm, bufferization: Bufferization) -> bool:
    """Whether an operand's rows lie contiguously in memory."""
    if not form.from_memory or form.transposed:
        return False
    load = owner(form.value)
    assert load is not None
    stride = bufferization.structure.strides(load.operands[0])[1]
    return stride is not None and stride.as_int() == 1


def _can_wait(form: PackForm, op: DotOp, machine: MachineModel) -> bool:
    """Whether the product reads such rows, and finds in them what the load would have read."""
    load = owner(form.value)
    assert load is not None
    spec = operand_spec(op, machine)
    reads_rows = spec.can_read_a_in_place if form.role == "a" else spec.can_pack_b
    if load.parent is not op.parent or not reads_rows:
        return False
    between: Operation | None = load.next_op
    while between is not None and between is not op:
        if overtakes_reads(between):
            return False
        between = between.next_op
    return True
