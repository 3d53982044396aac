"""Atomics on one element: LLVM's own where it has them, compare-and-swap loops elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Attribute, SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.rules.compute_types import is_narrow
from tilewright.ir import types as ir
from tilewright.ops.atomics.ir import AtomicCasOp, AtomicLoadOp, AtomicRmwOp, AtomicStoreOp
from tilewright.targets.cpu.rules import CPU_RULES

_ORDERS = {
    "relaxed": "monotonic",
    "acquire": "acquire",
    "release": "release",
    "acq_rel": "acq_rel",
}
_LOAD_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "acq_rel": "acquire"}
_STORE_ORDERS = {"relaxed": "monotonic", "release": "release", "acq_rel": "release"}
# A failed compare-and-swap only reads, so it keeps the acquiring half of the order.
_FAILURE_ORDERS = {
    "monotonic": "monotonic",
    "acquire": "acquire",
    "release": "monotonic",
    "acq_rel": "acquire",
}
_KINDS = {
    "and": "and",
    "or": "or",
    "xor": "xor",
    "add": "add",
    "fadd": "fadd",
    "max": "max",
    "min": "min",
    "umax": "umax",
    "umin": "umin",
    "exch": "xchg",
}


def word_type(type_: Attribute) -> str:
    """The integer type that holds the bits of a scalar."""
    return f"i{ir.width_bits(type_)}"


def as_word(ctx: EmitContext, type_: Attribute, value: str) -> str:
    """A scalar's bits as an integer."""
    source, word = llvm_type(type_), word_type(type_)
    if source == word:
        return value
    cast = "ptrtoint" if source == "ptr" else "bitcast"
    return ctx.fn.value(f"{cast} {source} {value} to {word}")


def from_word(ctx: EmitContext, type_: Attribute, value: str) -> str:
    """The scalar whose bits an integer holds."""
    target, word = llvm_type(type_), word_type(type_)
    if target == word:
        return value
    cast = "inttoptr" if target == "ptr" else "bitcast"
    return ctx.fn.value(f"{cast} {word} {value} to {target}")


def _where(ctx: EmitContext, mask: SSAValue | None, act: Callable[[], str]) -> str:
    """Emit `act` behind a branch where there is a mask; else 0 stands for its result.

    `act` emits within one block and returns a value with its type, or nothing.
    """
    if mask is None:
        return act().rpartition(" ")[2]
    fn = ctx.fn
    before, then, end = fn.block, fn.new_label(), fn.new_label()
    fn.branch_if(ctx.value(mask), then, end)
    fn.place(then)
    kind, _, value = act().rpartition(" ")
    fn.branch(end)
    fn.place(end)
    if not kind:
        return ""
    return fn.value(f"phi {kind} [ {value}, %{then} ], [ zeroinitializer, %{before} ]")


@CPU_RULES.register(AtomicRmwOp)
def _rmw(ctx: EmitContext, op: AtomicRmwOp) -> None:
    type_, order = op.value.type, _ORDERS[op.order_name()]
    kind = _KINDS[op.kind_name()]
    is_exchange = kind == "xchg"
    name = word_type(type_) if is_exchange else llvm_type(type_)

    def act() -> str:
        if kind == "fadd" and is_narrow(type_):
            function = _narrow_add(ctx, type_, order)
            arguments = f"{ctx.typed(op.ptr)}, {ctx.typed(op.value)}"
            return f"{name} {ctx.fn.value(f'call {name} {function}({arguments})')}"
        value = as_word(ctx, type_, ctx.value(op.value)) if is_exchange else ctx.value(op.value)
        place = ctx.typed(op.ptr)
        return f"{name} {ctx.fn.value(f'atomicrmw {kind} {place}, {name} {value} {order}')}"

    old = _where(ctx, op.mask, act)
    ctx.define(op, from_word(ctx, type_, old) if is_exchange else old)


def _narrow_add(ctx: EmitContext, type_: Attribute, order: str) -> str:
    """A function that adds 16-bit floats atomically, in float32 and rounded once."""
    kind = llvm_type(type_)
    name = f"tw.atomic_add.{kind}.{order}"
    if ctx.module.has_function(name):
        return f"@{name}"
    header = f"define internal {kind} @{name}(ptr %place, {kind} %addend) noinline nounwind"
    fn = FunctionBuilder(ctx.module, header)
    inner = EmitContext(ctx.module, fn, ctx.rules, ctx.target)
    addend = _widen(inner, type_, "%addend")
    start = fn.value("load atomic i16, ptr %place monotonic, align 2")
    fn.branch("again")
    fn.place("again")
    fn.lines.append(f"  %seen = phi i16 [ {start}, %entry ], [ %found, %again ]")
    old = fn.value(f"bitcast i16 %seen to {kind}")
    total = fn.value(f"fadd float {_widen(inner, type_, old)}, {addend}")
    rounded = ctx.target.convert_float(fn, ir.f32, type_, None, total, "rtne")
    word = fn.value(f"bitcast {kind} {rounded} to i16")
    orders = f"{order} {_FAILURE_ORDERS[order]}"
    pair = fn.value(f"cmpxchg ptr %place, i16 %seen, i16 {word} {orders}")
    fn.lines.append(f"  %found = extractvalue {{ i16, i1 }} {pair}, 0")
    done = fn.value(f"extractvalue {{ i16, i1 }} {pair}, 1")
    fn.branch_if(done, "end", "again")
    fn.place("end")
    fn.emit(f"ret {kind} {old}")
    return ctx.module.add_function(name, fn.text())


def _widen(ctx: EmitContext, type_: Attribute, value: str) -> str:
    return ctx.target.convert_float(ctx.fn, type_, ir.f32, None, value, "rtne")


@CPU_RULES.register(AtomicCasOp)
def _compare_and_swap(ctx: EmitContext, op: AtomicCasOp) -> None:
    order = _ORDERS[op.order_name()]
    type_, word = op.value.type, word_type(op.value.type)
    expected = as_word(ctx, type_, ctx.value(op.compare))
    desired = as_word(ctx, type_, ctx.value(op.value))
    orders = f"{order} {_FAILURE_ORDERS[order]}"
    swap = f"cmpxchg {ctx.typed(op.ptr)}, {word} {expected}, {word} {desired} {orders}"
    pair = ctx.fn.value(swap)
    old = ctx.fn.value(f"extractvalue {{ {word}, i1 }} {pair}, 0")
    ctx.define(op, from_word(ctx, type_, old))


@CPU_RULES.register(AtomicLoadOp)
def _load(ctx: EmitContext, op: AtomicLoadOp) -> None:
    type_, word = op.result.type, word_type(op.result.type)
    order, align = _LOAD_ORDERS[op.order_name()], ir.storage_bytes(type_)
    load = f"load atomic {word}, {ctx.typed(op.ptr)} {order}, align {align}"
    loaded = _where(ctx, op.mask, lambda: f"{word} {ctx.fn.value(load)}")
    ctx.define(op, from_word(ctx, type_, loaded))


@CPU_RULES.register(AtomicStoreOp)
def _store(ctx: EmitContext, op: AtomicStoreOp) -> None:
    type_ = op.value.type
    order, align = _STORE_ORDERS[op.order_name()], ir.storage_bytes(type_)
    value = as_word(ctx, type_, ctx.value(op.value))
    place = ctx.typed(op.ptr)

    def act() -> str:
        ctx.fn.emit(f"store atomic {word_type(type_)} {value}, {place} {order}, align {align}")
        return ""

    _where(ctx, op.mask, act)
