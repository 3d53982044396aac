"""What `explain` says of a nest."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation

from tilewright.ir.effects import global_access
from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.machine.cpus import LINE_BYTES
from tilewright.ops.function import is_argument
from tilewright.targets.cpu.estimate import nest_time
from tilewright.targets.cpu.nests.lane_loops import Nest
from tilewright.targets.cpu.nests.loop_order import MemoryAccess
from tilewright.targets.cpu.report import NestSummary, line_of
from tilewright.targets.cpu.schedule.fetches import growth
from tilewright.targets.cpu.schedule.roots import SCALAR_KINDS, RootKind


def summary_of(nest: Nest, is_rare: bool) -> NestSummary:
    """The summary of a nest that has been emitted."""
    lines = dict.fromkeys(line_of(root.op.location) for root in nest.roots)
    count = prod(nest.space)
    total = sum(_bytes_of(access) for access in nest.body.accesses)
    native = nest.lowering.machine.vector_bytes * 8 // nest.body.widest_bits
    cost = nest.body.cost + sum(root.kind is RootKind.REDUCE for root in nest.roots)
    time = nest_time(nest.space, max(1, min(nest.lanes, native)), cost, _moved_bytes(nest, is_rare))
    return NestSummary(
        lines=tuple(line for line in lines if line),
        bounds=nest.space,
        vector=nest.lanes,
        lane_dim=nest.lane_dim,
        fused=tuple(names_of(nest)),
        accesses=tuple(nest.ev.accesses.values()),
        bytes=total,
        flops=nest.body.num_ops * count,
        remarks=_remarks(nest),
        loop=nest.lowering.report.loop_of(nest.roots[0].op),
        time=time,
        is_rare=is_rare,
    )


def names_of(nest: Nest) -> list[str]:
    """The roots of a nest in a reader's words."""
    return [
        root.kind.value if root.kind in (RootKind.COPY, RootKind.MATERIALIZE) else root.op.name
        for root in nest.roots
    ]


def _bytes_of(access: MemoryAccess) -> int:
    element = element_of(access.value.type)
    element = getattr(element, "pointee", element)
    return storage_bytes(element) * prod(shape_of(access.value.type))


def _moved_bytes(nest: Nest, is_rare: bool) -> tuple[int, int]:
    """The bytes of memory and of tiles that a nest moves, for its time.

    What an earlier nest or program has loaded is as near as a tile. A gathered element moves a
    line. A store that waits in the arena goes through a tile, there and back.
    """
    memory, tiles, loaded = 0, 0, nest.lowering.report.loaded
    for access in nest.body.accesses:
        size = _bytes_of(access)
        if access.op is not None and _is_gathered(nest, access.op):
            size = LINE_BYTES * prod(shape_of(access.value.type))
        is_near = access.op is None or access.op in loaded or _is_kept(nest, access, size)
        memory, tiles = memory + size * (not is_near), tiles + size * is_near
        if access.is_store and nest.aside and not nest.redirects:
            tiles += 2 * size
    if not is_rare:
        loaded.update(a.op for a in nest.body.accesses if a.op is not None and not a.is_store)
    return memory, tiles


def _is_kept(nest: Nest, access: MemoryAccess, size: int) -> bool:
    """Whether the next program loads the same, and half of the second-level cache holds it."""
    if access.is_store or 2 * size > nest.lowering.machine.l2_bytes:
        return False
    pending, seen = [access.value], {access.value}
    while pending:
        value = pending.pop()
        if is_argument(value):
            continue
        op = value.owner
        if not isinstance(op, Operation) or growth(op) or global_access(op) is not None:
            return False
        new = [operand for operand in op.operands if operand not in seen]
        seen.update(new)
        pending += new
    return True


def _is_gathered(nest: Nest, op: Operation) -> bool:
    found = nest.ev.accesses.get(op)
    return found is not None and found.kind == "gather"


def _remarks(nest: Nest) -> tuple[str, ...]:
    """What is slow about a nest and why."""
    remarks = []
    if nest.roots[0].kind in SCALAR_KINDS:
        remarks.append(f"not vectorized: {nest.roots[0].op.name} works element by element")
    elif nest.lane_dim is None and prod(nest.space) > 1:
        if nest.roots[0].kind is RootKind.SCAN:
            remarks.append("not vectorized: the scan's only dimension runs in order")
        else:
            remarks.append("not vectorized: the combine function has control flow")
    if nest.redirects:
        remarks.append("stores go through the arena where they overlap loads (tested per program)")
    elif nest.aside:
        remarks.append("stores go through the arena: they may overlap loads")
    return tuple(remarks)
