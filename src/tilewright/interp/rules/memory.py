"""Loads and stores through pointers and block pointers."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.interp.access import Lanes, lanes_of, read, require_defined, write
from tilewright.interp.blocks import BlockPointer
from tilewright.interp.code import PlainFunction, Preparation
from tilewright.interp.program import Program
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.interp.values import BOOL, cast_number, dtype_of, memory_dtype_of, undefined
from tilewright.ir import types as ir
from tilewright.ir.op import Array
from tilewright.ops.block_pointers.ir import AdvanceOp, MakeTensorPtrOp
from tilewright.ops.memory.ir import PADDINGS, LoadOp, StoreOp
from tilewright.support.dataclass import dataclass


class OptionalOperand:
    """An operand that an op may not have."""

    def __init__(self, preparation: Preparation, value: SSAValue | None) -> None:
        self._slot = None if value is None else preparation.slot(value)

    def value(self, program: Program) -> Array | None:
        """Its value, or None without the operand."""
        return None if self._slot is None else program.values[self._slot]  # type: ignore[return-value]

    def poison(self, program: Program) -> Array | None:
        """The mask of its undefined elements."""
        return None if self._slot is None else program.poison[self._slot]


def integers_of(attribute: Attribute | None) -> tuple[int, ...]:
    """The integers of a dense array attribute; () without one."""
    if not isinstance(attribute, DenseArrayBase):
        return ()
    return tuple(int(value) for value in attribute.get_values())


def pointee_of(type_: Attribute) -> Attribute:
    """What the elements of a pointer type point to."""
    element = ir.element_of(type_)
    assert isinstance(element, ir.PointerType)
    return element.pointee


@dataclass(frozen=True)
class Element:
    """How elements of one type lie in memory and what they become as values."""

    dtype: np.dtype
    memory_dtype: np.dtype
    is_pointer: bool

    @classmethod
    def of(cls, type_: Attribute) -> Element:
        """The element of a scalar, tile or vector type."""
        element = ir.element_of(type_)
        is_pointer = isinstance(element, ir.PointerType)
        return cls(dtype_of(element), memory_dtype_of(element), is_pointer)


def load_lanes(program: Program, lanes: Lanes, element: Element) -> Array:
    """The values at the lanes, as values of the interpreter."""
    values = read(program, lanes, element.memory_dtype)
    if element.dtype == BOOL:
        return values != 0
    return program.machine.memory.translate(values) if element.is_pointer else values


def store_lanes(program: Program, lanes: Lanes, value: Array, element: Element) -> None:
    """Write the elements of `value` that `lanes` picked."""
    flat = np.broadcast_to(value, lanes.shape).ravel()
    chosen = flat if lanes.positions is None else flat[lanes.positions]
    write(program, lanes, np.atleast_1d(chosen).astype(element.memory_dtype, copy=False))


def gather_values(
    program: Program,
    addresses: Array,
    mask: Array | None,
    fill: tuple[Array | None, Array | None],
    element: Element,
) -> Array:
    """A masked load; masked-off elements come from `fill`, a value and its poison."""
    lanes = lanes_of(addresses, mask)
    values = load_lanes(program, lanes, element)
    if lanes.positions is None:
        return values.reshape(lanes.shape)
    other, poison = fill
    if other is None:
        result = undefined(lanes.shape, element.dtype)
        poison = np.ones(lanes.shape, np.bool_)
    else:
        result = np.array(np.broadcast_to(other, lanes.shape))
    if poison is not None:
        poison = np.array(np.broadcast_to(poison, lanes.shape))
        poison.reshape(-1)[lanes.positions] = False
        if poison.any():
            program.make_poison(poison)
    result.reshape(-1)[lanes.positions] = values
    return result


@TILE_RULES.plain.register(LoadOp)
def load(operation: Operation, preparation: Preparation) -> PlainFunction:
    """A load through pointers or a block pointer."""
    assert isinstance(operation, LoadOp)
    if ir.shape_of(pointee_of(operation.ptr.type)):
        return _load_block(operation)
    pointer = OptionalOperand(preparation, operation.ptr)
    mask_operand = OptionalOperand(preparation, operation.mask)
    other = OptionalOperand(preparation, operation.other)
    element = Element.of(pointee_of(operation.ptr.type))

    def evaluate(program: Program, addresses: Array, *_: Array) -> Array:
        mask = mask_operand.value(program)
        if program.has_poison:
            require_defined(program, "the mask of a load", mask_operand.poison(program))
            require_defined(program, "the address of a load", pointer.poison(program), mask)
        fill = other.value(program), other.poison(program)
        return gather_values(program, addresses, mask, fill, element)

    return evaluate


@TILE_RULES.plain.register(StoreOp)
def store(operation: Operation, preparation: Preparation) -> PlainFunction:
    """A store through pointers or a block pointer."""
    assert isinstance(operation, StoreOp)
    pointer = OptionalOperand(preparation, operation.ptr)
    value_operand = OptionalOperand(preparation, operation.value)
    mask_operand = OptionalOperand(preparation, operation.mask)
    is_block = bool(ir.shape_of(pointee_of(operation.ptr.type)))
    element = Element.of(operation.value.type)
    checked = integers_of(operation.boundary_check)

    def evaluate(program: Program, target: Array | BlockPointer, value: Array, *_: Array) -> None:
        mask = mask_operand.value(program)
        if isinstance(target, BlockPointer):
            addresses: Array = target.addresses()
            mask = target.inside(checked)
        else:
            addresses = target
        if program.has_poison:
            require_defined(program, "the mask of a store", mask_operand.poison(program))
            if not is_block:
                require_defined(program, "the address of a store", pointer.poison(program), mask)
            require_defined(program, "a value to store", value_operand.poison(program), mask)
        store_lanes(program, lanes_of(addresses, mask), value, element)

    return evaluate


def _load_block(operation: LoadOp) -> PlainFunction:
    element = Element.of(operation.result.type)
    checked = integers_of(operation.boundary_check)
    padding = code_of(operation.padding)

    fill = padding_value(padding, element.dtype)

    def evaluate(program: Program, block: BlockPointer, *_: Array) -> Array:
        return gather_values(
            program, block.addresses(), block.inside(checked), (fill, None), element
        )

    return evaluate


def padding_value(code: int, dtype: np.dtype) -> Array | None:
    """What elements out of bounds read as; None where they are undefined."""
    name = PADDINGS[code]
    if not name:
        return None
    return cast_number(np.array(np.nan if name == "nan" else 0), dtype)


@TILE_RULES.plain.register(MakeTensorPtrOp)
def make_tensor_ptr(operation: Operation, _: Preparation) -> PlainFunction:
    """A block pointer."""
    assert isinstance(operation, MakeTensorPtrOp)
    rank = len(operation.shape)
    tile = pointee_of(operation.result.type)

    def evaluate(program: Program, base: Array, *numbers: Array) -> BlockPointer:
        plain = tuple(int(number) for number in numbers)
        return BlockPointer(
            base=int(base),
            element=ir.element_of(tile),
            shape=plain[:rank],
            strides=plain[rank : 2 * rank],
            block=ir.shape_of(tile),
            offsets=plain[2 * rank :],
        )

    return evaluate


@TILE_RULES.plain.register(AdvanceOp)
def advance(operation: Operation, _: Preparation) -> PlainFunction:
    """A block pointer moved."""

    def evaluate(program: Program, block: BlockPointer, *offsets: Array) -> BlockPointer:
        return block.moved(tuple(int(offset) for offset in offsets))

    return evaluate


def code_of(attribute: IntegerAttr | None) -> int:
    """The number of an optional enumeration attribute."""
    return 0 if attribute is None else attribute.value.data
