"""What a kernel counts of its parts: cycles and runs, in an array that the driver reads.

A part's two numbers stand side by side, cycles first. The counter is read before they are added
to, so that no part pays for another one's numbers.
"""

from __future__ import annotations

from tilewright.codegen.context import EmitContext
from tilewright.targets.cpu.launch_ops import EndCountOp, StartCountOp
from tilewright.targets.cpu.rules import CPU_RULES
from tilewright.targets.cpu.runtime.cycle_counts import COUNTS_SYMBOL
from tilewright.targets.cpu.services import CpuServices


@CPU_RULES.register(StartCountOp)
def _start(ctx: EmitContext, op: StartCountOp) -> None:
    ctx.define(op, _now(ctx))


@CPU_RULES.register(EndCountOp)
def _end(ctx: EmitContext, op: EndCountOp) -> None:
    fn, part = ctx.fn, op.part.value.data
    taken = fn.value(f"sub i64 {_now(ctx)}, {ctx.value(op.start)}")
    for place, amount in ((2 * part, taken), (2 * part + 1, "0" if op.beside else "1")):
        at = fn.value(f"getelementptr i64, ptr @{COUNTS_SYMBOL}, i64 {place}")
        fn.emit(f"atomicrmw add ptr {at}, i64 {amount} monotonic")


def _now(ctx: EmitContext) -> str:
    """The counter that a program may read: of ARM's, the one with a steady rate."""
    assert isinstance(ctx.target, CpuServices)
    name = "steady" if "neon" in ctx.target.features else "cycle"
    return ctx.fn.value(f"call i64 @llvm.read{name}counter()")
