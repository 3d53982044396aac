"""How the interpreter runs C2: loops over vectors and memory of the arena.

`CPU_INTERPRETATION` holds the rules of T0 and those of the `cpu` ops; pass it to `run_kernel`.
Arena memory that was not written reads as undefined values, which are an error only where the
result of the kernel depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.interp.access import (
    forget_lanes,
    lanes_of,
    private_memory,
    require_defined,
    unknown_lanes,
)
from tilewright.interp.code import (
    ControlFunction,
    PlainFunction,
    Preparation,
    Rules,
    Running,
    execute,
)
from tilewright.interp.memory import Allocation
from tilewright.interp.program import Program
from tilewright.interp.rules import TILE_RULES
from tilewright.interp.rules.debug import index_text, is_set, value_text
from tilewright.interp.rules.memory import (
    Element,
    OptionalOperand,
    gather_values,
    integers_of,
    pointee_of,
    store_lanes,
)
from tilewright.interp.rules.poison import moved
from tilewright.interp.rules.pure import by_reference
from tilewright.interp.rules.reduction import combine, put_results, take_slices
from tilewright.interp.values import EVERYWHERE, dtype_of, memory_dtype_of
from tilewright.ir import types as ir
from tilewright.ir.op import Array
from tilewright.ops.function import function_around
from tilewright.support.errors import AssertionFailed, MisalignedAccess
from tilewright.targets.cpu import ops
from tilewright.targets.cpu.dot.interpret import dot, pack
from tilewright.targets.cpu.interpret_launch import do_nothing, forget, is_alone, start_count
from tilewright.targets.cpu.launch_ops import (
    EndCountOp,
    ForgetOp,
    IsAloneOp,
    PollOp,
    StartCountOp,
)

CPU_INTERPRETATION = Rules("cpu", TILE_RULES)

CPU_INTERPRETATION.plain.register(ops.ExtractOp, ops.ShuffleOp)(by_reference)
CPU_INTERPRETATION.plain.register(ops.PackOp)(pack)
CPU_INTERPRETATION.plain.register(ops.DotOp)(dot)
CPU_INTERPRETATION.plain.register(ForgetOp)(forget)
CPU_INTERPRETATION.plain.register(PollOp, EndCountOp)(do_nothing)
CPU_INTERPRETATION.plain.register(StartCountOp)(start_count)
CPU_INTERPRETATION.plain.register(IsAloneOp)(is_alone)
CPU_INTERPRETATION.taint.register(ops.ShuffleOp)(moved)


@CPU_INTERPRETATION.taint.register(ops.ExtractOp)
def _extracted(_: Operation, values: Sequence[Array], masks: Sequence[Array | None]) -> Array:
    vector, lane = masks
    if lane is not None or vector is None:
        return EVERYWHERE
    return np.broadcast_to(vector, values[0].shape)[int(values[1])]


@CPU_INTERPRETATION.control.register(ops.NestOp)
def _nest(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, ops.NestOp)
    code = preparation.region(operation.body)
    results = preparation.slots(operation.outputs)

    def run(program: Program) -> Running:
        yield from execute(code, program)
        program.move(code.outputs, results)

    return run


@CPU_INTERPRETATION.control.register(ops.ReduceLanesOp)
def _reduce_lanes(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, ops.ReduceLanesOp)
    sources = preparation.slots(operation.srcs)
    results = preparation.slots(operation.outputs)
    code = preparation.region(operation.combine)

    def run(program: Program) -> Running:
        lanes = take_slices(program, sources, axis=0)
        while len(lanes) > 1:
            half = len(lanes) // 2
            firsts, seconds = lanes[:half], lanes[half:]
            if operation.in_order is not None:
                firsts, seconds = lanes[0::2], lanes[1::2]
            lanes = combine(program, code, firsts, seconds)
        put_results(program, results, lanes[0])
        program.operation = operation
        return
        yield

    return run


@CPU_INTERPRETATION.plain.register(ops.IotaOp)
def _iota(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, ops.IotaOp)
    value = operation.reference().astype(dtype_of(operation.result.type))
    return lambda program: value


@CPU_INTERPRETATION.plain.register(ops.AllocOp)
def _alloc(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, ops.AllocOp)
    dtype = memory_dtype_of(pointee_of(operation.result.type))
    num_bytes = operation.num_elems.value.data * dtype.itemsize
    label = operation.label.data if operation.label is not None else "a buffer"
    placed = operation.offset_bytes
    owner, arena_bytes = (operation, num_bytes) if placed is None else _arena(operation)
    offset = 0 if placed is None else placed.value.data

    def evaluate(program: Program) -> Array:
        allocation = program.buffers.get(owner)
        if allocation is None:
            name = label if placed is None else "the arena"
            allocation = program.machine.memory.allocate(name, arena_bytes, dtype)
            program.buffers[owner] = allocation
        _forget_bytes(allocation, offset, num_bytes)
        return np.array(allocation.base + offset, np.int64)

    return evaluate


def _forget_bytes(allocation: Allocation, offset: int, num_bytes: int) -> None:
    assert allocation.initialized is not None
    allocation.initialized[offset : offset + num_bytes] = False


def _arena(operation: ops.AllocOp) -> tuple[Operation, int]:
    """The function whose arena a placed buffer lies in, and the arena's size."""
    function = function_around(operation)
    sizes = [
        buffer.offset_bytes.value.data + ops.allocated_bytes(buffer)
        for buffer in function.walk()
        if isinstance(buffer, ops.AllocOp) and buffer.offset_bytes is not None
    ]
    return function, max(sizes)


