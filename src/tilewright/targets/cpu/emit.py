"""From a C2 module to LLVM text: the kernel's entry, its program, and the target's services."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from tilewright.codegen.context import EmitContext
from tilewright.codegen.line_table import LineTable
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm_types import LLVM_FLOATS, llvm_type
from tilewright.codegen.math.emitter import MathEmitter
from tilewright.ir.effects import Access, Resource, effects_of
from tilewright.ir.locations import span_of
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.targets.cpu.launch_ops import ForgetOp, IsAloneOp, PollOp
from tilewright.targets.cpu.ops import (
    AMX_UNITS,
    AssertOp,
    DotOp,
    PackOp,
    unit_of,
)
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.cpu.rules import atomics as atomic_rules
from tilewright.targets.cpu.rules import choices as choice_rules
from tilewright.targets.cpu.rules import cycle_counts as cycle_count_rules
from tilewright.targets.cpu.rules import integer_quotients as integer_quotient_rules
from tilewright.targets.cpu.rules import interrupts as interrupt_rules
from tilewright.targets.cpu.rules import matmul as matmul_rules
from tilewright.targets.cpu.rules import memory as memory_rules
from tilewright.targets.cpu.rules import narrow_floats as narrow_float_rules
from tilewright.targets.cpu.rules import quotients as quotient_rules
from tilewright.targets.cpu.rules import remainders as remainder_rules
from tilewright.targets.cpu.rules import reports as report_rules
from tilewright.targets.cpu.rules import structure as structure_rules
from tilewright.targets.cpu.rules.interrupts import branch_if_stopped
from tilewright.targets.cpu.runtime.cycle_counts import COUNTS_SYMBOL
from tilewright.targets.cpu.runtime.interrupt_ir import CONTEXT_FIELDS
from tilewright.targets.cpu.runtime.status import Site
from tilewright.targets.cpu.schedule.count_cycles import num_counted_of
from tilewright.targets.cpu.services import CpuServices

_PROGRAM_IDS = "i32 %pid0, i32 %pid1, i32 %pid2, i32 %grid0, i32 %grid1, i32 %grid2"
KERNEL_SYMBOL = "tilewright_kernel"
# LLVM holds a scalar bfloat16 that it cannot compute with as float32, and rounds it back by a
# call that the C library need not have. Nearest even; a NaN stays one.
ROUND_TO_BFLOAT = """
define hidden bfloat @__truncsfbf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %bias = add i32 %odd, 32767
  %nearest = add i32 %bits, %bias
  %quiet = or i32 %bits, 4194304
  %is_nan = fcmp uno float %x, %x
  %chosen = select i1 %is_nan, i32 %quiet, i32 %nearest
  %half = lshr i32 %chosen, 16
  %narrow = trunc i32 %half to i16
  %result = bitcast i16 %narrow to bfloat
  ret bfloat %result
}
"""


def emit_kernel(
    module: ModuleOp, features: frozenset[str], vector_bytes: int, has_lines: bool = False
) -> str:
    """The LLVM module of a C2 module with one kernel; its entry is KERNEL_SYMBOL.

    The entry runs programs `begin` to `end - 1` (axis 0 fastest) of a grid; see the pool for
    its signature. With `has_lines` the code carries source lines for debuggers.
    """
    kernel = find_kernel(module)
    builder = ModuleBuilder()
    builder.add_metadata("!{i32 1}")
    numbers: dict[Operation, int] = {op: i for i, op in enumerate(assertions(kernel))}
    num_counted = num_counted_of(module)
    if num_counted:
        kind = f"[{2 * num_counted} x i64]"
        builder.add_global(COUNTS_SYMBOL, f"global {kind} zeroinitializer, align 64")
    math = MathEmitter(builder, features)
    services = CpuServices(builder, features, vector_bytes, math, numbers)
    parameters = [
        f"{llvm_type(argument.type)} %a{index}"
        for index, argument in enumerate(kernel.body.block.args)
    ]
    _emit_program(builder, services, kernel, parameters, has_lines)
    types = [llvm_type(a.type) for a in kernel.body.block.args]
    emit_entry(builder, types, _asks_context(kernel), _has(kernel, ForgetOp))
    text = builder.text()
    return text + ROUND_TO_BFLOAT if "bfloat" in text else text


def argument_slots(module: ModuleOp) -> list[str]:
    """The LLVM type of every argument of the kernel: what the driver packs into slots."""
    types = [argument.type for argument in find_kernel(module).body.block.args]
    return [LLVM_FLOATS.get(type_) or llvm_type(type_) for type_ in types]


def assertions(kernel: FuncOp) -> list[AssertOp]:
    """The assertions of a C2 kernel, in the order of their sites."""
    return [op for op in kernel.walk() if isinstance(op, AssertOp)]


def assertion_sites(module: ModuleOp) -> list[Site]:
    """What each assertion checks and where it stands, for the driver."""
    sites: list[Site] = []
    for op in assertions(find_kernel(module)):
        kind = op.kind.data if isinstance(op.kind, StringAttr) else "assert"
        span, chain = span_of(op)
        sites.append(Site(kind, op.message.data, span, chain))
    return sites


def has_prints(module: ModuleOp) -> bool:
    """Whether the kernel prints."""
    effects = effects_of(find_kernel(module))
    return any(isinstance(e, Access) and e.resource is Resource.CONSOLE for e in effects)


def uses_amx(module: ModuleOp) -> bool:
    """Whether the kernel multiplies on AMX's tile registers."""
    return any(
        isinstance(op, DotOp | PackOp) and unit_of(op) in AMX_UNITS
        for op in find_kernel(module).walk()
    )


