"""Which results of products lie in the arena with gaps between their rows.

Rows that are a multiple of 1 KiB apart share a sixteenth of the first-level cache's sets, so that a
block of 32 of them evicts its own lines. A line more from row to row spreads them over all sets.
Only tiles that nothing makes or reads but products that add to them, ops on their elements and
control flow are laid out so: all else may count on dense rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.effects import global_access
from tilewright.ir.op import AccumulatingOp, ElementwiseOp
from tilewright.ir.regions import edges_given, is_control_flow
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.machine.cpus import LINE_BYTES
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.targets.cpu.schedule.bufferization import Bufferization, addend_of
from tilewright.targets.cpu.schedule.inline import is_inline, is_tile
from tilewright.targets.cpu.schedule.materialization import operand_spec

SHARED_BYTES = 1024
"""Rows that lie a multiple of this apart get a gap.
Measured on Emerald Rapids, 2026-11-22, AMX on bytes, 512x512 and 256x256 by 1,024: 1.10 to 1.12
times the speed."""


def spread_rows(kernel: FuncOp, bufferization: Bufferization, machine: MachineModel) -> None:
    """Fill in the pitch of the results that AMX computes, and of what may share their buffers."""
    groups = _sharing(kernel)
    operands = (form.value for forms in bufferization.operands.values() for form in forms)
    dense = {groups.root(value) for value in (*operands, *_needed_dense(kernel))}
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


class _Groups:
    """Values that are joined, directly or through others."""

    def __init__(self) -> None:
        self.parents: dict[SSAValue, SSAValue] = {}

    def root(self, value: SSAValue) -> SSAValue:
        """The one value that stands for all that are joined with `value`."""
        while value in self.parents:
            value = self.parents[value]
        return value

    def join(self, one: SSAValue, other: SSAValue) -> None:
        """Let the values joined with either be joined with both."""
        one, other = self.root(one), self.root(other)
        if one is not other:
            self.parents[one] = other

    def members(self) -> list[SSAValue]:
        """All values that were joined with another."""
        return list(dict.fromkeys((*self.parents, *self.parents.values())))


def _sharing(kernel: FuncOp) -> _Groups:
    """The tiles that may come to share a buffer: addends and sums, what is handed on and taken."""
    groups = _Groups()
    for op in kernel.walk():
        if isinstance(op, AccumulatingOp):
            groups.join(addend_of(op), op.results[0])
        for edge in edges_given(op):
            for value, receiver in zip(edge.values, edge.receivers, strict=True):
                if is_tile(value):
                    groups.join(value, receiver)
    return groups


def _needed_dense(kernel: FuncOp) -> Iterator[SSAValue]:
    """The tiles that are made, or read, otherwise than element by element."""
    for op in kernel.walk():
        for result in op.results:
            if is_tile(result) and not (is_inline(result) or _is_by_element(op)):
                yield result
        for index, operand in enumerate(op.operands):
            if is_tile(operand) and not _reads_by_element(op, index):
                yield operand


def _is_by_element(op: Operation) -> bool:
    return isinstance(op, AccumulatingOp | ElementwiseOp) or is_control_flow(op)


def _reads_by_element(op: Operation, index: int) -> bool:
    if isinstance(op, AccumulatingOp):
        return index == op.accumulator_index()
    if (
        is_control_flow(op)
        or op.has_trait(IsTerminator)
        or (op.results and is_inline(op.results[0]))
    ):
        return True
    access = global_access(op)
    return access is not None and access.writes
