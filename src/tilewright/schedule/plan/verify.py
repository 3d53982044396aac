"""Checks every decision that is annotated on T0, before anything is rewritten by it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.annotations import decided
from tilewright.ir.passes import Pass
from tilewright.ir.plans import AccessAttr
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import find_kernel
from tilewright.schedule.partition.warps import warps_of_tiles
from tilewright.schedule.plan.accesses import is_planned, require_access
from tilewright.schedule.plan.verify_products import verify_products
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class VerifyPlan(Pass):
    """Check the plan of a kernel, whoever wrote it; the module stays as it is.

    *Raises*: PlanRefused, with the line, the reason and what would do instead.
    """

    machine: MachineModel = SM_90A
    num_warps: int = 4
    name = "verify-plan"
    requires = "T0r"
    produces = "T0r"
    after = ("decide-products", "decide-accesses")

    def apply(self, module: ModuleOp) -> None:
        """Check the kernel."""
        kernel = find_kernel(module)
        num_warps = warps_of_tiles(kernel, self.num_warps)
        verify_products(kernel, self.machine, num_warps)
        for op in kernel.walk():
            if is_planned(op):
                require_access(op, decided(op, AccessAttr))
