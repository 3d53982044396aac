"""What a fold of a matrix fetches: the rows that come.

A product of one row reads each weight once and waits for memory. The hardware's prefetcher ends
at each page, and where a vector is widened before it is used, fewer of the loads that follow are
under way while it waits. A fold across rows takes a piece of each, and the prefetcher does not see
the next one coming.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64

from tilewright.analysis.affine.stride import Stride
from tilewright.ir.effects import is_plain_read
from tilewright.ir.types import shape_of
from tilewright.machine.cpus import LINE_BYTES
from tilewright.targets.cpu.nests.addresses import pointee_bytes
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.loop_order import MemoryAccess, stride_along
from tilewright.targets.cpu.nests.separation import polynomial
from tilewright.targets.cpu.ops import PrefetchOp

BYTES_AHEAD = 8192
"""How far ahead rows are fetched.
Measured on Zen 5, 2026-11-23, one thread, `W @ x`, with fetches / without, GB/s: bf16 4096x4096 in
tiles of 4x1024 22 / 11, of 16x512 18 / 14, bf16 49152x576 38 / 33, f16 36 / 34; in the cache bf16
1000x1000 55 / 59. f32 49152x576 32 / 32: four bytes and more are not fetched."""

ROWS_AHEAD = 16
"""How many rows ahead a fold across rows fetches its piece of them.
Measured on Zen 5, 2026-11-23, one thread, busy, sums of columns of f32, with fetches / without,
GB/s: 4096x1000 in tiles of 64x64 66 / 32, of 16x256 91 / 56, of 64x1024 82 / 74, 8192x4096 13 / 5;
in the cache 1000x1000 88 / 74, 256x512 71 / 78. 32 and 64 rows ahead gained less."""

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


def fetch_rows(ev: Evaluator, accesses: Sequence[MemoryAccess], axis: int, extent: int) -> None:
    """Ask for pieces of rows that a fold along `axis` comes to; called inside of its loop.

    What lies that far behind the tile belongs to the next one, where a loop takes one after the
    other, or to nobody: no address is wrong to ask for.
    """
    if extent < ROWS_AHEAD:
        return
    for access in accesses:
        stride = _stride_of_pieces(ev, access, axis)
        if stride is None:
            continue
        here = ev.element(access.value, access.coords, False)
        there = ev.emit.advance(here, polynomial(ev, stride, ROWS_AHEAD))
        # A piece that does not begin at a line has part of one more.
        lines = ev.lanes * pointee_bytes(access.value) // LINE_BYTES + 1
        ev.emit.effect(PrefetchOp, (there,), (), {"num_lines": IntegerAttr(lines, i64)})


def _stride_of_pieces(ev: Evaluator, access: MemoryAccess, axis: int) -> Stride | None:
    """How many elements apart the rows lie of which an access loads pieces; None without any."""
    if not _reads_memory(access):
        return None
    if ev.lanes == 1 or ev.lane_stride(access.value, access.coords) != (1, False):
        return None
    stride = stride_along(ev.lowering.bufferization.structure, access, axis)
    return None if stride is None or stride.jumps or stride.as_int() in (0, 1) else stride


def _is_matrix(ev: Evaluator, access: MemoryAccess) -> bool:
    """Whether an access loads rows, one after the other, of narrow elements."""
    if not _reads_memory(access) or len(shape_of(access.value.type)) < 2:
        return False
    is_narrow = pointee_bytes(access.value) <= NARROW_BYTES
    loops = {loop for coord in access.coords for loop, _ in coord.terms}
    is_along_lanes = ev.lane_stride(access.value, access.coords) == (1, False)
    return is_narrow and is_along_lanes and len(loops - {LANE_LOOP}) > 0


def _reads_memory(access: MemoryAccess) -> bool:
    """Whether an access loads what the author stored, not a tile of the arena."""
    return access.op is not None and not access.is_store and is_plain_read(access.op)
