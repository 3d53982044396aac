"""Loads that are planned as copies become copies to shared memory, past registers (T1 to T1).

    %x = load %p {tw.copy = #tw.copy<"async 8">}; … %s = local_alloc %x; … dot %s
    ⇒ %s = local_alloc; %t = commit(async_copy %p → %s); … wait %t; … dot %s

A copy starts as early as its operands and the stores before it allow, so it runs while other
work of the block does; the wait stands where the tile was allocated, or before what may overwrite
the memory that is copied.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilewright.ir.annotations import annotate, annotated, decided
from tilewright.ir.attributes import integer_array
from tilewright.ir.edits import erase
from tilewright.ir.effects import Group, overtakes_reads, own_effects, stops_reads
from tilewright.ir.encoding import TOKEN
from tilewright.ir.op import build
from tilewright.ir.passes import Pass
from tilewright.ir.plans import AccessAttr, CopyAttr
from tilewright.ops.function import FuncOp, find_kernel
from tilewright.ops.memory.ir import LoadOp
from tilewright.ops.staging import AsyncCommitOp, AsyncCopyOp, AsyncWaitOp, LocalAllocOp
from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class CopyAsync(Pass):
    """The pass; see the module."""

    name = "copy-async"
    requires = "T1"
    produces = "T1"
    after = ("stage-tensor-maps", "decide-copies")

    def apply(self, module: ModuleOp) -> None:
        """Rewrite the kernel."""
        copy_async(find_kernel(module))


def copy_async(kernel: FuncOp) -> int:
    """Replace such loads by copies; how many there were."""
    allocs = [op for op in kernel.walk() if isinstance(op, LocalAllocOp) and _is_copy(op)]
    blocks = dict.fromkeys(op.parent for op in allocs if op.parent is not None)
    for alloc in allocs:
        _replace(alloc)
    for block in blocks:
        _count_waits(block)
    return len(allocs)


def _is_copy(alloc: LocalAllocOp) -> bool:
    """Whether what an alloc holds is a load that is planned as a copy."""
    source = alloc.src
    if not isinstance(source, OpResult):
        return False
    plan = annotated(source.op, CopyAttr)
    return plan is not None and plan.is_async


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
    annotate(
        copy, AccessAttr(replace(decided(load, AccessAttr), vector=decided(load, CopyAttr).elems))
    )
    commit = build(AsyncCommitOp, [copy.results[0]], [TOKEN], location=load.location)
    for op in (empty, copy, commit):
        block.insert_op_before(op, place)
    number = {"num": IntegerAttr(0, i32)}
    wait = build(AsyncWaitOp, [commit.results[0]], [TOKEN], number, location=alloc.location)
    block.insert_op_before(wait, _latest(load, alloc))
    alloc.result.replace_all_uses_with(empty.results[0])
    for op in (alloc, load):
        erase(op)


def _earliest(load: LoadOp, block: Block) -> Operation:
    """The first op of the block that the copy may stand before.

    It stays behind its operands, behind what writes global memory or waits for other programs,
    and behind the copies before it, whose order the waits count on.
    """
    operands = {operand.owner for operand in load.operands}
    place: Operation = load
    op = load.prev_op
    while op is not None and op not in operands:
        if _closes_group(op) or stops_reads(op):
            break
        place = op
        op = op.prev_op
    return place


def _latest(load: LoadOp, alloc: LocalAllocOp) -> Operation:
    """The op before which the copy must be done: where its tile was, or what may overwrite it."""
    op = load.next_op
    while op is not None and op is not alloc and not overtakes_reads(op):
        op = op.next_op
    return alloc if op is None else op


def _closes_group(op: Operation) -> bool:
    """Whether an op makes a group of the copies that were started; its result stands for it."""
    return any(isinstance(e, Group) and e.of is AsyncCopyOp for e in own_effects(op))


def _count_waits(block: Block) -> None:
    """Let each wait leave running what was started behind what it waits for."""
    started: list[SSAValue] = []
    for op in block.ops:
        if _closes_group(op):
            started.append(op.results[0])
        elif isinstance(op, AsyncWaitOp) and op.tokens and op.tokens[0] in started:
            behind = len(started) - 1 - started.index(op.tokens[0])
            op.properties["num"] = IntegerAttr(behind, i32)
