"""Which tiles may come to share a buffer, and which of them count on its layout."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tilewright.ir.effects import global_access
from tilewright.ir.op import AccumulatingOp, ElementwiseOp
from tilewright.ir.regions import edges_given, is_control_flow
from tilewright.ops.function import FuncOp
from tilewright.targets.cpu.schedule.bufferization import addend_of
from tilewright.targets.cpu.schedule.inline import is_inline, is_tile


class Groups:
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


def sharing(kernel: FuncOp) -> Groups:
    """The tiles that may come to share a buffer: addends and sums, what is handed on and taken."""
    groups = Groups()
    for op in kernel.walk():
        if isinstance(op, AccumulatingOp):
            groups.join(addend_of(op), op.results[0])
        for edge in edges_given(op):
            for value, receiver in zip(edge.values, edge.receivers, strict=True):
                if is_tile(value):
                    groups.join(value, receiver)
    return groups


def needed_dense(kernel: FuncOp, but_for: tuple[type[Operation], ...] = ()) -> Iterator[SSAValue]:
    """The tiles that are made, or read, otherwise than element by element or by ops `but_for`."""
    for op in kernel.walk():
        for result in op.results:
            if is_tile(result) and not (is_inline(result) or _is_by_element(op)):
                yield result
        for index, operand in enumerate(() if isinstance(op, but_for) else op.operands):
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
