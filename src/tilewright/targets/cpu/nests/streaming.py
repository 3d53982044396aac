"""Stores that bypass the cache where a launch writes more than the cache holds.

A store of a whole line that bypasses the cache saves reading the line first (measured: vector
add on 768 MiB 29-33 GB/s with ordinary stores, 38-43 without reading; but slower where the
result fits in the cache). How much a launch writes is known when it runs: the grid times the
bytes of one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Block, Operation, SSAValue

from tilewright.analysis.provenance import base_argument
from tilewright.ir.effects import global_access, is_plain_read
from tilewright.ir.regions import Counter, counter_of, loops_around
from tilewright.ir.types import i64, is_integer
from tilewright.machine.cpus import LINE_BYTES
from tilewright.ops.creation.ir import constant_of
from tilewright.ops.function import function_around
from tilewright.ops.program.ir import GetNumProgramsOp
from tilewright.targets.cpu.nests.addresses import address, pointee_bytes
from tilewright.targets.cpu.nests.coordinates import Coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.loop_order import NestBody
from tilewright.targets.cpu.schedule.roots import Root, RootKind

# What only moves data has few ops; more would make the four copies of the body long. Chosen, not
# measured: where chunks start, and which stores write past the cache, changes no result.
_MAX_OPS = 40
_WRITTEN_SHARE = 3 / 8
"""The share of the host's last cache that a launch may write before its stores bypass it.

