"""Tensor descriptors: blocks of a tensor in memory, cut off at its bounds."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from tilewright.interp.access import lanes_of, require_defined
from tilewright.interp.blocks import BlockPointer
from tilewright.interp.code import ControlFunction, Pause, PlainFunction, Preparation, Running
from tilewright.interp.program import Program
from tilewright.interp.rules.atomics import modify
from tilewright.interp.rules.memory import (
    Element,
    OptionalOperand,
    code_of,
    gather_values,
    padding_value,
    store_lanes,
)
from tilewright.interp.rules.tables import TILE_RULES
from tilewright.interp.values import dtype_of
from tilewright.ir import types as ir
from tilewright.ir.op import Array
from tilewright.ops.atomics.ir import RMW_KINDS
from tilewright.ops.descriptors.ir import (
    DescriptorGatherOp,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorScatterOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
)


@TILE_RULES.plain.register(MakeTensorDescriptorOp)
def make_descriptor(operation: Operation, _: Preparation) -> PlainFunction:
    """A descriptor."""
    assert isinstance(operation, MakeTensorDescriptorOp)
    rank = len(operation.shape)
    type_ = operation.result.type
    assert isinstance(type_, ir.DescriptorType)
    block = type_.block
    padding = max(code_of(operation.padding), 1)

    def evaluate(program: Program, base: Array, *numbers: Array) -> BlockPointer:
        plain = tuple(int(number) for number in numbers)
        return BlockPointer(
            base=int(base),
            element=ir.element_of(block),
            shape=plain[:rank],
            strides=plain[rank:],
            block=ir.shape_of(block),
            offsets=(0,) * rank,
            padding=padding,
        )

    return evaluate


def fill_of(block: BlockPointer, element: Element) -> tuple[Array | None, None]:
    """What elements out of bounds read as: never undefined."""
    # An integer tile has no NaN: its padding is zero whatever the descriptor says.
    code = 1 if element.dtype.kind in "bi" else block.padding
    return padding_value(code, element.dtype), None


def placed(block: BlockPointer, indices: tuple[Array, ...]) -> tuple[Array, Array]:
    """The addresses of the block at `indices` and which of them are in bounds."""
    moved = block.moved(tuple(int(index) for index in indices))
    return moved.addresses(), moved.inside(moved.all_dims())


@TILE_RULES.plain.register(DescriptorLoadOp)
def load(operation: Operation, _: Preparation) -> PlainFunction:
    """The block at indices, padded."""
    assert isinstance(operation, DescriptorLoadOp)
    shape = ir.shape_of(operation.result.type)
    element = Element.of(operation.result.type)

    def evaluate(program: Program, block: BlockPointer, *indices: Array) -> Array:
        addresses, mask = placed(block, indices)
        return gather_values(program, addresses, mask, fill_of(block, element), element).reshape(
            shape
        )

    return evaluate


@TILE_RULES.plain.register(DescriptorStoreOp)
def store(operation: Operation, preparation: Preparation) -> PlainFunction:
    """Write the block at indices, its part in bounds."""
    assert isinstance(operation, DescriptorStoreOp)
    value = OptionalOperand(preparation, operation.src)
    element = Element.of(operation.src.type)

    def evaluate(program: Program, block: BlockPointer, src: Array, *indices: Array) -> None:
        addresses, mask = placed(block, indices)
        _require_value(program, value, mask)
        store_lanes(program, lanes_of(addresses, mask), src.reshape(addresses.shape), element)

    return evaluate


def _require_value(program: Program, value: OptionalOperand, mask: Array) -> None:
    poison = value.poison(program)
    if poison is not None:
        poison = np.broadcast_to(poison, np.asarray(value.value(program)).shape).reshape(mask.shape)
    require_defined(program, "a value to store", poison, mask)


@TILE_RULES.control.register(DescriptorReduceOp)
def reduce(operation: Operation, preparation: Preparation) -> ControlFunction:
    """Combine a block into memory atomically, without order between programs."""
    assert isinstance(operation, DescriptorReduceOp)
    slots = preparation.slots((operation.desc, *operation.indices))
    value = OptionalOperand(preparation, operation.src)
    kind = RMW_KINDS[operation.kind.value.data]
    dtype = dtype_of(operation.src.type)

    def run(program: Program) -> Running:
        yield Pause.ATOMIC
        program.operation = operation
        block, *indices = (program.values[slot] for slot in slots)
        assert isinstance(block, BlockPointer)
        addresses, mask = placed(block, tuple(indices))  # type: ignore[arg-type]
        _require_value(program, value, mask)
        lanes = lanes_of(addresses, mask)
        flat = np.asarray(value.value(program)).ravel()
        chosen = flat if lanes.positions is None else flat[lanes.positions]
        modify(program, lanes, chosen.astype(dtype, copy=False), "relaxed", kind)

    return run


def _rows(block: BlockPointer, rows: Array, column: Array) -> tuple[Array, Array]:
    """Addresses and bounds of one row for each entry of `rows`, columns from `column`."""
    width = block.block[-1]
    x = np.asarray(rows).astype(np.int64)[:, None]
    y = np.arange(width, dtype=np.int64)[None, :] + int(column)
    size = ir.storage_bytes(block.element)
    addresses = block.base + (x * block.strides[0] + y * block.strides[1]) * size
    inside = (x >= 0) & (x < block.shape[0]) & (y >= 0) & (y < block.shape[1])
    return addresses, inside


@TILE_RULES.plain.register(DescriptorGatherOp)
def gather(operation: Operation, _: Preparation) -> PlainFunction:
    """Chosen rows, padded."""
    assert isinstance(operation, DescriptorGatherOp)
    element = Element.of(operation.result.type)

    def evaluate(program: Program, block: BlockPointer, rows: Array, column: Array) -> Array:
        addresses, mask = _rows(block, rows, column)
        return gather_values(program, addresses, mask, fill_of(block, element), element)

    return evaluate


@TILE_RULES.plain.register(DescriptorScatterOp)
def scatter(operation: Operation, preparation: Preparation) -> PlainFunction:
    """Write chosen rows, their part in bounds."""
    assert isinstance(operation, DescriptorScatterOp)
    value = OptionalOperand(preparation, operation.src)
    element = Element.of(operation.src.type)

    def evaluate(
        program: Program, block: BlockPointer, rows: Array, column: Array, src: Array
    ) -> None:
        addresses, mask = _rows(block, rows, column)
        _require_value(program, value, mask)
        store_lanes(program, lanes_of(addresses, mask), src, element)

    return evaluate
