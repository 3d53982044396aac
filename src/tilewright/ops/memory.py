"""Pointers, loads and stores, block pointers and tensor descriptors."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import Effect, Resource, read, update, write
from tilewright.ir.op import DerivedAddress, ElementwiseOp, TileOp
from tilewright.ir.types import PointerType, element_of, is_pointer, shape_of

# Codes of the published attributes, by position.
CACHE_MODIFIERS = ("", "none", ".ca", ".cg", ".wb", ".cs", ".wt", ".cv")
EVICTION_POLICIES = ("", "normal", "evict_first", "evict_last")
PADDINGS = ("", "zero", "nan")


@irdl_op_definition
class AddPtrOp(ElementwiseOp):
    """ptr + offset elements; the offset is a signed integer of any width."""

    name = "tt.addptr"
    ptr = operand_def()
    offset = operand_def()
    result = result_def()
    traits = traits_def(Pure(), DerivedAddress())

    def verify_(self) -> None:
        """Pointer and offset have one shape and the result is the pointer's type."""
        if not is_pointer(self.ptr.type) or self.result.type != self.ptr.type:
            raise VerifyException("tt.addptr: result and first operand must be one pointer type")
        if shape_of(self.ptr.type) != shape_of(self.offset.type):
            raise VerifyException("tt.addptr: pointer and offset differ in shape")


@irdl_op_definition
class LoadOp(TileOp):
    """result[i] = *ptr[i] where mask[i], else other[i] (undefined without `other`).

    `cache` indexes CACHE_MODIFIERS, `evict` EVICTION_POLICIES (hints; no meaning). With a block
    pointer operand (≤ 3.8 programs) `boundaryCheck` and `padding` (0 zero, 1 NaN) apply.
    """

    name = "tt.load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    boundary_check = opt_prop_def(DenseArrayBase, prop_name="boundaryCheck")
    padding = opt_prop_def(IntegerAttr)
    cache = opt_prop_def(IntegerAttr)
    evict = opt_prop_def(IntegerAttr)
    is_volatile = opt_prop_def(prop_name="isVolatile")
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.GLOBAL, self.ptr),)

    def verify_(self) -> None:
        """Mask and other have the pointer's shape; the result its pointee."""
        element = element_of(self.ptr.type)
        if not isinstance(element, PointerType):
            raise VerifyException("tt.load: the operand is no pointer")
        for operand in (self.mask, self.other):
            if operand is not None and shape_of(operand.type) != shape_of(self.result.type):
                raise VerifyException("tt.load: mask, other and result differ in shape")


@irdl_op_definition
class StoreOp(TileOp):
    """*ptr[i] = value[i] where mask[i]."""

    name = "tt.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    boundary_check = opt_prop_def(DenseArrayBase, prop_name="boundaryCheck")
    cache = opt_prop_def(IntegerAttr)
    evict = opt_prop_def(IntegerAttr)

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.GLOBAL, self.ptr),)

    def verify_(self) -> None:
        """Mask has the value's shape."""
        if self.mask is not None and shape_of(self.mask.type) != shape_of(self.value.type):
            raise VerifyException("tt.store: mask and value differ in shape")


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

    def effects(self) -> tuple[Effect, ...]:
        return (read(Resource.GLOBAL, self.desc),)


@irdl_op_definition
class DescriptorStoreOp(TileOp):
    """Write `src` as the block at `indices`; elements out of bounds are dropped."""

    name = "tt.descriptor_store"
    desc = operand_def()
    src = operand_def()
    indices = var_operand_def()

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

    def effects(self) -> tuple[Effect, ...]:
        return (write(Resource.GLOBAL, self.desc),)
