"""Which argument each pointer of a kernel points into, where that is one and the same.

A pointer into an argument's memory is a number of elements from its start, and an access through
it one of the argument's memref. A pointer that may point into one of several arguments, or that
was a number before, is an address.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from tilewright.ir.regions import ControlFlowOp
from tilewright.ir.types import PointerType, element_of, is_pointer, storage_bytes
from tilewright.ops.creation.ir import ConstantOp
from tilewright.ops.elementwise.ir import IntToPtrOp
from tilewright.ops.function import FuncOp
from tilewright.ops.memory.ir import LoadOp

# What gives a pointer that is not computed from another one.
_SOURCES = (IntToPtrOp, LoadOp, ConstantOp)


class Roots:
    """The roots of all pointers of a function, by one fixed point over its ops."""

    def __init__(self, kernel: FuncOp) -> None:
        self._roots: dict[SSAValue, SSAValue | None] = {}
        for argument in kernel.body.block.args:
            if is_pointer(argument.type):
                self._roots[argument] = argument
        flows = [flow for op in kernel.walk() for flow in _flows(op)]
        while any([self._join(target, source) for source, target in flows]):
            pass

    def of(self, pointer: SSAValue) -> SSAValue | None:
        """The argument that a pointer, or each of a tile of pointers, points into."""
        return self._roots.get(pointer)

    def _join(self, target: SSAValue, source: SSAValue | None) -> bool:
        """Let a pointer come from another one as well; whether that says anything new."""
        if source is not None and source not in self._roots:
            return False  # not known yet: what is known by other ways stands
        found = None if source is None else self._roots[source]
        if target not in self._roots:
            self._roots[target] = found
            return True
        if self._roots[target] is None or self._roots[target] == found:
            return False
        self._roots[target] = None
        return True


def _flows(op: Operation) -> Iterator[tuple[SSAValue | None, SSAValue]]:
    """Pairs of a pointer and one that may be it, or point into the same memory."""
    if isinstance(op, ControlFlowOp):
        for edge in op.edges():
            for source, target in zip(edge.values, edge.receivers, strict=False):
                if is_pointer(target.type):
                    yield source, target
        return
    for result in op.results:
        if not is_pointer(result.type):
            continue
        if isinstance(op, _SOURCES) or not _keeps_size(op):
            yield None, result
            continue
        for operand in op.operands:
            if is_pointer(operand.type):
                yield operand, result


def _keeps_size(op: Operation) -> bool:
    """Whether all pointers of an op are to elements of one size, so that counts of them stay."""
    elements = [element_of(value.type) for value in (*op.operands, *op.results)]
    sizes = {storage_bytes(e.pointee) for e in elements if isinstance(e, PointerType)}
    return len(sizes) == 1
