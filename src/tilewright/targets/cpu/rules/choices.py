"""Choices between what a tile holds and what takes its place."""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.codegen.llvm_types import lanes_of
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.targets.cpu.ops import LoadOp, StoreOp
from tilewright.targets.cpu.rules import CPU_RULES


@CPU_RULES.register(SelectOp)
def _select(ctx: EmitContext, op: SelectOp) -> None:
    arms = ", ".join(_arm(ctx, arm) for arm in (op.lhs, op.rhs))
    ctx.define(op, ctx.fn.value(f"select {ctx.typed(op.condition)}, {arms}"))


def _arm(ctx: EmitContext, arm: SSAValue) -> str:
    """An operand, frozen where LLVM would make a masked store of the choice.

    LLVM 22 makes one of a choice between a vector and what was loaded from where it is stored.
    AVX2's cost an AMD core as much as single elements: maxima down the columns of 257x129 f32 in
    tiles of 64x64 took 24 µs and take 12 (one thread of a Zen 3, busy, 2026-11-27).
    """
    text = ctx.typed(arm)
    if not _stores_elements(ctx) or not _is_stored_back(arm):
        return text
    kind, _, value = text.rpartition(" ")
    return f"{kind} {ctx.fn.value(f'freeze {kind} {value}')}"


def _stores_elements(ctx: EmitContext) -> bool:
    """Whether masked stores are those of AVX."""
    features: frozenset[str] = getattr(ctx.target, "features", frozenset())
    return not features.isdisjoint(("avx", "avx2")) and "avx512f" not in features


def _is_stored_back(value: SSAValue) -> bool:
    """Whether a vector was loaded from where some vector is stored, neither under a mask."""
    load = value.owner
    if not isinstance(load, LoadOp) or lanes_of(value.type) is None or len(load.operands) > 1:
        return False
    return any(isinstance(use.operation, StoreOp) for use in load.operands[0].uses)
