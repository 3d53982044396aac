"""How the interpreter runs the copy engine's ops: what they bring, and when it is there."""

from __future__ import annotations

import json

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.interp.access import lanes_of
from tilewright.interp.blocks import BlockPointer
from tilewright.interp.code import (
    ControlFunction,
    Pause,
    PlainFunction,
    Preparation,
    Rules,
    Running,
)
from tilewright.interp.program import Program
from tilewright.interp.rules.atomics import modify
from tilewright.interp.rules.descriptors import fill_of, placed
from tilewright.interp.rules.memory import Element, gather_values, store_lanes
from tilewright.interp.rules.roles import Ring, slot_of_fill
from tilewright.interp.rules.staging import (
    as_bytes,
    at_operation,
    bytes_of_tile,
    located,
    shared_memory_of,
)
from tilewright.interp.values import dtype_of
from tilewright.ir.effects import Resource
from tilewright.ir.encoding import SharedType
from tilewright.ir.op import Array
from tilewright.ir.types import DescriptorType, element_of, shape_of, storage_bytes
from tilewright.ops.atomics.ir import RMW_KINDS
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.tensor_map import TensorMapRecipe
from tilewright.targets.nvidia.tma_ops import (
    InitBarriersOp,
    LeaveMapSlotOp,
    MakeTensorMapOp,
    TakeMapSlotOp,
    TensorMapOp,
    TmaDoneOp,
    TmaFillOp,
    TmaLoadOp,
    TmaLoadSlotOp,
    TmaStoreOp,
    TmaStoreWaitOp,
    TmaWaitOp,
    TmaWaitSlotOp,
)

_TOKEN = np.zeros((), np.int32)


def register_copy_engine(rules: Rules) -> None:
    """Add the rules of the copy engine's ops."""
    rules.plain.register(TensorMapOp)(_tensor_map)
    rules.plain.register(MakeTensorMapOp)(_make_tensor_map)
    rules.plain.register(TakeMapSlotOp)(lambda _, __: lambda program: _TOKEN)
    rules.plain.register(LeaveMapSlotOp)(lambda _, __: lambda program, slot: None)
    rules.plain.register(InitBarriersOp)(_nothing)
    rules.plain.register(TmaLoadOp)(_load)
    rules.plain.register(TmaWaitOp)(_wait)
    rules.plain.register(TmaLoadSlotOp)(_load_slot)
    rules.plain.register(TmaWaitSlotOp)(_wait_slot)
    rules.plain.register(TmaDoneOp)(_done)
    rules.plain.register(TmaStoreWaitOp)(_store_wait)
    rules.control.register(TmaFillOp)(_fill)
    rules.control.register(TmaStoreOp)(_store)


def _nothing(_: Operation, __: Preparation) -> PlainFunction:
    return lambda program: None


