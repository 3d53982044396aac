"""The ops of the laid-out levels (T1, T2): conversions, shared tiles, products, copies.

A register tile is its elements, whatever the layout, so a conversion changes nothing. A shared
tile is the byte at which it begins; its type says where each element lies from there. At T1 each
allocation has bytes of its own, at T2 those of its place.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.interp.access import lanes_of, require_defined
from tilewright.interp.code import ControlFunction, PlainFunction, Preparation, Rules, Running
from tilewright.interp.program import Program
from tilewright.interp.rules import TILE_RULES
from tilewright.interp.rules.memory import Element, OptionalOperand, load_lanes, pointee_of
from tilewright.interp.rules.poison import moved, product
from tilewright.interp.rules.pure import by_reference, matrix_product
from tilewright.interp.shared_memory import RunningProduct, SharedMemory, element_offsets
from tilewright.interp.simt.faults import Fault
from tilewright.interp.values import BOOL, EVERYWHERE, NOWHERE, dtype_of, memory_dtype_of
from tilewright.ir.effects import Resource
from tilewright.ir.encoding import SharedType, layout_of, slot_bytes
from tilewright.ir.op import Array
from tilewright.ops.debug.ir import BarrierOp
from tilewright.ops.staging import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    ConvertLayoutOp,
    DotWaitOp,
    ExtractSliceOp,
    LaidOutDotOp,
    LocalAllocOp,
    LocalBarrierOp,
    LocalLoadOp,
    LocalStoreOp,
    MemdescIndexOp,
    MemdescSliceOp,
    MemdescTransOp,
)
from tilewright.support.errors import KernelFault

STAGED_RULES = Rules("laid-out", TILE_RULES)
_TOKEN = np.zeros((), np.int32)

STAGED_RULES.plain.register(ConvertLayoutOp, ExtractSliceOp)(by_reference)
STAGED_RULES.taint.register(ConvertLayoutOp, ExtractSliceOp)(moved)


def shared_memory_of(program: Program, *, is_placed: bool = False) -> SharedMemory:
    """The shared memory of a program; `is_placed` where its tiles have places."""
    if program.shared is None:
        program.shared = SharedMemory(is_placed)
    return program.shared


@contextmanager
def located(program: Program) -> Generator[None]:
    """Faults of shared memory as faults of the op that the program is at."""
    try:
        yield
    except Fault as fault:
        raise program.fault(fault.kind, fault.message) from fault


@contextmanager
def at_operation(program: Program, operation: Operation) -> Generator[None]:
    """What a program does on behalf of another op than the one that it is at."""
    current, program.operation = program.operation, operation
    try:
        yield
    finally:
        program.operation = current


# --- shared tiles ---


def bytes_of_tile(type_: Attribute, start: int) -> Array:
    """The bytes of every element of a shared tile that begins at `start`: `[*shape, size]`."""
    assert isinstance(type_, SharedType)
    size = memory_dtype_of(type_.element).itemsize
    whole = element_offsets(layout_of(type_))
    offsets = start + size * whole[tuple(map(slice, type_.extents()))]
    return offsets[..., None] + np.arange(size)


def as_bytes(value: Array, type_: SharedType) -> Array:
    """The bytes of a register tile, element by element in the tile's order."""
    plain = np.ascontiguousarray(np.broadcast_to(value, type_.extents()))
    memory = plain.astype(memory_dtype_of(type_.element), copy=False)
    return memory.view(np.uint8).reshape(-1)


def write_tile(program: Program, start: Array, type_: Attribute, value: Array, slot: int) -> None:
    """Write a register tile to a shared tile, with what is undefined in it."""
    assert isinstance(type_, SharedType)
    places = bytes_of_tile(type_, int(start))
    mask = program.poison[slot]
    undefined = None
    if mask is not None:
        undefined = np.broadcast_to(np.broadcast_to(mask, value.shape)[..., None], places.shape)
        undefined = undefined.ravel()
    program.touch(Resource.SHARED, writes=True)
    with located(program):
        memory = shared_memory_of(program)
        memory.write(places.ravel(), as_bytes(value, type_), undefined)


