"""T0 to T2 for an NVIDIA GPU: plan, layouts, shared memory, barriers."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from tilewright.schedule.async_copy import copy_async
from tilewright.schedule.global_order import order_global
from tilewright.schedule.layout.decide import Layouts, decide_layouts
from tilewright.schedule.layout.rewrite import assign_layouts
from tilewright.schedule.ordering import order_shared
from tilewright.schedule.plan.products import MatrixMachine
from tilewright.schedule.shared_memory import place_shared
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.emit import find_kernel
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.target import MachineFeatures

MAX_SHARED_BYTES = 232448
"""What a program may have on Hopper, with the driver's consent."""


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
    copy_async(kernel)
    order_global(kernel)
    limit = int(str(machine.get("max_shared_bytes", MAX_SHARED_BYTES)))
    shared = place_shared(kernel, limit, str(machine.get("arch", "")), num_warps)
    order_shared(kernel, FenceAsyncSharedOp)
    return NvidiaReport(layouts, shared.total_bytes)
