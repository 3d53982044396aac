"""Which results are undefined when operands are, op by op.

An op without an entry gives wholly undefined results; that is right for scalars and safe for
the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tilewright.interp.rules.tables import TILE_RULES
from tilewright.interp.values import BOOL, NOWHERE
from tilewright.ir.op import Array, TileOp, ops_of
from tilewright.ops.creation.ir import SplatOp, UnsplatOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, ELEMENTWISE_OPS, SelectOp
from tilewright.ops.extern.ir import ExternElementwiseOp
from tilewright.ops.indexing.ir import GatherOp, SortOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.ops.shape import ir as shapes

Values = Sequence[Any]
Masks = Sequence["Array | None"]

_AND, _OR = ELEMENTWISE["arith.andi"], ELEMENTWISE["arith.ori"]
_SPECIAL = (_AND, _OR, SelectOp)


def _plain(mask: Array | None) -> Array:
    return NOWHERE if mask is None else mask


@TILE_RULES.taint.register(*(op for op in ELEMENTWISE_OPS if op not in _SPECIAL), AddPtrOp, HintOp)
@TILE_RULES.taint.register(ExternElementwiseOp)
def elementwise(_: Operation, values: Values, masks: Masks) -> Array:
    """An element is undefined where any operand is."""
    result = NOWHERE
    for mask in masks:
        result = result | _plain(mask)
    return result


@TILE_RULES.taint.register(SelectOp)
def select(_: Operation, values: Values, masks: Masks) -> Array:
    """The side that is not chosen does not matter."""
    condition, yes, no = masks
    return _plain(condition) | np.where(values[0], _plain(yes), _plain(no))


@TILE_RULES.taint.register(_AND, _OR)
def logical(operation: Operation, values: Values, masks: Masks) -> Array:
    """A defined false decides an `and`, a defined true an `or`."""
    lhs, rhs = map(_plain, masks)
    undefined = lhs | rhs
    if values[0].dtype != BOOL:
        return undefined
    deciding = isinstance(operation, _OR)
    decided = (~lhs & (values[0] == deciding)) | (~rhs & (values[1] == deciding))
    return undefined & ~decided


@TILE_RULES.taint.register(*ops_of(shapes), SplatOp, UnsplatOp)
def moved(operation: Operation, values: Values, masks: Masks) -> Array | tuple[Array, ...]:
    """Undefined elements move with their values."""
    assert isinstance(operation, TileOp)
    full = [
        np.broadcast_to(_plain(mask), np.shape(value))
        for mask, value in zip(masks, values, strict=True)
    ]
    return operation.reference(*full)


@TILE_RULES.taint.register(GatherOp)
def gathered(operation: Operation, values: Values, masks: Masks) -> Array:
    """An element is undefined where its index is or where it points."""
    assert isinstance(operation, GatherOp)
    src = np.broadcast_to(_plain(masks[0]), np.shape(values[0]))
    return _plain(masks[1]) | operation.reference(src, values[1])


@TILE_RULES.taint.register(DotOp)
def product(_: Operation, values: Values, masks: Masks) -> Array:
    """A row of `a` or a column of `b` with an undefined element is undefined."""
    a, b = (
        np.broadcast_to(_plain(mask), np.shape(value))
        for mask, value in zip(masks[:2], values[:2], strict=True)
    )
    return a.any(axis=-1, keepdims=True) | b.any(axis=-2, keepdims=True) | _plain(masks[2])


@TILE_RULES.taint.register(SortOp)
def sorted_rows(_: Operation, values: Values, masks: Masks) -> Array:
    """A row with an undefined element has no order."""
    rows = np.broadcast_to(_plain(masks[0]), np.shape(values[0]))
    return np.asarray(rows.any(axis=-1, keepdims=True))
