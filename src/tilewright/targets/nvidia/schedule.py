"""T0 to T2 for an NVIDIA GPU: plan, layouts, shared memory, barriers."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from tilewright.schedule.layout.decide import Layouts, decide_layouts
from tilewright.schedule.layout.rewrite import assign_layouts
from tilewright.schedule.plan.products import MatrixMachine
from tilewright.support.dataclass import dataclass
from tilewright.targets.nvidia.emit import find_kernel
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
    return NvidiaReport(layouts, 0)
