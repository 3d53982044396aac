"""Tiles out of nothing: constants, ranges, splats."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.op import Array, DerivedAddress, TileOp, ViewOp, require_one_element
from tilewright.ir.types import shape_of


@irdl_op_definition
class ConstantOp(TileOp):
    """A constant scalar, or a tile all of whose elements are one constant.

    `value` is an integer or float attribute; for a tile a dense attribute holding one value
    (a splat). Dense tiles with several values do not occur in kernels.
    """

    name = "arith.constant"
    value = prop_def()
    result = result_def()
    traits = traits_def(Pure(), ConstantLike())

    def splat_value(self) -> int | float:
        """The one value of the scalar or of every element; integers as stored (signed)."""
        value = self.value
        if isinstance(value, DenseIntOrFPElementsAttr):
            return value.get_values()[0]
        assert isinstance(value, IntegerAttr | FloatAttr)
        return value.value.data


def constant_of(value: SSAValue) -> int | float | None:
    """The number that a value is, or that every element of it is, where it is a constant."""
    op = value.owner
    return op.splat_value() if isinstance(op, ConstantOp) else None


@irdl_op_definition
class MakeRangeOp(TileOp):
    """The tile [start, end) of i32 along one dimension."""

    name = "tt.make_range"
    start = prop_def(IntegerAttr)
    end = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The result has end - start elements."""
        size = self.end.value.data - self.start.value.data
        if shape_of(self.result.type) != (size,):
            raise VerifyException(f"tt.make_range: {size} elements do not fit the type")

    def reference(self) -> Array:
        return np.arange(self.start.value.data, self.end.value.data, dtype=np.int32)


@irdl_op_definition
class SplatOp(ViewOp):
    """A tile all of whose elements are the scalar `src`."""

    name = "tt.splat"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())

    def source_dims(self) -> tuple[int, ...]:
        """None: a scalar has no dimension."""
        return ()

    def reference(self, src: Array) -> Array:
        return np.broadcast_to(src, shape_of(self.result.type))


def splatted(value: SSAValue) -> SSAValue | None:
    """The scalar that every element of a tile is; None where no splat says so."""
    op = value.owner
    return op.src if isinstance(op, SplatOp) else None


def splatted_constant(value: SSAValue) -> int | float | None:
    """`constant_of` a value, or of the scalar that every element of it is by a splat."""
    return constant_of(splatted(value) or value)


@irdl_op_definition
class UnsplatOp(TileOp):
    """The one element of a tile of size 1, as a scalar."""

    name = "tt.unsplat"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """The elements keep their type."""
        require_one_element(self, (*self.operands, *self.results))

    def reference(self, src: Array) -> Array:
        return src.reshape(())
