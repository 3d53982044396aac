"""Loads and stores of scalars and vectors, gathers and scatters, the arena."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import constant_text, lanes_of, llvm_type
from tilewright.codegen.rules.compute_types import storage_type, suffix
from tilewright.ir import types as ir
from tilewright.ir.attributes import integers_of
from tilewright.machine.cpus import LINE_BYTES
from tilewright.targets.cpu.dot.vectors import element_address
from tilewright.targets.cpu.ops import (
    AllocOp,
    ExtractOp,
    GatherOp,
    IotaOp,
    LoadOp,
    LoadPointersOp,
    PrefetchOp,
    ScatterOp,
    ShuffleOp,
    StoreOp,
    StorePointersOp,
)
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.cpu.rules.narrow_gathers import gather_by_lanes, gathers_by_lanes
from tilewright.targets.cpu.rules.whole_masks import is_branch, load_if, store_if
from tilewright.targets.cpu.services import CpuServices


def memory_type(type_: Attribute) -> Attribute:
    """The type in memory of a value: i1 is stored as a byte."""
    return ir.with_element(type_, ir.i8) if ir.element_of(type_) == ir.i1 else type_


def from_memory(ctx: EmitContext, type_: Attribute, value: str) -> str:
    """A loaded value as `type_`."""
    if memory_type(type_) == type_:
        return value
    stored = memory_type(type_)
    return ctx.fn.value(f"icmp ne {llvm_type(stored)} {value}, {constant_text(0, stored)}")


def to_memory(ctx: EmitContext, value: SSAValue) -> str:
    """A value in the form in which it is stored."""
    if memory_type(value.type) == value.type:
        return ctx.value(value)
    return ctx.fn.value(f"zext {ctx.typed(value)} to {llvm_type(memory_type(value.type))}")


def alignment(op: LoadOp | StoreOp, type_: Attribute) -> int:
    """The alignment in bytes that the address has."""
    given = op.align_bytes
    if isinstance(given, IntegerAttr):
        return given.value.data
    return ir.storage_bytes(type_)


def _filler(ctx: EmitContext, other: SSAValue | None, type_: Attribute) -> str:
    """What masked-off lanes read: `other`, or 0 so that runs repeat bit for bit."""
    if other is None:
        return constant_text(0, memory_type(type_))
    return to_memory(ctx, other)


@CPU_RULES.register(LoadOp)
def _load(ctx: EmitContext, op: LoadOp) -> None:
    type_ = op.result.type
    stored = memory_type(type_)
    kind, align = llvm_type(stored), alignment(op, type_)
    pointer = ctx.value(op.ptr)

    def plain() -> str:
        volatile = "volatile " if op.is_volatile is not None else ""
        return ctx.fn.value(f"load {volatile}{kind}, ptr {pointer}, align {align}")

    if op.mask is None:
        raw = plain()
    elif is_branch(ctx, op.mask):
        raw = load_if(ctx, op.mask, kind, _filler(ctx, op.other, type_), plain)
    else:
        function = f"@llvm.masked.load.{suffix(stored)}.p0"
        filler = _filler(ctx, op.other, type_)
        arguments = f"ptr align {align} {pointer}, {ctx.typed(op.mask)}, {kind} {filler}"
        raw = ctx.fn.value(f"call {kind} {function}({arguments})")
    ctx.define(op, from_memory(ctx, type_, raw))


@CPU_RULES.register(StoreOp)
def _store(ctx: EmitContext, op: StoreOp) -> None:
    type_ = op.value.type
    stored = memory_type(type_)
    kind, align = llvm_type(stored), alignment(op, type_)
    value, pointer = to_memory(ctx, op.value), ctx.value(op.ptr)

    def plain() -> None:
        hint = ", !nontemporal !0" if op.nontemporal is not None else ""
        ctx.fn.emit(f"store {kind} {value}, ptr {pointer}, align {align}{hint}")

    if op.mask is None:
        plain()
    elif is_branch(ctx, op.mask):
        store_if(ctx, op.mask, plain)
    else:
        arguments = f"{kind} {value}, ptr align {align} {pointer}, {ctx.typed(op.mask)}"
        ctx.fn.emit(f"call void @llvm.masked.store.{suffix(stored)}.p0({arguments})")


@CPU_RULES.register(PrefetchOp)
def _prefetch(ctx: EmitContext, op: PrefetchOp) -> None:
    fn, pointer = ctx.fn, ctx.value(op.ptr)
    callee = ctx.module.declare("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    is_write, locality = int(op.is_write is not None), 2 if op.is_far is not None else 3
    for line in range(op.num_lines.value.data):
        address = element_address(fn, "i8", pointer, line * LINE_BYTES)
        fn.emit(f"call void {callee}(ptr {address}, i32 {is_write}, i32 {locality}, i32 1)")


def _full_mask(ctx: EmitContext, mask: SSAValue | None, lanes: int) -> str:
    if mask is not None:
        return ctx.typed(mask)
    return f"<{lanes} x i1> splat (i1 true)"


def _gathers_slowly(ctx: EmitContext) -> bool:
    """Whether single loads are faster than the instruction that gathers: on AMD's cores.

    SSE4A is an extension that they alone have. Measured on Zen 5, 2026-11-23, a nanosecond for
    each f32 out of memory, two or three elements apart: gathered 1.2 to 1.3, loaded 0.2.
    """
    return isinstance(ctx.target, CpuServices) and "sse4a" in ctx.target.features


def _load_lanes(ctx: EmitContext, op: GatherOp) -> str:
    """Every lane loaded by itself, for a gather without a mask."""
    type_, fn = op.result.type, ctx.fn
    stored, lanes = memory_type(type_), lanes_of(type_)
    assert lanes is not None
    vector, element = llvm_type(stored), llvm_type(ir.element_of(stored))
    align = ir.storage_bytes(type_)
    index = llvm_type(ir.element_of(op.offsets.type))
    raw = "poison"
    for lane in range(lanes):
        offset = fn.value(f"extractelement {ctx.typed(op.offsets)}, i64 {lane}")
        place = fn.value(f"getelementptr {element}, ptr {ctx.value(op.ptr)}, {index} {offset}")
        loaded = fn.value(f"load {element}, ptr {place}, align {align}")
        raw = fn.value(f"insertelement {vector} {raw}, {element} {loaded}, i64 {lane}")
    return raw


def _lane_pointers(ctx: EmitContext, ptr: SSAValue, offsets: SSAValue, element: Attribute) -> str:
    address = f"getelementptr {storage_type(element)}, ptr {ctx.value(ptr)}, {ctx.typed(offsets)}"
    return ctx.fn.value(address)


def _gather(
    ctx: EmitContext,
    type_: Attribute,
    pointers: str,
    mask: SSAValue | None,
    other: SSAValue | None,
) -> str:
    stored = memory_type(type_)
    lanes = lanes_of(type_)
    assert lanes is not None
    kind, align = llvm_type(stored), ir.storage_bytes(type_)
    function = f"@llvm.masked.gather.{suffix(stored)}.v{lanes}p0"
    lanes_text = f"<{lanes} x ptr> align {align} {pointers}, {_full_mask(ctx, mask, lanes)}"
    filler = _filler(ctx, other, type_)
    return ctx.fn.value(f"call {kind} {function}({lanes_text}, {kind} {filler})")


def _gather_narrow(
    ctx: EmitContext, op: GatherOp | LoadPointersOp, place: tuple[str, SSAValue], mask: SSAValue
) -> str:
    stored = memory_type(op.result.type)
    return gather_by_lanes(ctx, stored, place, mask, _filler(ctx, op.other, op.result.type))


def _scatter(ctx: EmitContext, value: SSAValue, pointers: str, mask: SSAValue | None) -> None:
    stored = memory_type(value.type)
    lanes = lanes_of(value.type)
    assert lanes is not None
    kind, align = llvm_type(stored), ir.storage_bytes(value.type)
    function = f"@llvm.masked.scatter.{suffix(stored)}.v{lanes}p0"
    written = to_memory(ctx, value)
    lanes_text = f"<{lanes} x ptr> align {align} {pointers}, {_full_mask(ctx, mask, lanes)}"
    ctx.fn.emit(f"call void {function}({kind} {written}, {lanes_text})")


@CPU_RULES.register(GatherOp)
def _gather_offsets(ctx: EmitContext, op: GatherOp) -> None:
    def gather(mask: SSAValue | None) -> str:
        if mask is None and _gathers_slowly(ctx):
            return _load_lanes(ctx, op)
        if mask is not None and gathers_by_lanes(memory_type(op.result.type)):
            return _gather_narrow(ctx, op, (ctx.value(op.ptr), op.offsets), mask)
        element = ir.element_of(op.result.type)
        pointers = _lane_pointers(ctx, op.ptr, op.offsets, element)
        return _gather(ctx, op.result.type, pointers, mask, op.other)

    _define_gathered(ctx, op, gather)


@CPU_RULES.register(LoadPointersOp)
def _gather_pointers(ctx: EmitContext, op: LoadPointersOp) -> None:
    def gather(mask: SSAValue | None) -> str:
        if mask is not None and gathers_by_lanes(memory_type(op.result.type)):
            return _gather_narrow(ctx, op, ("", op.ptrs), mask)
        return _gather(ctx, op.result.type, ctx.value(op.ptrs), mask, op.other)

    _define_gathered(ctx, op, gather)


def _define_gathered(
    ctx: EmitContext, op: GatherOp | LoadPointersOp, gather: Callable[[SSAValue | None], str]
) -> None:
    """Gather under the mask of an op, or behind a branch without one."""
    type_ = op.result.type
    if op.mask is not None and is_branch(ctx, op.mask):
        kind, filler = llvm_type(memory_type(type_)), _filler(ctx, op.other, type_)
        raw = load_if(ctx, op.mask, kind, filler, lambda: gather(None))
    else:
        raw = gather(op.mask)
    ctx.define(op, from_memory(ctx, type_, raw))


@CPU_RULES.register(ScatterOp)
def _scatter_offsets(ctx: EmitContext, op: ScatterOp) -> None:
    pointers = _lane_pointers(ctx, op.ptr, op.offsets, ir.element_of(op.value.type))
    _scatter(ctx, op.value, pointers, op.mask)


@CPU_RULES.register(StorePointersOp)
def _scatter_pointers(ctx: EmitContext, op: StorePointersOp) -> None:
    _scatter(ctx, op.value, ctx.value(op.ptrs), op.mask)


@CPU_RULES.register(AllocOp)
def _alloc(ctx: EmitContext, op: AllocOp) -> None:
    assert isinstance(op.offset_bytes, IntegerAttr), "the arena pass places every buffer"
    offset = op.offset_bytes.value.data
    ctx.define(op, ctx.fn.value(f"getelementptr i8, ptr %scratch, i64 {offset}"))


@CPU_RULES.register(IotaOp)
def _iota(ctx: EmitContext, op: IotaOp) -> None:
    element = llvm_type(ir.element_of(op.result.type))
    lanes = lanes_of(op.result.type)
    if lanes is None:
        ctx.define(op, "0")
        return
    ctx.define(op, "<" + ", ".join(f"{element} {lane}" for lane in range(lanes)) + ">")


@CPU_RULES.register(ExtractOp)
def _extract(ctx: EmitContext, op: ExtractOp) -> None:
    if lanes_of(op.vector.type) is None:
        ctx.define(op, ctx.value(op.vector))
        return
    ctx.define(op, ctx.fn.value(f"extractelement {ctx.typed(op.vector)}, {ctx.typed(op.lane)}"))


@CPU_RULES.register(ShuffleOp)
def _shuffle(ctx: EmitContext, op: ShuffleOp) -> None:
    pattern = list(integers_of(op.pattern))
    ctx.define(op, shuffle(ctx, op.lhs, op.rhs, pattern))


def shuffle(ctx: EmitContext, lhs: SSAValue, rhs: SSAValue, pattern: list[int]) -> str:
    """The lanes of two vectors picked by a constant pattern."""
    lanes = ", ".join(f"i32 {lane}" for lane in pattern)
    mask = f"<{len(pattern)} x i32> <{lanes}>"
    return ctx.fn.value(f"shufflevector {ctx.typed(lhs)}, {ctx.typed(rhs)}, {mask}")


def splat_text(ctx: EmitContext, element: Attribute, value: str, lanes: int) -> str:
    """A scalar in every lane of a vector."""
    kind = llvm_type(element)
    vector = f"<{lanes} x {kind}>"
    first = ctx.fn.value(f"insertelement {vector} poison, {kind} {value}, i64 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return ctx.fn.value(f"shufflevector {vector} {first}, {vector} poison, {zeros}")
