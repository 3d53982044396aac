"""Histograms: counters in shared memory that threads add to in one step."""

from __future__ import annotations

from tilewright.codegen.llvm_types import llvm_type
from tilewright.codegen.simt.context import SimtContext, element_type
from tilewright.codegen.simt.flow import only_where
from tilewright.codegen.simt.places import owners, read_tile, write_tile
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.rules.memory import both
from tilewright.codegen.simt.shared import shared_pointer
from tilewright.ir.encoding import layout_of
from tilewright.ir.types import i32, shape_of
from tilewright.ops.indexing.ir import HistogramOp
from tilewright.schedule.rearrangements import bin_places
from tilewright.schedule.scratch import scratch_offset


@SIMT_RULES.register(HistogramOp)
def _histogram(ctx: SimtContext, op: HistogramOp) -> None:
    layout, places = layout_of(op.result.type), bin_places(op)
    offset = scratch_offset(op)
    write_tile(ctx, i32, layout, places, offset, ["0"] * layout.num_registers)
    ctx.scope.barrier()
    source = layout_of(op.src.type)
    own = owners(ctx, source)
    masks = [None] * source.num_registers if op.mask is None else ctx.registers(op.mask)
    unique: dict[int, tuple[str, str | None]] = {}
    rows = zip(source.unique_registers(), ctx.registers(op.src), masks, strict=True)
    for place, name, mask in rows:
        unique.setdefault(place, (name, mask))
    for name, mask in unique.values():
        _count(ctx, op, name, both(ctx, own, mask), offset)
    ctx.scope.barrier()
    ctx.define_tile(op.result, read_tile(ctx, i32, layout, places, offset))


def _count(ctx: SimtContext, op: HistogramOp, name: str, mask: str | None, offset: int) -> None:
    """Add one to the counter of a value, if there is one."""
    fn = ctx.fn
    kind = llvm_type(element_type(op.src.type))
    (bins,) = shape_of(op.result.type)
    is_inside = _is_below(ctx, kind, name, bins)
    with only_where(ctx, both(ctx, mask, is_inside)):
        index = _as_i32(ctx, kind, name)
        byte = fn.value(f"shl i32 {index}, 2")
        pointer = shared_pointer(fn, fn.value(f"add i32 {byte}, {ctx.scope.shared_byte(offset)}"))
        fn.emit(f"atomicrmw add ptr addrspace(3) {pointer}, i32 1 monotonic")


def _is_below(ctx: SimtContext, kind: str, name: str, bins: int) -> str | None:
    """Whether a value is one of the bins, i1; as unsigned, so that negative ones are not."""
    bits = int(kind[1:])
    signed = 1 << (bits - 1)
    if bins >= signed:  # every value that is not negative
        return ctx.fn.value(f"icmp sge {kind} {name}, 0")
    return ctx.fn.value(f"icmp ult {kind} {name}, {bins}")


def _as_i32(ctx: SimtContext, kind: str, name: str) -> str:
    if kind == "i32":
        return name
    return ctx.fn.value(f"{'trunc' if kind == 'i64' else 'zext'} {kind} {name} to i32")
