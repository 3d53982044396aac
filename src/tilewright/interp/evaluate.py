"""The reference interpreter: runs the kernel of a module on NumPy arrays.

It is the oracle for every pass and target, so it favours exactness and checks over speed. Tiles
are NumPy arrays and an op costs a few microseconds plus its NumPy call; no rule but the atomics
looks at single elements. Memory is byte-accurate: see `interp.memory` and `interp.access` for
the checks, `interp.concurrency` for races, `interp.rules.poison` for undefined values.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TextIO

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute

from tilewright.interp.access import coordinates_of
from tilewright.interp.blocks import BlockPointer
from tilewright.interp.breakpoints import KernelDebugger
from tilewright.interp.code import Code, Preparation, Rules, Running, execute
from tilewright.interp.concurrency import RaceDetector
from tilewright.interp.launch import run_in_order, run_interleaved
from tilewright.interp.memory import BufferArgument, Memory
from tilewright.interp.program import BreakpointHook, Machine, Observer, Program, Touched
from tilewright.interp.rules import TILE_RULES
from tilewright.interp.values import dtype_of, scalar
from tilewright.ir import types as ir
from tilewright.ir.op import Array
from tilewright.ops.function import FuncOp, functions_of
from tilewright.ops.program.persistence import cluster_of, most_programs
from tilewright.runtime.grid import persistent_grid
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError


@dataclass(frozen=True)
class DescriptorArgument:
    """A tensor descriptor made by the caller: a strided tensor in `base`.

    `padding` is "zero" or "nan"; strides count elements.
    """

    base: Array | BufferArgument
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str = "zero"


Argument = Array | BufferArgument | DescriptorArgument | int | float | bool | None


@dataclass(frozen=True)
class PreparedKernel:
    """A kernel ready to be interpreted any number of times; 0 `most_programs`: as the grid says."""

    code: Code
    types: tuple[Attribute, ...]
    names: tuple[str, ...]
    num_slots: int
    most_programs: int = 0
    cluster: int = 1


def prepare_kernel(
    module: ModuleOp, *, rules: Rules = TILE_RULES, kernel: str | None = None
) -> PreparedKernel:
    """Prepare the function `kernel` of a module, or its only public one.

    *Raises* InternalError when the module has no such function or an op without a rule.
    """
    function = _find_kernel(module, kernel)
    preparation = Preparation(rules)
    code = preparation.region(function.body)
    arguments = function.body.block.args
    names = tuple(_argument_name(function, index) for index in range(len(arguments)))
    types = tuple(argument.type for argument in arguments)
    most = most_programs(function)
    cluster = cluster_of(function)
    return PreparedKernel(code, types, names, preparation.num_slots, most, cluster)


def _find_kernel(module: ModuleOp, name: str | None) -> FuncOp:
    functions = functions_of(module)
    if name is not None:
        chosen = [f for f in functions if f.sym_name.data == name]
    else:
        public = [f for f in functions if f.sym_visibility == StringAttr("public")]
        chosen = public or functions
    if len(chosen) != 1:
        raise InternalError(f"the module has {len(chosen)} kernels {name or ''}".rstrip())
    return chosen[0]


def _argument_name(function: FuncOp, index: int) -> str:
    name = function.argument_facts(index).get("tt.name")
    return name.data if isinstance(name, StringAttr) else f"argument {index}"


def run_kernel(
    module: ModuleOp | PreparedKernel,
    arguments: Sequence[Argument],
    grid: Sequence[int],
    *,
    rules: Rules = TILE_RULES,
    races: bool = True,
    uninitialized: Sequence[str] = (),
    reachable: Sequence[Array | BufferArgument] = (),
    reaches_foreign: bool = True,
    order: Sequence[int] | None = None,
    seed: int | None = None,
    observers: Sequence[Observer] = (),
    touched: set[Touched] | None = None,
    breakpoint_hook: BreakpointHook | None = None,
    output: TextIO | None = None,
) -> None:
    """Run every program of a grid; arrays among the arguments are written in place.

    One argument for each of the kernel's: an array or `BufferArgument` (or None) for a pointer,
    a number for a scalar. `uninitialized` names arguments that may not be read before they are
    written. `reachable` holds further arrays, for kernels that read pointers from memory; with
    `reaches_foreign` such pointers may also lead to memory of the process that was not named,
    where neither bounds nor races are known.
    `order` lists the linear ids in the order in which programs start; `seed` interleaves them
    at random instead. `races=False` leaves the race check out. `touched` collects which op read
    or wrote which memory.

    *Raises* a `KernelFault` where the kernel does something undefined.
    """
    kernel = module if isinstance(module, PreparedKernel) else prepare_kernel(module, rules=rules)
    asked, extent = _grids(kernel, grid)
    memory = Memory(reaches_foreign=reaches_foreign)
    values = _bind_arguments(kernel, arguments, memory, uninitialized, reachable)
    programs = range(prod(extent))
    machine = Machine(
        memory=memory,
        grid=extent,
        asked_grid=asked,
        races=RaceDetector(len(programs)) if races and len(programs) > 1 else None,
        breakpoint_hook=breakpoint_hook or KernelDebugger(),
        output=output or sys.stdout,
        observers=tuple(observers),
        touched=set() if touched is None else touched,
    )
    started = _programs(kernel, machine, values, programs if order is None else order)
    _run(machine, started, seed)


def _grids(
    kernel: PreparedKernel, grid: Sequence[int]
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """The programs that are asked for, and those that run: fewer where each computes several."""
    asked, most = _full_grid(grid), kernel.most_programs
    return asked, persistent_grid(asked, most, kernel.cluster) if most else asked


def _run(machine: Machine, programs: Iterator[tuple[Program, Running]], seed: int | None) -> None:
    """Run programs in their order, or with a seed interleaved at random."""
    with np.errstate(all="ignore"):
        if seed is None:
            run_in_order(machine, programs)
        else:
            run_interleaved(machine, programs, seed)


def _full_grid(grid: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*grid, 1, 1, 1)[:3]
    return int(x), int(y), int(z)


def _programs(
    kernel: PreparedKernel, machine: Machine, values: Sequence[object], order: Sequence[int]
) -> Iterator[tuple[Program, Running]]:
    for index in order:
        program = Program(machine, index, coordinates_of(index, machine.grid), kernel.num_slots)
        for slot, value in zip(kernel.code.arguments, values, strict=True):
            program.values[slot] = value
        yield program, _whole(kernel.code, program)


def _whole(code: Code, program: Program) -> Running:
    yield from execute(code, program)
    program.free_buffers()


def _bind_arguments(
    kernel: PreparedKernel,
    arguments: Sequence[Argument],
    memory: Memory,
    uninitialized: Sequence[str],
    reachable: Sequence[Array | BufferArgument],
) -> list[object]:
    """The values of the kernel's arguments, with all arrays mapped into memory."""
    if len(arguments) != len(kernel.types):
        raise InternalError(f"{len(kernel.types)} arguments expected, got {len(arguments)}")
    buffers: list[tuple[str, Array | BufferArgument]] = []
    for name, argument in zip(kernel.names, arguments, strict=True):
        base = argument.base if isinstance(argument, DescriptorArgument) else argument
        if isinstance(base, np.ndarray | BufferArgument):
            buffers.append((name, base))
    buffers.extend((f"reachable[{i}]", array) for i, array in enumerate(reachable))
    pointers = memory.map_buffers(buffers, uninitialized)
    return [
        _bind(type_, name, argument, pointers, memory)
        for type_, name, argument in zip(kernel.types, kernel.names, arguments, strict=True)
    ]


def _bind(
    type_: Attribute, name: str, argument: Argument, pointers: Mapping[str, int], memory: Memory
) -> object:
    if isinstance(argument, DescriptorArgument):
        assert isinstance(type_, ir.DescriptorType)
        block = ir.shape_of(type_.block)
        return BlockPointer(
            base=pointers[name],
            element=ir.element_of(type_.block),
            shape=argument.shape,
            strides=argument.strides,
            block=block,
            offsets=(0,) * len(block),
            padding=2 if argument.padding == "nan" else 1,
        )
    if name in pointers:
        if not ir.is_pointer(type_):
            raise InternalError(f"argument `{name}` has type {type_} but got an array")
        return np.array(pointers[name], np.int64)
    if ir.is_pointer(type_):
        assert not isinstance(argument, np.ndarray | BufferArgument)
        return memory.translate(np.array(argument or 0, np.int64))
    assert isinstance(argument, int | float | np.generic)
    return scalar(argument, dtype_of(type_))
