"""Builds the pointer, mask and padding tiles that a structured access means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import (
    element_of,
    i1,
    i32,
    i64,
    is_float,
    pointer_to,
    shape_of,
    tile_of,
    width_bits,
)
from tilewright.ops.creation.ir import ConstantOp, MakeRangeOp, SplatOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, ExtSIOp
from tilewright.ops.memory.ir import PADDINGS, AddPtrOp
from tilewright.ops.shape.ir import BroadcastOp, ExpandDimsOp
from tilewright.passes.expand_structures import Structure
from tilewright.support.dataclass import dataclass

_SIGNED_LT, _SIGNED_GE = 2, 5


@dataclass(frozen=True)
class TileBuilder:
    """Inserts ops of T0 before one op, with its location."""

    before: Operation

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: dict[str, Attribute] | None = None,
        attributes: Mapping[str, Attribute] = MappingProxyType({}),
    ) -> SSAValue:
        """Insert one op and return its result."""
        op = build(cls, operands, (type_,), properties, location=self.before.location)
        op.attributes.update(attributes)
        block = self.before.parent
        assert block is not None
        block.insert_op_before(op, self.before)
        return op.results[0]

    def binary(self, name: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An integer op `arith.<name>` on equal types."""
        return self.emit(ELEMENTWISE[f"arith.{name}"], (lhs, rhs), lhs.type)

    def splat(self, scalar: SSAValue, shape: tuple[int, ...]) -> SSAValue:
        """A tile of one scalar."""
        return self.emit(SplatOp, (scalar,), tile_of(scalar.type, shape))

    def wide(self, value: SSAValue) -> SSAValue:
        """An integer scalar or tile as i64."""
        if width_bits(value.type) == 64:
            return value
        return self.emit(ExtSIOp, (value,), tile_of(i64, shape_of(value.type)))

    def constant(self, type_: Attribute, value: float) -> SSAValue:
        """A tile of one constant."""
        assert isinstance(type_, TensorType)
        plain = value if is_float(type_) else int(value)
        dense = DenseIntOrFPElementsAttr.from_list(type_, [plain])
        return self.emit(ConstantOp, (), type_, {"value": dense})

    def integer(self, value: int) -> SSAValue:
        """A constant of i32: a number modulo 32 bits."""
        low = (value + (1 << 31)) % (1 << 32) - (1 << 31)
        return self.emit(ConstantOp, (), i32, {"value": IntegerAttr(low, i32)})

    def sum_of(
        self,
        terms: Sequence[tuple[int, tuple[SSAValue, ...]]],
        scalar: Callable[[SSAValue], SSAValue],
    ) -> SSAValue:
        """Integer multiples of products of scalars, added up modulo 2^32; one alone is itself.

        `scalar` makes an i32 of each factor.
        """
        total: SSAValue | None = None
        for coefficient, factors in terms:
            term = None if coefficient == 1 and factors else self.integer(coefficient)
            for factor in factors:
                value = scalar(factor)
                term = value if term is None else self.binary("muli", term, value)
            assert term is not None
            total = term if total is None else self.binary("addi", total, term)
        return self.integer(0) if total is None else total

    def indices(self, start: SSAValue, size: int) -> SSAValue:
        """The tile start, start + 1, … of i32."""
        properties: dict[str, Attribute] = {
            "start": IntegerAttr(0, i32),
            "end": IntegerAttr(size, i32),
        }
        steps = self.emit(MakeRangeOp, (), tile_of(i32, (size,)), properties)
        return self.binary("addi", self.splat(start, (size,)), steps)

    def along(self, tile: SSAValue, dim: int, shape: tuple[int, ...]) -> SSAValue:
        """A 1-D tile laid along one dimension of `shape`."""
        element, current = element_of(tile.type), tile
        extents = list(shape_of(tile.type))
        for axis in range(len(shape)):
            if axis == dim:
                continue
            extents.insert(axis, 1)
            axis_attribute = {"axis": IntegerAttr(axis, i32)}
            type_ = tile_of(element, tuple(extents))
            current = self.emit(ExpandDimsOp, (current,), type_, dict(axis_attribute))
        if tuple(extents) == shape:
            return current
        return self.emit(BroadcastOp, (current,), tile_of(element, shape))

    def pointers(
        self, structure: Structure, indices: Sequence[SSAValue], shape: tuple[int, ...]
    ) -> SSAValue:
        """The pointers base + Σ index × stride over `shape`."""
        element = element_of(structure.block)
        pointer = self.splat(structure.base, shape)
        type_ = tile_of(pointer_to(element), shape)
        for dim, (index, stride) in enumerate(zip(indices, structure.strides, strict=True)):
            laid = self.along(self.wide(index), dim, shape)
            scaled = self.binary("muli", laid, self.splat(stride, shape))
            pointer = self.emit(AddPtrOp, (pointer, scaled), type_)
        return pointer

    def mask(
        self,
        structure: Structure,
        indices: Sequence[SSAValue],
        shape: tuple[int, ...],
        dims: Sequence[int],
    ) -> SSAValue | None:
        """Where the index is inside of the tensor along `dims`; None for no dimension."""
        total: SSAValue | None = None
        for dim in dims:
            size = shape_of(indices[dim].type)
            index, bound = self.wide(indices[dim]), self.wide(structure.shape[dim])
            kind = tile_of(i1, size)
            zero = self.constant(tile_of(i64, size), 0)
            low = self.emit(CmpIOp, (index, zero), kind, _predicate(_SIGNED_GE))
            limit = self.splat(bound, size)
            high = self.emit(CmpIOp, (index, limit), kind, _predicate(_SIGNED_LT))
            inside = self.along(self.binary("andi", low, high), dim, shape)
            total = inside if total is None else self.binary("andi", total, inside)
        return total

    def padding(self, structure: Structure, shape: tuple[int, ...], padding: int) -> SSAValue:
        """The tile that stands for elements out of bounds."""
        type_ = tile_of(element_of(structure.block), shape)
        is_nan = PADDINGS[padding] == "nan" and is_float(type_)
        return self.constant(type_, math.nan if is_nan else 0)


def _predicate(code: int) -> dict[str, Attribute]:
    return {"predicate": IntegerAttr(code, i64)}
