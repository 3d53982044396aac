"""What `explain` says of a nest."""

from __future__ import annotations

from math import prod

from tilewright.ir.types import element_of, shape_of, storage_bytes
from tilewright.targets.cpu.estimate import nest_time
from tilewright.targets.cpu.nests.lane_loops import Nest
from tilewright.targets.cpu.nests.loop_order import MemoryAccess
from tilewright.targets.cpu.report import NestSummary, line_of
from tilewright.targets.cpu.schedule.roots import SCALAR_KINDS, RootKind


def summary_of(nest: Nest, is_rare: bool) -> NestSummary:
    """The summary of a nest that has been emitted."""
    lines = dict.fromkeys(line_of(root.op.location) for root in nest.roots)
    count = prod(nest.space)
    sizes = [(access, _bytes_of(access)) for access in nest.body.accesses]
    memory = sum(size for access, size in sizes if access.op is not None)
    tiles = sum(size for access, size in sizes if access.op is None)
    native = nest.lowering.machine.vector_bytes * 8 // nest.body.widest_bits
    cost = nest.body.cost + sum(root.kind is RootKind.REDUCE for root in nest.roots)
    time = nest_time(nest.space, max(1, min(nest.lanes, native)), cost, (memory, tiles))
    return NestSummary(
        lines=tuple(line for line in lines if line),
        bounds=nest.space,
        vector=nest.lanes,
        lane_dim=nest.lane_dim,
        fused=tuple(names_of(nest)),
        accesses=tuple(nest.ev.accesses.values()),
        bytes=memory + tiles,
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
