"""The NVIDIA target: from T0 to a cubin."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.encoding import LayoutAttr, SharedType, TokenType
from tilewright.machine.model import MachineModel
from tilewright.ops.channels import ChannelType
from tilewright.ops.function import find_kernel
from tilewright.ops.program.persistence import cluster_of, most_programs
from tilewright.ops.rings import RingType
from tilewright.runtime.launch_numbers import GUARDS, guards_to_metadata
from tilewright.schedule.annotations import shared_bytes
from tilewright.schedule.layout.annotations import LayoutPlanAttr
from tilewright.schedule.shared_barriers import OrderingReport
from tilewright.schedule.shared_memory import SharedPlan
from tilewright.support.dataclass import dataclass
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.assembler import sass_of
from tilewright.targets.nvidia.bound_waits import describe_waits
from tilewright.targets.nvidia.emit import (
    argument_slots,
    emit_kernel,
    num_warps_of,
    tensor_map_entries,
)
from tilewright.targets.nvidia.enumerate_schedules import enumerate_schedules
from tilewright.targets.nvidia.fit import assemble_for_occupancy
from tilewright.targets.nvidia.ops import NVIDIA_OPS
from tilewright.targets.nvidia.partition import account
from tilewright.targets.nvidia.partition.form import partition_remarks
from tilewright.targets.nvidia.partition.other_forms import other_forms, problem_of
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.nvidia.remarks import schedule_remarks
from tilewright.targets.nvidia.schedule import nvidia_schedule
from tilewright.targets.nvidia.simulated import simulate_launch
from tilewright.targets.nvidia.symbols import entry_symbol
from tilewright.targets.nvidia.tile_passes import nvidia_tile_passes
from tilewright.targets.nvidia.tma.box_annotations import BoxAttr
from tilewright.targets.nvidia.tma.launch_conditions import guards_of
from tilewright.targets.nvidia.tma.select_tensor_maps import remarks_of
from tilewright.targets.nvidia.tma_ops import TENSOR_MAP_OPS
from tilewright.targets.target import Reports, Scheduled, Target, report_of


@dataclass(frozen=True)
class NvidiaReport:
    """What was decided for a kernel, for people."""

    shared: SharedPlan
    ordering: OrderingReport


def _describe(module: ModuleOp, options: CompileOptions, reports: Reports) -> Scheduled:
    kernel = find_kernel(module)
    metadata = {
        "slots": argument_slots(module),
        "symbol": entry_symbol(kernel.sym_name.data),
        "num_warps": num_warps_of(kernel, options),
        "shared_bytes": shared_bytes(kernel),
        "tensor_maps": tensor_map_entries(module),
        "bounded_waits": describe_waits(kernel),
        "most_programs": most_programs(kernel),
        "cluster": cluster_of(kernel),
        "cluster_dims": options.cluster_dims,
        GUARDS: guards_to_metadata(guards_of(kernel)),
    }
    remarks = (*remarks_of(kernel), *partition_remarks(kernel), *schedule_remarks(kernel))
    report = NvidiaReport(report_of(reports, SharedPlan), report_of(reports, OrderingReport))
    return Scheduled(module, metadata, remarks, report)


def _emit(scheduled: Scheduled, machine: MachineModel, options: CompileOptions) -> str:
    return emit_kernel(scheduled.module, machine, options)


def _assemble(text: str, machine: MachineModel, options: CompileOptions) -> dict[str, bytes]:
    return assemble_for_occupancy(to_ptx(text, machine), machine, options).sections()


def _disassemble(text: str, machine: MachineModel, options: CompileOptions) -> str:
    return to_ptx(text, machine)


TARGET = Target(
    "nvidia",
    nvidia_tile_passes,
    nvidia_schedule,
    _describe,
    _emit,
    _assemble,
    _disassemble,
    level="T2",
    ops=NVIDIA_OPS,
    attributes=(LayoutAttr, SharedType, TokenType, RingType, ChannelType, BoxAttr, LayoutPlanAttr),
    assembly="ptx",
    views={"sass": sass_of},
    tile_ops=TENSOR_MAP_OPS,
    simulate=simulate_launch,
    enumerate_schedules=enumerate_schedules,
    problem_of=problem_of,
    other_forms=other_forms,
)

# Imported for the remarks that it registers.
REMARK_MODULES = (account,)
