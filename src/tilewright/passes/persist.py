"""Makes a kernel persistent: a program runs one tile after the other (T0 to T0).

    tt.func { %x = get_program_id 0 … }
    ⇒ tt.func … {tw.persistent = 132} {
        for %t in get_program_id 0 to extent 0 * extent 1 * extent 2 step get_num_programs 0
          { %x = %t rem extent 0 … } }

A launch then starts no more programs than run at once, and the kernel asks for the grid of its
author (`tw.get_grid_extent`). Tiles run in the order of the grid, the first axis fastest. So what
one tile stores goes out while the next one is loaded, where the program runs as roles.

*Why here*: behind the tile passes, whose guards speak of the author's programs, and in front of
the schedule, whose names count this loop. A kernel stays as it is where one program may wait for
another one, or be told from it by anything but its number; `reason_against` says why.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, Use

from tilewright.ir.edits import erase, erase_unused, replace_by
from tilewright.ir.effects import Access, Effect, Resource, is_free, own_effects
from tilewright.ir.locations import describe
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.regions import ControlFlowOp, counter_of
from tilewright.ir.types import DescriptorType
from tilewright.machine.gpus import SM_90A
from tilewright.ops.control_flow import ForOp, YieldOp
from tilewright.ops.debug.ir import is_assumption
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.program.ir import GetGridExtentOp, GetNumProgramsOp, GetProgramIdOp
from tilewright.ops.program.persistence import clear_most_programs, most_programs, set_most_programs
from tilewright.passes.tile_builder import TileBuilder
from tilewright.support.dataclass import dataclass

_TILES, _COORDINATE = "tw.tiles", "tw.coordinate"
"""Attributes of the loop over tiles, and of what stands in it for the program's number."""
_ASSEMBLY = "asm_string"
# Source: PTX ISA 8.8, section 10, "Special Registers": those that tell programs apart.
_PROGRAM_REGISTERS = ("ctaid", "gridid", "smid")