def read_tile(
    program: Program, start: Array, type_: Attribute, *, is_async: bool = False
) -> tuple[Array, Array | None]:
    """A shared tile as a register tile, and which of its elements are undefined."""
    assert isinstance(type_, SharedType)
    places = bytes_of_tile(type_, int(start))
    program.touch(Resource.SHARED, writes=False)
    with located(program):
        data, undefined = shared_memory_of(program).fetch(places.ravel(), is_async=is_async)
    memory_dtype, dtype = memory_dtype_of(type_.element), dtype_of(type_.element)
    values = data.view(memory_dtype).reshape(type_.extents())
    mask = None
    if undefined is not None:
        mask = np.asarray(undefined.reshape(places.shape).any(axis=-1))
    return (values != 0 if dtype == BOOL else values), mask


@STAGED_RULES.plain.register(LocalAllocOp)
def _alloc(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, LocalAllocOp)
    type_ = operation.result.type
    assert isinstance(type_, SharedType)
    size = type_.slots.data * slot_bytes(type_)
    placed = operation.offset_bytes
    source = None if operation.src is None else preparation.slot(operation.src)
    starts: dict[Program, int] = {}

    def evaluate(program: Program, *values: Array) -> Array:
        memory = shared_memory_of(program, is_placed=placed is not None)
        if placed is None:
            start = starts.setdefault(program, memory.data.size)
        else:
            start = program.shared_start + placed.value.data
        with located(program):
            memory.forget(start, size)
        where = np.array(start, np.int64)
        if source is not None:
            write_tile(program, where, type_, values[0], source)
        return where

    return evaluate


@STAGED_RULES.plain.register(LocalStoreOp)
def _store(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, LocalStoreOp)
    type_, slot = operation.dst.type, preparation.slot(operation.src)

    def evaluate(program: Program, value: Array, start: Array) -> None:
        write_tile(program, start, type_, value, slot)

    return evaluate


@STAGED_RULES.plain.register(LocalLoadOp)
def _load(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, LocalLoadOp)
    type_ = operation.src.type

    def evaluate(program: Program, start: Array) -> Array:
        values, undefined = read_tile(program, start, type_)
        if undefined is not None:
            program.make_poison(undefined)
        return values

    return evaluate


@STAGED_RULES.plain.register(MemdescIndexOp)
def _index(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, MemdescIndexOp)
    type_ = operation.src.type
    assert isinstance(type_, SharedType)
    step, slots = slot_bytes(type_), type_.slots.data

    def evaluate(program: Program, start: Array, index: Array) -> Array:
        assert 0 <= int(index) < slots, f"slot {int(index)} of {slots}"
        return start + int(index) * step

    return evaluate


@STAGED_RULES.plain.register(MemdescTransOp)
def _trans(_: Operation, __: Preparation) -> PlainFunction:
    """The type of the result says where its elements are."""
    return lambda program, start: start


@STAGED_RULES.plain.register(MemdescSliceOp)
def _part_of_memory(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, MemdescSliceOp)
    type_, dim = operation.src.type, operation.dim.value.data
    assert isinstance(type_, SharedType)
    count = type_.extents()[dim] // operation.result.type.extents()[dim]
    step = operation.step_elements() * memory_dtype_of(type_.element).itemsize

    def evaluate(program: Program, start: Array, part: Array) -> Array:
        if not 0 <= int(part) < count:
            raise program.fault(KernelFault, f"part {int(part)} of a tile of {count} parts")
        return start + int(part) * step

    return evaluate


# --- products ---


@STAGED_RULES.plain.register(LaidOutDotOp)
def _dot(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, LaidOutDotOp)
    multiply = matrix_product(operation.a.type, operation.result.type)
    sides = [_Operand(preparation, v, operation) for v in (operation.a, operation.b)]
    total = preparation.slot(operation.c)
    is_async = operation.is_async is not None

    def evaluate(program: Program, a: Array, b: Array, c: Array) -> Array:
        left, right = (side.read(program, v) for side, v in zip(sides, (a, b), strict=True))
        result = multiply(left[0], right[0], c)
        before = program.poison[total]
        if is_async:
            running = {id(p.result): p.undefined for p in shared_memory_of(program).products}
            before = running.get(id(c), before)
        masks = (left[1], right[1], before)
        undefined = None
        if any(mask is not None for mask in masks):
            undefined = product(operation, (left[0], right[0], c), masks)
        if is_async:
            pairs = zip(sides, (a, b), strict=True)
            reads = [side.places(v) for side, v in pairs if side.is_shared]
            shared_memory_of(program).start_product(RunningProduct(reads, result, undefined))
            undefined = EVERYWHERE
        if undefined is not None:
            program.make_poison(undefined)
        return result

    return evaluate


