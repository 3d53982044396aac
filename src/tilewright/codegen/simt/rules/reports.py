"""Barriers of the author, printing, and assertions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.flow import only_where
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.rules.memory import both, owns_elements
from tilewright.codegen.simt.rules.structure import add_offset, coordinate
from tilewright.codegen.simt.services import CallSite
from tilewright.codegen.simt.slots import is_zero
from tilewright.codegen.simt.words import to_bits
from tilewright.ir import types as ir
from tilewright.ir.attributes import integers_of
from tilewright.ir.encoding import has_layout, layout_of
from tilewright.ops.debug.ir import AssertOp, BarrierOp, PrintOp
from tilewright.ops.function import FuncOp

_SUMMARIES = {
    "bounds": "out-of-bounds {}",
    "overflow": "the offset of a {} overflows int32",
}


@SIMT_RULES.register(BarrierOp)
def _barrier(ctx: SimtContext, op: BarrierOp) -> None:
    ctx.scope.barrier()


# --- printing ---


@SIMT_RULES.register(PrintOp)
def _print(ctx: SimtContext, op: PrintOp) -> None:
    prefix = op.prefix.data.replace("%", "%%")
    if not op.args:
        with only_where(ctx, is_zero(ctx, ctx.target.lanes - 1, ctx.scope.warps - 1)):
            ctx.target.print_line(ctx.fn, f"pid (%d, %d, %d){prefix}\n", _program(ctx))
    signs = integers_of(op.is_signed) or (1,) * len(op.args)
    for number, (value, is_signed) in enumerate(zip(op.args, signs, strict=True)):
        which = f"(operand {number}) " if len(op.args) > 1 else ""
        _print_tile(ctx, value, f"{prefix}{which}", _is_set(op.hex), bool(is_signed))


def _is_set(flag: Attribute) -> bool:
    return isinstance(flag, IntegerAttr) and bool(flag.value.data)


def _program(ctx: SimtContext) -> list[tuple[str, str]]:
    return [("i32", ctx.target.program_id(ctx.fn, axis)) for axis in range(3)]


def _print_tile(
    ctx: SimtContext, value: SSAValue, prefix: str, is_hex: bool, is_signed: bool
) -> None:
    """A line for each element, by the thread that answers for it."""
    shape = ir.shape_of(value.type)
    where = ", ".join(f"%{len(str(extent - 1))}d" for extent in shape)
    rows = zip(_indices(ctx, value), ctx.registers(value), strict=True)
    known: set[tuple[str, ...]] = set()
    with only_where(ctx, owns_elements(ctx, value)):
        for index, name in rows:
            if tuple(index) in known:
                continue
            known.add(tuple(index))
            form, argument = _formatted(ctx, name, element_type(value.type), is_hex, is_signed)
            arguments = [*_program(ctx), *(("i32", i) for i in index), argument]
            text = f"pid (%d, %d, %d) idx ({where}){prefix}{form}\n"
            ctx.target.print_line(ctx.fn, text, arguments)


def _indices(ctx: SimtContext, value: SSAValue) -> list[list[str]]:
    """The coordinates of each register, i32."""
    if not has_layout(value.type):
        return [[]]
    layout = layout_of(value.type)
    bases = [coordinate(ctx, layout, dim) for dim in range(layout.rank)]
    return [
        [add_offset(ctx, base, i) for base, i in zip(bases, at, strict=True)]
        for at in layout.register_offsets()
    ]


def _formatted(
    ctx: SimtContext, name: str, type_: Attribute, is_hex: bool, is_signed: bool
) -> tuple[str, tuple[str, str]]:
    """The conversion of printf for an element, and the element as printf takes it."""
    fn = ctx.fn
    if ir.is_float(type_):
        return "%a" if is_hex else "%f", ("double", _as_double(ctx, name, type_))
    bits = ir.width_bits(type_)
    word = name if bits == 1 else to_bits(fn, type_, name)
    if bits < 64:
        extend = "sext" if is_signed and not is_hex and bits > 1 else "zext"
        word = fn.value(f"{extend} i{bits} {word} to i64")
    if is_hex or ir.is_pointer(type_):
        return f"0x%0{max(1, bits // 4)}llx", ("i64", word)
    return ("%lld" if is_signed else "%llu"), ("i64", word)


def _as_double(ctx: SimtContext, name: str, type_: Attribute) -> str:
    if type_ == ir.f64:
        return name
    if type_ != ir.f32:
        name = ctx.target.convert_float(ctx.fn, type_, ir.f32, None, name, "rtne")
    return ctx.fn.value(f"fpext {llvm_type(ir.f32)} {name} to double")


# --- assertions ---


@SIMT_RULES.register(AssertOp)
def _assert(ctx: SimtContext, op: AssertOp) -> None:
    fn = ctx.fn
    masks: Sequence[str | None] = (
        [None] * len(ctx.registers(op.condition)) if op.mask is None else ctx.registers(op.mask)
    )
    failed: list[str] = []
    for condition, mask in dict.fromkeys(zip(ctx.registers(op.condition), masks, strict=True)):
        broken = fn.value(f"xor i1 {condition}, true")
        failed.append(both(ctx, broken, mask) or "true")
    total = failed[0]
    for term in failed[1:]:
        total = fn.value(f"or i1 {total}, {term}")
    kind = "assert" if op.kind is None else op.kind.data
    message = _SUMMARIES.get(kind, "{}").format(op.message.data)
    with only_where(ctx, total):
        ctx.target.fail(fn, message, _site(op))


def _site(op: Operation) -> CallSite:
    """The line of an op and the kernel that it is in."""
    location = op.location
    while isinstance(location, CallSiteLoc):
        location = location.callee
    file, line = "", 0
    if isinstance(location, FileLineColLoc):
        file, line = location.filename.data, location.line.data
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return CallSite(file, line, parent.sym_name.data if parent is not None else "")