class _Access:
    """A memory op: its pointer, optional offsets, mask and other."""

    def __init__(
        self, preparation: Preparation, pointer: SSAValue, element: Element,
        *, mask: SSAValue | None, other: SSAValue | None = None, offsets: SSAValue | None = None,
    ) -> None:  # fmt: skip
        self.element = element
        self.dtype = element.memory_dtype
        self._pointer = OptionalOperand(preparation, pointer)
        self._offsets = OptionalOperand(preparation, offsets)
        self._mask = OptionalOperand(preparation, mask)
        self._other = OptionalOperand(preparation, other)

    def addresses(self, program: Program, num_lanes: int | None) -> tuple[Array, Array | None]:
        """The address of each lane (consecutive ones for `num_lanes`) and the mask."""
        mask = self._mask.value(program)
        if program.has_poison:
            require_defined(program, "a mask", self._mask.poison(program))
            require_defined(program, "an address", self._pointer.poison(program), mask)
            require_defined(program, "an offset", self._offsets.poison(program), mask)
        addresses = self._pointer.value(program)
        assert addresses is not None
        if num_lanes is not None:
            addresses = addresses + np.arange(num_lanes, dtype=np.int64) * self.dtype.itemsize
        offsets = self._offsets.value(program)
        if offsets is not None:
            addresses = addresses + offsets.astype(np.int64) * self.dtype.itemsize
        return addresses, mask

    def load(self, program: Program, num_lanes: int | None = None) -> Array:
        """The values of the lanes; those of unwritten private memory are undefined."""
        addresses, mask = self.addresses(program, num_lanes)
        fill = self._other.value(program), self._other.poison(program)
        result = gather_values(program, addresses, mask, fill, self.element)
        lanes = lanes_of(addresses, mask)
        unknown = unknown_lanes(program, lanes, self.dtype.itemsize)
        if unknown is not None:
            poison = np.zeros(lanes.shape, np.bool_)
            if program.fresh_poison is not None:
                poison |= program.fresh_poison
            flat = poison.reshape(-1)
            flat[slice(None) if lanes.positions is None else lanes.positions] |= unknown
            program.make_poison(poison)
        return result

    def store(self, program: Program, value: OptionalOperand, num_lanes: int | None = None) -> None:
        """Write the lanes; undefined values make private memory undefined again."""
        addresses, mask = self.addresses(program, num_lanes)
        data = value.value(program)
        assert data is not None
        lanes = lanes_of(addresses, mask)
        poison = value.poison(program)
        if poison is not None and private_memory(program, lanes) is None:
            require_defined(program, "a value to store", poison, mask)
        store_lanes(program, lanes, data, self.element)
        if poison is not None and lanes.addresses.size and private_memory(program, lanes):
            flat = np.broadcast_to(poison, lanes.shape).ravel()
            chosen = np.flatnonzero(flat if lanes.positions is None else flat[lanes.positions])
            if chosen.size:
                forget_lanes(program, lanes.select(chosen), self.dtype.itemsize)


def _lanes(type_: Attribute) -> int | None:
    """The lanes of a vector type; None for a scalar."""
    shape = ir.shape_of(type_)
    return shape[0] if shape else None