@STAGED_RULES.taint.register(LaidOutDotOp)
def _no_more(_: Operation, __: object, ___: object) -> Array:
    """The evaluation has said what is undefined, shared operands included."""
    return NOWHERE


@STAGED_RULES.control.register(DotWaitOp)
def _dot_wait(operation: Operation, preparation: Preparation) -> ControlFunction:
    assert isinstance(operation, DotWaitOp)
    sources, results = preparation.slots(operation.tiles), preparation.slots(operation.outputs)
    pending = operation.pending.value.data

    def run(program: Program) -> Running:
        ended = shared_memory_of(program).wait_products(pending)
        undefined = {id(product.result): product.undefined for product in ended}
        program.move(sources, results)
        for source, result in zip(sources, results, strict=True):
            value = program.values[source]
            if id(value) in undefined:
                program.poison[result] = undefined[id(value)]
        return
        yield

    return run


class _Operand:
    """An operand of a product: a register tile, or a shared tile that the product reads."""

    def __init__(self, preparation: Preparation, value: SSAValue, op: LaidOutDotOp) -> None:
        self.type = value.type
        self.is_shared = isinstance(value.type, SharedType)
        self._slot = preparation.slot(value)
        self._is_async = op.product.data.instruction == "wgmma"

    def read(self, program: Program, value: Array) -> tuple[Array, Array | None]:
        """The elements, and which of them are undefined."""
        if self.is_shared:
            return read_tile(program, value, self.type, is_async=self._is_async)
        return value, program.poison[self._slot]

    def places(self, start: Array) -> Array:
        """The bytes of a shared operand."""
        return bytes_of_tile(self.type, int(start)).ravel()


# --- asynchronous copies, and what orders accesses ---


@STAGED_RULES.plain.register(AsyncCopyOp)
def _copy(operation: Operation, preparation: Preparation) -> PlainFunction:
    assert isinstance(operation, AsyncCopyOp)
    type_ = operation.dst.type
    assert isinstance(type_, SharedType)
    pointer = OptionalOperand(preparation, operation.ptr)
    destination = preparation.slot(operation.dst)
    mask_operand = OptionalOperand(preparation, operation.mask)
    other = OptionalOperand(preparation, operation.other)
    element = Element.of(pointee_of(operation.ptr.type))

    def evaluate(program: Program, addresses: Array, *_: Array) -> Array:
        mask = mask_operand.value(program)
        if program.has_poison:
            require_defined(program, "the mask of a copy", mask_operand.poison(program))
            require_defined(program, "the address of a copy", pointer.poison(program), mask)
        fill = other.value(program)
        lanes = lanes_of(addresses, mask)
        chosen = slice(None) if lanes.positions is None else lanes.positions

        def read() -> Array:
            # Hardware fills zeros in where the mask is off.
            result = np.zeros(type_.extents(), element.dtype)
            result[...] = result if fill is None else fill
            with at_operation(program, operation):
                result.reshape(-1)[chosen] = load_lanes(program, lanes, element)
            return as_bytes(result, type_)

        start = program.values[destination]
        assert isinstance(start, np.ndarray | np.generic)
        places = bytes_of_tile(type_, int(start)).ravel()
        program.touch(Resource.SHARED, writes=True)
        with located(program):
            shared_memory_of(program).start_copy(places, read(), read)
        return _TOKEN

    return evaluate


@STAGED_RULES.plain.register(AsyncCommitOp)
def _commit(_: Operation, __: Preparation) -> PlainFunction:
    def evaluate(program: Program, *_: Array) -> Array:
        shared_memory_of(program).commit_copies()
        return _TOKEN

    return evaluate


@STAGED_RULES.plain.register(AsyncWaitOp)
def _wait(operation: Operation, _: Preparation) -> PlainFunction:
    assert isinstance(operation, AsyncWaitOp)
    pending = operation.num.value.data

    def evaluate(program: Program, *_: Array) -> Array:
        with located(program):
            shared_memory_of(program).wait_copies(pending)
        return _TOKEN

    return evaluate


@STAGED_RULES.plain.register(LocalBarrierOp, BarrierOp)
def _barrier(_: Operation, __: Preparation) -> PlainFunction:
    return lambda program: None if program.shared is None else program.shared.barrier()
