"""A kernel as an MLIR module: one public function, and the functions of the library it calls.

    func.func @kernel(%a0: memref<?xf32>, %a1: i32, %program_id_x: i32, …, %num_programs_x: i32, …)

Arguments come in the kernel's order: a pointer as a memref of its elements, whose size is not
looked at, a number as itself. Six i32 follow: the program's coordinates, and the grid's extents.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from tilewright.ir.types import PointerType
from tilewright.ops.function import FuncOp, find_kernel, require_launchable
from tilewright.targets.mlir.emitter import Emitter, argument_name
from tilewright.targets.mlir.rules import (
    atomics,
    combine,
    control,
    debug,
    memory,
    products,
    shapes,
    sorting,
)
from tilewright.targets.mlir.text import Code, ModuleText, memory_text, type_text

# Imported for the rules they register.
RULE_MODULES = (atomics, combine, control, debug, memory, products, shapes, sorting)
AXES = ("x", "y", "z")
PROGRAM_IDS = tuple(f"%program_id_{axis}" for axis in AXES)
NUM_PROGRAMS = tuple(f"%num_programs_{axis}" for axis in AXES)


def emit_module(module: ModuleOp, has_grid_loop: bool = False) -> str:
    """The text of a T0 module with one kernel.

    With `has_grid_loop` the public function takes the grid's extents alone and runs every
    program, by `scf.parallel`; the program is the private function `NAME_program`.
    """
    kernel = find_kernel(module)
    require_launchable(kernel)
    name = kernel.sym_name.data
    text = ModuleText()
    parameters = parameters_of(kernel)
    program = f"{name}_program" if has_grid_loop else name
    text.functions[program] = ""
    emitter = Emitter(text, kernel)
    emitter.program_ids, emitter.num_programs = PROGRAM_IDS, NUM_PROGRAMS
    for argument in kernel.body.block.args:
        if not isinstance(argument.type, PointerType):
            emitter.bind(argument, f"%{argument_name(argument)}")
        else:
            emitter.bind(argument, emitter.code.constant("i64", 0))
    emitter.emit_block(kernel.body.block)
    emitter.code.emit("return")
    taken = [*parameters, *((number, "i32") for number in (*PROGRAM_IDS, *NUM_PROGRAMS))]
    visibility = "private " if has_grid_loop else ""
    text.functions[program] = emitter.code.function(
        f"func.func {visibility}@{program}({_declared(taken)})"
    )
    if has_grid_loop:
        text.functions[name] = _grid_loop(text, name, parameters, taken)
    return text.text()


def parameters_of(kernel: FuncOp) -> list[tuple[str, str]]:
    """The names and types of the function's arguments that are the kernel's."""
    found: list[tuple[str, str]] = []
    for argument in kernel.body.block.args:
        type_ = argument.type
        is_pointer = isinstance(type_, PointerType)
        kind = f"memref<?x{memory_text(type_.pointee)}>" if is_pointer else type_text(type_)
        found.append((f"%{argument_name(argument)}", kind))
    return found


def _declared(parameters: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in parameters)


def _grid_loop(
    module: ModuleText,
    name: str,
    parameters: Sequence[tuple[str, str]],
    taken: Sequence[tuple[str, str]],
) -> str:
    """The function that runs all programs of a grid."""
    code = Code(module)
    zero, one = code.index(0), code.index(1)
    extents = [code.value(f"arith.index_cast {extent} : i32 to index") for extent in NUM_PROGRAMS]
    ivs = [f"%{axis}" for axis in AXES]
    code.emit(
        f"scf.parallel ({', '.join(ivs)}) = ({', '.join([zero] * 3)}) to ({', '.join(extents)}) "
        f"step ({', '.join([one] * 3)}) {{"
    )
    with code.capture(1) as lines:
        ids = [code.value(f"arith.index_cast {iv} : index to i32") for iv in ivs]
        names = [name for name, _ in parameters] + ids + list(NUM_PROGRAMS)
        kinds = ", ".join(kind for _, kind in taken)
        code.emit(f"func.call @{name}_program({', '.join(names)}) : ({kinds}) -> ()")
        code.emit("scf.reduce")
    code.lines.extend(lines)
    code.close("}")
    code.emit("return")
    return code.function(
        f"func.func @{name}({_declared([*parameters, *((n, 'i32') for n in NUM_PROGRAMS)])})"
    )
