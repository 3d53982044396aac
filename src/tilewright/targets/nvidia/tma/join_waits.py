"""Lets loads that are waited for together share an mbarrier (T1 to T1).

    tma_wait %a; %x = local_load %s; tma_wait %b  ⇒  tma_wait %a, %b; %x = local_load %s

The first of the loads that starts announces the bytes of all; the mbarrier's phase ends when all
have come. They stand in one block, so that none of them starts without the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation, OpResult

from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import erase
from tilewright.ir.encoding import SharedType
from tilewright.ir.passes import Pass
from tilewright.ir.types import storage_bytes
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.staging import LocalLoadOp, MemdescTransOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.tma_ops import TmaLoadOp, TmaWaitOp, find_init

# What stands between waits for the sake of one of them, and may as well stand behind all.
_READERS = (LocalLoadOp, MemdescTransOp)


@dataclass(frozen=True)
class JoinWaits(Pass):
    """The pass; see the module."""

    name = "join-waits"
    requires = "T1"
    produces = "T1"
    after = ("stage-tensor-maps",)

    def apply(self, module: ModuleOp) -> None:
        """Join the waits of the kernel."""
        join_waits(find_kernel(module))


def join_waits(kernel: FuncOp) -> int:
    """Join the waits of a kernel and number the mbarriers anew; how many it takes."""
    init = find_init(kernel)
    if init is None:
        return 0
    for op in tuple(kernel.walk()):
        if isinstance(op, TmaWaitOp) and op.parent is not None:
            _join(op, tuple(_waits_behind(op)))
    count = number_barriers(kernel)
    init.properties["count"] = IntegerAttr(count, i32)
    return count


def number_barriers(kernel: FuncOp) -> int:
    """Give each wait of a kernel, with the loads that it is for, an mbarrier; how many."""
    waits = [op for op in kernel.walk() if isinstance(op, TmaWaitOp)]
    for number, wait in enumerate(waits):
        _share(wait, IntegerAttr(number, i32))
    return len(waits)


def _waits_behind(wait: TmaWaitOp) -> Iterator[TmaWaitOp]:
    """The waits that follow one, with nothing but readers of loaded tiles between them."""
    op = wait.next_op
    while isinstance(op, (TmaWaitOp, *_READERS)):
        if isinstance(op, TmaWaitOp):
            yield op
        op = op.next_op


def _join(first: TmaWaitOp, others: Sequence[TmaWaitOp]) -> None:
    tokens = [token for wait in (first, *others) for token in wait.tokens]
    first.operands = tokens
    first.properties["operandSegmentSizes"] = integer_array((len(tokens), 0))
    for wait in others:
        erase(wait)


def _share(wait: TmaWaitOp, number: IntegerAttr) -> None:
    """Give a wait and its loads an mbarrier."""
    wait.properties["barrier"] = number
    loads = [token.op for token in wait.tokens if isinstance(token, OpResult)]
    for load in loads:
        load.properties["barrier"] = number
        load.properties.pop("announced_bytes", None)
    block = wait.parent
    assert block is not None and all(load.parent is block for load in loads)
    first = min(loads, key=block.get_operation_index)
    first.properties["announced_bytes"] = IntegerAttr(sum(map(_num_bytes, loads)), i32)


def _num_bytes(load: Operation) -> int:
    """The bytes that a load brings."""
    assert isinstance(load, TmaLoadOp) and isinstance(load.dst.type, SharedType)
    return prod(load.dst.type.extents()) * storage_bytes(load.dst.type.element)
