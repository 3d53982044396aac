"""What a program asks of its launch: whether it is to stop, whether it runs atomics alone, and
whether it is the first of its thread.

A look at whether to stop is two loads and a branch that is never taken.
"""

from __future__ import annotations

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.ir.types import PointerType, storage_bytes
from tilewright.targets.cpu.launch_ops import ForgetOp, IsAloneOp, PollOp
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.cpu.runtime.interrupt_ir import CONTEXT_FIELDS, LAUNCH_FIELDS

_RARELY = '!{!"branch_weights", i32 1, i32 2000000}'


@CPU_RULES.register(PollOp)
def _poll(ctx: EmitContext, op: PollOp) -> None:
    fn = ctx.fn
    go = fn.new_label()
    stop = fn.new_label()
    branch_if_stopped(fn, stop, go)
    fn.place(stop)
    fn.emit("ret void")
    fn.place(go)


@CPU_RULES.register(IsAloneOp)
def _is_alone(ctx: EmitContext, op: IsAloneOp) -> None:
    """The launch's word for it, which it says once."""
    fn = ctx.fn
    at = fn.prologue_value(f"getelementptr i8, ptr %context, i64 {CONTEXT_FIELDS['is_alone']}")
    word = fn.prologue_value(f"load i64, ptr {at}, align 8")
    ctx.define(op, fn.prologue_value(f"icmp ne i64 {word}, 0"))


@CPU_RULES.register(ForgetOp)
def _forget(ctx: EmitContext, op: ForgetOp) -> None:
    fn, pointer = ctx.fn, op.buffer.type
    assert isinstance(pointer, PointerType)
    size = op.num_elems.value.data * storage_bytes(pointer.pointee)
    at = fn.value(f"getelementptr i8, ptr %context, i64 {CONTEXT_FIELDS['has_begun']}")
    begun = fn.value(f"load i64, ptr {at}, align 8")
    fill, done = fn.new_label(), fn.new_label()
    fn.branch_if(fn.value(f"icmp eq i64 {begun}, 0"), fill, done)
    fn.place(fill)
    memset = ctx.module.declare("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
    fn.emit(f"call void {memset}({ctx.typed(op.buffer)}, i8 0, i64 {size}, i1 false)")
    fn.branch(done)
    fn.place(done)


def branch_if_stopped(fn: FunctionBuilder, stop: str, go: str) -> None:
    """End the block: to `stop` when the launch is cancelled, else to `go`.

    The words are read anew each time (volatile), by loads that order nothing else.
    """
    launch = _prologue_load(fn, "%context", CONTEXT_FIELDS["launch"])
    signals = _prologue_load(fn, launch, LAUNCH_FIELDS["signals"])
    seen_at = fn.prologue_value(f"getelementptr i8, ptr {launch}, i64 {LAUNCH_FIELDS['seen']}")
    now = fn.value(f"load volatile i32, ptr {signals}, align 4")
    seen = fn.value(f"load volatile i32, ptr {seen_at}, align 4")
    ask = fn.new_label()
    differ = fn.value(f"icmp ne i32 {now}, {seen}")
    fn.emit(f"br i1 {differ}, label %{ask}, label %{go}, !prof {_node(fn, _RARELY)}")
    fn.place(ask)
    place = fn.value(f"getelementptr i8, ptr {launch}, i64 {LAUNCH_FIELDS['attend']}")
    attend = fn.value(f"load ptr, ptr {place}, align 8")
    answer = fn.value(f"call i32 {attend}(ptr %context)")
    fn.branch_if(fn.value(f"icmp ne i32 {answer}, 0"), stop, go)


def _prologue_load(fn: FunctionBuilder, base: str, offset: int) -> str:
    at = fn.prologue_value(f"getelementptr i8, ptr {base}, i64 {offset}")
    return fn.prologue_value(f"load ptr, ptr {at}, align 8, !invariant.load {_node(fn, '!{}')}")


def _node(fn: FunctionBuilder, text: str) -> str:
    """A metadata node of the module, once."""
    known = fn.module.metadata
    return f"!{known.index(text)}" if text in known else fn.module.add_metadata(text)
