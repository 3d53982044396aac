"""Arrivals at mbarriers by the warps of a role, and by its threads behind their copies."""

from __future__ import annotations

from tilewright.codegen.simt.context import SimtContext

_ARRIVE = "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p mbarrier.arrive.shared::cta.b64 _, [$0]; }"
# At the same mbarrier of the program of rank $2. Not `.release.cluster`, which fences all memory in
# every step: a third of the speed of a product (H200, 2026-11-20). What it would order are reads by
# products that the warp has waited for.
_ARRIVE_THERE = (
    "{ .reg .pred p; .reg .b32 there; setp.ne.b32 p, $1, 0; "
    "mapa.shared::cluster.u32 there, $0, $2; "
    "@p mbarrier.arrive.shared::cluster.b64 _, [there]; }"
)
# Source: PTX ISA 8.8, "cp.async.mbarrier.arrive": with noinc each arrival is one of the count.
_ARRIVE_BEHIND_COPIES = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];"


def arrive_by_warps(
    ctx: SimtContext, barrier: str, condition: str | None, programs: int = 1
) -> None:
    """A lane of each warp arrives, without a branch, which would part the lanes of the warp.

    In a cluster lane r arrives at the mbarrier of the program of rank r.
    """
    fn = ctx.fn
    if ctx.scope.partition.is_elected and programs == 1:
        arrives = "true"  # the one thread of the role, whichever lane it is
    else:
        arrives = fn.prologue_value(f"icmp ult i32 {ctx.index.lane}, {programs}")
    if condition is not None:
        arrives = fn.value(f"and i1 {arrives}, {condition}")
    flag = fn.value(f"zext i1 {arrives} to i32")
    address = fn.value(f"ptrtoint {barrier} to i32")
    text, constraints, arguments = _ARRIVE, "r,r", f"i32 {address}, i32 {flag}"
    if programs > 1:
        rank = fn.prologue_value(f"and i32 {ctx.index.lane}, {programs - 1}")
        text, constraints, arguments = _ARRIVE_THERE, "r,r,r", f"{arguments}, i32 {rank}"
    call = f'call void asm sideeffect "{text}", "{constraints},~{{memory}}"'
    fn.emit(f"{call}({arguments}) convergent nounwind")


def arrive_behind_copies(ctx: SimtContext, barrier: str) -> None:
    """Each thread arrives when its copies so far are there; the count has all of them."""
    address = ctx.fn.value(f"ptrtoint {barrier} to i32")
    call = f'call void asm sideeffect "{_ARRIVE_BEHIND_COPIES}", "r,~{{memory}}"'
    ctx.fn.emit(f"{call}(i32 {address}) convergent nounwind")
