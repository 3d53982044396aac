"""Run a kernel's LLVM text on NumPy arrays, as a GPU would, with every access checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tilewright.interp.simt import types as t
from tilewright.interp.simt.constants import static_shared_bytes
from tilewright.interp.simt.global_shadow import GlobalShadow
from tilewright.interp.simt.in_flight import WARP_GROUP
from tilewright.interp.simt.instructions import (
    aggregates as aggregates,
)
from tilewright.interp.simt.instructions import (
    arithmetic as arithmetic,
)
from tilewright.interp.simt.instructions import (
    control as control,
)
from tilewright.interp.simt.instructions import (
    memory as memory,
)
from tilewright.interp.simt.intrinsics import (
    async_copies as async_copies,
)
from tilewright.interp.simt.intrinsics import (
    barriers as barriers,
)
from tilewright.interp.simt.intrinsics import (
    generic as generic,
)
from tilewright.interp.simt.intrinsics import (
    host_calls as host_calls,
)
from tilewright.interp.simt.intrinsics import (
    matrix as matrix,
)
from tilewright.interp.simt.intrinsics import (
    nvvm_math as nvvm_math,
)
from tilewright.interp.simt.intrinsics import (
    special_registers as special_registers,
)
from tilewright.interp.simt.intrinsics import (
    warp as warp,
)
from tilewright.interp.simt.machine import Machine
from tilewright.interp.simt.parse import parse_module
from tilewright.interp.simt.program import Program, Translated
from tilewright.interp.simt.runner import Runner
from tilewright.interp.simt.statistics import Report
from tilewright.interp.simt.syntax import Parameter
from tilewright.interp.simt.tensor_map import TensorMap
from tilewright.interp.simt.timeline import Timeline
from tilewright.interp.simt.types import LlvmType
from tilewright.interp.simt.values import Value
from tilewright.ir.op import Array
from tilewright.support.errors import InternalError

Argument: TypeAlias = "int | float | bool | Array | TensorMap"
_PARAMETER_WINDOW = 1 << 58
_STEP_LIMIT = 2_000_000


def simulate(
    llvm_text: str,
    kernel: str,
    grid: tuple[int, int, int],
    num_threads: int,
    arguments: Sequence[Argument],
    shared_bytes: int = 0,
    *,
    reachable: Sequence[tuple[str, Array]] = (),
    cluster: int = 1,
    tensor_maps: Mapping[int, TensorMap] | None = None,
    seed: int | None = None,
    checks_global_order: bool = False,
    step_limit: int = _STEP_LIMIT,
    timeline: Timeline | None = None,
    names: Sequence[str] = (),
) -> Report:
    """The launch of a kernel, given as LLVM text for one thread, simulated on this machine.

    Arrays become global memory and are written in place, also when a fault ends the launch. A
    `TensorMap` is the argument of a parameter that is passed by value; `tensor_maps` gives those
    that lie in arrays, by the number of that argument. `reachable` names further arrays, for
    kernels that read pointers from memory.
    Programs run one after the other in the order of their ids; those of a cluster, `cluster` that
    follow each other along the first axis, run at once. `shared_bytes` is the dynamic
    shared memory. With a `seed` the warp groups of a program take turns at random, to find what
    depends on their order. With `checks_global_order` two threads of a program that access
    one place of global memory, one of them writing, need a barrier in between. A `timeline` is
    told what the first program does. `names` are what the first arguments are called in messages;
    others are called what the text calls them.

    *Raises* `KernelFault` for what the program does wrong, `UnsupportedError` for an
    instruction that the simulator does not know.
    """
    module = parse_module(llvm_text)
    if cluster > 1 and (grid[0] % cluster or num_threads % WARP_GROUP):
        raise InternalError(f"a grid of {grid} has no clusters of {cluster}")
    machine = Machine(num_threads, grid, static_shared_bytes(module) + shared_bytes, cluster)
    _observe(machine, checks_global_order, timeline)
    program = Program(module, machine, step_limit)
    function = program.function(kernel)
    _bind(machine, function, arguments, tensor_maps or {}, reachable, names)
    try:
        with np.errstate(all="ignore"):
            _run_grid(machine, function, step_limit, seed)
    finally:
        machine.memory.flush()
        machine.report.instructions = program.count_instructions()
        machine.report.barriers = machine.synchronization.completed
    return machine.report


def _observe(machine: Machine, checks_global_order: bool, timeline: Timeline | None) -> None:
    """Have a machine note what nothing else of a launch asks for."""
    if checks_global_order:
        machine.global_shadow = GlobalShadow(machine.synchronization.clocks)
        machine.copies.global_shadow = machine.global_shadow
    machine.synchronization.timeline = timeline


def _run_grid(machine: Machine, function: Translated, step_limit: int, seed: int | None) -> None:
    columns, rows, layers = machine.grid
    runner = Runner(machine, function.segments, step_limit, is_kernel=True, seed=seed)
    for z in range(layers):
        for y in range(rows):
            for x in range(0, columns, machine.cluster):
                machine.start_cta((x, y, z))
                runner.run(None)
                if machine.synchronization.timeline is not None:
                    machine.synchronization.timeline.is_over = True


def _bind(
    machine: Machine,
    function: Translated,
    arguments: Sequence[Argument],
    tensor_maps: Mapping[int, TensorMap],
    reachable: Sequence[tuple[str, Array]],
    names: Sequence[str],
) -> None:
    parameters = function.function.parameters
    called = [*names, *(parameter.name for parameter in parameters[len(names) :])]
    if len(parameters) != len(arguments):
        raise InternalError(f"{len(arguments)} arguments for {len(parameters)} parameters")
    arrays: list[tuple[str, Array]] = []
    for index, (name, argument) in enumerate(zip(called, arguments, strict=True)):
        array = argument.array if isinstance(argument, TensorMap) else argument
        if isinstance(array, np.ndarray):
            arrays.append((name, array))
        if index in tensor_maps:
            arrays.append((f"{name} of the tensor map", tensor_maps[index].array))
    pointers = iter(machine.memory.map_arrays([*arrays, *reachable]))
    for index, slot in enumerate(function.parameters):
        argument = arguments[index]
        value: float
        if isinstance(argument, TensorMap):
            value = _PARAMETER_WINDOW + 128 * index
            machine.copies.tensor_maps[value] = argument.at(next(pointers))
        elif isinstance(argument, np.ndarray):
            value = next(pointers)
        else:
            value = argument
        if index in tensor_maps:
            machine.copies.tensor_maps[int(value)] = tensor_maps[index].at(next(pointers))
        machine.values[slot] = _broadcast(value, parameters[index], machine.threads)


def _broadcast(value: float, parameter: Parameter, threads: int) -> Value:
    type_: LlvmType = parameter.type
    if isinstance(type_, t.IntType | t.PointerType):
        bits = 64 if isinstance(type_, t.PointerType) else type_.bits
        return np.full(threads, int(value) % (1 << bits), t.dtype_of(type_))
    with np.errstate(over="ignore"):  # beyond fp32 it is infinite, as in the call of a kernel
        return np.full(threads, value, np.float64).astype(t.dtype_of(type_))


__all__ = ["Argument", "TensorMap", "simulate"]
