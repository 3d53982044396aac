"""Gives every buffer its place in the worker's arena, sharing bytes between live ranges.

A buffer lives from the first to the last op that uses it, in the block that holds all uses; a
buffer used in a loop and outside of it lives during the whole loop. Ranges are coloured in one
sweep, each buffer taking the lowest hole that fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from tilewright.ir.edits import erase
from tilewright.ir.effects import global_access
from tilewright.ir.regions import is_control_flow
from tilewright.ir.types import is_pointer
from tilewright.machine.cpus import LINE_BYTES
from tilewright.ops.function import FuncOp
from tilewright.support.dataclass import dataclass
from tilewright.targets.cpu.ops import AllocOp, allocated_bytes


@dataclass(frozen=True)
class LiveRange:
    """A buffer with the numbers of the first and last op between which it lives."""

    alloc: AllocOp
    start: int
    end: int
    size_bytes: int


def place_buffers(kernel: FuncOp) -> int:
    """Set `offset_bytes` of every cpu.alloc; the result is the arena's size in bytes."""
    numbers: dict[Operation, tuple[int, int]] = {}
    _number(kernel.body.block, 0, numbers)
    ranges = [_live_range(op, numbers) for op in kernel.body.block.ops if isinstance(op, AllocOp)]
    return _colour([r for r in ranges if r is not None])


def _number(block: Block, counter: int, numbers: dict[Operation, tuple[int, int]]) -> int:
    """Number ops in order; an op with blocks spans the numbers inside it."""
    for op in block.ops:
        start = counter
        counter += 1
        if is_control_flow(op):
            for region in op.regions:
                for inner in region.blocks:
                    counter = _number(inner, counter, numbers)
        numbers[op] = (start, counter)
        counter += 1
    return counter


def _live_range(alloc: AllocOp, numbers: dict[Operation, tuple[int, int]]) -> LiveRange | None:
    chains = [_ancestors(user, numbers) for user in _users(alloc.results[0])]
    if not chains:
        erase(alloc)
        return None
    depth = 0
    while all(len(chain) > depth + 1 for chain in chains):
        if len({chain[depth] for chain in chains}) > 1:
            break
        depth += 1
    spans = [numbers[chain[min(depth, len(chain) - 1)]] for chain in chains]
    aligned = -(-allocated_bytes(alloc) // LINE_BYTES) * LINE_BYTES
    if alloc.kept is not None:
        # The next program of the thread counts on it.
        spans = [(0, max(end for _, end in numbers.values()))]
    return LiveRange(alloc, min(s for s, _ in spans), max(e for _, e in spans), aligned)


def _users(value: SSAValue) -> Iterator[Operation]:
    """The ops that use a buffer, also through pointers computed from it."""
    pending, seen = [value], {value}
    while pending:
        for use in pending.pop().uses:
            yield use.operation
            if global_access(use.operation) is not None:
                continue  # what is read there points elsewhere
            for result in use.operation.results:
                if is_pointer(result.type) and result not in seen:
                    seen.add(result)
                    pending.append(result)


def _ancestors(op: Operation, numbers: Mapping[Operation, tuple[int, int]]) -> list[Operation]:
    """The enclosing ops from the kernel's block down to `op`; what is in a nest has no number."""
    chain: list[Operation] = []
    current: Operation | None = op
    while current is not None:
        if current in numbers:
            chain.append(current)
        current = current.parent_op()
    return chain[::-1]


def _colour(ranges: list[LiveRange]) -> int:
    """First fit over ranges in the order in which they start."""
    placed: list[tuple[int, int, int]] = []
    total = 0
    for live in sorted(ranges, key=lambda r: (r.start, -r.size_bytes)):
        placed = [entry for entry in placed if entry[2] >= live.start]
        offset = 0
        for start, end, _ in sorted(placed):
            if start - offset >= live.size_bytes:
                break
            offset = max(offset, end)
        placed.append((offset, offset + live.size_bytes, live.end))
        live.alloc.properties["offset_bytes"] = IntegerAttr(offset, i64)
        total = max(total, offset + live.size_bytes)
    return total
