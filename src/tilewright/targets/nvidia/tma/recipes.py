"""What the launch must compute to describe a tensor: scalars as expressions over its arguments.

A descriptor whose address, shape and strides depend on the kernel's arguments alone is made by
the launch, so that no program has to make it. `targets/nvidia/tensor_map.py` evaluates the
expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from tilewright.ir.types import PointerType, element_of, is_pointer, storage_bytes, width_bits
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.debug.ir import HintOp
from tilewright.ops.function import is_argument
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.runtime.launch_numbers import LaunchNumber
from tilewright.support.dataclass import dataclass

# Chosen, not measured: an address that takes more arithmetic is left to the program.
_MAX_DEPTH = 16
_KINDS = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.divsi": "div",
    "arith.remsi": "rem",
    "arith.minsi": "min",
    "arith.maxsi": "max",
    "arith.extsi": "signed",
    "arith.trunci": "signed",
    "arith.extui": "unsigned",
    AddPtrOp.name: "pointer",
}

Leaf: TypeAlias = "Callable[[SSAValue], LaunchNumber | None]"
Known: TypeAlias = "dict[SSAValue, LaunchNumber]"


def expression_of(
    value: SSAValue, leaf: Leaf = lambda _: None, known: Known | None = None
) -> LaunchNumber | None:
    """A scalar as an expression over the kernel's arguments; None where it is none.

    `leaf` may say what other scalars are. What was found is added to `known`, so that scalars of
    several expressions are one object.
    """
    return _Expressions(leaf, {} if known is None else known).of(value, 0)


@dataclass(frozen=True)
class _Expressions:
    leaf: Leaf
    known: Known

    def of(self, value: SSAValue, depth: int) -> LaunchNumber | None:
        if value in self.known:
            return self.known[value]
        found = self._of(value, depth)
        if found is not None:
            self.known[value] = found
        return found

    def _of(self, value: SSAValue, depth: int) -> LaunchNumber | None:
        if isinstance(value, BlockArgument):
            is_slot = is_argument(value)
            return ("slot", value.index, _bits(value)) if is_slot else self.leaf(value)
        assert isinstance(value, OpResult)
        op = value.op
        number = constant_of(value)
        if number is not None:
            is_integer = isinstance(value.type, IntegerType)
            return ("constant", int(number)) if is_integer else None
        if isinstance(op, HintOp):
            return self.of(op.src, depth)
        kind = _KINDS.get(op.name)
        if kind is None:
            return self.leaf(value)
        if depth > _MAX_DEPTH:
            return None
        operands: list[LaunchNumber] = []
        for operand in op.operands:
            found = self.of(operand, depth + 1)
            if found is None:
                return None
            operands.append(found)
        if kind == "pointer":
            size = storage_bytes(_pointee(op.operands[0]))
            return ("add", 64, operands[0], ("mul", 64, operands[1], ("constant", size)))
        if kind == "unsigned":
            return ("unsigned", width_bits(op.operands[0].type), *operands)
        return (kind, _bits(value), *operands)


def _bits(value: SSAValue) -> int:
    return 64 if is_pointer(value.type) else width_bits(value.type)


def _pointee(pointer: SSAValue) -> Attribute:
    type_ = element_of(pointer.type)
    assert isinstance(type_, PointerType)
    return type_.pointee
