"""Which loads run across the rows that a nest writes: they go through the arena.

    x[r, c] lies row by row, out[c, r] is written row by row

One vector of what is written takes elements from as many rows of x as it has lanes. Lines of x
would be read once for each of their elements, and where rows lie a power of two apart, in which
all of them share a few sets of the first-level cache, they come from memory each time. So the
tile is read along its rows into the arena first, where all of it is near, and where it lies as it
is written.

Measured on Zen 5, 2026-11-23, one thread, busy: transposing 2048x2048 f32 in tiles of 64x64 took 23
ms in one nest, and 9 ms this way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import SSAValue

from tilewright.ir.effects import global_access
from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import shape_of
from tilewright.support.worklist import once
from tilewright.targets.cpu.nests.loop_order import MemoryAccess, stride_along, survey
from tilewright.targets.cpu.schedule.bufferization import Bufferization
from tilewright.targets.cpu.schedule.inline import is_inline
from tilewright.targets.cpu.schedule.roots import Root, RootKind, reshaped_from

_MIN_EXTENT = 8
"""Rows and columns from which a detour pays. Chosen, not measured: half a line of f32; where a
tile waits changes no result."""


def transposed_loads(
    bufferization: Bufferization, roots: Sequence[Root]
) -> Iterator[tuple[SSAValue, bool]]:
    """The tiles that a nest of stores loads along another dimension than it writes.

    And whether it reads a tile down its columns, which then had better be dense.
    """
    if any(root.kind is not RootKind.STORE for root in roots):
        return
    space = roots[0].space
    if sum(extent >= _MIN_EXTENT for extent in space) < 2:
        return
    body = survey(bufferization, roots, set())
    written = {_row(bufferization, each, space) for each in body.accesses if each.is_store}
    along = written.pop()
    if along is None or written:
        return
    for access in body.accesses:
        if access.op is None or access.is_store:
            continue
        if _crosses(bufferization, access, space, along):
            value = access.op.results[0]
            yield value, _is_down(access, along) and _is_read_by_element(value)


def _crosses(
    bufferization: Bufferization, access: MemoryAccess, space: tuple[int, ...], along: int
) -> bool:
    """Whether a load moves from row to row along `along`, and in its row along another loop."""
    stride = stride_along(bufferization.structure, access, along)
    if stride is not None and stride.as_int() in (0, 1):
        return False
    return _row(bufferization, access, space) is not None


def _row(bufferization: Bufferization, access: MemoryAccess, space: tuple[int, ...]) -> int | None:
    """The loop along which an access moves from one element to the next."""
    for dim, extent in enumerate(space):
        stride = stride_along(bufferization.structure, access, dim)
        if extent >= _MIN_EXTENT and stride is not None and stride.as_int() == 1:
            return dim
    return None


def _is_down(access: MemoryAccess, along: int) -> bool:
    """Whether a loop goes down the columns of a matrix."""
    return len(access.coords) == 2 and dict(access.coords[0].terms).get(along, 0) == 1


def _is_read_by_element(value: SSAValue) -> bool:
    """Whether nothing that reads a matrix counts on rows."""
    pending = [value]
    for tile in once(pending):
        if min(shape_of(tile.type)) < _MIN_EXTENT:
            return False
        for use in tile.uses:
            op, access = use.operation, global_access(use.operation)
            if (access is not None and not access.reads) or isinstance(op, ElementwiseOp):
                continue
            others = [result for result in op.results if is_inline(result)]
            if not others or any(reshaped_from(other) is not None for other in others):
                return False
            pending += others
    return True
