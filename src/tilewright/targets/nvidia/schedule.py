"""T0 to T2 for an NVIDIA GPU: plan, layouts, shared memory, barriers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects.builtin import ModuleOp

from tilewright.machine.model import MachineModel
from tilewright.schedule.async_copy import copy_async
from tilewright.schedule.global_order import order_global
from tilewright.schedule.layout.decide import Layouts, decide_layouts
from tilewright.schedule.layout.rewrite import assign_layouts
from tilewright.schedule.ordering import OrderingReport, order_shared
from tilewright.schedule.shared_memory import SharedPlan, place_shared
from tilewright.support.dataclass import dataclass
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.emit import find_kernel
from tilewright.targets.nvidia.ops import FenceAsyncSharedOp
from tilewright.targets.nvidia.remarks import schedule_remarks
from tilewright.targets.nvidia.tma import effects
from tilewright.targets.nvidia.tma.barriers import barrier_bytes, carry_phases, place_barriers
from tilewright.targets.nvidia.tma.select_tensor_maps import take_remarks
from tilewright.targets.nvidia.tma.stage import stage_tensor_maps
from tilewright.targets.target import ShowStep

STEPS: Mapping[str, str] = MappingProxyType({"t1": "T1", "async_copies": "T1", "placed": "T2"})
"""What can be seen on the way: all tiles laid out, copies started, shared memory placed."""


@dataclass(frozen=True)
class NvidiaReport:
    """What was decided for a kernel, for people."""

    layouts: Layouts
    shared: SharedPlan
    ordering: OrderingReport
    shared_bytes: int
    remarks: tuple[str, ...] = ()


def lower_to_threads(
    module: ModuleOp,
    machine: MachineModel,
    options: CompileOptions,
    show: ShowStep | None = None,
) -> NvidiaReport:
    """Lower a T0 module to T2 in place; `show` sees it after each of `STEPS`."""
    steps = iter(STEPS)

    def done() -> None:
        if show is not None:
            show(next(steps), module)

    kernel = find_kernel(module)
    layouts = decide_layouts(kernel, machine, options.num_warps)
    assign_layouts(kernel, layouts)
    done()
    stage_tensor_maps(kernel)
    copy_async(kernel)
    done()
    order_global(kernel)
    shared = place_shared(kernel, machine, options.num_warps, barrier_bytes(kernel))
    total_bytes = place_barriers(kernel, shared.total_bytes)
    carry_phases(kernel)
    done()
    ordering = order_shared(kernel, FenceAsyncSharedOp)
    remarks = (*take_remarks(kernel), *schedule_remarks(kernel))
    return NvidiaReport(layouts, shared, ordering, total_bytes, remarks)


# Imported for the effects that it registers.
EFFECTS_MODULE = effects
