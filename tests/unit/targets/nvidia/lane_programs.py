"""Kernels that apply one emitted function to every element, one thread each, and their run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.whitelist import NVPTX_WHITELIST, check_module
from tilewright.interp.simt.simulate import simulate

Body = Callable[[FunctionBuilder, list[str]], Sequence[str]]
THREADS = 256
_INDEX = (
    ("%tid", "call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"),
    ("%program", "call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()"),
    ("%first", f"mul i32 %program, {THREADS}"),
    ("%index", "add i32 %first, %tid"),
)


def lane_module(sources: Sequence[str], targets: Sequence[str], body: Body) -> ModuleBuilder:
    """The module of `k(in…, out…)`: thread i computes `out[i]… = body(in[i]…)`."""
    module = ModuleBuilder()
    kinds = [("in", len(sources)), ("out", len(targets))]
    names = [f"%{name}{index}" for name, count in kinds for index in range(count)]
    parameters = ", ".join(f"ptr addrspace(1) {name}" for name in names)
    fn = FunctionBuilder(module, f"define ptx_kernel void @k({parameters})")
    for name, text in _INDEX:
        fn.emit(f"{name} = {text}")
    values = []
    for source, name in zip(sources, names, strict=False):
        address = fn.value(f"getelementptr {source}, ptr addrspace(1) {name}, i32 %index")
        values.append(fn.value(f"load {source}, ptr addrspace(1) {address}"))
    results = body(fn, values)
    for target, name, result in zip(targets, names[len(sources) :], results, strict=True):
        address = fn.value(f"getelementptr {target}, ptr addrspace(1) {name}, i32 %index")
        fn.emit(f"store {target} {result}, ptr addrspace(1) {address}")
    fn.emit("ret void")
    module.add_function("k", fn.text())
    check_module(module.text(), NVPTX_WHITELIST, ("+ptx88",))
    return module


def run_lanes(
    module: ModuleBuilder, operands: Sequence[np.ndarray], dtypes: Sequence[np.dtype | type]
) -> list[np.ndarray]:
    """The results of the kernel for operands of any one length, on the simulated GPU."""
    length = len(operands[0])
    num_programs = -(-length // THREADS)
    padded = [np.resize(operand, num_programs * THREADS) for operand in operands]
    results = [np.zeros(num_programs * THREADS, dtype) for dtype in dtypes]
    simulate(module.text(), "k", (num_programs, 1, 1), THREADS, [*padded, *results])
    return [result[:length] for result in results]
