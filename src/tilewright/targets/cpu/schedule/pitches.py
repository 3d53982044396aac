"""Which results of products lie in the arena with gaps between their rows.

Rows that are a multiple of 1 KiB apart share a sixteenth of the first-level cache's sets, so that a
block of 32 of them evicts its own lines. A line more from row to row spreads them over all sets.
Only tiles that nothing makes or reads but products that add to them, ops on their elements and
control flow are laid out so: all else may count on dense rows.
"""

from __future__ import annotations

from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.machine.cpus import LINE_BYTES
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.targets.cpu.schedule.bufferization import Bufferization
from tilewright.targets.cpu.schedule.materialization import operand_spec
from tilewright.targets.cpu.schedule.sharing import needed_dense, sharing

SHARED_BYTES = 1024
"""Rows that lie a multiple of this apart get a gap.
Measured on Emerald Rapids, 2026-11-22, AMX on bytes, 512x512 and 256x256 by 1,024: 1.10 to 1.12
times the speed."""


def spread_rows(kernel: FuncOp, bufferization: Bufferization, machine: MachineModel) -> None:
    """Fill in the pitch of the results that AMX computes, and of what may share their buffers."""
    groups = sharing(kernel)
    operands = (form.value for forms in bufferization.operands.values() for form in forms)
    dense = {groups.root(value) for value in (*operands, *needed_dense(kernel))}
    pitches = {
        groups.root(op.results[0]): pitch
        for op in bufferization.operands
        for pitch in [_pitch(op, machine)]
        if pitch is not None
    }
    for value in groups.members():
        pitch = pitches.get(groups.root(value))
        if pitch is not None and groups.root(value) not in dense:
            bufferization.pitches[value] = pitch


def _pitch(product: DotOp, machine: MachineModel) -> int | None:
    """Elements from row to row of a product's result that is to have gaps."""
    result = product.results[0]
    shape, width = shape_of(result.type), storage_bytes(element_of(result.type))
    if len(shape) != 2 or shape[1] * width % SHARED_BYTES:
        return None
    return shape[1] + LINE_BYTES // width if operand_spec(product, machine).is_amx else None
