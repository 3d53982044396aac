"""Pointers, loads and stores, block pointers and tensor descriptors."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.ir.effects import Effect, Resource, read, write
from tilewright.ir.op import ACCESSES, DerivedAddress, ElementwiseOp, PointwiseOp, TileOp
from tilewright.ir.types import PointerType, element_of, i1, is_integer, is_pointer, shape_of

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
        if not is_integer(self.offset.type):
            raise VerifyException(f"tt.addptr: {element_of(self.offset.type)} is no integer")


@irdl_op_definition
class LoadOp(PointwiseOp):
    """result[i] = *ptr[i] where mask[i], else other[i] (undefined without `other`).

    `cache` indexes CACHE_MODIFIERS, `evict` EVICTION_POLICIES (hints; no meaning). With a block
    pointer operand (≤ 3.8 programs) `boundaryCheck` and `padding` (0 zero, 1 NaN) apply.
    """

    name = "tt.load"
    traits = traits_def(ACCESSES)
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
        values = (self.result,) if self.other is None else (self.result, self.other)
        _verify_access(self, self.ptr, values, self.mask)


def is_volatile(load: LoadOp) -> bool:
    """Whether a load is to be made each time, and as written."""
    flag = load.is_volatile
    return flag is not None and not (isinstance(flag, IntegerAttr) and flag.value.data == 0)


@irdl_op_definition
class StoreOp(TileOp):
    """*ptr[i] = value[i] where mask[i]."""

    name = "tt.store"
    traits = traits_def(ACCESSES)
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
        _verify_access(self, self.ptr, (self.value,), self.mask)


def _verify_access(
    op: TileOp, pointer: SSAValue, values: Sequence[SSAValue], mask: SSAValue | None
) -> None:
    """What is accessed is what the pointer points to; a mask is of i1."""
    element = element_of(pointer.type)
    if not isinstance(element, PointerType):
        raise VerifyException(f"{op.name}: the operand is no pointer")
    for value in values:
        if element_of(value.type) != element_of(element.pointee):
            raise VerifyException(
                f"{op.name}: {element_of(value.type)} is not what {element} points to"
            )
    if mask is not None and element_of(mask.type) != i1:
        raise VerifyException(f"{op.name}: a mask of {element_of(mask.type)} is no i1")
