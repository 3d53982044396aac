"""Loads that only go to shared memory are copied there without passing registers (T1 to T1).

    %x = load %p; … %s = local_alloc %x; … dot %s
    ⇒ %s = local_alloc; %t = commit(async_copy %p → %s); … wait %t; … dot %s

A copy starts as early as its operands and the stores before it allow, so it runs while other
work of the block does; the wait stands where the tile was allocated.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilewright.ir.annotations import access_of, annotate_access, vector_elems
from tilewright.ir.attributes import integer_array
from tilewright.ir.effects import stops_reads
from tilewright.ir.encoding import TOKEN, SharedType, layout_of
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.types import element_of, is_integer, storage_bytes
from tilewright.layout.placing import plan_access
from tilewright.ops.creation import ConstantOp, SplatOp
from tilewright.ops.elementwise import CastOp
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.memory import LoadOp
from tilewright.ops.shape import BroadcastOp
from tilewright.ops.staging import (
    AsyncCommitOp,
    AsyncCopyOp,
    AsyncWaitOp,
    ConvertLayoutOp,
    LocalAllocOp,
)
from tilewright.support.dataclass import dataclass, replace

_COPY_BYTES = (4, 8, 16)


@dataclass(frozen=True)
class CopyAsync(Pass):
    """The pass; see the module."""

    name = "copy-async"
    requires = "T1"
    produces = "T1"
    after = ("stage-tensor-maps",)

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        copy_async(find_kernel(module))


def copy_async(kernel: FuncOp) -> int:
    """Replace such loads by copies; how many there were."""
    allocs = [op for op in kernel.walk() if isinstance(op, LocalAllocOp) and _is_fit(op)]
    blocks = dict.fromkeys(op.parent for op in allocs if op.parent is not None)
    for alloc in allocs:
        _replace(alloc)
    for block in blocks:
        _count_waits(block)
    return len(allocs)


def copy_elems(load: LoadOp, shared: SharedType) -> int:
    """The elements that one copy instruction of a lane moves; 0 where none fits."""
    layout, size = layout_of(load.result.type), storage_bytes(load.result.type)
    access = plan_access(layout, layout_of(shared), size, matrices=False)
    if access.free_lanes or access.free_warps:
        return 0
    width = min(vector_elems(load), access.vector_elems)
    is_in_order = all(
        group == tuple(range(group[0], group[0] + len(group))) for group in access.passes[0]
    )
    return width if is_in_order and width * size in _COPY_BYTES else 0


def _is_fit(alloc: LocalAllocOp) -> bool:
    """Whether what an alloc holds is a load of its block that nothing else uses."""
    source = alloc.src
    if not isinstance(source, OpResult) or not isinstance(source.op, LoadOp):
        return False
    load = source.op
    if load.parent is not alloc.parent or sum(1 for _ in source.uses) != 1:
        return False
    if _is_volatile(load) or not (load.other is None or _is_zero(load.other)):
        return False
    assert isinstance(alloc.result.type, SharedType)
    return copy_elems(load, alloc.result.type) > 0


def _is_volatile(load: LoadOp) -> bool:
    flag = load.is_volatile
    return flag is not None and not (isinstance(flag, IntegerAttr) and flag.value.data == 0)


def _is_zero(value: SSAValue) -> bool:
    """Whether every byte of a value is zero for certain."""
    owner = value.owner
    # The zero of one type is cast to that of another, all of whose bits are zero as well.
    while isinstance(owner, SplatOp | BroadcastOp | CastOp | ConvertLayoutOp):
        value = owner.operands[0]
        owner = value.owner
    if not isinstance(owner, ConstantOp):
        return False
    number = owner.splat_value()
    # A negative zero is other bits than what a copy fills in.
    return number == 0 and (is_integer(element_of(value.type)) or str(number)[0] != "-")


def _replace(alloc: LocalAllocOp) -> None:
    source = alloc.src
    assert isinstance(source, OpResult) and isinstance(source.op, LoadOp)
    load, block = source.op, alloc.parent
    assert block is not None
    place = _earliest(load, block)
    empty = build(LocalAllocOp, [], [alloc.result.type], location=alloc.location)
    operands = [load.ptr, empty.results[0]]
    if load.mask is not None:
        operands.append(load.mask)
    properties = {
        name: load.properties[name] for name in ("cache", "evict") if name in load.properties
    }
    properties["operandSegmentSizes"] = integer_array((1, 1, int(load.mask is not None), 0))
    copy = build(AsyncCopyOp, operands, [TOKEN], properties, location=load.location)
    assert isinstance(alloc.result.type, SharedType)
    width = copy_elems(load, alloc.result.type)
    annotate_access(copy, replace(access_of(load), vector=width))
    commit = build(AsyncCommitOp, [copy.results[0]], [TOKEN], location=load.location)
    for op in (empty, copy, commit):
        block.insert_op_before(op, place)
    number = {"num": IntegerAttr(0, i32)}
    wait = build(AsyncWaitOp, [commit.results[0]], [TOKEN], number, location=alloc.location)
    block.insert_op_before(wait, alloc)
    alloc.result.replace_all_uses_with(empty.results[0])
    for op in (alloc, load):
        op.detach()
        op.erase()


def _earliest(load: LoadOp, block: Block) -> Operation:
    """The first op of the block that the copy may stand before.

    It stays behind its operands, behind what writes global memory or waits for other programs,
    and behind the copies before it, whose order the waits count on.
    """
    operands = {operand.owner for operand in load.operands}
    place: Operation = load
    op = load.prev_op
    while op is not None and op not in operands:
        if isinstance(op, AsyncCommitOp) or stops_reads(op):
            break
        place = op
        op = op.prev_op
    return place


def _count_waits(block: Block) -> None:
    """Let each wait leave running what was started behind what it waits for."""
    started: list[SSAValue] = []
    for op in block.ops:
        if isinstance(op, AsyncCommitOp):
            started.append(op.token)
        elif isinstance(op, AsyncWaitOp) and op.tokens and op.tokens[0] in started:
            behind = len(started) - 1 - started.index(op.tokens[0])
            op.properties["num"] = IntegerAttr(behind, i32)
