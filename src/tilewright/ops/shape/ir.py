"""Ops that move elements without computing."""

from __future__ import annotations

from math import prod

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.op import (
    EXCHANGES,
    Array,
    ByHalvesOp,
    DerivedAddress,
    TileOp,
    ViewOp,
    require_one_element,
)
from tilewright.ir.types import shape_of


def _require_shape(op: TileOp, value: SSAValue, shape: tuple[int, ...]) -> None:
    """Refuse a value of another shape. *Raises*: VerifyException."""
    found = shape_of(value.type)
    if found != shape:
        raise VerifyException(f"{op.name}: a shape is {found}, expected {shape}")


@irdl_op_definition
class ExpandDimsOp(ViewOp):
    """`src` with a dimension of size 1 inserted at `axis`."""

    name = "tt.expand_dims"
    src = operand_def()
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())

    def verify_(self) -> None:
        """The new dimension is one of the result's, of extent 1."""
        super().verify_()
        shape, axis = shape_of(self.src.type), self.axis.value.data
        if not 0 <= axis <= len(shape):
            raise VerifyException(f"{self.name}: axis {axis} of a tile of {len(shape)} dimensions")
        _require_shape(self, self.result, (*shape[:axis], 1, *shape[axis:]))

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

    def verify_(self) -> None:
        """Dimensions that are not repeated keep their extent."""
        super().verify_()
        shape, wide = shape_of(self.src.type), shape_of(self.result.type)
        if len(shape) != len(wide) or any(
            a not in (1, b) for a, b in zip(shape, wide, strict=True)
        ):
            raise VerifyException(f"{self.name}: {shape} does not broadcast to {wide}")

    def source_dims(self) -> tuple[int, ...]:
        """The same ones."""
        return tuple(range(len(shape_of(self.src.type))))

    def reference(self, src: Array) -> Array:
        return np.broadcast_to(src, shape_of(self.result.type))


@irdl_op_definition
class ReshapeOp(ByHalvesOp):
    """`src` in row-major order under another shape; `allow_reorder` waives the order."""

    name = "tt.reshape"
    src = operand_def()
    allow_reorder = opt_prop_def(UnitAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())

    def verify_(self) -> None:
        """The elements keep their number and type."""
        require_one_element(self, (*self.operands, *self.results))
        shape, new = shape_of(self.src.type), shape_of(self.result.type)
        if prod(shape) != prod(new):
            raise VerifyException(f"{self.name}: {shape} has another number of elements than {new}")

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

    def verify_(self) -> None:
        """The order is a permutation, and the result's extents are the source's in it."""
        super().verify_()
        shape, order = shape_of(self.src.type), self.permutation()
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(f"{self.name}: {order} is no order of {len(shape)} dimensions")
        _require_shape(self, self.result, tuple(shape[dim] for dim in order))

    def source_dims(self) -> tuple[int, ...]:
        """Where the permutation puts each."""
        order = self.permutation()
        return tuple(order.index(dim) for dim in range(len(order)))

    def reference(self, src: Array) -> Array:
        return np.transpose(src, self.permutation())


@irdl_op_definition
class JoinOp(ByHalvesOp):
    """result[..., 0] = lhs, result[..., 1] = rhs."""

    name = "tt.join"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Two tiles of one shape and element, side by side in a new last dimension."""
        require_one_element(self, (*self.operands, *self.results))
        shape = shape_of(self.lhs.type)
        _require_shape(self, self.rhs, shape)
        _require_shape(self, self.result, (*shape, 2))

    def reference(self, lhs: Array, rhs: Array) -> Array:
        return np.stack([lhs, rhs], axis=-1)


@irdl_op_definition
class SplitOp(ByHalvesOp):
    """The inverse of join: src[..., 0] and src[..., 1]."""

    name = "tt.split"
    src = operand_def()
    out_lhs = result_def()
    out_rhs = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The last dimension, of extent 2, is gone; the elements keep their type."""
        require_one_element(self, (*self.operands, *self.results))
        shape = shape_of(self.out_lhs.type)
        _require_shape(self, self.out_rhs, shape)
        _require_shape(self, self.src, (*shape, 2))

    def reference(self, src: Array) -> tuple[Array, ...]:
        return src[..., 0], src[..., 1]


@irdl_op_definition
class CatOp(ByHalvesOp):
    """`lhs` followed by `rhs` along dimension 0, order kept."""

    name = "tt.cat"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Tiles that differ in dimension 0 alone; the elements keep their type."""
        require_one_element(self, (*self.operands, *self.results))
        first, *rest = shape_of(self.lhs.type)
        second, *others = shape_of(self.rhs.type)
        if rest != others:
            raise VerifyException(f"{self.name}: tiles of {(first, *rest)} and {(second, *others)}")
        _require_shape(self, self.result, (first + second, *rest))

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
        """The axis is one of the tile's, which keeps its shape and element type."""
        require_one_element(self, (*self.operands, *self.results))
        shape = shape_of(self.src.type)
        if not 0 <= self.axis.value.data < len(shape):
            raise VerifyException(f"{self.name}: axis {self.axis.value.data} of {shape}")
        _require_shape(self, self.result, shape)

    def reference(self, src: Array) -> Array:
        return np.flip(src, self.axis.value.data)
