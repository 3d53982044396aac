"""Programs that the tests of the simulator share: their text, and how they are run."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np

from tilewright.interp.simt.simulate import Argument, simulate
from tilewright.interp.simt.statistics import Report

TID = "  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
SHARED = "@shared = external addrspace(3) global [0 x i8], align 1024\n"
BARRIER = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
WARP_BARRIER = "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n"
FENCE = "  call void @llvm.nvvm.fence.proxy.async.shared_cta()\n"
TENSOR_MAP = 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant"'


def kernel(body: str, parameters: str) -> str:
    """The module of a kernel `k`; a bare name among the parameters is a global pointer."""
    typed = [p if " " in p else f"ptr addrspace(1) %{p}" for p in parameters.split("; ") if p]
    header = f"define ptx_kernel void @k({', '.join(typed)})"
    return f"{SHARED}{header} {{\nentry:\n{TID}{body}  ret void\n}}\n"


def validated(text: str) -> str:
    """A module that LLVM accepts too, its triple being that of an NVIDIA GPU."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = "nvptx64-nvidia-cuda"
    module.verify()
    return text


def run(
    body: str,
    parameters: str,
    *arguments: Argument,
    threads: int = 64,
    shared_bytes: int = 4096,
) -> Report:
    """Run a body for one program."""
    text = validated(kernel(body, parameters))
    return simulate(text, "k", (1, 1, 1), threads, arguments, shared_bytes)


def shared_at(name: str, offset: str) -> str:
    """The line that names the address of a shared byte offset."""
    return f"  %{name} = getelementptr i8, ptr addrspace(3) @shared, i32 {offset}\n"


def copy_in(name: str, num_bytes: int, threads: int, base: int = 0) -> str:
    """Lines by which all threads copy an array to shared memory, 4 bytes at a time."""
    lines: list[str] = []
    for step in range(num_bytes // 4 // threads):
        tag = f"{name}{step}"
        lines += [
            f"  %i{tag} = add i32 %tid, {step * threads}",
            f"  %g{tag} = getelementptr i32, ptr addrspace(1) %{name}, i32 %i{tag}",
            f"  %v{tag} = load i32, ptr addrspace(1) %g{tag}, align 4",
            f"  %b{tag} = getelementptr i8, ptr addrspace(3) @shared, i32 {base}",
            f"  %s{tag} = getelementptr i32, ptr addrspace(3) %b{tag}, i32 %i{tag}",
            f"  store i32 %v{tag}, ptr addrspace(3) %s{tag}, align 4",
        ]
    return "\n".join(lines) + "\n"


def store_registers(names: list[str], target: str, kind: str = "i32") -> str:
    """Lines by which each thread stores its registers, row `tid` of [threads, len(names)]."""
    lines = [f"  %row{target} = mul i32 %tid, {len(names)}"]
    for index, name in enumerate(names):
        lines += [
            f"  %at{target}{index} = add i32 %row{target}, {index}",
            f"  %to{target}{index} = getelementptr {kind}, ptr addrspace(1) %{target}, "
            f"i32 %at{target}{index}",
            f"  store {kind} {name}, ptr addrspace(1) %to{target}{index}",
        ]
    return "\n".join(lines) + "\n"


def random_bits(count: int, seed: int) -> np.ndarray:
    """Random 32-bit words."""
    return np.random.default_rng(seed).integers(0, 1 << 32, count, np.uint32)