def _check_alignment(program: Program, addresses: Array, claim: IntegerAttr | None) -> None:
    if claim is not None and int(addresses) % claim.value.data:
        raise program.fault(
            MisalignedAccess,
            f"the schedule claims an address aligned to {claim.value.data} bytes, which it is not",
        )


@CPU_INTERPRETATION.plain.register(ops.LoadOp)
def _load(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, ops.LoadOp)
    element = Element.of(operation.result.type)
    lanes = _lanes(operation.result.type)
    access = _Access(
        preparation, operation.ptr, element, mask=operation.mask, other=operation.other
    )

    def evaluate(program: Program, pointer: Array, *_: Array) -> Array:
        _check_alignment(program, pointer, operation.align_bytes)
        return access.load(program, lanes)

    return evaluate


@CPU_INTERPRETATION.plain.register(ops.StoreOp)
def _store(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, ops.StoreOp)
    element = Element.of(operation.value.type)
    lanes = _lanes(operation.value.type)
    access = _Access(preparation, operation.ptr, element, mask=operation.mask)
    value = OptionalOperand(preparation, operation.value)

    def evaluate(program: Program, pointer: Array, *_: Array) -> None:
        _check_alignment(program, pointer, operation.align_bytes)
        access.store(program, value, lanes)

    return evaluate


@CPU_INTERPRETATION.plain.register(ops.GatherOp, ops.LoadPointersOp)
def _gather(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, ops.GatherOp | ops.LoadPointersOp)
    is_offset = isinstance(operation, ops.GatherOp)
    access = _Access(
        preparation,
        operation.ptr if is_offset else operation.ptrs,
        Element.of(operation.result.type),
        mask=operation.mask,
        other=operation.other,
        offsets=operation.offsets if is_offset else None,
    )
    return lambda program, *_: access.load(program)


@CPU_INTERPRETATION.plain.register(ops.ScatterOp, ops.StorePointersOp)
def _scatter(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, ops.ScatterOp | ops.StorePointersOp)
    is_offset = isinstance(operation, ops.ScatterOp)
    access = _Access(
        preparation,
        operation.ptr if is_offset else operation.ptrs,
        Element.of(operation.value.type),
        mask=operation.mask,
        offsets=operation.offsets if is_offset else None,
    )
    value = OptionalOperand(preparation, operation.value)
    return lambda program, *_: access.store(program, value)


@CPU_INTERPRETATION.plain.register(ops.PrintOp)
def _print(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, ops.PrintOp)
    shape = integers_of(operation.shape)
    signs = integers_of(operation.is_signed) or (1,) * len(operation.args)
    prefix = operation.prefix.data
    is_hex = is_set(operation.hex)
    types = [value.type for value in operation.args]
    slots = preparation.slots(operation.args)

    def evaluate(program: Program, *operands: Array) -> None:
        args, indices = operands[: len(types)], operands[len(types) :]
        pid = ", ".join(map(str, program.coordinates))
        if not args:
            program.machine.output.write(f"pid ({pid}){prefix}\n")
        where = index_text(tuple(int(i) for i in indices), shape)
        for number, (value, type_) in enumerate(zip(args, types, strict=True)):
            which = f"(operand {number}) " if len(types) > 1 else ""
            text = value_text(value, type_, is_hex, is_signed=bool(signs[number]))
            if program.poison[slots[number]] is not None:
                text = "undefined"
            program.machine.output.write(f"pid ({pid}) idx ({where}){prefix}{which}{text}\n")

    return evaluate


@CPU_INTERPRETATION.plain.register(ops.PrefetchOp)
def _prefetch(operation: Operation, preparation: Preparation) -> PlainFunction:
    return lambda program, pointer: None  # no memory of the interpreter is nearer than other


@CPU_INTERPRETATION.plain.register(ops.AssertOp)
def _assert(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, ops.AssertOp)
    message = operation.message.data
    slot = preparation.slot(operation.condition)

    def evaluate(program: Program, condition: Array, *indices: Array) -> None:
        require_defined(program, "an asserted condition", program.poison[slot])
        if not condition:
            at = f" at tile index {tuple(int(i) for i in indices)}" if indices else ""
            raise program.fault(AssertionFailed, f"assertion failed: {message}{at}")

    return evaluate
