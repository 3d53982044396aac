"""The NVIDIA target: from T0 to a cubin."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.encoding import LayoutAttr, SharedType, TokenType
from tilewright.machine.model import MachineModel
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.assembler import sass_of
from tilewright.targets.nvidia.emit import (
    argument_slots,
    emit_kernel,
    find_kernel,
    tensor_map_entries,
)
from tilewright.targets.nvidia.fit import assemble_for_occupancy
from tilewright.targets.nvidia.ops import NVIDIA_OPS
from tilewright.targets.nvidia.ptx import to_ptx
from tilewright.targets.nvidia.schedule import STEPS, lower_to_threads
from tilewright.targets.nvidia.simulated import simulate_launch
from tilewright.targets.nvidia.symbols import entry_symbol
from tilewright.targets.nvidia.tile_passes import nvidia_tile_passes
from tilewright.targets.nvidia.tma_ops import TENSOR_MAP_OPS
from tilewright.targets.target import Scheduled, ShowStep, Target


def _schedule(
    module: ModuleOp,
    machine: MachineModel,
    options: CompileOptions,
    show: ShowStep | None = None,
) -> Scheduled:
    report = lower_to_threads(module, machine, options, show)
    metadata = {
        "slots": argument_slots(module),
        "symbol": entry_symbol(find_kernel(module).sym_name.data),
        "num_warps": options.num_warps,
        "shared_bytes": report.shared_bytes,
        "tensor_maps": tensor_map_entries(module),
    }
    return Scheduled(module, metadata, report.remarks, report)


def _emit(scheduled: Scheduled, machine: MachineModel, options: CompileOptions) -> str:
    return emit_kernel(scheduled.module, machine, options)


def _assemble(text: str, machine: MachineModel, options: CompileOptions) -> dict[str, bytes]:
    return assemble_for_occupancy(to_ptx(text, machine), machine, options).sections()


def _disassemble(text: str, machine: MachineModel, options: CompileOptions) -> str:
    return to_ptx(text, machine)


TARGET = Target(
    "nvidia",
    nvidia_tile_passes,
    _schedule,
    _emit,
    _assemble,
    _disassemble,
    level="T2",
    ops=NVIDIA_OPS,
    attributes=(LayoutAttr, SharedType, TokenType),
    assembly="ptx",
    views={"sass": sass_of},
    steps=STEPS,
    tile_ops=TENSOR_MAP_OPS,
    simulate=simulate_launch,
)
