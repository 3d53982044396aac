"""Compiles one lane-wise function to machine code and runs it over NumPy arrays."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder

AVX2 = frozenset({"sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "fma", "f16c"})
BASELINE = frozenset({"sse2"})
Body = Callable[[FunctionBuilder, Sequence[str]], str]
_SHORT_PIPELINE = (
    "add_sroa_pass",
    "add_simplify_cfg_pass",
    "add_instruction_combine_pass",
    "add_new_gvn_pass",
    "add_simplify_cfg_pass",
    "add_aggressive_dce_pass",
)
_module_numbers = itertools.count()


def host_features() -> frozenset[str]:
    """The LLVM features of this machine's CPU."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return frozenset(name for name, on in llvm.get_host_cpu_features().items() if on)


def target_machine(features: frozenset[str], triple: str | None = None) -> llvm.TargetMachine:
    """A machine with exactly these features, for this host or for `triple`."""
    flags = ",".join(f"+{name}" for name in sorted(features))
    if triple is not None:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple(triple)
        return target.create_target_machine(features=flags, opt=3, reloc="pic")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu="x86-64", features=flags, opt=3, reloc="pic", codemodel="small", jit=True
    )


def loop_module(
    lanes: int | None, sources: Sequence[str], target: str, body: Body, unroll: int = 1
) -> ModuleBuilder:
    """The module of `kernel(out, n, in…)`: `out[i] = body(in[i]…)`, `lanes` at a time."""
    module = ModuleBuilder()
    inputs = ", ".join(f"ptr %in{index}" for index in range(len(sources)))
    fn = FunctionBuilder(module, f"define void @kernel(ptr %out, i64 %n, {inputs}) nounwind")
    fn.branch("loop")
    fn.place("loop")
    index = fn.value("phi i64 [ 0, %entry ], [ %next, %last ]")
    width = lanes or 1
    for part in range(unroll):
        at = fn.value(f"add i64 {index}, {part * width}")
        values = []
        for number, source in enumerate(sources):
            address = fn.value(f"getelementptr {source}, ptr %in{number}, i64 {at}")
            values.append(fn.value(f"load {_type(source, lanes)}, ptr {address}, align 1"))
        result = body(fn, values)
        address = fn.value(f"getelementptr {target}, ptr %out, i64 {at}")
        fn.emit(f"store {_type(target, lanes)} {result}, ptr {address}, align 1")
    fn.branch("last")
    fn.place("last")
    fn.emit(f"%next = add i64 {index}, {width * unroll}")
    fn.branch_if(fn.value("icmp ult i64 %next, %n"), "loop", "done")
    fn.place("done")
    fn.emit("ret void")
    module.add_function("kernel", fn.text())
    return module


def _type(element: str, lanes: int | None) -> str:
    return element if lanes is None else f"<{lanes} x {element}>"


def optimized(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module after the short pipeline, verified."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(1))
    passes = llvm.create_new_module_pass_manager()
    for name in _SHORT_PIPELINE:
        getattr(passes, name)()
    passes.run(module, builder)
    return module


@dataclass(frozen=True)
class LaneKernel:
    """A compiled `kernel` that runs over arrays whose length is a multiple of its step."""

    linked: llvm.ResourceTracker
    address: int
    step: int

    def __call__(self, result: np.ndarray, *operands: np.ndarray) -> np.ndarray:
        """Fill `result` from the operands and return it."""
        assert len(result) % self.step == 0, (len(result), self.step)
        signature = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * len(operands)
        )
        pointers = [operand.ctypes.data for operand in operands]
        signature(self.address)(result.ctypes.data, len(result), *pointers)
        return result

    def run(self, dtype: np.dtype | type, *operands: np.ndarray) -> np.ndarray:
        """The results for operands of any length, which are padded to the step."""
        length = len(operands[0])
        padding = -length % self.step
        padded = [np.concatenate([operand, operand[:1].repeat(padding)]) for operand in operands]
        return self(np.empty(length + padding, dtype), *padded)[:length]


def compile_lanes(
    lanes: int | None,
    sources: Sequence[str],
    target: str,
    body: Body,
    features: frozenset[str],
    unroll: int = 1,
) -> LaneKernel:
    """Compile and link the loop around `body` for this host, with these features only."""
    machine = target_machine(features)
    text = loop_module(lanes, sources, target, body, unroll).text()
    image = machine.emit_object(optimized(text, machine))
    library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
    linked = library.export_symbol("kernel").link(
        llvm.create_lljit_compiler(target_machine(features)), f"lanes{next(_module_numbers)}"
    )
    return LaneKernel(linked, linked["kernel"], (lanes or 1) * unroll)
