"""Bodies that run at once, each by warps of its own: one branch by warp, then a scope each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.partition import Partition, check_partitions

Body = Callable[[], None]


def emit_partitions(ctx: SimtContext, bodies: Sequence[tuple[Partition, Body]]) -> None:
    """Emit the body of each partition for its warps; warps of none go on behind all bodies.

    The branch is on a value that the lanes of a warp share, and all bodies end in one block.
    *Raises*: InternalError where two partitions have anything in common.
    """
    check_partitions([partition for partition, _ in bodies], ctx.target.num_barriers)
    fn, warp = ctx.fn, ctx.index.cta_warp(ctx.fn)
    end = fn.new_label()
    if any(partition.registers for partition, _ in bodies):
        ctx.target.start_registers(fn, _granted([partition for partition, _ in bodies]))
    for partition, emit_body in bodies:
        here, elsewhere = fn.new_label(), fn.new_label()
        inside = warp
        if partition.first_warp:
            inside = fn.value(f"sub i32 {warp}, {partition.first_warp}")
        count = partition.replicas * partition.warps
        fn.branch_if(fn.value(f"icmp ult i32 {inside}, {count}"), here, elsewhere)
        fn.place(here)
        if partition.registers:
            ctx.target.resize_registers(fn, partition.registers)
        if partition.is_elected:
            _elect(ctx, partition, inside, end)
        with ctx.open_scope(partition):
            emit_body()
        fn.branch(end)
        fn.place(elsewhere)
    fn.branch(end)
    fn.place(end)


def _granted(partitions: Sequence[Partition]) -> int:
    """The registers of one lane of every warp together; 0 where some warps keep those they have."""
    granted = [(p.replicas * p.warps, p.registers) for p in partitions]
    is_whole = sum(warps for warps, _ in granted) == partitions[0].cta_warps
    if not is_whole or not all(registers for _, registers in granted):
        return 0
    return sum(warps * registers for warps, registers in granted)


def _elect(ctx: SimtContext, partition: Partition, inside: str, end: str) -> None:
    """Let one thread of each group go on, a leader of its first warp; the others are done.

    `inside` is the warp, counted from the first of the partition.
    """
    fn = ctx.fn
    warp = inside
    if partition.replicas > 1:
        warp = fn.value(f"and i32 {inside}, {partition.warps - 1}")
    electing, here = fn.new_label(), fn.new_label()
    fn.branch_if(fn.value(f"icmp eq i32 {warp}, 0"), electing, end)
    fn.place(electing)
    fn.branch_if(ctx.target.elect(fn), here, end)
    fn.place(here)
