"""Placing, interpreting and simulating T2 programs with roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tilewright.interp.evaluate import run_kernel
from tilewright.interp.simt.simulate import simulate
from tilewright.interp.simt.statistics import Report
from tilewright.ir.levels import T2
from tilewright.ir.verify_level import verify_level
from tilewright.machine.gpus import SM_90A
from tilewright.ops.function import find_kernel
from tilewright.schedule.annotations import shared_bytes
from tilewright.schedule.exchanges import DecideExchanges
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.emit import (
    argument_slots,
    emit_kernel,
    num_warps_of,
    tensor_map_entries,
)
from tilewright.targets.nvidia.interpret import NVIDIA_INTERPRETATION
from tilewright.targets.nvidia.ops import NVIDIA_OPS
from tilewright.targets.nvidia.schedule import PlaceShared
from tilewright.targets.nvidia.simulated import tensor_maps
from tilewright.targets.nvidia.symbols import entry_symbol

OPTIONS = CompileOptions()
CONTRACT = T2.extended(*NVIDIA_OPS)


@dataclass(frozen=True)
class Program:
    """A placed module with what a launch needs to know of it."""

    module: ModuleOp
    text: str
    num_threads: int
    shared_bytes: int


def placed(module: ModuleOp) -> ModuleOp:
    """The module with places in shared memory, checked against the contract of T2."""
    DecideExchanges().apply(module)
    PlaceShared().apply(module)
    verify_level(module, CONTRACT)
    return module


def emitted(module: ModuleOp) -> Program:
    """The program of a placed module."""
    kernel = find_kernel(module)
    text = emit_kernel(module, SM_90A, OPTIONS)
    return Program(module, text, 32 * num_warps_of(kernel, OPTIONS), shared_bytes(kernel))


def interpret(module: ModuleOp, arguments: Sequence[object], programs: int) -> None:
    """Run a placed module in the interpreter of T2."""
    run_kernel(module, list(arguments), (programs,), rules=NVIDIA_INTERPRETATION, races=False)


def simulated(
    program: Program, arguments: Sequence[object], programs: int, seed: int | None = None
) -> Report:
    """Run the LLVM text of a program as threads."""
    module = program.module
    assert len(argument_slots(module)) == len(arguments)
    slots = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    arrays = {a.ctypes.data: a for a in arguments if isinstance(a, np.ndarray)}
    maps = tensor_maps({"tensor_maps": tensor_map_entries(module)}, slots, arrays)
    name = entry_symbol(find_kernel(module).sym_name.data)
    return simulate(
        program.text,
        name,
        (programs, 1, 1),
        program.num_threads,
        [*arguments, *maps],
        program.shared_bytes,
        seed=seed,
    )
