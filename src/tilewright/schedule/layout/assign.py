"""Gives every tile a layout and makes each change of layout an op (T0 to T1)."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.passes import Pass
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import find_kernel, require_launchable
from tilewright.schedule.layout.decide import Layouts, decide_layouts
from tilewright.schedule.layout.rewrite import assign_layouts
from tilewright.schedule.partition.warps import warps_of_tiles
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class AssignLayouts(Pass):
    """Decide the layouts of a kernel, then rewrite it; see `decide.py` and `rewrite.py`."""

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "assign-layouts"
    requires = "T0r"
    produces = "T1"
    after = ("verify-plan",)

    def apply(self, module: ModuleOp) -> Layouts:
        """Lay out the kernel; the decision."""
        kernel = find_kernel(module)
        layouts = decide_layouts(kernel, self.machine, warps_of_tiles(kernel, self.num_warps))
        require_launchable(kernel)
        assign_layouts(kernel, layouts)
        return layouts
