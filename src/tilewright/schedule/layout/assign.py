"""Gives every tile a layout and makes each change of layout an op (T0 to T1).

Decided, annotated (`tw.layout`), verified, then rewritten by what is annotated. Ops that an author
annotated have those layouts, or are refused with the reason.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.passes import Pass
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import find_kernel, require_launchable
from tilewright.schedule.layout.decide import decide_layouts
from tilewright.schedule.layout.decided import read_layouts, write_layouts
from tilewright.schedule.layout.rewrite import assign_layouts
from tilewright.schedule.layout.verify import verify_layouts
from tilewright.schedule.partition.warps import warps_of_tiles
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class DecideLayouts(Pass):
    """Annotate ops with the layouts of their tiles; see `decide.py` and `decided.py`.

    *Raises*: PlanRefused for given layouts that cannot be.
    """

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "decide-layouts"
    requires = "T0r"
    produces = "T0r"
    after = ("verify-plan",)

    def apply(self, module: ModuleOp) -> None:
        """Annotate the kernel."""
        kernel = find_kernel(module)
        num_warps = warps_of_tiles(kernel, self.num_warps)
        write_layouts(decide_layouts(kernel, self.machine, num_warps))


@dataclass(frozen=True)
class VerifyLayouts(Pass):
    """Check the layouts that ops are annotated with, whoever wrote them; see `verify.py`.

    *Raises*: PlanRefused, with the line and the reason; PlanMissing for an op without layouts.
    """

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "verify-layouts"
    requires = "T0r"
    produces = "T0r"
    after = ("decide-layouts",)

    def apply(self, module: ModuleOp) -> None:
        """Check the kernel; the module stays as it is."""
        kernel = find_kernel(module)
        verify_layouts(kernel, self.machine.lanes, warps_of_tiles(kernel, self.num_warps))


@dataclass(frozen=True)
class AssignLayouts(Pass):
    """Rewrite a kernel by the layouts that it is annotated with; see `rewrite.py`.

    *Raises*: PlanMissing for an op without layouts.
    """

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "assign-layouts"
    requires = "T0r"
    produces = "T1"
    after = ("decide-layouts", "verify-layouts")

    def apply(self, module: ModuleOp) -> None:
        """Lay out the kernel."""
        kernel = find_kernel(module)
        require_launchable(kernel)
        num_warps = warps_of_tiles(kernel, self.num_warps)
        assign_layouts(kernel, read_layouts(kernel, self.machine, num_warps))
