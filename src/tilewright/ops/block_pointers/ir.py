"""Block pointers: a base, a shape, strides, and the offsets of one block."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from tilewright.ir.op import TileOp


@irdl_op_definition
class MakeTensorPtrOp(TileOp):
    """A block pointer: base, shape (i64), strides (i64), offsets (i32) and an `order` hint.

    The result is a pointer to the block's tile type. A T0 pass rewrites it to plain pointers.
    """

    name = "tt.make_tensor_ptr"
    base = operand_def()
    shape = var_operand_def()
    strides = var_operand_def()
    offsets = var_operand_def()
    order = prop_def(DenseArrayBase)
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())


@irdl_op_definition
class AdvanceOp(TileOp):
    """A block pointer moved by `offsets` elements per dimension."""

    name = "tt.advance"
    ptr = operand_def()
    offsets = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())
