"""The CPU target: from T0 to an object file."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.codegen.optimize import compile_module
from tilewright.codegen.whitelist import CPU_WHITELIST
from tilewright.ir.passes import Pass
from tilewright.machine.model import MachineModel
from tilewright.passes.insert_checks import InsertChecks
from tilewright.support.dataclass import replace
from tilewright.support.options import CompileOptions
from tilewright.targets.cpu.emit import (
    argument_slots,
    assertion_sites,
    atomics_of,
    emit_kernel,
    has_prints,
    uses_amx,
)
from tilewright.targets.cpu.ops import CPU_OPS
from tilewright.targets.cpu.schedule.count_cycles import num_counted_of
from tilewright.targets.cpu.schedule.passes import ArenaReport, NestReport, cpu_schedule
from tilewright.targets.cpu.tile_passes import CPU_TILE_PASSES
from tilewright.targets.target import Reports, Scheduled, Target, report_of


def _tile_passes(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    return (*CPU_TILE_PASSES, InsertChecks()) if options.checked else CPU_TILE_PASSES


def _describe(module: ModuleOp, options: CompileOptions, reports: Reports) -> Scheduled:
    nests, arena = report_of(reports, NestReport), report_of(reports, ArenaReport)
    report = replace(nests, arena_bytes=arena.num_bytes)
    metadata = {
        "arena_bytes": report.arena_bytes,
        "slots": argument_slots(module),
        "sites": [site.to_json() for site in assertion_sites(module)],
        "has_prints": has_prints(module),
        "uses_amx": uses_amx(module),
        "atomics": atomics_of(module),
    }
    if options.count_cycles:
        metadata["num_counted"] = num_counted_of(module)
    remarks = (*report.remarks, *(text for nest in report.nests for text in nest.remarks))
    return Scheduled(module, metadata, tuple(dict.fromkeys(remarks)), report)


def _emit(scheduled: Scheduled, machine: MachineModel, options: CompileOptions) -> str:
    return emit_kernel(scheduled.module, machine.enabled_features, machine.vector_bytes)


def _assemble(text: str, machine: MachineModel, options: CompileOptions) -> dict[str, bytes]:
    compiled = compile_module(
        text, machine.arch, machine.features, machine.triple, whitelist=CPU_WHITELIST
    )
    return {"object": compiled.object}


def _disassemble(text: str, machine: MachineModel, options: CompileOptions) -> str:
    compiled = compile_module(
        text,
        machine.arch,
        machine.features,
        machine.triple,
        whitelist=CPU_WHITELIST,
        emit_object=False,
        emit_assembly=True,
    )
    return compiled.assembly or ""


TARGET = Target(
    "cpu",
    _tile_passes,
    cpu_schedule,
    _describe,
    _emit,
    _assemble,
    _disassemble,
    level="C2",
    ops=CPU_OPS,
)
