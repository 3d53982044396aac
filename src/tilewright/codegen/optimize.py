"""From the text of an LLVM module to machine code: parse, verify, optimise, emit.

The text is already in the form that the back end turns into good code, so the short pipeline
below stands where O3 would be: same speed of the result on the kernels that were measured, a
tenth of the time, and no memory growth from one compilation to the next. The vectorizers are
left out on purpose: they would work on loops that were vectorized by the schedule already.
"""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from tilewright.codegen.llvm_defects import hide_constant_masks, is_affected
from tilewright.codegen.whitelist import Whitelist, check_module
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

SHORT_PIPELINE = (
    "add_always_inliner_pass",
    "add_sroa_pass",
    "add_simplify_cfg_pass",
    "add_instruction_combine_pass",
    "add_simplify_cfg_pass",
    "add_aggressive_dce_pass",
)
# For code that runs once a launch: inlined and out of memory, at a third of the time.
LAUNCH_PIPELINE = SHORT_PIPELINE[:3]


@dataclass(frozen=True)
class CompiledModule:
    """Machine code of one LLVM module.

    `object` is empty where only assembly was asked for; `assembly` is None unless asked for.
    """

    object: bytes
    assembly: str | None


@functools.cache
def initialize_llvm(all_targets: bool = False) -> None:
    """Register LLVM's targets, once a process; the host's alone unless a triple is foreign."""
    if all_targets:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def create_target_machine(
    cpu: str, features: tuple[str, ...], triple: str | None = None, opt_level: int = 3
) -> llvm.TargetMachine:
    """A new LLVM target machine for `cpu` with exactly `features` (`+name`, `-name`).

    The small code model with position-independent code is what keeps constants and calls
    one instruction long; far symbols go through the linker's stubs.
    """
    host = llvm.get_default_triple()
    initialize_llvm(triple is not None and triple != host)
    try:
        target = llvm.Target.from_triple(triple or host)
    except RuntimeError as error:
        raise InternalError(f"LLVM has no target for the triple {triple!r}: {error}") from error
    return target.create_target_machine(
        cpu=cpu,
        features=",".join(features),
        opt=opt_level,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


def compile_module(
    text: str,
    cpu: str,
    features: tuple[str, ...],
    triple: str | None = None,
    *,
    whitelist: Whitelist | None = None,
    optimize: bool = True,
    passes: tuple[str, ...] = SHORT_PIPELINE,
    emit_object: bool = True,
    emit_assembly: bool = False,
    opt_level: int = 3,
) -> CompiledModule:
    """Compile the module `text` in a context of its own.

    Raises: InternalError when `text` uses something outside `whitelist`, or when LLVM's
    parser or verifier rejects it. Undefined: without a whitelist an intrinsic that the
    target lacks ends the process inside LLVM.
    """
    if whitelist is not None:
        check_module(text, whitelist, features)
    machine = create_target_machine(cpu, features, triple, opt_level)
    module = optimized_module(text, machine, features, passes if optimize else ())
    return CompiledModule(
        object=machine.emit_object(module) if emit_object else b"",
        assembly=machine.emit_assembly(module) if emit_assembly else None,
    )


def optimized_module(
    text: str,
    machine: llvm.TargetMachine,
    features: tuple[str, ...],
    passes: tuple[str, ...] = SHORT_PIPELINE,
) -> llvm.ModuleRef:
    """The module of `text` as machine code is made of it: behind `passes`, without defects."""
    module = parse_module(text, machine)
    if passes:
        run_short_pipeline(module, machine, passes)
    if not is_affected(module, features):
        return module
    changed = hide_constant_masks(before := str(module))
    return module if changed == before else parse_module(changed, machine)


def parse_module(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The verified LLVM module of `text`, with the machine's triple and data layout."""
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise InternalError(_describe(text, str(error))) from error
    return module


def run_short_pipeline(
    module: llvm.ModuleRef,
    machine: llvm.TargetMachine,
    passes: tuple[str, ...] = SHORT_PIPELINE,
) -> None:
    """Run the cheap passes that the emitted text relies on, by llvmlite's names for them."""
    # A pass manager cannot run twice: the second run aborts the process.
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(machine, options)
    manager = llvm.create_new_module_pass_manager()
    for add_pass in passes:
        getattr(manager, add_pass)()
    manager.run(module, builder)


def _describe(text: str, message: str) -> str:
    """LLVM's complaint followed by the line of the module that it names, if it names one."""
    head = f"LLVM rejects the emitted module: {message.strip()}"
    position = next((part for part in message.split(":") if part.strip().isdigit()), None)
    lines = text.splitlines()
    if position is None or not 0 < int(position) <= len(lines):
        return head
    return f"{head}\n  {lines[int(position) - 1].strip()}"
