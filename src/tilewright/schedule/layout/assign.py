"""Gives every tile a layout and makes each change of layout an op (T0 to T1).

Ops that are annotated with layouts (`tw.layout`) have them, or are refused with the reason.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.annotations import annotate
from tilewright.ir.passes import Pass
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import find_kernel, require_launchable
from tilewright.ops.matmul.ir import ProductOp
from tilewright.schedule.layout.annotations import LayoutPlan, LayoutPlanAttr
from tilewright.schedule.layout.decide import Layouts, decide_layouts
from tilewright.schedule.layout.rewrite import assign_layouts
from tilewright.schedule.partition.warps import warps_of_tiles
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class DecideLayouts(Pass):
    """Annotate the ops that have layouts of their own with them; see `annotations.py`.

    *Why here* nowhere in a compile: `assign-layouts` takes the same decision on its way, as a walk
    of its own takes a seventh of the schedule's time. It is what `--stage plan` shows.
    """

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "decide-layouts"
    requires = "T0r"
    produces = "T0r"
    after = ("verify-plan",)

    def apply(self, module: ModuleOp) -> None:
        """Annotate the kernel. *Raises*: PlanRefused for given layouts that cannot be."""
        kernel = find_kernel(module)
        num_warps = warps_of_tiles(kernel, self.num_warps)
        for op, at in decide_layouts(kernel, self.machine, num_warps).anchored.items():
            # A product's are those of its instruction, which `tw.product` names.
            if not isinstance(op, ProductOp):
                annotate(op, LayoutPlanAttr(LayoutPlan(at.operands, at.results)))


@dataclass(frozen=True)
class AssignLayouts(Pass):
    """Decide the layouts of a kernel, then rewrite it; see `decide.py` and `rewrite.py`."""

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "assign-layouts"
    requires = "T0r"
    produces = "T1"
    after = ("verify-plan",)

    def foresee(self, module: ModuleOp) -> None:
        """Annotate the layouts that the pass would assign."""
        DecideLayouts(self.machine, self.num_warps).apply(module)

    def apply(self, module: ModuleOp) -> Layouts:
        """Lay out the kernel; the decision."""
        kernel = find_kernel(module)
        layouts = decide_layouts(kernel, self.machine, warps_of_tiles(kernel, self.num_warps))
        require_launchable(kernel)
        assign_layouts(kernel, layouts)
        return layouts
