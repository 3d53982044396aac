"""What a fold along the rows of a matrix of narrow elements fetches: the rows that come.

A product of one row reads each weight once and waits for memory. The hardware's prefetcher ends
at each page, and where a vector is widened before it is used, fewer of the loads that follow are
under way while it waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64

from tilewright.ir.types import shape_of
from tilewright.machine.cpus import LINE_BYTES
from tilewright.ops.memory.ir import LoadOp
from tilewright.targets.cpu.nests.access import pointee_bytes
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.loop_order import MemoryAccess
from tilewright.targets.cpu.ops import PrefetchOp

BYTES_AHEAD = 8192
"""How far ahead rows are fetched.
Measured on Zen 5, 2026-11-23, one thread, `W @ x`, with fetches / without, GB/s: bf16 4096x4096 in
tiles of 4x1024 22 / 11, of 16x512 18 / 14, bf16 49152x576 38 / 33, f16 36 / 34; in the cache bf16
1000x1000 55 / 59. f32 49152x576 32 / 32: four bytes and more are not fetched."""

NARROW_BYTES = 2
"""Elements of this size or less are fetched.
Measured on Zen 5, 2026-11-23: see BYTES_AHEAD."""


def fetch_ahead(ev: Evaluator, accesses: Sequence[MemoryAccess]) -> None:
    """Ask for what loads of matrices read later; called inside of the loop along the lanes."""
    for access in accesses:
        if _is_matrix(ev, access):
            size = pointee_bytes(access.value)
            here = ev.element(access.value, access.coords, False)
            there = ev.emit.advance(here, BYTES_AHEAD // size)
            lines = IntegerAttr(-(-ev.lanes * size // LINE_BYTES), i64)
            ev.emit.effect(PrefetchOp, (there,), (), {"num_lines": lines})


def _is_matrix(ev: Evaluator, access: MemoryAccess) -> bool:
    """Whether an access loads rows, one after the other, of narrow elements."""
    if access.is_store or not isinstance(access.op, LoadOp) or len(shape_of(access.value.type)) < 2:
        return False
    is_narrow = pointee_bytes(access.value) <= NARROW_BYTES
    loops = {loop for coord in access.coords for loop, _ in coord.terms}
    is_along_lanes = ev.lane_stride(access.value, access.coords) == (1, False)
    return is_narrow and is_along_lanes and len(loops - {LANE_LOOP}) > 0