def atomics_of(module: ModuleOp) -> list[str]:
    """What the driver must know of atomics: whether there are "any", and form "alone" as well."""
    kernel = find_kernel(module)
    is_any = any(isinstance(e, Access) and e.atomic is not None for e in effects_of(kernel))
    return ["any"] * is_any + ["alone"] * _has(kernel, IsAloneOp)


def _asks_context(kernel: FuncOp) -> bool:
    return _has(kernel, PollOp, IsAloneOp, ForgetOp)


def _has(kernel: FuncOp, *kinds: type[Operation]) -> bool:
    return any(isinstance(op, kinds) for op in kernel.walk())


def _emit_program(
    builder: ModuleBuilder,
    services: CpuServices,
    kernel: FuncOp,
    parameters: list[str],
    has_lines: bool,
) -> None:
    lines = LineTable.of_kernel(builder, kernel, "LineTablesOnly") if has_lines else None
    debug = f" !dbg {lines.scope}" if lines is not None else ""
    arguments = ", ".join([*parameters, _PROGRAM_IDS, "ptr %scratch", "ptr %status"])
    if _asks_context(kernel):
        arguments += ", ptr %context"
    header = f"define internal fastcc void @program({arguments}) noinline nounwind{debug}"
    fn = FunctionBuilder(builder, header)
    if lines is not None:
        fn.location = lines.start
    ctx = EmitContext(builder, fn, CPU_RULES, services, lines=lines)
    for index, argument in enumerate(kernel.body.block.args):
        ctx.values[argument] = f"%a{index}"
    ctx.emit_block(kernel.body.block)
    builder.add_function("program", fn.text())


def emit_entry(
    builder: ModuleBuilder, types: list[str], asks_context: bool, keeps: bool = False
) -> None:
    """The function that the pool calls: it runs the module's `@program` for a range of programs.

    `types` are the LLVM types of the kernel's arguments, whose values are in slots. `keeps`:
    a program asks whether it is its thread's first of the launch.
    """
    header = (
        f"define void @{KERNEL_SYMBOL}(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %context)"
        " nounwind"
    )
    fn = FunctionBuilder(builder, header)
    scratch = fn.value("load ptr, ptr %context, align 8")
    status_at = fn.value("getelementptr i64, ptr %context, i64 1")
    status = fn.value(f"load ptr, ptr {status_at}, align 8")
    values = [_load_slot(fn, index, kind) for index, kind in enumerate(types)]
    extents = []
    for axis in range(3):
        address = fn.value(f"getelementptr i32, ptr %grid, i64 {axis}")
        extents.append(fn.value(f"load i32, ptr {address}, align 4"))
    wide = [fn.value(f"zext i32 {extent} to i64") for extent in extents]
    loop, look, body, done = fn.new_label(), fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch(loop)
    fn.place(loop)
    fn.lines.append(f"  %program = phi i64 [ %begin, %entry ], [ %next, %{body} ]")
    fn.branch_if(fn.value("icmp ult i64 %program, %end"), look, done)
    fn.place(look)
    branch_if_stopped(fn, done, body)
    fn.place(body)
    coordinates = _coordinates(fn, wide)
    arguments = [
        *(f"{kind} {value}" for kind, value in zip(types, values, strict=True)),
        *(f"i32 {value}" for value in (*coordinates, *extents)),
        f"ptr {scratch}",
        f"ptr {status}",
        *(["ptr %context"] if asks_context else []),
    ]
    fn.emit(f"call fastcc void @program({', '.join(arguments)})")
    if keeps:
        begun_at = fn.value(f"getelementptr i8, ptr %context, i64 {CONTEXT_FIELDS['has_begun']}")
        fn.emit(f"store i64 1, ptr {begun_at}, align 8")
    fn.lines.append("  %next = add i64 %program, 1")
    fn.branch(loop)
    fn.place(done)
    fn.emit("ret void")
    builder.add_function(KERNEL_SYMBOL, fn.text())


def _coordinates(fn: FunctionBuilder, extents: list[str]) -> list[str]:
    plane = fn.value(f"udiv i64 %program, {extents[0]}")
    parts = [
        fn.value(f"urem i64 %program, {extents[0]}"),
        fn.value(f"urem i64 {plane}, {extents[1]}"),
        fn.value(f"udiv i64 {plane}, {extents[1]}"),
    ]
    return [fn.value(f"trunc i64 {part} to i32") for part in parts]


def _load_slot(fn: FunctionBuilder, index: int, kind: str) -> str:
    address = fn.value(f"getelementptr i64, ptr %args, i64 {index}")
    if kind == "i1":
        byte = fn.value(f"load i8, ptr {address}, align 8")
        return fn.value(f"trunc i8 {byte} to i1")
    return fn.value(f"load {kind}, ptr {address}, align 8")


# Imported for the rules they register.
RULE_MODULES = (
    *(atomic_rules, choice_rules, cycle_count_rules, interrupt_rules, matmul_rules),
    *(integer_quotient_rules, memory_rules, narrow_float_rules, quotient_rules, remainder_rules),
    *(report_rules, structure_rules),
)
