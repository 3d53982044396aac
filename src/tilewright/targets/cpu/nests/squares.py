"""Tiles that lie in the arena across the rows that they are read in: squares, transposed.

    x[c, r] is read along r, its tile lies [r][c]: c0 c1 c2 … next to each other

    8 vectors along r, of 8 c  ─►  transposed in registers  ─►  8 vectors along c, of 8 r

Lane by lane, each element takes a store of its own, and where it goes has to be computed. Rows that
a mask shows wholly are read without it, as in `full_chunks`, where all rows of a square are.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from tilewright.ir.types import is_pointer, width_bits
from tilewright.support.dataclass import replace
from tilewright.targets.cpu.nests.coordinates import LANE_LOOP, Coord, Coords
from tilewright.targets.cpu.nests.full_chunks import (
    Prefix,
    assume,
    find_prefixes,
    full_extent,
    is_prefix,
)
from tilewright.targets.cpu.nests.lane_loops import (
    Nest,
    Square,
    enter_run,
    lane_chunks,
    loop_over,
    runs,
)
from tilewright.targets.cpu.nests.loop_order import MemoryAccess, NestBody, stride_along
from tilewright.targets.cpu.nests.spreading import shuffle
from tilewright.targets.cpu.ops import StoreOp
from tilewright.targets.cpu.schedule.lowering import Lowering
from tilewright.targets.cpu.schedule.roots import Root, RootKind
from tilewright.targets.cpu.transposition import PART_BITS, transposed

# Chosen, not measured: it bounds the code, which is written once for each row of a square.
_MAX_OPS = 60
# Elements of 32 bits and more fill the machine's vectors; squares of narrower ones have as many
# rows as lanes, which 16 registers hold where lanes are those of 128 bits.
_WIDE_BITS = 32


def find_square(
    lowering: Lowering, roots: Sequence[Root], body: NestBody, lane_dim: int | None
) -> Square | None:
    """How a nest whose vectors lie across its buffer is done in squares; None where it is not."""
    root = roots[0]
    is_one = len(roots) == 1 and root.kind is RootKind.MATERIALIZE and root.strides is None
    if lane_dim is None or not is_one or body.num_ops > _MAX_OPS:
        return None
    if not all(_is_plain(lowering, access, lane_dim) for access in body.accesses):
        return None
    buffer = lowering.buffer(root.values[0])
    dims = [dim for dim, size in enumerate(root.space) if size > 1 and buffer.strides()[dim] == 1]
    bits = width_bits(buffer.element)
    if is_pointer(buffer.element) or bits % 8 or len(dims) != 1 or dims[0] == lane_dim:
        return None
    side = _most_rows(lowering, bits)
    while any(root.space[dim] % side for dim in (*dims, lane_dim)):
        side //= 2
    return Square(dims[0], side) if side * bits >= PART_BITS else None


def _is_plain(lowering: Lowering, access: MemoryAccess, lane_dim: int) -> bool:
    """Whether an access is the buffer's own, or that of a whole vector or of one element."""
    if access.op is None:
        return access.is_store
    stride = stride_along(lowering.bufferization.structure, access, lane_dim)
    return stride is not None and not stride.jumps and stride.as_int() in (0, 1)


def _most_rows(lowering: Lowering, bits: int) -> int:
    vector_bits = lowering.machine.vector_bytes * 8 if bits >= _WIDE_BITS else PART_BITS
    return vector_bits // bits


def emit_squares(nest: Nest, square: Square) -> None:
    """The loops over squares: rows around the runs of vectors along the lanes."""
    others = [dim for dim in nest.outer if dim != square.dim]
    loop_over(nest, others, lambda: _emit_rows(nest, square))


def _emit_rows(nest: Nest, square: Square) -> None:
    """The rows that masks show wholly, as far as they are those of whole squares, then the rest."""
    emit, size = nest.ev.emit, nest.space[square.dim]
    prefixes = _row_prefixes(nest, square.dim)
    end: int | SSAValue = 0
    if prefixes:
        extent = full_extent(nest.ev, prefixes, size)
        end = emit.integer("andi", extent, emit.index(-square.side))
        _emit_run(nest, square, (0, end), prefixes)
    _emit_run(nest, square, (end, size), ())


def _row_prefixes(nest: Nest, dim: int) -> tuple[Prefix, ...]:
    """The masks that hold for the first rows, and for all of their lanes or none."""
    found = find_prefixes(nest.ev, nest.body.accesses) or ()
    along = (Prefix(each.value, each.coords, dim) for each in found if each.loop is None)
    return tuple(each for each in along if is_prefix(nest.ev, each.value, each.coords, dim))


def _emit_run(
    nest: Nest,
    square: Square,
    bounds: tuple[int | SSAValue, int | SSAValue],
    prefixes: Sequence[Prefix],
) -> None:
    """One loop over rows, and those over vectors in it."""
    ev, emit, split = nest.ev, nest.ev.emit, nest.prefixes
    # Rows that a mask hides lanes of are few: one loop over vectors does.
    nest.prefixes = split if prefixes or not isinstance(bounds[0], SSAValue) else ()
    ev.variables[square.dim], _ = emit.open_loop()
    shown = [
        Prefix(each.value, _moved(each.coords, square.dim, row), each.loop)
        for each in prefixes
        for row in range(square.side)
    ]
    for chunk in lane_chunks(nest):
        for run in runs(nest, chunk):
            enter_run(nest, run, square.side)
            if shown:
                assume(ev, tuple(shown))
            ev.variables[LANE_LOOP], _ = emit.open_loop()
            _emit_square(nest, square)
            emit.close_loop((run.first, run.last, square.side))
    emit.close_loop((*bounds, square.side))
    nest.prefixes = split


def _emit_square(nest: Nest, square: Square) -> None:
    """All rows of a square, read before the first of its columns is written."""
    ev, emit, value = nest.ev, nest.ev.emit, nest.roots[0].values[0]
    buffer, coords, lane_dim = ev.lowering.buffer(value), nest.coords(), nest.lane_dim
    assert lane_dim is not None
    rows = [
        emit.extend(ev.lanes_of_element(value, _moved(coords, square.dim, row)), buffer.element)
        for row in range(square.side)
    ]
    first, pitch = ev.buffer_pointer(buffer, coords), buffer.strides()[lane_dim]
    part = PART_BITS // width_bits(buffer.element)

    def pick(low: SSAValue, high: SSAValue, pattern: list[int]) -> SSAValue:
        return shuffle(emit, low, high, pattern)

    for lane, column in enumerate(transposed(square.side, part, rows, pick)):
        emit.effect(StoreOp, (emit.advance(first, lane * pitch), column))


def _moved(coords: Coords, dim: int, row: int) -> Coords:
    """The same place so many rows further, where the variable of the rows' loop counts."""

    def moved(coord: Coord) -> Coord:
        scale = dict(coord.terms).get(dim, 0)
        return replace(coord, offset=coord.offset + scale * row)

    return tuple(map(moved, coords))
