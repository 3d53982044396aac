"""Which tiles that a loop carries lie in the arena column by column.

    acc[c, r] += x[r, c]    in a loop, then    sum(acc, 1)

What is added is loaded along `c`, where x's elements are neighbours, and so are those of `acc` if
its columns are dense. Its sum along `r` adds up vectors then. With rows every vector would take its
elements from as many lines as it has lanes, of `acc` or of x.

Only tiles that nothing makes or reads but ops on their elements, reductions and control flow are
laid out so: all else may count on rows.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from tilewright.ir.op import AccumulatingOp, ElementwiseOp
from tilewright.ir.types import shape_of
from tilewright.ops.function import FuncOp
from tilewright.ops.reduction.ir import ReduceOp
from tilewright.targets.cpu.nests.loop_order import MemoryAccess, stride_along, survey
from tilewright.targets.cpu.nests.pieces import pieces_along
from tilewright.targets.cpu.nests.piecewise import are_long
from tilewright.targets.cpu.schedule.bufferization import Bufferization
from tilewright.targets.cpu.schedule.inline import owner
from tilewright.targets.cpu.schedule.roots import Root, RootKind, space_of
from tilewright.targets.cpu.schedule.sharing import needed_dense, sharing

_MIN_EXTENTS = 8, 4
"""Rows and columns from which a tile is turned. Chosen, not measured: a vector of f32; how a tile
lies changes no result."""


def turn_tiles(kernel: FuncOp, bufferization: Bufferization) -> None:
    """Fill in the tiles whose columns are dense, with all that may share their buffers."""
    groups = sharing(kernel)
    fixed = {groups.root(value) for value in needed_dense(kernel, (ReduceOp,))}
    loads: dict[SSAValue, list[set[int]]] = {}
    for value in groups.members():
        root, op = groups.root(value), owner(value)
        if isinstance(op, AccumulatingOp) or len(shape_of(value.type)) != 2:
            fixed.add(root)
        elif isinstance(op, ElementwiseOp):
            loads.setdefault(root, []).extend(_directions(bufferization, value))
    for value in groups.members():
        root = groups.root(value)
        extents = zip(shape_of(value.type), _MIN_EXTENTS, strict=True)
        if root in fixed or any(extent < least for extent, least in extents):
            continue
        if _run_down(loads.get(root, [])):
            bufferization.turned.add(value)


def _directions(bufferization: Bufferization, value: SSAValue) -> list[set[int]]:
    """For each load that a tile is computed of: the dimensions along which it moves by one."""
    op = owner(value)
    assert op is not None
    root = Root(RootKind.MATERIALIZE, op, (value,), space_of(value), 0)
    body = survey(bufferization, [root], {value})
    return [
        {dim for dim in range(2) if _moves_by_one(bufferization, access, dim)}
        for access in body.accesses
        if access.op is not None
    ]


def _moves_by_one(bufferization: Bufferization, access: MemoryAccess, loop: int) -> bool:
    stride = stride_along(bufferization.structure, access, loop)
    step = None if stride is None else stride.as_int()
    if step is not None:
        return step == 1
    pieces = pieces_along(bufferization, access.value, access.coords, loop)
    return pieces is not None and pieces.step == 1 and are_long(pieces)


def _run_down(directions: list[set[int]]) -> bool:
    """Whether loads run along columns, and none along rows."""
    return any(0 in each for each in directions) and not any(1 in each for each in directions)
