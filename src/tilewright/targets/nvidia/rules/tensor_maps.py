"""Tensor maps: those that the launch passed, and those that a program makes.

A program makes a map in shared memory, field by field, copies it to its slot of global memory and
lets the copy engine see it. A slot is taken by a compare-and-swap: a kernel has as many as
programs run at once, so that one is free, and no allocator and no launch has to know of them.

*Source*: PTX ISA 8.8, 9.7.9.28 "tensormap.replace", 9.7.13.4 "fence.proxy.tensormap".
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from tilewright.codegen.llvm_builder import FunctionBuilder
from tilewright.codegen.simt.context import SimtContext
from tilewright.codegen.simt.rules.staging import add
from tilewright.codegen.simt.services import AtomicAccess
from tilewright.codegen.simt.shared import load_shared, shared_pointer, store_shared
from tilewright.ir.attributes import integers_of
from tilewright.ops.roles import role_around
from tilewright.support.errors import InternalError
from tilewright.targets.nvidia.rules import NVIDIA_RULES
from tilewright.targets.nvidia.rules.tma import ElectedPart, in_first_thread, in_one_thread
from tilewright.targets.nvidia.tensor_map import MAP_BYTES
from tilewright.targets.nvidia.tma.box_annotations import box_plan
from tilewright.targets.nvidia.tma_ops import (
    LeaveMapSlotOp,
    MakeTensorMapOp,
    TakeMapSlotOp,
    TensorMapOp,
    TmaStoreOp,
)

_SLOTS = "tensor_map_slots"
_TAKE = AtomicAccess("cas", 32, "", "acquire", "gpu")
_LEAVE = AtomicAccess("store", 32, "", "release", "gpu")
# What `tensormap.replace` calls the numbers; integers and the small floats as in the driver.
# Source: PTX ISA 8.8, tensormap.replace.
_ELEMENT_TYPES = {
    **{"u8": 0, "u16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5, "f16": 6},
    **{"f32": 7, "f64": 9, "bf16": 10},
}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


@NVIDIA_RULES.register(TensorMapOp)
def _tensor_map(ctx: SimtContext, op: TensorMapOp) -> None:
    ctx.define(op, f"%m{op.index.value.data}")


@NVIDIA_RULES.register(TakeMapSlotOp)
def _take(ctx: SimtContext, op: TakeMapSlotOp) -> None:
    num_slots = op.num_slots.value.data
    slot_bytes = MAP_BYTES * (1 + op.num_maps.value.data)
    size = num_slots * slot_bytes
    definition = f"internal addrspace(1) global [{size} x i8] zeroinitializer, align {MAP_BYTES}"
    slots = ctx.module.add_global(_SLOTS, definition)
    taken = ""

    count, number = integers_of(op.takers) or (1, 0)

    def emit(fn: FunctionBuilder) -> None:
        nonlocal taken
        # Where to look first: those of one launch find slots of their own there.
        own = ctx.target.program_id(fn, 0)
        if count > 1:
            own = fn.value(f"mul i32 {own}, {count}")
            replica = fn.value(f"add i32 {ctx.index.replica(fn)}, {number}")
            own = fn.value(f"add i32 {own}, {replica}")
        generic = fn.value(f"addrspacecast ptr addrspace(1) {slots} to ptr")
        first = fn.value(f"urem i32 {own}, {num_slots}")
        again, done, entry = fn.new_label(), fn.new_label(), fn.block
        fn.branch(again)
        fn.place(again)
        header = len(fn.lines)
        index = fn.value("phi")
        taken = fn.value(f"getelementptr [{slot_bytes} x i8], ptr {generic}, i32 {index}")
        (old,) = ctx.target.atomic(fn, _TAKE, taken, [["0"], ["1"]], 1, None)
        following = fn.value(f"add i32 {index}, 1")
        following = fn.value(f"urem i32 {following}, {num_slots}")
        is_free = fn.value(f"icmp eq i32 {old}, 0")
        back = fn.block
        fn.branch_if(is_free, done, again)
        incoming = f"[ {first}, %{entry} ], [ {following}, %{back} ]"
        fn.lines[header] = f"  {index} = phi i32 {incoming}"
        fn.place(done)

    part = _in_user(ctx, op)(ctx, emit)
    if not part.others:
        ctx.define(op, taken)
        return
    incoming = [f"[ null, %{block} ]" for block in part.others]
    incoming.append(f"[ {taken}, %{part.last} ]")
    ctx.define(op, ctx.fn.value(f"phi ptr {', '.join(incoming)}"))


@NVIDIA_RULES.register(LeaveMapSlotOp)
def _leave(ctx: SimtContext, op: LeaveMapSlotOp) -> None:
    slot = ctx.value(op.slot)

    def emit(fn: FunctionBuilder) -> None:
        ctx.target.atomic(fn, _LEAVE, slot, [["0"]], 1, None)

    _in_user(ctx, op)(ctx, emit)


InThread = Callable[[SimtContext, Callable[[FunctionBuilder], None]], ElectedPart]


def _in_user(ctx: SimtContext, op: Operation) -> InThread:
    """What emits code for the thread that uses maps where an op stands.

    An elected one starts copies, but for the stores of a role, which its first thread does: so a
    kernel keeps to either in each of its roles.
    """
    around = role_around(op)
    if around is None or ctx.scope.partition.is_elected:
        return in_one_thread
    roles, number = around
    ops = roles.bodies[number].block.walk()
    plain = any(isinstance(inner, TmaStoreOp) and inner.kind is None for inner in ops)
    return in_first_thread if plain else in_one_thread


@NVIDIA_RULES.register(MakeTensorMapOp)
def _make(ctx: SimtContext, op: MakeTensorMapOp) -> None:
    if op.workspace is None or op.scratch is None:
        raise InternalError("a tensor map has no place to be made in")
    start, offset = ctx.value(op.workspace), MAP_BYTES * (1 + op.index.value.data)
    slot = ctx.fn.value(f"getelementptr i8, ptr {ctx.value(op.scratch)}, i32 {offset}")

    def emit(fn: FunctionBuilder) -> None:
        for at in range(0, MAP_BYTES, 8):
            store_shared(fn, add(fn, start, str(at)), ["0"], 64)
        _Fields(ctx, op, shared_pointer(fn, start)).emit()
        for at in range(0, MAP_BYTES, 16):
            words = load_shared(fn, add(fn, start, str(at)), 2, 64)
            for index, word in enumerate(words):
                place = fn.value(f"getelementptr i8, ptr {slot}, i32 {at + 8 * index}")
                fn.emit(f"store i64 {word}, ptr {place}, align 8")
        fn.emit("call void @llvm.nvvm.fence.proxy.tensormap_generic.release.gpu()")
        name = "@llvm.nvvm.fence.proxy.tensormap_generic.acquire.gpu"
        fn.emit(f"call void {name}(ptr {slot}, i32 {MAP_BYTES})")

    _in_user(ctx, op)(ctx, emit)
    ctx.define(op, slot)


class _Fields:
    """Writes the fields of one map; dims go from the last on."""

    def __init__(self, ctx: SimtContext, op: MakeTensorMapOp, pointer: str) -> None:
        self.ctx, self.fn, self.op = ctx, ctx.fn, op
        self.pointer = pointer
        self.plan = box_plan(op, op.result)

    def emit(self) -> None:
        """Write every field."""
        op, rank = self.op, len(self.op.shape)
        address = self.fn.value(f"ptrtoint ptr {self.ctx.value(op.base)} to i64")
        self._set("global.address", f"i64 {address}")
        self._set("rank", f"i32 {rank - 1}")
        self._set("elemtype", f"i32 {_ELEMENT_TYPES[op.number.data]}")
        for index, dim in enumerate(reversed(range(rank))):
            self._set("global.dim", f"i32 {index}, i32 {self.ctx.value(op.shape[dim])}")
            self._set("box.dim", f"i32 {index}, i32 {self.plan.box[dim]}")
            self._set("element.stride", f"i32 {index}, i32 1")
        size = self.plan.element_bytes
        for index, stride in enumerate(reversed(op.strides[:-1])):
            self._set("global.stride", f"i32 {index}, i64 {self._bytes(stride, size)}")
        self._set("interleave.layout", "i32 0")
        self._set("swizzle.mode", f"i32 {_SWIZZLES[self.plan.swizzle_bytes]}")
        self._set("fill.mode", f"i32 {int(op.fills_nan is not None)}")

    def _bytes(self, stride: SSAValue, size: int) -> str:
        name = self.ctx.value(stride)
        return self.fn.value(f"mul i64 {name}, {size}")

    def _set(self, field: str, arguments: str) -> None:
        name = f"@llvm.nvvm.tensormap.replace.{field}.p3"
        self.fn.emit(f"call void {name}(ptr addrspace(3) {self.pointer}, {arguments})")
