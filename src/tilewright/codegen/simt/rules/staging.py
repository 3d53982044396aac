"""Shared tiles and conversions: elements that change threads through shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.rules import SIMT_RULES
from tilewright.codegen.simt.rules.memory import is_zero, vector_elems
from tilewright.codegen.simt.shared import load_shared, store_shared
from tilewright.codegen.simt.words import pack, storage_bits, unpack, word_bits_of
from tilewright.ir.encoding import SharedType, layout_of, slot_bytes
from tilewright.layout.access import Access
from tilewright.layout.placing import plan_access
from tilewright.ops.staging import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    ExtractSliceOp,
    LocalAllocOp,
    LocalBarrierOp,
    LocalLoadOp,
    LocalStoreOp,
    MemdescIndexOp,
    MemdescSliceOp,
    MemdescTransOp,
)
from tilewright.support.errors import InternalError


class SharedAddress:
    """The byte offsets of one thread's accesses to shared memory, from byte `start` on."""

    def __init__(self, ctx: SimtContext, start: str, access: Access) -> None:
        self.fn = ctx.fn
        self.start = start
        self.offsets = access.offsets
        self.base = ctx.index.linear(ctx.fn, self.offsets.lane, self.offsets.warp)
        self.moving = self.offsets.thread_mask
        self._known: dict[int, str] = {}

    def of(self, register: int) -> str:
        """The byte offset of the access whose first register this is.

        Bits that lanes and warps move as well are XORed; the others are added last, where they
        become the displacement of the access.
        """
        inside = self.offsets.register[register]
        mixed = inside & self.moving
        if mixed not in self._known:
            value = self.base
            if mixed:
                value = str(mixed) if value == "0" else self.fn.value(f"xor i32 {value}, {mixed}")
            self._known[mixed] = add(self.fn, self.start, value)
        displacement = inside - mixed + self.offsets.added[register]
        return add(self.fn, self._known[mixed], str(displacement))


def add(fn: FunctionBuilder, left: str, right: str) -> str:
    """The sum of two non-negative i32, either of which may be a number."""
    if right == "0":
        return left
    if left.isdigit() and right.isdigit():
        return str(int(left) + int(right))
    return right if left == "0" else fn.value(f"add nuw nsw i32 {left}, {right}")


def write_pass(
    ctx: SimtContext,
    element: Attribute,
    registers: Sequence[str],
    start: str,
    access: Access,
    number: int = 0,
) -> None:
    """Write one pass of a thread's registers to shared memory from byte `start` on."""
    fn = ctx.fn
    address = SharedAddress(ctx, start, access)
    if access.kind != "vector":
        for group in access.passes[number]:
            words = pack(fn, element, [registers[r] for r in group], 32)
            is_transposed = access.kind == "transposed_matrix"
            ctx.target.store_matrices(fn, address.of(group[0]), words, is_transposed)
        return
    predicate = is_zero(ctx, access.free_lanes, access.free_warps)
    done = fn.new_label() if predicate is not None else None
    if predicate is not None and done is not None:
        # The prologue of addresses must dominate what follows, so they are made before.
        for group in access.passes[number]:
            address.of(group[0])
        body = fn.new_label()
        fn.branch_if(predicate, body, done)
        fn.place(body)
    for group in access.passes[number]:
        bits = word_bits_of(element, len(group))
        words = pack(fn, element, [registers[r] for r in group], bits)
        store_shared(fn, address.of(group[0]), words, bits)
    if done is not None:
        fn.branch(done)
        fn.place(done)


