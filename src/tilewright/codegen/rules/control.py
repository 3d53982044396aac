"""Structured control flow to basic blocks and phis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp


def emit_body(ctx: EmitContext, block: Block) -> tuple[list[str], str]:
    """Emit a region's block but its terminator; the yielded names and the last LLVM block."""
    terminator = block.last_op
    assert terminator is not None
    for op in block.ops:
        if op is not terminator:
            ctx.emit_op(op)
    return [ctx.value(v) for v in terminator.operands], ctx.fn.block


class _Phis:
    """Phis of a loop header, whose back-edge values are known only after the body."""

    def __init__(self, ctx: EmitContext, types: Sequence[str], starts: Sequence[str]) -> None:
        self.fn = ctx.fn
        self.types = list(types)
        self.starts = list(starts)
        self.entry = ctx.fn.block

    def place(self) -> list[str]:
        """Reserve the phi lines at the start of the current block and return their names."""
        self.first_line = len(self.fn.lines)
        self.header = self.fn.block
        self.names = []
        for _ in self.types:
            self.fn.counter += 1
            self.names.append(f"%v{self.fn.counter}")
            self.fn.lines.append("")
        return self.names

    def close(self, values: Sequence[str], block: str) -> None:
        """Fill in the values that come from `block`, the end of the body."""
        rows = zip(self.names, self.types, self.starts, values, strict=True)
        for offset, (name, kind, start, back) in enumerate(rows):
            incoming = f"[ {start}, %{self.entry} ], [ {back}, %{block} ]"
            self.fn.lines[self.first_line + offset] = f"  {name} = phi {kind} {incoming}"


def _types(values: Sequence[SSAValue]) -> list[str]:
    return [llvm_type(v.type) for v in values]


@DEFAULT_RULES.register(ForOp)
def _for(ctx: EmitContext, op: ForOp) -> None:
    fn = ctx.fn
    kind = llvm_type(op.lb.type)
    starts = [ctx.value(op.lb), *(ctx.value(v) for v in op.iter_args)]
    phis = _Phis(ctx, [kind, *_types(op.iter_args)], starts)
    header, body, end = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch(header)
    fn.place(header)
    names = phis.place()
    comparison = fn.value(f"icmp slt {kind} {names[0]}, {ctx.value(op.ub)}")
    fn.branch_if(comparison, body, end)
    fn.place(body)
    block = op.body.block
    for argument, name in zip(block.args, names, strict=True):
        ctx.values[argument] = name
    yielded, last = emit_body(ctx, block)
    following = fn.value(f"add {kind} {names[0]}, {ctx.value(op.step)}")
    fn.branch(header)
    phis.close([following, *yielded], last)
    fn.place(end)
    ctx.define(op, *names[1:])


@DEFAULT_RULES.register(WhileOp)
def _while(ctx: EmitContext, op: WhileOp) -> None:
    fn = ctx.fn
    phis = _Phis(ctx, _types(op.arguments), [ctx.value(v) for v in op.arguments])
    header, body, end = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch(header)
    fn.place(header)
    before = op.before_region.block
    for argument, name in zip(before.args, phis.place(), strict=True):
        ctx.values[argument] = name
    forwarded, _ = emit_body(ctx, before)
    fn.branch_if(forwarded[0], body, end)
    fn.place(body)
    after = op.after_region.block
    for argument, name in zip(after.args, forwarded[1:], strict=True):
        ctx.values[argument] = name
    yielded, last = emit_body(ctx, after)
    fn.branch(header)
    phis.close(yielded, last)
    fn.place(end)
    ctx.define(op, *forwarded[1:])


@DEFAULT_RULES.register(IfOp)
def _if(ctx: EmitContext, op: IfOp) -> None:
    fn = ctx.fn
    then, end = fn.new_label(), fn.new_label()
    has_else = bool(op.false_region.blocks)
    otherwise = fn.new_label() if has_else else end
    fn.branch_if(ctx.value(op.cond), then, otherwise)
    fn.place(then)
    taken, taken_block = emit_body(ctx, op.true_region.block)
    fn.branch(end)
    if not has_else:
        fn.place(end)
        return
    fn.place(otherwise)
    other, other_block = emit_body(ctx, op.false_region.block)
    fn.branch(end)
    fn.place(end)
    rows = zip(op.results, taken, other, strict=True)
    names = [
        fn.value(f"phi {llvm_type(r.type)} [ {t}, %{taken_block} ], [ {o}, %{other_block} ]")
        for r, t, o in rows
    ]
    ctx.define(op, *names)


@DEFAULT_RULES.register(YieldOp, ConditionOp)
def _terminator(ctx: EmitContext, op: Operation) -> None:
    """The parent's rule reads the operands; nothing is emitted here."""
