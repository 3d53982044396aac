"""Vector accesses whose mask is the same in all lanes, on machines whose accesses take no mask.

    tl.load(x + row * n + i, mask=row < m)        a branch around a load of all lanes

Without AVX-512 a masked store costs an AMD core as much as single elements, and a masked access of
elements of 8 or 16 bits is a branch for each lane. Scatters are that with any mask.

Measured on Zen 3, 2026-11-27, one thread, busy, in turn: 512 tiles of 12 rows of 128, in blocks of
16 rows, copied in 2,600 to 290 us (f32) and 580 to 130 us (f16); rotary embeddings of f16 2.4 to
0.54 ms.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from tilewright.codegen.context import EmitContext
from tilewright.ir.types import shape_of
from tilewright.ops.creation.ir import SplatOp
from tilewright.targets.cpu.nests.masks import MASKED_ACCESSES
from tilewright.targets.cpu.services import CpuServices


def is_branch(ctx: EmitContext, mask: SSAValue | None) -> bool:
    """Whether an access with this mask is one without a mask behind a branch."""
    if mask is None:
        return False
    return not shape_of(mask.type) or (isinstance(mask.owner, SplatOp) and not _has_masks(ctx))


def _has_masks(ctx: EmitContext) -> bool:
    return isinstance(ctx.target, CpuServices) and ctx.target.features.issuperset(MASKED_ACCESSES)


def load_if(
    ctx: EmitContext, mask: SSAValue, kind: str, filler: str, load: Callable[[], str]
) -> str:
    """What `load` gives where a mask for which `is_branch` holds is true, else `filler`.

    The address is not touched where it is false.
    """
    fn, before = ctx.fn, ctx.fn.block
    then, end = fn.new_label(), fn.new_label()
    fn.branch_if(_condition(ctx, mask), then, end)
    fn.place(then)
    loaded, after = load(), fn.block
    fn.branch(end)
    fn.place(end)
    return fn.value(f"phi {kind} [ {loaded}, %{after} ], [ {filler}, %{before} ]")


def store_if(ctx: EmitContext, mask: SSAValue, store: Callable[[], None]) -> None:
    """Do `store` where a mask for which `is_branch` holds is true."""
    fn = ctx.fn
    then, end = fn.new_label(), fn.new_label()
    fn.branch_if(_condition(ctx, mask), then, end)
    fn.place(then)
    store()
    fn.branch(end)
    fn.place(end)


def _condition(ctx: EmitContext, mask: SSAValue) -> str:
    """The one i1 that a mask is in all lanes."""
    return ctx.value(mask.owner.src if isinstance(mask.owner, SplatOp) else mask)
