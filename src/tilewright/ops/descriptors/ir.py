"""Tensor descriptors: a tensor in memory, read and written block by block."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import Effect, Resource, read, update, write
from tilewright.ir.op import DerivedAddress, TileOp
from tilewright.ir.types import DescriptorType, element_of


def _require_block(op: TileOp, descriptor: Attribute, tile: Attribute) -> None:
    """Hold a tile to the elements of a descriptor's block."""
    if not isinstance(descriptor, DescriptorType):
        return
    if element_of(descriptor.block) != element_of(tile):
        raise VerifyException(
            f"{op.name}: a tile of {element_of(tile)} and a block of {element_of(descriptor.block)}"
        )


@irdl_op_definition
class MakeTensorDescriptorOp(TileOp):
    """A tensor descriptor: base, shape (i32), strides (i64); `padding` 0 zero, 1 NaN."""

    name = "tt.make_tensor_descriptor"
    base = operand_def()
    shape = var_operand_def()
    strides = var_operand_def()
    padding = opt_prop_def(IntegerAttr)
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure(), DerivedAddress())


@irdl_op_definition
class DescriptorLoadOp(TileOp):
    """The block at `indices` (i32); elements out of bounds read as the padding."""

    name = "tt.descriptor_load"
    desc = operand_def()
    indices = var_operand_def()
    cache = opt_prop_def(IntegerAttr)
    evict = opt_prop_def(IntegerAttr)
    result = result_def()

    def verify_(self) -> None:
        """The tile has the elements of the block."""
        _require_block(self, self.desc.type, self.result.type)

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.GLOBAL, self.desc),)


@irdl_op_definition
class DescriptorStoreOp(TileOp):
    """Write `src` as the block at `indices`; elements out of bounds are dropped."""

    name = "tt.descriptor_store"
    desc = operand_def()
    src = operand_def()
    indices = var_operand_def()

    def verify_(self) -> None:
        """The tile has the elements of the block."""
        _require_block(self, self.desc.type, self.src.type)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.GLOBAL, self.desc),)


@irdl_op_definition
class DescriptorReduceOp(TileOp):
    """Combine `src` atomically into the block at `indices`; `kind` as in tt.atomic_rmw."""

    name = "tt.descriptor_reduce"
    kind = prop_def(IntegerAttr)
    desc = operand_def()
    src = operand_def()
    indices = var_operand_def()

    def verify_(self) -> None:
        """The tile has the elements of the block."""
        _require_block(self, self.desc.type, self.src.type)

    def effects(self) -> tuple[Effect, ...]:
        return (update(Resource.GLOBAL, self.desc),)


@irdl_op_definition
class DescriptorGatherOp(TileOp):
    """result[i, :] = row x_offsets[i], columns from y_offset."""

    name = "tt.descriptor_gather"
    desc = operand_def()
    x_offsets = operand_def()
    y_offset = operand_def()
    result = result_def()

    def verify_(self) -> None:
        """The tile has the elements of the block."""
        _require_block(self, self.desc.type, self.result.type)

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.GLOBAL, self.desc),)


@irdl_op_definition
class DescriptorScatterOp(TileOp):
    """Row x_offsets[i], columns from y_offset, = src[i, :]."""

    name = "tt.descriptor_scatter"
    desc = operand_def()
    x_offsets = operand_def()
    y_offset = operand_def()
    src = operand_def()

    def verify_(self) -> None:
        """The tile has the elements of the block."""
        _require_block(self, self.desc.type, self.src.type)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.GLOBAL, self.desc),)
