"""The CPU target: from T0 to an object file."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from tilewright.codegen.optimize import compile_module
from tilewright.codegen.whitelist import CPU_WHITELIST
from tilewright.passes.insert_checks import InsertChecks
from tilewright.targets.cpu.emit import (
    argument_slots,
    assertion_sites,
    emit_kernel,
    has_prints,
)
from tilewright.targets.cpu.ops import CPU_OPS
from tilewright.targets.cpu.schedule import NestMachine, lower_to_nests
from tilewright.targets.cpu.tile_passes import CPU_TILE_PASSES
from tilewright.targets.target import MachineFeatures, PassLike, Scheduled, ShowStep, Target


def _features(machine: MachineFeatures) -> tuple[str, ...]:
    return tuple(str(machine["features"]).split(","))


def _positive(machine: MachineFeatures) -> frozenset[str]:
    return frozenset(f[1:] for f in _features(machine) if f.startswith("+"))


def _tile_passes(machine: MachineFeatures, options: Mapping[str, object]) -> tuple[PassLike, ...]:
    return (*CPU_TILE_PASSES, InsertChecks()) if options.get("checked") else CPU_TILE_PASSES


def _schedule(
    module: ModuleOp,
    machine: MachineFeatures,
    options: Mapping[str, object],
    show: ShowStep | None = None,
) -> Scheduled:
    nests = NestMachine(
        vector_bytes=int(machine["vector_bytes"] or 16),
        num_registers=int(machine["num_registers"] or 16),
        l1_bytes=int(machine["l1d_bytes"] or 32 << 10),
        l2_bytes=int(machine["l2_bytes"] or 1 << 20),
        l3_bytes=int(machine["l3_bytes"] or 32 << 20),
        has_gather="avx2" in _positive(machine),
        features=_positive(machine),
    )
    report = lower_to_nests(module, nests)
    metadata = {
        "arena_bytes": report.arena_bytes,
        "slots": argument_slots(module),
        "sites": [site.to_json() for site in assertion_sites(module)],
        "has_prints": has_prints(module),
    }
    remarks = (*report.remarks, *(text for nest in report.nests for text in nest.remarks))
    return Scheduled(module, metadata, tuple(dict.fromkeys(remarks)), report)


def _emit(scheduled: Scheduled, machine: MachineFeatures, options: Mapping[str, object]) -> str:
    vector_bytes = int(machine["vector_bytes"] or 16)
    return emit_kernel(scheduled.module, _positive(machine), vector_bytes)


def _assemble(
    text: str, machine: MachineFeatures, options: Mapping[str, object]
) -> dict[str, bytes]:
    compiled = compile_module(
        text,
        str(machine["cpu"]),
        _features(machine),
        str(machine["triple"]),
        whitelist=CPU_WHITELIST,
    )
    return {"object": compiled.object}


def _disassemble(text: str, machine: MachineFeatures, options: Mapping[str, object]) -> str:
    compiled = compile_module(
        text,
        str(machine["cpu"]),
        _features(machine),
        str(machine["triple"]),
        whitelist=CPU_WHITELIST,
        emit_object=False,
        emit_assembly=True,
    )
    return compiled.assembly or ""


TARGET = Target(
    "cpu", _tile_passes, _schedule, _emit, _assemble, _disassemble, level="C2", ops=CPU_OPS
)
