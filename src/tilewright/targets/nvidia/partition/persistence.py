"""Decides whether the programs of a kernel stay on their SM for several tiles (T0 to T0).

    schedule="roles …; persist static", or roles for a product whose blocks are stored
    ⇒ the kernel is persistent; see `passes/persist.py`

With roles the store of one tile then runs beside the loads and products of the next one. Without
an author's word that is done for products that are summed up in one loop, which is the kernel's
only one, and stored through descriptors: attention by persistent programs is slower.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.effects import writes_global
from tilewright.ir.locations import span_of
from tilewright.ir.passes import Pass
from tilewright.ir.schedule_attributes import schedule_of
from tilewright.ir.schedule_text import parse_schedule
from tilewright.machine.gpus import SM_90A
from tilewright.machine.model import MachineModel
from tilewright.ops.control_flow import counted_loops
from tilewright.ops.descriptors.ir import DescriptorStoreOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.matmul.ir import ProductOp
from tilewright.passes.persist import persist, reason_against
from tilewright.schedule.partition.tasks import has_tasks
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import PlanRefused
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.partition.default_roles import (
    is_moved_by_engine,
    large_product,
    leaves_open,
    makes_clusters,
)

_ROLES_HINT = "tt.warp_specialize"


@dataclass(frozen=True)
class DecidePersistence(Pass):
    """The pass; see the module. `text` is the schedule of the kernel, '' where nobody says one.

    With `is_open` large products are persistent though nobody asks for roles, with `loads_alone`
    those, too, that threads store.

    *Raises*: PlanRefused where a schedule asks for what cannot be.
    """

    machine: MachineModel = SM_90A
    text: str = ""
    groups: int = 0
    is_alone: bool = True
    is_open: bool = False
    loads_alone: bool = False
    name = "decide-persistence"
    after = ("select-tensor-maps", "lower-descriptors", "bulk-access", "merge-duplicates")

    @classmethod
    def of_options(cls, machine: MachineModel, options: CompileOptions) -> DecidePersistence:
        """The pass as the options of a launch ask for it."""
        is_alone = not (makes_clusters(options) or options.launch_cooperative_grid)
        text, groups = options.schedule or "", options.num_consumer_groups or 0
        loads_alone = options.bulk_access == "loads"
        return cls(machine, text, groups, is_alone, leaves_open(options), loads_alone)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel where that is asked for, or is faster."""
        kernel = find_kernel(module)
        reason = reason_against(kernel)
        if not self.is_alone:
            reason = "programs of a cluster, or of a cooperative launch, wait for each other"
        if self._is_asked(kernel):
            if reason:
                span, chain = span_of(kernel)
                raise PlanRefused(
                    f"the schedule says `persist static`, and the kernel does not allow it: "
                    f"{reason}",
                    argument="schedule",
                    hint="leave `persist static` out",
                    span=span,
                    chain=chain,
                )
            persist(kernel, self.machine.num_sms)
        elif self._is_in_roles(kernel) and not reason and gains(kernel, self.loads_alone):
            persist(kernel, self.machine.num_sms)

    def _is_asked(self, kernel: FuncOp) -> bool:
        given = schedule_of(kernel)
        if given is None and self.text:
            given = parse_schedule(self.text, span_of(kernel)[0])
        return given is not None and bool(given.persist)

    def _is_in_roles(self, kernel: FuncOp) -> bool:
        """Whether roles are asked for, and nothing else is said of the schedule."""
        if self.text or schedule_of(kernel) is not None or has_tasks(kernel):
            return False
        if self.groups or any(_ROLES_HINT in op.attributes for op in kernel.walk()):
            return True
        is_large = self.is_open and large_product(kernel, self.machine) is not None
        return is_large and is_moved_by_engine(kernel, self.loads_alone)


def gains(kernel: FuncOp, loads_alone: bool = False) -> bool:
    """Whether a kernel in roles is faster with persistent programs, as far as is known.

    With `loads_alone` it stores by threads, as it has to.

    Source: products by hand, 1.03 to 1.17 times the speed of one program a tile; attention 0.95
    times (H200).
    """
    loops = counted_loops(kernel)
    stores = [op for op in kernel.walk() if writes_global(op)]
    if len(loops) != 1 or loops[0].parent is not kernel.body.block or not stores:
        return False
    products = [op for op in kernel.walk() if isinstance(op, ProductOp)]
    is_sum = len(products) == 1 and products[0].parent is loops[0].body.block
    return is_sum and (loads_alone or all(isinstance(op, DescriptorStoreOp) for op in stores))
