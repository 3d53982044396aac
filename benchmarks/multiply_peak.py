"""Loops that do nothing but multiply: the measured peak that kernels are compared with."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.targets.cpu.dot.multiply_add import emit_multiply_add
from tilewright.targets.cpu.dot.panels import Instruction, Multiply, VectorUnit
from tilewright.targets.cpu.dot.vectors import carried_loop, element_address

NUM_CHAINS = 12
"""Independent accumulators: enough for two units of latency 4, few enough for 16 registers.

Source: as for MIN_CHAINS."""

# Chosen, not measured: the loop around a turn is under a thousandth of it.
STEPS_PER_TURN = 1000

SEPARATE_PRODUCTS = (Instruction.MULTIPLY_ADD, Instruction.I32, Instruction.I16_PAIRS)
"""Where the product is an instruction of its own: it must depend on the chain, or LLVM
computes it once before the loop."""


def operations_per_turn(multiply: Multiply, unit: VectorUnit) -> int:
    """Multiplications and additions that one turn of the peak loop does."""
    lanes = unit.vector_bytes // multiply.lane_bytes
    return 2 * STEPS_PER_TURN * NUM_CHAINS * lanes * multiply.k_group


def emit_peak_loop(module: ModuleBuilder, multiply: Multiply, unit: VectorUnit) -> str:
    """Define `void @name(i64 %turns, ptr %vectors)`; the first vector is overwritten.

    `%vectors` are `NUM_CHAINS` vectors to start from: LLVM would merge equal chains into one.
    Zeros there keep every value a normal number.
    """
    lanes = unit.vector_bytes // multiply.lane_bytes
    name = f"tw.peak.{multiply.instruction.value}.{multiply.accumulator}.{unit.vector_bytes}"
    fn = FunctionBuilder(module, f"define internal void @{name}(i64 %turns, ptr %vectors)")
    acc_type = f"<{lanes} x {multiply.accumulator_type}>"
    operand = f"<{lanes} x {multiply.lane_type}>"
    value = fn.value(f"load {operand}, ptr %vectors, align 4")
    starts = [
        fn.value(
            f"load {acc_type}, ptr {element_address(fn, acc_type, '%vectors', chain)}, align 4"
        )
        for chain in range(NUM_CHAINS)
    ]
    fn.branch("turn")
    fn.place("turn")
    fn.emit("%done = phi i64 [ 0, %entry ], [ %done.next, %turn.end ]")

    def advance(chain: str) -> str:
        if multiply.instruction in SEPARATE_PRODUCTS:
            return emit_multiply_add(fn, multiply, lanes, value, chain, value)
        return emit_multiply_add(fn, multiply, lanes, chain, value, value)

    def step(_: str, chains: Sequence[str]) -> Sequence[str]:
        return [advance(chain) for chain in chains]

    chains = carried_loop(fn, STEPS_PER_TURN, acc_type, starts, step)
    total = chains[0]
    add = "add" if multiply.accumulator_type == "i32" else "fadd"
    for chain in chains[1:]:
        total = fn.value(f"{add} {acc_type} {total}, {chain}")
    fn.emit(f"store {acc_type} {total}, ptr %vectors, align 4")
    fn.branch("turn.end")
    fn.place("turn.end")
    fn.emit("%done.next = add nuw nsw i64 %done, 1")
    fn.branch_if(fn.value("icmp ult i64 %done.next, %turns"), "turn", "end")
    fn.place("end")
    fn.emit("ret void")
    return module.add_function(name, fn.text())
