"""Clusters of programs: where they meet, and copies of which each program starts its part."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.rules.staging import add
from tilewright.codegen.simt.shared import shared_pointer
from tilewright.targets.nvidia.tma.boxes import BoxPlan

_RANK = "call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()"
# By definition: the programs of ranks 0 and 1.
_BOTH = 0b11


def meet_cluster(fn: FunctionBuilder) -> None:
    """All threads of all programs of the cluster wait for each other."""
    fn.emit("call void @llvm.nvvm.barrier.cluster.arrive.aligned()")
    fn.emit("call void @llvm.nvvm.barrier.cluster.wait.aligned()")


def start_halves(
    fn: FunctionBuilder, plan: BoxPlan, places: tuple[str, str, str], indices: Sequence[str]
) -> None:
    """Copy this program's half of a block to both programs of a cluster, which hold it alike.

    `places` are the mbarrier, which each program has for itself, the map and the tile. What comes
    to a program is announced by that program.
    """
    barrier, desc, start = places
    copies = plan.copies()
    half = len(copies) // 2
    is_second = fn.prologue_value(f"icmp eq i32 {fn.prologue_value(_RANK)}, 1")
    for first, second in zip(copies[:half], copies[half:], strict=True):
        offset = _chosen(fn, is_second, first[0], second[0])
        target = shared_pointer(fn, add(fn, start, offset))
        there = fn.value(f"addrspacecast ptr addrspace(3) {target} to ptr addrspace(7)")
        at = [_chosen(fn, is_second, *steps) for steps in zip(first[1], second[1], strict=True)]
        coordinates = ", ".join(
            f"i32 {index if step == '0' else fn.value(f'add i32 {index}, {step}')}"
            for index, step in reversed(list(zip(indices, at, strict=True)))
        )
        name = f"@llvm.nvvm.cp.async.bulk.tensor.g2s.tile.{len(plan.shape)}d"
        arguments = f"ptr addrspace(7) {there}, {barrier}, ptr {desc}, {coordinates}"
        fn.emit(f"call void {name}({arguments}, i16 {_BOTH}, i64 0, i1 true, i1 false, i32 0)")


def _chosen(fn: FunctionBuilder, is_second: str, first: int, second: int) -> str:
    """A number of the program's rank."""
    if first == second:
        return str(first)
    return fn.prologue_value(f"select i1 {is_second}, i32 {second}, i32 {first}")