def _tensor_map(operation: Operation, _: Preparation) -> PlainFunction:
    """The descriptor that the launch would make of the kernel's arguments."""
    assert isinstance(operation, TensorMapOp)
    recipe = TensorMapRecipe.from_metadata(json.loads(operation.recipe.data))
    block = _block(operation.result)
    slots = [value.index for value in operation.arguments if isinstance(value, BlockArgument)]

    def evaluate(program: Program, *values: Array) -> BlockPointer:
        arguments = dict(zip(slots, map(int, values), strict=True))
        tensor = recipe.describe(arguments)
        size = storage_bytes(element_of(block.block))
        return BlockPointer(
            base=tensor.address,
            element=element_of(block.block),
            shape=tensor.shape,
            strides=(*(stride // size for stride in tensor.strides_bytes), 1),
            block=shape_of(block.block),
            offsets=(0,) * len(tensor.shape),
            padding=2 if recipe.fills_nan else 1,
        )

    return evaluate


def _make_tensor_map(operation: Operation, _: Preparation) -> PlainFunction:
    """A descriptor as the program made it; workspace and slot have no meaning of their own."""
    assert isinstance(operation, MakeTensorMapOp)
    rank, block = len(operation.shape), _block(operation.result).block
    padding = 1 if operation.fills_nan is None else 2

    def evaluate(program: Program, base: Array, *numbers: Array) -> BlockPointer:
        plain = tuple(int(number) for number in numbers[: 2 * rank])
        return BlockPointer(
            base=int(base),
            element=element_of(block),
            shape=plain[:rank],
            strides=plain[rank:],
            block=shape_of(block),
            offsets=(0,) * rank,
            padding=padding,
        )

    return evaluate


def _block(desc: SSAValue) -> DescriptorType:
    assert isinstance(desc.type, DescriptorType)
    return desc.type


def _number(barrier: IntegerAttr) -> int:
    return barrier.value.data


def _load(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, TmaLoadOp)
    type_, number = operation.dst.type, _number(operation.barrier)
    announced = operation.announced_bytes
    expected = None if announced is None else _number(announced)
    assert isinstance(type_, SharedType)
    element = Element.of(_block(operation.desc).block)

    def evaluate(program: Program, block: BlockPointer, start: Array, *indices: Array) -> Array:
        addresses, mask = placed(block, indices)

        def read() -> Array:
            fill = fill_of(block, element)
            with at_operation(program, operation):
                values = gather_values(program, addresses, mask, fill, element)
            return as_bytes(values.reshape(type_.extents()), type_)

        places = bytes_of_tile(type_, int(start)).ravel()
        program.touch(Resource.SHARED, writes=True)
        with located(program):
            shared_memory_of(program).start_load(number, places, read(), expected, read)
        return _TOKEN

    return evaluate


def _fill(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, TmaFillOp)
    type_ = operation.dst.type
    assert isinstance(type_, SharedType)
    desc, start, ring = preparation.slots((operation.desc, operation.dst, operation.ring))
    given = None if operation.slot is None else preparation.slot(operation.slot)
    indices = preparation.slots(operation.indices)
    element = Element.of(_block(operation.desc).block)

    def run(program: Program) -> Running:
        program.operation = operation
        block, where, into = (program.values[slot] for slot in (desc, start, ring))
        assert isinstance(block, BlockPointer) and isinstance(into, Ring)
        at = tuple(program.values[index] for index in indices)
        addresses, mask = placed(block, at)  # type: ignore[arg-type]  # scalars

        def read() -> Array:
            fill = fill_of(block, element)
            with at_operation(program, operation):
                values = gather_values(program, addresses, mask, fill, element)
            return as_bytes(values.reshape(type_.extents()), type_)

        places = bytes_of_tile(type_, _plain(where)).ravel()
        number = slot_of_fill(program, into) if given is None else _plain(program.values[given])
        program.touch(Resource.SHARED, writes=True)
        with located(program):
            shared_memory_of(program).load(into.full(number), places, read(), read)
        return
        yield

    return run


def _plain(value: object) -> int:
    assert isinstance(value, np.ndarray | np.generic)
    return int(value)


def _wait(operation: Operation, _: Preparation) -> PlainFunction:
    """The phases of a barrier alternate, so a wait for the wrong one would not end."""
    assert isinstance(operation, TmaWaitOp)
    number, has_phase = _number(operation.barrier), operation.phase is not None

    def evaluate(program: Program, *operands: Array) -> None:
        with located(program):
            ended = shared_memory_of(program).end_loads(number)
        if has_phase and int(operands[-1]) != ended % 2:
            raise InternalError(
                f"wait {ended} at barrier {number} is for phase {int(operands[-1])}"
            )

    return evaluate


def _load_slot(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, TmaLoadSlotOp)
    type_, number = operation.dst.type, _number(operation.barrier)
    announced = operation.announced_bytes
    expected = None if announced is None else _number(announced)
    assert isinstance(type_, SharedType)
    element = Element.of(_block(operation.desc).block)

    def evaluate(
        program: Program,
        block: BlockPointer,
        start: Array,
        slot: Array,
        condition: Array,
        *indices: Array,
    ) -> None:
        if not condition:
            return
        addresses, mask = placed(block, indices)
        values = gather_values(program, addresses, mask, fill_of(block, element), element)
        places = bytes_of_tile(type_, int(start)).ravel()
        program.touch(Resource.SHARED, writes=True)
        with located(program):
            data = as_bytes(values.reshape(type_.extents()), type_)
            shared_memory_of(program).start_load(number + int(slot), places, data, expected)

    return evaluate


def _done(_: Operation, __: Preparation) -> PlainFunction:
    """What the op says is so: no mbarrier waits for anything."""

    def evaluate(program: Program, *_: Array) -> None:
        if program.shared is not None and program.shared.is_loading():
            raise InternalError("a load that ran ahead of its loop was not waited for")

    return evaluate


def _wait_slot(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, TmaWaitSlotOp)
    number = _number(operation.barrier)

    def evaluate(program: Program, *operands: Array) -> None:
        slot, phase = map(int, operands[-2:])
        ended = shared_memory_of(program).end_loads(number + slot)
        if phase != ended % 2:
            raise InternalError(f"wait {ended} for slot {slot} is for phase {phase}")

    return evaluate


def _store(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, TmaStoreOp)
    slots = preparation.slots((operation.desc, operation.src, *operation.indices))
    (token,) = preparation.slots(operation.results)
    type_, block_type = operation.src.type, _block(operation.desc).block
    assert isinstance(type_, SharedType)
    element, dtype = Element.of(block_type), dtype_of(type_.element)
    kind = None if operation.kind is None else RMW_KINDS[operation.kind.value.data]

    def run(program: Program) -> Running:
        if kind is not None:
            yield Pause.ATOMIC
        program.operation = operation
        block, start, *indices = (program.values[slot] for slot in slots)
        assert isinstance(block, BlockPointer) and isinstance(start, np.ndarray | np.generic)
        program.touch(Resource.SHARED, writes=False)
        with located(program):
            places = bytes_of_tile(type_, int(start))
            data = shared_memory_of(program).start_store(places.ravel())
        addresses, mask = placed(block, tuple(indices))  # type: ignore[arg-type]  # scalars
        values = data.view(element.memory_dtype).reshape(type_.extents())
        lanes = lanes_of(addresses, mask)
        if kind is None:
            store_lanes(program, lanes, values.astype(dtype), element)
        else:
            flat = values.astype(dtype).ravel()
            chosen = flat if lanes.positions is None else flat[lanes.positions]
            modify(program, lanes, chosen, "relaxed", kind)
        program.values[token] = _TOKEN
        return
        yield

    return run


def _store_wait(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, TmaStoreWaitOp)
    pending = 0 if operation.pending is None else _number(operation.pending)
    return lambda program, *_: shared_memory_of(program).end_stores(pending)
