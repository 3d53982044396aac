"""Keeps tile loads before tile stores in fused nests, where pointers may alias.

A fused nest interleaves loads and stores chunk by chunk, while a program's tile load completes
before a later tile store. That is the same when each store hits only what its own chunk has
read (equal pointers, no two of them to one address), or nothing that the nest reads. The first is
seen at compile time, but for distances that are arguments; for the second the nest compares the
address ranges at run time, from its own pointers, which are affine or of bounded offsets
(`bounds.py`). Where neither can be known or the test fails, stores go to the arena first and are
copied to their place after the nest.
"""

from __future__ import annotations

from enum import IntEnum

from xdsl.ir import Operation, SSAValue

from tilewright.analysis.separation import Apart, find_apart
from tilewright.ir.types import i64, shape_of
from tilewright.ops.memory.ir import AddPtrOp
from tilewright.targets.cpu.nests.addresses import address, pointee_bytes
from tilewright.targets.cpu.nests.bounds import Bounds, is_affine, is_arrangement, is_bounded
from tilewright.targets.cpu.nests.coordinates import constant_coords
from tilewright.targets.cpu.nests.evaluate import Evaluator
from tilewright.targets.cpu.nests.loop_order import MemoryAccess, NestBody
from tilewright.targets.cpu.nests.separation import are_apart, polynomial
from tilewright.targets.cpu.schedule.inline import is_tile, owner

Range = tuple[SSAValue, SSAValue]

_MEMORY_BYTES = 1 << 57
"""More than memory holds.

Source: Intel SDM vol. 1, 3.3.7.1: linear addresses have at most 57 bits."""


class Hazard(IntEnum):
    """What a nest must do about its stores."""

    NONE = 0
    TEST = 1
    ALWAYS = 2


def find_pairs(ev: Evaluator, body: NestBody) -> list[tuple[MemoryAccess, MemoryAccess]]:
    """The pairs (access, later store) of a nest whose order the nest's loops could change."""
    structure = ev.lowering.bufferization.structure
    accesses = [access for access in body.accesses if access.op is not None]
    stores = [access for access in accesses if access.is_store]
    pairs = []
    for store in stores:
        for access in accesses:
            if access is store or (access.is_store and stores.index(access) > stores.index(store)):
                continue
            if not _is_same(access, store) or find_apart(structure, store.value) is not Apart.YES:
                pairs.append((access, store))
    return pairs


def _is_same(access: MemoryAccess, store: MemoryAccess) -> bool:
    return access.value is store.value and access.coords == store.coords


def classify(ev: Evaluator, pairs: list[tuple[MemoryAccess, MemoryAccess]]) -> Hazard:
    """Whether ranges of all pairs can be compared at run time."""
    if not pairs:
        return Hazard.NONE
    structure = ev.lowering.bufferization.structure
    for access in {access: None for pair in pairs for access in pair}:
        if not _has_range(ev, access.value):
            return Hazard.ALWAYS
        if access.is_store and not _is_contiguous(ev, access):
            return Hazard.ALWAYS
    for access, store in pairs:
        if _is_same(access, store) and find_apart(structure, store.value) is Apart.NO:
            return Hazard.ALWAYS
    return Hazard.TEST


def _has_range(ev: Evaluator, ptr: SSAValue) -> bool:
    """Whether a nest can tell the addresses that a pointer tile covers."""
    while is_tile(ptr) and not is_affine(ev, ptr):
        op = owner(ptr)
        if op is None or ev.lowering.bufferization.is_stored(ptr):
            return False
        offset = _offset_of(op)
        if not (is_arrangement(op) if offset is None else is_bounded(ev, offset)):
            return False
        ptr = op.operands[0]
    return True


def _offset_of(op: Operation) -> SSAValue | None:
    """What an op adds to a tile of pointers."""
    return op.operands[1] if isinstance(op, AddPtrOp) else None


def _is_contiguous(ev: Evaluator, access: MemoryAccess) -> bool:
    return ev.lanes == 1 or ev.lane_stride(access.value, access.coords) == (1, False)


