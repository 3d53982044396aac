"""Which part of its operands an op needs for a part of its results, by the dim that is cut.

`transfer(op, dim)` is the dim along which each operand is cut where the op's results are cut
along `dim`; WHOLE where all of an operand is needed. An op without a row cannot be cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Final

from xdsl.ir import Attribute, Operation

from tilewright.ir.op import ElementwiseOp
from tilewright.ir.types import shape_of
from tilewright.ops.creation.ir import SplatOp
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.matmul.ir import DotOp
from tilewright.ops.memory.ir import LoadOp, StoreOp
from tilewright.ops.reduction.ir import ReduceOp, ScanOp
from tilewright.ops.shape.ir import (
    BroadcastOp,
    ExpandDimsOp,
    JoinOp,
    ReshapeOp,
    SplitOp,
    TransOp,
)

WHOLE: Final = None
Dim = int | None
Dims = tuple[Dim, ...]
Transfer = Callable[[Operation, int], Dims | None]


def transfer(op: Operation, dim: int) -> Dims | None:
    """The dims of the operands for results that are cut along `dim`; None where that cannot be.

    A dim of extent 1 is never cut: it is the same for all parts.
    """
    rule = _RULES.get(type(op))
    if rule is None and isinstance(op, ElementwiseOp):
        rule = _alike
    if rule is None:
        return None
    dims = rule(op, dim)
    if dims is None:
        return None
    return tuple(_cut(value.type, d) for value, d in zip(op.operands, dims, strict=True))


def _cut(type_: Attribute, dim: Dim) -> Dim:
    shape = shape_of(type_)
    return WHOLE if dim is None or not shape or shape[dim] == 1 else dim


def result_dim(op: Operation, operand: int, dim: int) -> int | None:
    """The dim along which results are cut where one operand is; None where that cannot be."""
    for candidate in range(max((len(shape_of(r.type)) for r in op.results), default=0)):
        dims = transfer(op, candidate)
        if dims is not None and dims[operand] == dim:
            return candidate
    return None


def _alike(op: Operation, dim: int) -> Dims:
    return (dim,) * len(op.operands)


def _nothing(op: Operation, dim: int) -> Dims:
    return (WHOLE,) * len(op.operands)


def _dot(op: Operation, dim: int) -> Dims | None:
    rank = len(shape_of(op.results[0].type))
    if dim == rank - 2:
        return (dim, WHOLE, dim)
    return (WHOLE, dim, dim) if dim == rank - 1 else (dim, dim, dim)


def _expand_dims(op: Operation, dim: int) -> Dims | None:
    assert isinstance(op, ExpandDimsOp)
    axis = op.axis.value.data
    return None if dim == axis else (dim - (axis < dim),)


def _trans(op: Operation, dim: int) -> Dims:
    assert isinstance(op, TransOp)
    return (op.permutation()[dim],)


def _reshape(op: Operation, dim: int) -> Dims | None:
    """A dimension that both shapes have, with as many elements before it in both."""
    assert isinstance(op, ReshapeOp)
    before, after = shape_of(op.src.type), shape_of(op.result.type)
    if op.allow_reorder is not None:
        return None
    same = (d for d, extent in enumerate(before) if extent == after[dim])
    found = next((d for d in same if prod(before[:d]) == prod(after[:dim])), None)
    return None if found is None else (found,)


def _reduce(op: Operation, dim: int) -> Dims:
    assert isinstance(op, ReduceOp)
    return (dim + (op.axis.value.data <= dim),) * len(op.operands)


def _scan(op: Operation, dim: int) -> Dims | None:
    assert isinstance(op, ScanOp)
    return None if dim == op.axis.value.data else _alike(op, dim)


def _join(op: Operation, dim: int) -> Dims | None:
    return None if dim == len(shape_of(op.operands[0].type)) else _alike(op, dim)


_RULES: Mapping[type[Operation], Transfer] = MappingProxyType({
    DotOp: _dot,
    ExpandDimsOp: _expand_dims,
    BroadcastOp: _alike,
    TransOp: _trans,
    ReshapeOp: _reshape,
    ReduceOp: _reduce,
    ScanOp: _scan,
    JoinOp: _join,
    SplitOp: _alike,
    SplatOp: _nothing,
    HintOp: _alike,
    LoadOp: _alike,
    StoreOp: _alike,
})  # fmt: skip