def read_pass(
    ctx: SimtContext,
    element: Attribute,
    start: str,
    access: Access,
    values: dict[int, str],
    number: int = 0,
) -> None:
    """Read one pass of a thread's registers from byte `start` on into `values`."""
    fn = ctx.fn
    address = SharedAddress(ctx, start, access)
    for group in access.passes[number]:
        place = address.of(group[0])
        if access.kind == "vector":
            bits = word_bits_of(element, len(group))
            count = max(1, len(group) * storage_bits(element) // bits)
            words = load_shared(fn, place, count, bits)
        else:
            bits = 32
            count = len(group) * storage_bits(element) // 32
            is_transposed = access.kind == "transposed_matrix"
            words = ctx.target.load_matrices(fn, place, count, is_transposed)
        names = unpack(fn, element, words, bits)
        values.update(zip(group, names, strict=True))


def read_all(ctx: SimtContext, values: dict[int, str], access: Access) -> list[str]:
    """The registers in order, copies named after what they are copies of."""
    return [values[register] for register in access.representative]


def _access(ctx: SimtContext, tile: Attribute, shared: SharedType) -> Access:
    size = storage_bits(shared.element) // 8
    return plan_access(
        layout_of(tile), layout_of(shared), size, matrices=ctx.target.has_matrix_moves
    )


def _write(ctx: SimtContext, tile: Attribute, names: Sequence[str], start: str, to: SharedType):
    write_pass(ctx, to.element, names, start, _access(ctx, tile, to))


@SIMT_RULES.register(LocalAllocOp)
def _alloc(ctx: SimtContext, op: LocalAllocOp) -> None:
    if op.offset_bytes is None:
        raise InternalError("a shared tile has no place")
    start = ctx.scope.shared_byte(op.offset_bytes.value.data)
    ctx.define(op, start)
    if op.src is not None:
        assert isinstance(op.result.type, SharedType)
        _write(ctx, op.src.type, ctx.registers(op.src), start, op.result.type)


@SIMT_RULES.register(LocalStoreOp)
def _store(ctx: SimtContext, op: LocalStoreOp) -> None:
    assert isinstance(op.dst.type, SharedType)
    _write(ctx, op.src.type, ctx.registers(op.src), ctx.value(op.dst), op.dst.type)


@SIMT_RULES.register(LocalLoadOp)
def _load(ctx: SimtContext, op: LocalLoadOp) -> None:
    type_ = op.src.type
    assert isinstance(type_, SharedType)
    access = _access(ctx, op.result.type, type_)
    values: dict[int, str] = {}
    read_pass(ctx, type_.element, ctx.value(op.src), access, values)
    ctx.define_tile(op.result, read_all(ctx, values, access))


@SIMT_RULES.register(AsyncCopyOp)
def _copy(ctx: SimtContext, op: AsyncCopyOp) -> None:
    type_ = op.dst.type
    assert isinstance(type_, SharedType)
    size = storage_bits(type_.element) // 8
    access = plan_access(layout_of(op.ptr.type), layout_of(type_), size, matrices=False)
    address = SharedAddress(ctx, ctx.value(op.dst), access)
    pointers = ctx.registers(op.ptr)
    masks = None if op.mask is None else ctx.registers(op.mask)
    width, own = vector_elems(op), is_zero(ctx, access.free_lanes, access.free_warps)
    for group in access.passes[0]:
        for start in range(0, len(group), width):
            register = group[start]
            place = add(ctx.fn, address.of(group[0]), str(start * size))
            mask = None if masks is None else masks[register]
            ctx.target.copy_async(ctx.fn, place, pointers[register], width * size, mask, own)


@SIMT_RULES.register(AsyncCommitOp)
def _commit(ctx: SimtContext, op: AsyncCommitOp) -> None:
    ctx.target.commit_copies(ctx.fn)


@SIMT_RULES.register(AsyncWaitOp)
def _wait(ctx: SimtContext, op: AsyncWaitOp) -> None:
    ctx.target.wait_copies(ctx.fn, op.num.value.data)


@SIMT_RULES.register(MemdescIndexOp)
def _index(ctx: SimtContext, op: MemdescIndexOp) -> None:
    type_ = op.src.type
    assert isinstance(type_, SharedType)
    step = ctx.fn.value(f"mul nuw nsw i32 {ctx.value(op.index)}, {slot_bytes(type_)}")
    ctx.define(op, add(ctx.fn, ctx.value(op.src), step))


@SIMT_RULES.register(MemdescTransOp)
def _trans(ctx: SimtContext, op: MemdescTransOp) -> None:
    ctx.define(op, ctx.value(op.src))


@SIMT_RULES.register(MemdescSliceOp)
def _part_of_memory(ctx: SimtContext, op: MemdescSliceOp) -> None:
    type_ = op.src.type
    assert isinstance(type_, SharedType)
    step_bytes = op.step_elements() * storage_bits(type_.element) // 8
    step = ctx.fn.value(f"mul nuw nsw i32 {ctx.value(op.part)}, {step_bytes}")
    ctx.define(op, add(ctx.fn, ctx.value(op.src), step))


@SIMT_RULES.register(ExtractSliceOp)
def _part_of_registers(ctx: SimtContext, op: ExtractSliceOp) -> None:
    names = ctx.registers(op.src)
    ctx.define_tile(op.result, [names[register] for register in op.source_registers()])


@SIMT_RULES.register(LocalBarrierOp)
def _barrier(ctx: SimtContext, op: LocalBarrierOp) -> None:
    ctx.scope.barrier()
