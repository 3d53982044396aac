"""T0 to T2 for an NVIDIA GPU: plan, layouts, shared memory, barriers."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from tilewright.ir.encoding import SharedType
from tilewright.ir.op import build
from tilewright.ir.types import storage_bytes
from tilewright.ops.function import FuncOp
from tilewright.ops.staging import LaidOutDotOp, LocalAllocOp, LocalBarrierOp
from tilewright.schedule.layout.decide import Layouts, decide_layouts
from tilewright.schedule.layout.rewrite import assign_layouts
from tilewright.schedule.plan.products import MatrixMachine
from tilewright.schedule.scratch import place_scratch, scratch_bytes
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.emit import find_kernel
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.target import MachineFeatures


@dataclass(frozen=True)
class NvidiaReport:
    """What was decided for a kernel, for people."""

    layouts: Layouts
    shared_bytes: int
    remarks: tuple[str, ...] = ()


def lower_to_threads(
    module: ModuleOp, machine: MachineFeatures, options: Mapping[str, object]
) -> NvidiaReport:
    """Lower a T0 module to T2 in place."""
    kernel = find_kernel(module)
    num_warps = int(str(options.get("num_warps", 4)))
    layouts = decide_layouts(kernel, MatrixMachine(num_warps))
    assign_layouts(kernel, layouts)
    return NvidiaReport(layouts, _place(kernel))


def _place(kernel: FuncOp) -> int:
    """Places one after the other, barriers around every use."""
    total = 0
    for op in tuple(kernel.walk()):
        size = scratch_bytes(op)
        if size:
            place_scratch(op, total)
            total += -(-size // 1024) * 1024
            _before(op, LocalBarrierOp)
        if isinstance(op, LocalAllocOp):
            op.properties["offset_bytes"] = IntegerAttr(total, i32)
            type_ = op.result.type
            assert isinstance(type_, SharedType)
            size = prod(type_.extents()) * type_.slots.data * storage_bytes(type_.element)
            total += -(-size // 1024) * 1024
            _before(op, LocalBarrierOp)
        if isinstance(op, LaidOutDotOp):
            _before(op, FenceAsyncSharedOp)
            _before(op, LocalBarrierOp)
    return total


def _before(op: Operation, cls: type[Operation]) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(build(cls, location=op.location), op)
