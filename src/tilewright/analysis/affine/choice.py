"""Rows that are chosen by a bound, as a mask would say it: `where(rows < M, rows, 0)`.

Tiles look such rows up one by one. Up to the bound they are consecutive; behind it they are some
row that is there, so that the load needs no mask. Where nothing looks at what is loaded for those,
it does not matter which one it is, and the access is one that ends at the bound.
"""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from tilewright.analysis.affine.access import AccessDim, Accesses
from tilewright.analysis.affine.expression import Expression
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import SelectOp
from tilewright.support.dataclass import replace

# By definition: of `i < n` and of `n > i` the number that is below the other one.
_BELOW = {"slt": 0, "sgt": 1}


def as_bounded(dim: AccessDim, accesses: Accesses) -> AccessDim | None:
    """A dimension whose rows are chosen as one that a bound ends; None for any other one.

    *Constraints*: nothing looks at what is accessed from its last `upper` on.
    """
    if dim.indices is None or not isinstance(dim.indices, OpResult):
        return None
    choice = dim.indices.op
    if not isinstance(choice, SelectOp):
        return None
    condition, rows, _ = choice.operands
    limit = _limit(condition, rows, accesses)
    start = _first_row(rows, accesses)
    if limit is None or start is None:
        return None
    upper = (*dim.upper, limit.minus(start))
    return replace(dim, start=dim.start.plus(start), indices=None, upper=upper)


def _limit(condition: SSAValue, rows: SSAValue, accesses: Accesses) -> Expression | None:
    """What rows are compared with, which they are below of where they are chosen."""
    compared = condition.op if isinstance(condition, OpResult) else None
    if not isinstance(compared, CmpIOp):
        return None
    place = _BELOW.get(compared.predicate_name())
    if place is None or compared.operands[place] is not rows:
        return None
    limit = accesses.tiles.of(compared.operands[1 - place]).uniform()
    return None if limit is None else accesses.scalars.resolve(limit)


def _first_row(rows: SSAValue, accesses: Accesses) -> Expression | None:
    """Where consecutive rows start; None for others."""
    tile = accesses.tiles.of(rows)
    start = tile.start()
    if len(tile.dims) != 1 or start is None or not tile.dims[0].is_linear():
        return None
    stride = tile.dims[0].stride
    is_consecutive = stride is not None and stride.as_int() == 1
    return accesses.scalars.resolve(start) if is_consecutive else None