def is_safe(ev: Evaluator, pairs: list[tuple[MemoryAccess, MemoryAccess]]) -> SSAValue:
    """An i1: every pair is disjoint, or reads and writes the same element at a time."""
    emit, bounds = ev.emit, Bounds(ev)
    safe: SSAValue | None = None
    for access, store in pairs:
        pair = _is_pair_safe(bounds, access, store)
        safe = pair if safe is None else emit.integer("andi", safe, pair)
    assert safe is not None
    for condition in bounds.conditions:
        safe = emit.integer("andi", safe, condition)
    return safe


def _is_pair_safe(bounds: Bounds, access: MemoryAccess, store: MemoryAccess) -> SSAValue:
    ev, emit = bounds.ev, bounds.emit
    structure = ev.lowering.bufferization.structure
    apart = find_apart(structure, store.value)
    if _is_same(access, store):
        return are_apart(ev, store.value)
    (low, high), (start, end) = _range(bounds, access.value), _range(bounds, store.value)
    before = emit.compare("sle", high, start)
    after = emit.compare("sle", end, low)
    pair = emit.integer("ori", before, after)
    if apart is Apart.NO or not _moves_alike(ev, access, store):
        return pair
    same = emit.compare("eq", _first(ev, access.value), _first(ev, store.value))
    if apart is Apart.TEST:
        same = emit.integer("andi", same, are_apart(ev, store.value))
    return emit.integer("ori", pair, same)


def _moves_alike(ev: Evaluator, access: MemoryAccess, store: MemoryAccess) -> bool:
    structure = ev.lowering.bufferization.structure
    alike = structure.strides(access.value) == structure.strides(store.value)
    sizes = pointee_bytes(access.value) == pointee_bytes(store.value)
    return alike and sizes and access.coords == store.coords


def _range(bounds: Bounds, ptr: SSAValue) -> Range:
    """The byte addresses [low, high) that a pointer tile covers, where the bounds hold."""
    ev, emit = bounds.ev, bounds.emit
    if not is_tile(ptr):
        start = address(ev, ev.lowering.scalar(ptr))
        return start, emit.integer("addi", start, emit.constant(i64, pointee_bytes(ptr)))
    if is_affine(ev, ptr):
        return address_range(ev, ptr)
    op = owner(ptr)
    assert op is not None
    low, high = _range(bounds, op.operands[0])
    offset = _offset_of(op)
    if offset is None:
        return low, high
    size = emit.constant(i64, pointee_bytes(ptr))
    least, most = (emit.integer("muli", end, size) for end in bounds.of(offset))
    return emit.integer("addi", low, least), emit.integer("addi", high, most)


def _first(ev: Evaluator, ptr: SSAValue) -> SSAValue:
    origin = constant_coords((0,) * len(shape_of(ptr.type)))
    return address(ev, ev.element(ptr, origin, False))


def address_range(ev: Evaluator, ptr: SSAValue) -> Range:
    """The byte addresses [low, high) that an affine pointer tile covers."""
    key = ("range", ptr)
    emit, size = ev.emit, pointee_bytes(ptr)
    found = emit.recall((*key, "low")), emit.recall((*key, "high"))
    if found[0] is not None and found[1] is not None:
        return found[0], found[1]
    low = high = _first(ev, ptr)
    strides = ev.lowering.bufferization.structure.strides(ptr)
    below, above = 0, size
    for stride, extent in zip(strides, shape_of(ptr.type), strict=True):
        assert stride is not None
        constant = stride.as_int()
        if constant is not None:
            span = constant * (extent - 1) * size
            below, above = below + min(span, 0), above + max(span, 0)
            continue
        zero = emit.constant(i64, 0)
        span_value = polynomial(ev, stride, (extent - 1) * size)
        low = emit.integer("addi", low, emit.integer("minsi", span_value, zero))
        high = emit.integer("addi", high, emit.integer("maxsi", span_value, zero))
    if above - below >= _MEMORY_BYTES:
        # A mask hides most of it, and sums of addresses may wrap: it may be anywhere.
        low, high = emit.constant(i64, -(1 << 63)), emit.constant(i64, (1 << 63) - 1)
        return low, high
    if below:
        low = emit.integer("addi", low, emit.constant(i64, below))
    high = emit.integer("addi", high, emit.constant(i64, above))
    return emit.remember((*key, "low"), low), emit.remember((*key, "high"), high)
