"""Compiles one lane-wise function to machine code and runs it over NumPy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.codegen.link import LoadedCode, load_object
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.optimize import compile_module
from tilewright.codegen.whitelist import CPU_WHITELIST
from tilewright.targets.cpu.host import host_machine

AVX2 = frozenset({"sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "fma", "f16c"})
BASELINE = frozenset({"sse2"})
Body = Callable[[FunctionBuilder, Sequence[str]], str]


def host_features() -> frozenset[str]:
    """The LLVM features of this machine's CPU."""
    return host_machine().enabled_features


def signed(features: frozenset[str]) -> tuple[str, ...]:
    """The features as LLVM's command line has them (`+avx2`)."""
    return tuple(f"+{name}" for name in sorted(features))


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


@dataclass(frozen=True)
class LaneKernel:
    """A compiled `kernel` that runs over arrays whose length is a multiple of its step."""

    code: LoadedCode
    step: int

    def __call__(self, result: np.ndarray, *operands: np.ndarray) -> np.ndarray:
        """Fill `result` from the operands and return it."""
        assert len(result) % self.step == 0, (len(result), self.step)
        signature = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * len(operands)
        )
        pointers = [operand.ctypes.data for operand in operands]
        signature(self.code.address)(result.ctypes.data, len(result), *pointers)
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
    text = loop_module(lanes, sources, target, body, unroll).text()
    compiled = compile_module(text, "x86-64", signed(features), whitelist=CPU_WHITELIST)
    return LaneKernel(load_object(compiled.object, "kernel"), (lanes or 1) * unroll)


def foreign_assembly(module: ModuleBuilder, features: frozenset[str], triple: str) -> str:
    """The assembly of a module for another machine, of which an object is emitted too."""
    compiled = compile_module(
        module.text(),
        "generic",
        signed(features),
        triple,
        whitelist=CPU_WHITELIST,
        emit_assembly=True,
    )
    assert compiled.object
    assert compiled.assembly is not None
    return compiled.assembly
