"""Assertions that fill the status record, and printing by the C library."""

from __future__ import annotations

from xdsl.ir import Attribute

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.rules.compute_types import is_narrow
from tilewright.ir import types as ir
from tilewright.ir.attributes import integers_of
from tilewright.targets.cpu.ops import AssertOp, PrintOp
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.cpu.rules.matmul import services
from tilewright.targets.cpu.runtime.status import MAX_RANK, OFFSETS

_PROGRAM = "i32 %pid0, i32 %pid1, i32 %pid2"


@CPU_RULES.register(AssertOp)
def _assert(ctx: EmitContext, op: AssertOp) -> None:
    site = services(ctx).site(op)
    indices = [as_i32(ctx, ctx.value(i), i.type) for i in op.indices][:MAX_RANK]
    padded = [*indices, *["0"] * (MAX_RANK - len(indices))]
    function = report_function(ctx.module)
    fn = ctx.fn
    fail, end = fn.new_label(), fn.new_label()
    fn.branch_if(ctx.value(op.condition), end, fail)
    fn.place(fail)
    where = ", ".join(f"i32 {index}" for index in padded)
    fn.emit(
        f"call void {function}(ptr %status, i32 {site}, {_PROGRAM}, i32 {len(indices)}, {where})"
    )
    fn.branch(end)
    fn.place(end)


def as_i32(ctx: EmitContext, value: str, type_: Attribute) -> str:
    """An index as i32."""
    kind = llvm_type(type_)
    if kind == "i32":
        return value
    return ctx.fn.value(f"{'trunc' if kind == 'i64' else 'sext'} {kind} {value} to i32")


def report_function(module: ModuleBuilder) -> str:
    """The function that claims the status record and fills it; the first failure wins."""
    name = "tw.report"
    if module.has_function(name):
        return f"@{name}"
    indices = ", ".join(f"i32 %i{dim}" for dim in range(MAX_RANK))
    header = (
        f"define internal void @{name}(ptr %status, i32 %site, {_PROGRAM}, i32 %rank, {indices})"
        " noinline nounwind cold"
    )
    fn = FunctionBuilder(module, header)
    # 2 while the record is being written, 1 when it is whole; nobody reads it before the end.
    claimed = fn.value("cmpxchg ptr %status, i32 0, i32 2 acq_rel monotonic")
    first = fn.value(f"extractvalue {{ i32, i1 }} {claimed}, 1")
    fn.branch_if(first, "write", "end")
    fn.place("write")
    fields = {"site": ["%site"], "rank": ["%rank"]}
    fields["program"] = [f"%pid{axis}" for axis in range(3)]
    fields["index"] = [f"%i{dim}" for dim in range(MAX_RANK)]
    for field, values in fields.items():
        for position, value in enumerate(values):
            offset = OFFSETS[field] + 4 * position
            place = fn.value(f"getelementptr i8, ptr %status, i64 {offset}")
            fn.emit(f"store i32 {value}, ptr {place}, align 4")
    fn.emit("store atomic i32 1, ptr %status release, align 4")
    fn.branch("end")
    fn.place("end")
    fn.emit("ret void")
    return module.add_function(name, fn.text())


@CPU_RULES.register(PrintOp)
def _print(ctx: EmitContext, op: PrintOp) -> None:
    fn = ctx.fn
    ctx.module.declare("dprintf", "i32", "i32, ptr, ...")
    place = fn.value(f"getelementptr i8, ptr %status, i64 {OFFSETS['print_file']}")
    file = fn.value(f"load i32, ptr {place}, align 4")
    shape = integers_of(op.shape)
    where = ", ".join(f"%{len(str(extent - 1))}d" for extent in shape)
    indices = "".join(f", i32 {as_i32(ctx, ctx.value(i), i.type)}" for i in op.indices)
    signs = integers_of(op.is_signed) or (1,) * len(op.args)
    is_hex = bool(getattr(getattr(op.hex, "value", None), "data", False))
    prefix = op.prefix.data.replace("%", "%%")
    if not op.args:
        format_ = _text_constant(ctx.module, f"pid (%d, %d, %d){prefix}\n")
        fn.value(f"call i32 (i32, ptr, ...) @dprintf(i32 {file}, ptr {format_}, {_PROGRAM})")
    for number, (value, is_signed) in enumerate(zip(op.args, signs, strict=True)):
        which = f"(operand {number}) " if len(op.args) > 1 else ""
        form, argument = _formatted(ctx, ctx.value(value), value.type, is_hex, bool(is_signed))
        text = f"pid (%d, %d, %d) idx ({where}){prefix}{which}{form}\n"
        format_ = _text_constant(ctx.module, text)
        arguments = f"i32 {file}, ptr {format_}, {_PROGRAM}{indices}, {argument}"
        fn.value(f"call i32 (i32, ptr, ...) @dprintf({arguments})")


def _formatted(
    ctx: EmitContext, value: str, type_: Attribute, is_hex: bool, is_signed: bool
) -> tuple[str, str]:
    """The conversion of printf for a value and the value as printf wants it."""
    fn, kind = ctx.fn, llvm_type(type_)
    bits = ir.width_bits(type_)
    if ir.is_float(type_):
        if is_narrow(type_):
            value, kind = ctx.target.convert_float(fn, type_, ir.f32, None, value, "rtne"), "float"
        double = value if kind == "double" else fn.value(f"fpext {kind} {value} to double")
        return "%a" if is_hex else "%f", f"double {double}"
    if ir.is_pointer(type_):
        return "0x%016llx", f"i64 {fn.value(f'ptrtoint ptr {value} to i64')}"
    if bits < 64:
        extend = "sext" if is_signed and not is_hex and bits > 1 else "zext"
        value = fn.value(f"{extend} i{bits} {value} to i64")
    if is_hex:
        return f"0x%0{max(1, bits // 4)}llx", f"i64 {value}"
    return ("%lld" if is_signed else "%llu"), f"i64 {value}"


def _text_constant(module: ModuleBuilder, text: str) -> str:
    data = text.encode() + b"\0"
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:02X}" for byte in data
    )
    name = f"tw.text.{len(module.globals)}"
    return module.add_global(name, f'private constant [{len(data)} x i8] c"{escaped}"')