What is moved is read as well, and others use the cache, too. A virtual machine that owns a small
part of a large one finds what it moves there for longer, and writes up to that part. Measured on a
Zen 3 of two cores (L3 of 32 MiB), 2026-11-29, times of stores that bypass it / that do not, for f32
results of 8, 12, 16 and 32 MiB: layer norm on one thread 0.56, 0.63, 0.78, 0.65, on two 1.07, 0.83,
0.92, 0.81, and where the result is read next 1.26, 0.95, 0.90, 0.84; vector add on two 0.76, 0.91,
0.69, 0.87, of 4 MiB 1.68. Softmax 0.87 to 1.08: what computes beside its stores may write as much
as fits."""
_CONTIGUOUS, _UNIFORM = (1, False), (0, False)


def is_stream(ev: Evaluator, roots: Sequence[Root], body: NestBody) -> bool:
    """Whether a nest only moves data: light, contiguous stores, and reads to feed them.

    What it reads may lie in the arena: the quotients of a softmax read exponentials there.
    """
    if body.is_heavy or body.num_ops > _MAX_OPS:
        return False
    if any(root.kind is not RootKind.STORE for root in roots):
        return False
    stores = [access for access in body.accesses if access.is_store]
    loads = [access for access in body.accesses if access.op is not None and not access.is_store]
    reads_tiles = any(access.op is None for access in body.accesses)
    whole_lines = all(ev.lanes * pointee_bytes(t.value) % LINE_BYTES == 0 for t in stores)
    straight = all(ev.lane_stride(t.value, t.coords) == _CONTIGUOUS for t in stores)
    regular = all(ev.lane_stride(t.value, t.coords) in (_CONTIGUOUS, _UNIFORM) for t in loads)
    return (bool(loads) or reads_tiles) and whole_lines and straight and regular


def line_lanes(roots: Sequence[Root]) -> int:
    """The elements of one line of the first store."""
    return LINE_BYTES // pointee_bytes(roots[0].values[0])


def head_elems(ev: Evaluator, roots: Sequence[Root], coords: Coords) -> SSAValue:
    """How many elements (i32) precede the first line boundary of the first store."""
    emit, size = ev.emit, pointee_bytes(roots[0].values[0])
    start = _start_address(ev, roots[0], coords)
    before = emit.integer("subi", emit.constant(i64, 0), start)
    rest = emit.integer("andi", before, emit.constant(i64, LINE_BYTES - 1))
    shift = emit.constant(i64, size.bit_length() - 1)
    return emit.narrow(emit.integer("shrui", rest, shift), i32)


def is_large(ev: Evaluator, roots: Sequence[Root], coords: Coords, head: SSAValue) -> SSAValue:
    """An i1: the launch writes more than the cache holds, and all stores are aligned."""
    emit = ev.emit
    written = sum(pointee_bytes(root.values[0]) * prod(root.space) for root in roots)
    large = exceeds_cache(ev, written, loops_that_move(ev, roots))
    for root in roots:
        skipped = emit.constant(i64, pointee_bytes(root.values[0]))
        skipped = emit.integer("muli", emit.widen(head), skipped)
        first = emit.integer("addi", _start_address(ev, root, coords), skipped)
        rest = emit.integer("andi", first, emit.constant(i64, LINE_BYTES - 1))
        aligned = emit.compare("eq", rest, emit.constant(i64, 0))
        large = emit.integer("andi", large, aligned)
    return large


def exceeds_cache(ev: Evaluator, num_bytes: int, loops: Sequence[Counter] = ()) -> SSAValue:
    """An i1: programs that write `num_bytes` in each turn of `loops` leave nothing of it there."""
    machine = ev.lowering.machine
    most_bytes = machine.l3_bytes
    if ev.lowering.is_bound_by_memory:
        host_bytes = machine.host_l3_bytes or machine.l3_bytes
        most_bytes = min(most_bytes, int(_WRITTEN_SHARE * host_bytes))
    limit = ev.emit.constant(i64, most_bytes // max(num_bytes, 1))
    times = _num_programs(ev)
    for loop in loops:
        times = ev.emit.integer("muli", times, _turns(ev, loop))
    return ev.emit.compare("sgt", times, limit)


def loops_that_move(ev: Evaluator, roots: Sequence[Root]) -> tuple[Counter, ...]:
    """The loops around stores whose places depend on them, if no load finds what they write.

    What a program reads again behind the loop is better left in the cache.
    """
    pointer = roots[0].values[0]
    moving = tuple(
        counter
        for loop in loops_around(roots[0].op)
        if (counter := counter_of(loop)) is not None
        and constant_of(counter.step) == 1
        and is_integer(counter.value.type)
        and _depends_on(pointer, loop)
    )
    if not moving:
        return ()
    base, read = base_argument(pointer), _read_arguments(ev, roots[0].op)
    return () if base is None or base in read or None in read else moving


def _read_arguments(ev: Evaluator, op: Operation) -> frozenset[SSAValue | None]:
    """The arguments that the kernel around an op loads through; None for what is not known."""
    found, kernel = ev.lowering.read_arguments, function_around(op)
    if kernel not in found:
        loads = (global_access(each) for each in kernel.walk() if is_plain_read(each))
        pointers = (None if load is None else load.value for load in loads)
        found[kernel] = frozenset(p if p is None else base_argument(p) for p in pointers)
    return found[kernel]


def _depends_on(value: SSAValue, loop: Operation) -> bool:
    """Whether a value is computed from what changes with each turn of a loop."""
    seen, pending = {value}, [value]
    while pending:
        value = pending.pop()
        owner = value.owner
        if isinstance(owner, Block):
            if owner.parent_op() is loop:
                return True
            continue
        if loop.is_ancestor(owner):
            pending += set(owner.operands) - seen
            seen |= set(owner.operands)
    return False


def _turns(ev: Evaluator, loop: Counter) -> SSAValue:
    """How often a loop by ones runs, as i64."""
    first, end = (ev.emit.widen(ev.lowering.scalar(bound)) for bound in (loop.start, loop.end))
    turns = ev.emit.integer("subi", end, first)
    return ev.emit.integer("maxsi", turns, ev.emit.constant(i64, 0))


def _start_address(ev: Evaluator, root: Root, coords: Coords) -> SSAValue:
    """The address of a store where the lane loop starts, as i64."""
    start = tuple(coord.without_lanes() for coord in coords)
    return address(ev, ev.element(root.values[0], start, False))


def _num_programs(ev: Evaluator) -> SSAValue:
    emit = ev.emit
    total: SSAValue | None = None
    for axis in range(3):
        count = emit.pure(GetNumProgramsOp, (), i32, {"axis": IntegerAttr(axis, i32)})
        wide = emit.widen(count)
        total = wide if total is None else emit.integer("muli", total, wide)
    assert total is not None
    return total
