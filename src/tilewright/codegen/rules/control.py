"""Structured control flow to basic blocks and phis."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.rules import DEFAULT_RULES
from tilewright.ops.control_flow import ConditionOp, ForOp, IfOp, WhileOp, YieldOp


def emit_body(ctx: EmitContext, block: Block) -> tuple[list[str], str]:
    """Emit a region's block but its terminator; the parts yielded and the last LLVM block."""
    terminator = block.last_op
    assert terminator is not None
    for op in block.ops:
        if op is not terminator:
            ctx.emit_op(op)
    return _parts(ctx, terminator.operands), ctx.fn.block


def _parts(ctx: EmitContext, values: Sequence[SSAValue]) -> list[str]:
    return [part for value in values for part in ctx.parts(value)]


def _types(ctx: EmitContext, values: Sequence[SSAValue]) -> list[str]:
    return [part for value in values for part in ctx.part_types(value.type)]


def _bind(ctx: EmitContext, values: Sequence[SSAValue], names: Sequence[str]) -> None:
    """Name the parts of `values`, which are `names` one after the other."""
    position = 0
    for value in values:
        count = len(ctx.part_types(value.type))
        ctx.define_parts(value, names[position : position + count])
        position += count


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


@DEFAULT_RULES.register(ForOp)
def emit_for(ctx: EmitContext, op: ForOp) -> None:
    """Emit a counted loop."""
    fn = ctx.fn
    kind = llvm_type(op.lb.type)
    last = None if op.counts_within() else _last_to_step_from(ctx, op)
    starts = [ctx.value(op.lb), *_parts(ctx, op.iter_args)]
    types = [kind, *_types(ctx, op.iter_args)]
    if last is not None:
        starts.append(fn.value(f"icmp slt {kind} {starts[0]}, {ctx.value(op.ub)}"))
        types.append("i1")
    phis = _Phis(ctx, types, starts)
    header, body, end = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch(header)
    fn.place(header)
    names = phis.place()
    if last is None:
        goes_on = fn.value(f"icmp slt {kind} {names[0]}, {ctx.value(op.ub)}")
    else:
        *names, goes_on = names
    fn.branch_if(goes_on, body, end)
    fn.place(body)
    block = op.body.block
    _bind(ctx, block.args, names)
    yielded, block_end = emit_body(ctx, block)
    if last is not None:
        yielded.append(fn.value(f"icmp slt {kind} {names[0]}, {last}"))
    following = fn.value(f"add {kind} {names[0]}, {ctx.value(op.step)}")
    fn.branch(header)
    phis.close([following, *yielded], block_end)
    fn.place(end)
    _bind(ctx, op.results, names[1:])


def _last_to_step_from(ctx: EmitContext, op: ForOp) -> str:
    """The index from which on a step reaches the end: `ub - step`, or the least number.

    An index that is compared before it is stepped needs no more compares, and none wraps. The
    end is raised before the difference is taken: chosen behind it, the loops of causal attention
    took 130 registers, and with 128 two programs fit an SM (ptxas 13.0, 2026-11-23).
    """
    fn, kind = ctx.fn, llvm_type(op.lb.type)
    least = -(1 << (int(kind[1:]) - 1))
    high, step = ctx.value(op.ub), ctx.value(op.step)
    lowest = fn.value(f"add {kind} {step}, {least}")
    is_low = fn.value(f"icmp slt {kind} {high}, {lowest}")
    kept = fn.value(f"select i1 {is_low}, {kind} {lowest}, {kind} {high}")
    return fn.value(f"sub {kind} {kept}, {step}")


@DEFAULT_RULES.register(WhileOp)
def emit_while(ctx: EmitContext, op: WhileOp) -> None:
    """Emit a loop on a condition."""
    fn = ctx.fn
    phis = _Phis(ctx, _types(ctx, op.arguments), _parts(ctx, op.arguments))
    header, body, end = fn.new_label(), fn.new_label(), fn.new_label()
    fn.branch(header)
    fn.place(header)
    before = op.before_region.block
    _bind(ctx, before.args, phis.place())
    forwarded, _ = emit_body(ctx, before)
    fn.branch_if(forwarded[0], body, end)
    fn.place(body)
    after = op.after_region.block
    _bind(ctx, after.args, forwarded[1:])
    yielded, last = emit_body(ctx, after)
    fn.branch(header)
    phis.close(yielded, last)
    fn.place(end)
    _bind(ctx, op.results, forwarded[1:])


@DEFAULT_RULES.register(IfOp)
def emit_if(ctx: EmitContext, op: IfOp) -> None:
    """Emit a branch."""
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
    rows = zip(_types(ctx, op.results), taken, other, strict=True)
    names = [
        fn.value(f"phi {kind} [ {t}, %{taken_block} ], [ {o}, %{other_block} ]")
        for kind, t, o in rows
    ]
    _bind(ctx, op.results, names)


@DEFAULT_RULES.register(YieldOp, ConditionOp)
def emit_terminator(ctx: EmitContext, op: Operation) -> None:
    """The parent's rule reads the operands; nothing is emitted here."""