@dataclass(frozen=True)
class Persist(Pass):
    """The pass; see the module. `programs` is how many run at once."""

    programs: int = SM_90A.num_sms
    name = "persist"
    after = ("select-tensor-maps", "lower-descriptors", "bulk-access")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel if it may be."""
        kernel = find_kernel(module)
        if not reason_against(kernel):
            persist(kernel, self.programs)


def reason_against(kernel: FuncOp) -> str:
    """Why the programs of a kernel are not run one after the other; '' where they may be."""
    if most_programs(kernel):
        return "it is persistent already"
    fixed = set(_of_launch(kernel))
    for op in kernel.body.block.walk():
        reason = _reason(op, op in fixed)
        if reason:
            return f"{describe(op)}: {reason}"
    return ""


def _reason(op: Operation, is_of_launch: bool) -> str:
    if isinstance(op, GetNumProgramsOp) and any(_is_step(use) for use in op.result.uses):
        return "the kernel loops over its tiles itself"
    if isinstance(op, ControlFlowOp) and op.is_loop() and op.counter() is None:
        return "a `while` may wait for another program"
    if not is_assumption(op) and not all(_is_plain(op, e) for e in own_effects(op)):
        return f"{op.name} may order programs, or tell them apart"
    text = op.properties.get(_ASSEMBLY)
    if isinstance(text, StringAttr) and any(name in text.data for name in _PROGRAM_REGISTERS):
        return "the assembly asks where the program runs"
    if not is_of_launch and any(isinstance(r.type, DescriptorType) for r in op.results):
        return "a descriptor follows from the program"
    return ""


def _is_step(use: Use) -> bool:
    """Whether a value is the step of a loop."""
    counter = counter_of(use.operation)
    return counter is not None and use.operation.operands[use.index] is counter.step


def _is_plain(op: Operation, effect: Effect) -> bool:
    """Whether an effect is a read or write of memory, or a sum in it that nobody looks at."""
    if not isinstance(effect, Access) or effect.resource is not Resource.GLOBAL:
        return False
    flag = op.properties.get("isVolatile")
    is_volatile = isinstance(flag, IntegerAttr) and bool(flag.value.data)
    is_used = any(result.first_use is not None for result in op.results)
    return not is_volatile and (effect.atomic is None or not is_used)


def _of_launch(kernel: FuncOp) -> list[Operation]:
    """The descriptors that follow from the arguments alone."""
    arguments = set(kernel.body.block.args)
    return [
        op
        for op in kernel.body.block.ops
        if is_free(op)
        and all(operand in arguments for operand in op.operands)
        and any(isinstance(result.type, DescriptorType) for result in op.results)
    ]


def persist(kernel: FuncOp, programs: int) -> None:
    """Rewrite a kernel that nothing is against, for at most so many programs at once."""
    entry = kernel.body.block
    fixed: set[Operation | Block] = set(_of_launch(kernel))
    start, end = entry.first_op, entry.last_op
    assert start is not None and end is not None
    ask, make = TileBuilder(start), TileBuilder(end)
    extents = [ask.emit(GetGridExtentOp, (), i32, _axis(axis)) for axis in range(3)]
    body = Block(arg_types=[i32])
    for op in list(kernel.walk()):
        if isinstance(op, GetProgramIdOp):
            replace_by(op, _coordinate(op, body.args[0], extents))
        if isinstance(op, GetNumProgramsOp):
            replace_by(op, extents[op.axis.value.data])
    fixed |= {extent.owner for extent in extents}
    moved = [op for op in entry.ops if op not in fixed and op is not end]
    tiles = make.binary("muli", make.binary("muli", extents[0], extents[1]), extents[2])
    first = make.emit(GetProgramIdOp, (), i32, _axis(0))
    step = make.emit(GetNumProgramsOp, (), i32, _axis(0))
    loop = build(ForOp, [first, tiles, step], regions=[Region(body)], location=kernel.location)
    loop.attributes[_TILES] = UnitAttr()
    entry.insert_op_before(loop, end)
    for op in moved:
        op.detach()
        body.add_op(op)
    body.add_op(build(YieldOp, (), location=kernel.location))
    set_most_programs(kernel, programs)


def _coordinate(op: GetProgramIdOp, tile: SSAValue, extents: list[SSAValue]) -> SSAValue:
    """Where the program of a tile stands along an axis of the author's grid, in front of `op`."""
    make, axis = TileBuilder(op), op.axis.value.data
    for extent in extents[:axis]:
        tile = make.binary("divui", tile, extent)
    found = tile if axis == len(extents) - 1 else make.binary("remui", tile, extents[axis])
    assert isinstance(found.owner, Operation)
    found.owner.attributes[_COORDINATE] = IntegerAttr(axis, i32)
    return found


def _axis(axis: int) -> dict[str, Attribute]:
    return {"axis": IntegerAttr(axis, i32)}


def tile_loops(kernel: FuncOp) -> list[Operation]:
    """The loop over the tiles of a program that was made persistent: they come in any order."""
    return [op for op in kernel.body.block.ops if _TILES in op.attributes]


def undo(kernel: FuncOp) -> None:
    """Make a kernel that `persist` has rewritten what it was."""
    (loop,) = tile_loops(kernel)
    assert isinstance(loop, ForOp) and loop.parent is not None
    for op in list(loop.walk()):
        axis = op.attributes.get(_COORDINATE)
        if isinstance(axis, IntegerAttr):
            quotient = op.operands[0].owner
            replace_by(op, TileBuilder(op).emit(GetProgramIdOp, (), i32, _axis(axis.value.data)))
            if isinstance(quotient, Operation):
                erase_unused(quotient)
    *moved, _ = loop.body.block.ops
    for op in moved:
        op.detach()
        loop.parent.insert_op_before(op, loop)
    counts = [value.owner for value in (loop.lb, loop.ub, loop.step)]
    erase(loop)
    for op in counts:
        if isinstance(op, Operation):
            erase_unused(op)
    for op in list(kernel.walk()):
        if isinstance(op, GetGridExtentOp):
            count = TileBuilder(op).emit(GetNumProgramsOp, (), i32, {"axis": op.axis})
            replace_by(op, count)
    clear_most_programs(kernel)
