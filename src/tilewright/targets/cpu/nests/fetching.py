"""Emits what a nest fetches for later: rows at addresses that are computed before its loops.

Which rows, and why: `schedule/fetches.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.ir.types import shape_of
from tilewright.machine.cpus import LINE_BYTES
from tilewright.ops.elementwise.ir import BitcastOp, SelectOp
from tilewright.targets.cpu.nests import streaming
from tilewright.targets.cpu.nests.addresses import pointee_bytes
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP, constant_coords
from tilewright.targets.cpu.nests.emitter import Emitter
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.recompute import with_scalars_of
from tilewright.targets.cpu.ops import PrefetchOp
from tilewright.targets.cpu.schedule.fetches import Fetch, growth

# This row, what is made of it, the next row and this one's result are in use at once: where the
# first-level cache does not hold all four, rows are fetched into the second level. Chosen, not
# measured: where lines wait changes no result.
_NEAR_SHARE = 4


class Fetcher:
    """The fetches of one nest: addresses before its loops, a few lines with each vector."""

    def __init__(self, ev: Evaluator, block: Block, fetches: Sequence[Fetch]) -> None:
        self.ev = ev
        self.lanes = ev.lanes
        self.rows = [(fetch, _start(ev, block, fetch)) for fetch in fetches]

    def emit(self) -> None:
        """Ask for what belongs to the vector that is computed now."""
        ev = self.ev
        if ev.lanes != self.lanes or ev.limit is not None:
            return
        first = ev.variables[LANE_LOOP]
        for fetch, start in self.rows:
            properties = _properties(ev, fetch.pointer, fetch.is_write)
            ev.emit.effect(PrefetchOp, (ev.emit.advance(start, first),), (), properties)


def _properties(ev: Evaluator, pointer: SSAValue, is_write: bool) -> Mapping[str, Attribute]:
    size = pointee_bytes(pointer)
    lines = -(-ev.lanes * size // LINE_BYTES)
    properties: dict[str, Attribute] = {"num_lines": IntegerAttr(lines, i64)}
    if is_write:
        properties["is_write"] = UnitAttr()
    if _row_bytes(pointer) * _NEAR_SHARE > ev.lowering.machine.l1_bytes:
        properties["is_far"] = UnitAttr()
    return properties


def _row_bytes(pointer: SSAValue) -> int:
    return pointee_bytes(pointer) * max(shape_of(pointer.type))


def _start(ev: Evaluator, block: Block, fetch: Fetch) -> SSAValue:
    """The address from which a row is fetched."""
    start = _address(ev, block, fetch.pointer, is_next=not fetch.is_write)
    if fetch.instead is None or fetch.result is None:
        return start
    near = _address(ev, block, fetch.instead, is_next=False)
    if near.type != start.type:
        near = ev.emit.pure(BitcastOp, (near,), start.type)
    bypasses = streaming.exceeds_cache(ev, _row_bytes(fetch.result))
    sides = (start, near) if fetch.is_streamed else (near, start)
    return ev.emit.pure(SelectOp, (bypasses, *sides), start.type)


def _address(ev: Evaluator, block: Block, pointer: SSAValue, is_next: bool) -> SSAValue:
    """Where a row starts in this program or the next: its scalars once more, as they are there.

    In this program too: a row may be fetched before its scalars' turn has come.
    """
    emit = Emitter(block, ev.emit.location)

    def moved(op: Operation, value: SSAValue) -> SSAValue:
        step = growth(op) if is_next else 0
        return emit.integer("addi", value, emit.index(step)) if step else value

    there = with_scalars_of(ev.lowering, emit, pointer, moved, is_known=lambda value: False)
    origin = constant_coords((0,) * len(shape_of(pointer.type)))
    return there.element(pointer, origin, False)
