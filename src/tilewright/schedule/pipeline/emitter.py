"""Puts ops of T1 before an op: numbers, comparisons, and positions in rings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.ir.op import build
from tilewright.ir.types import i1
from tilewright.ops.creation.ir import ConstantOp, SplatOp
from tilewright.ops.elementwise.comparisons import CmpIOp
from tilewright.ops.elementwise.ir import ELEMENTWISE, SelectOp
from tilewright.support.dataclass import dataclass

EQUAL, SIGNED_LESS, UNSIGNED_GREATER, UNSIGNED_AT_LEAST = 0, 2, 8, 9
"""By definition: predicates as INTEGER_PREDICATES numbers them."""


@dataclass(frozen=True)
class Emitter:
    """Inserts ops before `before`, with the location of `at`."""

    before: Operation
    at: Operation

    def insert(self, op: Operation) -> Operation:
        """Insert an op."""
        block = self.before.parent
        assert block is not None
        block.insert_op_before(op, self.before)
        return op

    def emit(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue] = (),
        types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] | None = None,
    ) -> Operation:
        """Insert a new op."""
        return self.insert(build(cls, operands, types, properties, location=self.at.location))

    def value(
        self,
        cls: type[Operation],
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """Insert a new op of one result, which is returned."""
        return self.emit(cls, operands, [type_], properties).results[0]

    def number(self, type_: Attribute, value: int) -> SSAValue:
        """An integer constant."""
        return self.value(ConstantOp, (), type_, {"value": IntegerAttr(value, type_)})  # type: ignore[arg-type]  # integers and index

    def binary(self, name: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """`arith.<name>` of two values of one type."""
        return self.value(ELEMENTWISE[f"arith.{name}"], (left, right), left.type)

    def compare(self, predicate: int, left: SSAValue, right: SSAValue) -> SSAValue:
        """Whether two scalar integers compare so."""
        return self.value(CmpIOp, (left, right), i1, {"predicate": IntegerAttr(predicate, i64)})

    def select(self, condition: SSAValue, left: SSAValue, right: SSAValue) -> SSAValue:
        """One value or the other."""
        return self.value(SelectOp, (condition, left, right), left.type)

    def splat(self, scalar: SSAValue, type_: Attribute) -> SSAValue:
        """A tile of one scalar."""
        return self.value(SplatOp, (scalar,), type_)

    def advanced(self, slot: SSAValue, steps: int, slots: int) -> SSAValue:
        """The slot that is `steps` behind another in a ring; `ring_positions` knows this form."""
        moved = self.binary("addi", slot, self.number(slot.type, steps))
        size = self.number(slot.type, slots)
        is_past = self.compare(UNSIGNED_AT_LEAST, moved, size)
        return self.select(is_past, self.binary("subi", moved, size), moved)
