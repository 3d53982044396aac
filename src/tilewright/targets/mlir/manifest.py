"""The MLIR target: from T0 to text in core dialects."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.locations import span_of
from tilewright.ir.passes import Pass
from tilewright.machine.model import MachineModel
from tilewright.ops.debug.ir import AssertOp
from tilewright.ops.function import find_kernel
from tilewright.passes.forward_invariants import ForwardInvariants
from tilewright.passes.insert_checks import InsertChecks
from tilewright.passes.lower_block_pointers import LowerBlockPointers
from tilewright.passes.lower_descriptors import LowerDescriptors
from tilewright.passes.merge_duplicates import MergeDuplicates
from tilewright.passes.refuse_ops import RefuseOps
from tilewright.passes.require_rules import RequireRules
from tilewright.passes.split_carried_pointers import SplitCarriedPointers
from tilewright.support.options import CompileOptions
from tilewright.targets.cpu.emit import argument_slots, has_prints
from tilewright.targets.cpu.runtime.status import Site
from tilewright.targets.mlir.coverage import MLIR_COVERAGE
from tilewright.targets.mlir.decide_access_forms import AccessForms, DecideAccessForms
from tilewright.targets.mlir.emit import emit_module
from tilewright.targets.mlir.rules.debug import assert_message, assertions
from tilewright.targets.mlir.tools import form_text
from tilewright.targets.target import Reports, Scheduled, Target, report_of


def _tile_passes(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    checks = (InsertChecks(),) if options.checked else ()
    return (
        RefuseOps(MLIR_COVERAGE.target),
        LowerBlockPointers(),
        LowerDescriptors(),
        ForwardInvariants(),
        SplitCarriedPointers(),
        MergeDuplicates(),
        RequireRules(MLIR_COVERAGE.target),
        *checks,
    )


def _schedule(machine: MachineModel, options: CompileOptions) -> tuple[Pass, ...]:
    return (DecideAccessForms(),)


def _describe(module: ModuleOp, options: CompileOptions, reports: Reports) -> Scheduled:
    forms = report_of(reports, AccessForms)
    kernel = find_kernel(module)
    failing = assertions(kernel)
    metadata = {
        "slots": argument_slots(module),
        "entry": kernel.sym_name.data,
        "sites": [_site(op).to_json() for op in failing],
        "has_prints": has_prints(module),
        "messages": [assert_message(op) for op in failing],
    }
    return Scheduled(module, metadata, tuple(dict.fromkeys(forms.remarks)), forms)


def _site(op: AssertOp) -> Site:
    span, chain = span_of(op)
    return Site("assert" if op.kind is None else op.kind.data, op.message.data, span, chain)


def _emit(scheduled: Scheduled, machine: MachineModel, options: CompileOptions) -> str:
    return emit_module(scheduled.module)


def _assemble(text: str, machine: MachineModel, options: CompileOptions) -> dict[str, bytes]:
    return {"mlir": text.encode()}


def _disassemble(text: str, machine: MachineModel, options: CompileOptions) -> str:
    return form_text(text, "llvm")


def _memref_view(sections: Mapping[str, bytes]) -> str:
    return form_text(sections["mlir"].decode(), "memref")


TARGET = Target(
    "mlir",
    _tile_passes,
    _schedule,
    _describe,
    _emit,
    _assemble,
    _disassemble,
    level="T0",
    ops=(),
    assembly="llvm",
    text="mlir",
    views={"memref": _memref_view},
)
