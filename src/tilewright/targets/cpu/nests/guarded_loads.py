"""Rows that are read again after a store of one number, which may lie in them.

    x = load(row); mean = sum(x) / width; store(mean_ptr, mean); store(out, x - mean)

The last nest reads `x` after the number was stored, where `x` must hold what it held before.
Kept in the arena, each row would be written and read once more for a store that almost never
hits it. So the addresses are compared where the store stands: only if the number goes into
the row is the row copied first, and from then on a flag says where it is read.
"""

from __future__ import annotations

from xdsl.ir import Block, Region, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import i1, i64
from tilewright.ops.control_flow import IfOp, YieldOp
from tilewright.ops.memory.ir import StoreOp
from tilewright.targets.cpu.nests import hazards, nest
from tilewright.targets.cpu.nests.addresses import address, pointee_bytes
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.lowering import Guard, Lowering
from tilewright.targets.cpu.schedule.roots import Root, RootKind, space_of


def guard_loads(lowering: Lowering, out: Block, store: StoreOp) -> None:
    """Before a store of one number: copy each row that it hits and that is read again."""
    for value in lowering.bufferization.guarded.get(store, ()):
        if not lowering.bufferization.is_stored(value):
            _guard(lowering, out, store, value)


def _guard(lowering: Lowering, out: Block, store: StoreOp, value: SSAValue) -> None:
    load = owner(value)
    assert load is not None
    ev = Evaluator(lowering, Emitter(out, store.location))
    hit = _hits(ev, store, load.operands[0])
    before = lowering.guards.get(value)
    needs_copy = hit
    if before is not None:
        is_there = ev.emit.integer("xori", before.is_copied, ev.emit.constant(i1, 1))
        needs_copy = ev.emit.integer("andi", hit, is_there)
    copy, nothing = Block(), Block()
    root = Root(RootKind.MATERIALIZE, load, (value,), space_of(value), 0)
    nest.emit_nest(lowering, copy, [root], is_detour=True)
    for block in (copy, nothing):
        block.add_op(build(YieldOp, location=store.location))
    regions = (Region(copy), Region(nothing))
    out.add_op(build(IfOp, (needs_copy,), (), None, regions, store.location))
    flag = hit if before is None else ev.emit.integer("ori", before.is_copied, hit)
    lowering.guards[value] = Guard(flag, lowering.buffer(value))


def _hits(ev: Evaluator, store: StoreOp, row: SSAValue) -> SSAValue:
    """An i1: a number is stored between the addresses of a row."""
    emit = ev.emit
    low, high = hazards.address_range(ev, row)
    start = address(ev, ev.lowering.scalar(store.ptr))
    end = emit.integer("addi", start, emit.constant(i64, pointee_bytes(store.ptr)))
    is_before_end = emit.compare("slt", start, high)
    return emit.integer("andi", is_before_end, emit.compare("sgt", end, low))
