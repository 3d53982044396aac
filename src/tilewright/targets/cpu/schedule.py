"""T0 to C2: pointer structure, fusion into nests, arena. The entry of the CPU's schedule."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from tilewright.analysis.pointers import PointerStructure
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp
from tilewright.targets.cpu.arena import place_buffers
from tilewright.targets.cpu.control import emit_block
from tilewright.targets.cpu.deepen_products import deepen_products
from tilewright.targets.cpu.fold_additions import fold_additions
from tilewright.targets.cpu.in_place import read_in_place
from tilewright.targets.cpu.inline import Costs
from tilewright.targets.cpu.lowering import Lowering
from tilewright.targets.cpu.placement import Placement
from tilewright.targets.cpu.report import NestReport, ReportBuilder
from tilewright.targets.cpu.requirements import decide, normalize

__all__ = ["NestReport", "lower_to_nests"]


def lower_to_nests(module: ModuleOp, machine: MachineModel) -> NestReport:
    """Lower every function of a T0 module to C2 in place.

    *Requires* T0 without block pointers and descriptors. *Produces* C2 with placed buffers.
    """
    reports = ReportBuilder()
    arena_bytes = 0
    for op in tuple(module.body.block.ops):
        if isinstance(op, FuncOp):
            arena_bytes = max(arena_bytes, _lower_function(op, machine, reports))
    return reports.finish(arena_bytes)


def _lower_function(kernel: FuncOp, machine: MachineModel, reports: ReportBuilder) -> int:
    fold_additions(kernel)
    deepen_products(kernel)
    normalize(kernel, machine)
    structure = PointerStructure()
    placement = Placement(structure, Costs(structure))
    decide(kernel, placement, machine)
    read_in_place(placement, machine)
    source = kernel.body.block
    out = Block(arg_types=[argument.type for argument in source.args])
    for old, new in zip(source.args, out.args, strict=True):
        new.name_hint = old.name_hint
    lowering = Lowering(machine, placement, out, reports, kernel.location)
    lowering.define(dict(zip(source.args, out.args, strict=True)))
    emit_block(lowering, source, out)
    kernel.detach_region(kernel.body)
    kernel.add_region(Region(out))
    return place_buffers(kernel)
