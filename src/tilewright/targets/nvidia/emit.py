"""From a scheduled module to the LLVM text of an NVIDIA kernel."""

from __future__ import annotations

import json
from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tilewright.codegen.line_table import LineTable
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm_types import LLVM_FLOATS, llvm_type
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.codegen.simt.allotment import allot
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.partition import whole_cta
from tilewright.ir.types import PointerType, i1
from tilewright.machine.model import MachineModel
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.program.persistence import most_programs
from tilewright.ops.roles import find_roles
from tilewright.schedule.partition.warps import warps_of_program
from tilewright.support.options import CompileOptions
from tilewright.targets.nvidia.math import NvidiaMath
from tilewright.targets.nvidia.rules import (
    NVIDIA_RULES,
    approximate,
    assembly,
    integer_casts,
    products,
    rings,
    tensor_maps,
    tma,
    turns,
    waiting,
)
from tilewright.targets.nvidia.services import NvidiaServices
from tilewright.targets.nvidia.symbols import entry_symbol
from tilewright.targets.nvidia.tma.barriers import find_init
from tilewright.targets.nvidia.tma_ops import TensorMapOp

SHARED_SYMBOL = "@shared"
_TENSOR_MAP = 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant"'


def argument_slots(module: ModuleOp) -> list[str]:
    """The LLVM type of every argument of the kernel: what the driver packs."""
    types = [argument.type for argument in find_kernel(module).body.block.args]
    return [LLVM_FLOATS.get(type_) or llvm_type(type_) for type_ in types]


def tensor_map_entries(module: ModuleOp) -> list[dict[str, object]]:
    """How the launch makes the tensor maps of the kernel, in the order of their parameters."""
    maps = [op for op in find_kernel(module).body.block.ops if isinstance(op, TensorMapOp)]
    maps.sort(key=lambda op: op.index.value.data)
    return [json.loads(op.recipe.data) for op in maps]


def emit_kernel(module: ModuleOp, machine: MachineModel, options: CompileOptions) -> str:
    """The LLVM module of a T2 module with one kernel, named by `entry_symbol`."""
    kernel = find_kernel(module)

    def emit_body(ctx: SimtContext) -> None:
        ctx.emit_block(kernel.body.block)

    return emit_function(module, machine, options, num_warps_of(kernel, options), emit_body)


def num_warps_of(kernel: FuncOp, options: CompileOptions) -> int:
    """The warps that run a program: those of its roles, of a pass, or of the options."""
    roles = find_roles(kernel)
    if roles is None:
        return warps_of_program(kernel, options.num_warps)
    return allot(roles).cta_warps


def emit_function(
    module: ModuleOp,
    machine: MachineModel,
    options: CompileOptions,
    cta_warps: int,
    emit_body: Callable[[SimtContext], None],
) -> str:
    """The LLVM module of a function with the arguments of a kernel, for a cta of so many warps.

    The body is emitted in the scope of the whole cta, and ends the function.
    """
    kernel = find_kernel(module)
    builder = ModuleBuilder()
    builder.add_global(SHARED_SYMBOL[1:], "external addrspace(3) global [0 x i8], align 1024")
    lines = LineTable.of_kernel(builder, kernel, "DebugDirectivesOnly")
    parameters = [
        f"{_parameter_type(argument.type)} %a{index}"
        for index, argument in enumerate(kernel.body.block.args)
    ]
    parameters += [f"{_TENSOR_MAP} %m{i}" for i in range(len(tensor_map_entries(module)))]
    parameters += [f"i32 %g{axis}" for axis in range(3)] if most_programs(kernel) else []
    name = entry_symbol(kernel.sym_name.data)
    fn = FunctionBuilder(builder, f"define ptx_kernel void @{name}({', '.join(parameters)})")
    fn.attributes["nvvm.reqntid"] = f"{machine.lanes * cta_warps},1,1"
    if options.maxnreg:
        fn.attributes["nvvm.maxnreg"] = str(options.maxnreg)
    fn.attachment = f"!dbg {lines.scope}"
    fn.location = lines.start
    if _has_copies_of_one_thread(kernel):
        fn.shared = _start_of_shared(fn)
    services = NvidiaServices(builder, NvidiaMath(), cta_warps, machine)
    ctx = SimtContext(builder, fn, NVIDIA_RULES, services, lines=lines, default_rules=DEFAULT_RULES)
    with ctx.open_scope(whole_cta(cta_warps)):
        for index, argument in enumerate(kernel.body.block.args):
            ctx.values[argument] = _argument(fn, argument.type, f"%a{index}")
        emit_body(ctx)
    builder.add_function(name, fn.text())
    return builder.text()


def _has_copies_of_one_thread(kernel: FuncOp) -> bool:
    """Whether one thread of a program without roles has the copy engine fill shared memory."""
    return find_roles(kernel) is None and find_init(kernel) is not None


def _start_of_shared(fn: FunctionBuilder) -> str:
    """The address of shared memory as a value that LLVM knows nothing of.

    *Why*: where one thread starts copies at constant addresses behind a loop, ptxas 13.0.88 keeps
    the address of the symbol in a register of each thread from there on, and moves every descriptor
    of a product in the next loop to uniform registers: 76 moves in the 385 instructions of a step
    of attention's gradients of queries at a head of 64, where 293 do (2026-11-23).
    """
    pointer = "ptr addrspace(3)"
    return fn.prologue_value(f'call {pointer} asm "", "=l,0"({pointer} {SHARED_SYMBOL})')


def _parameter_type(type_: Attribute) -> str:
    if isinstance(type_, PointerType):
        return "ptr addrspace(1)"
    return "i8" if type_ == i1 else llvm_type(type_)


def _argument(fn: FunctionBuilder, type_: Attribute, name: str) -> str:
    """An argument as the rules see it: generic pointers, i1 out of its byte."""
    if isinstance(type_, PointerType):
        return fn.prologue_value(f"addrspacecast ptr addrspace(1) {name} to ptr")
    return fn.prologue_value(f"trunc i8 {name} to i1") if type_ == i1 else name


# Imported for the rules that they register.
RULE_MODULES = (
    *(approximate, assembly, integer_casts, products, rings, tensor_maps, tma, turns, waiting),
)
