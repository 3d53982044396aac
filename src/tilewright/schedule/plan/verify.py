"""Checks every decision that is annotated on T0, before anything is rewritten by it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.passes import Pass
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.function import find_kernel
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
    after = ("decide-products",)

    def apply(self, module: ModuleOp) -> None:
        """Check the kernel."""
        verify_products(find_kernel(module), self.machine, self.num_warps)
