"""Ops that move elements without computing."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, UnitAttr
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure

from tilewright.ir.op import EXCHANGES, Array, DerivedAddress, TileOp, ViewOp, require_one_element
from tilewright.ir.types import shape_of


@irdl_op_definition
class ExpandDimsOp(ViewOp):
    """`src` with a dimension of size 1 inserted at `axis`."""

    name = "tt.expand_dims"
    src = operand_def()
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())

    def source_dims(self) -> tuple[int, ...]:
        """All but the new one."""
        axis = self.axis.value.data
        return tuple(dim + (dim >= axis) for dim in range(len(shape_of(self.src.type))))

    def reference(self, src: Array) -> Array:
        return np.expand_dims(src, self.axis.value.data)


@irdl_op_definition
class BroadcastOp(ViewOp):
    """`src` with its dimensions of size 1 repeated to the result's shape (equal rank)."""

    name = "tt.broadcast"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())

    def source_dims(self) -> tuple[int, ...]:
        """The same ones."""
        return tuple(range(len(shape_of(self.src.type))))

    def reference(self, src: Array) -> Array:
        return np.broadcast_to(src, shape_of(self.result.type))


@irdl_op_definition
class ReshapeOp(TileOp):
    """`src` in row-major order under another shape; `allow_reorder` waives the order."""

    name = "tt.reshape"
    src = operand_def()
    allow_reorder = opt_prop_def(UnitAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())

    def verify_(self) -> None:
        """The elements keep their type."""
        require_one_element(self, (*self.operands, *self.results))

    def reference(self, src: Array) -> Array:
        return src.reshape(shape_of(self.result.type))


class PermutingOp(TileOp):
    """The facet of ops whose result is `src` with its dimensions permuted.

    *Semantics*: dimension d of the result is dimension order[d] of the source.
    """

    src = operand_def()
    order = prop_def(DenseArrayBase[IntegerType])
    result = result_def()

    def permutation(self) -> tuple[int, ...]:
        """The order as a tuple of source dimensions."""
        return tuple(int(d) for d in self.order.get_values())


@irdl_op_definition
class TransOp(PermutingOp, ViewOp):
    """`src` with its dimensions permuted: result dim d is source dim order[d]."""

    name = "tt.trans"
    traits = traits_def(Pure(), DerivedAddress())

    def source_dims(self) -> tuple[int, ...]:
        """Where the permutation puts each."""
        order = self.permutation()
        return tuple(order.index(dim) for dim in range(len(order)))

    def reference(self, src: Array) -> Array:
        return np.transpose(src, self.permutation())


@irdl_op_definition
class JoinOp(TileOp):
    """result[..., 0] = lhs, result[..., 1] = rhs."""

    name = "tt.join"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The elements keep their type."""
        require_one_element(self, (*self.operands, *self.results))

    def reference(self, lhs: Array, rhs: Array) -> Array:
        return np.stack([lhs, rhs], axis=-1)


@irdl_op_definition
class SplitOp(TileOp):
    """The inverse of join: src[..., 0] and src[..., 1]."""

    name = "tt.split"
    src = operand_def()
    out_lhs = result_def()
    out_rhs = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The elements keep their type."""
        require_one_element(self, (*self.operands, *self.results))

    def reference(self, src: Array) -> tuple[Array, ...]:
        return src[..., 0], src[..., 1]


@irdl_op_definition
class CatOp(TileOp):
    """`lhs` followed by `rhs` along dimension 0, order kept."""

    name = "tt.cat"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The elements keep their type."""
        require_one_element(self, (*self.operands, *self.results))

    def reference(self, lhs: Array, rhs: Array) -> Array:
        return np.concatenate([lhs, rhs], axis=0)


@irdl_op_definition
class FlipOp(TileOp):
    """`src` reversed along `axis`."""

    name = "tw.flip"
    src = operand_def()
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure(), EXCHANGES)

    def verify_(self) -> None:
        """The elements keep their type."""
        require_one_element(self, (*self.operands, *self.results))

    def reference(self, src: Array) -> Array:
        return np.flip(src, self.axis.value.data)
