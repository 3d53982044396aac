"""Conversions through shared memory: store in one layout, barrier, load in the other.

The order of the elements in between is free, and `banks` finds one in which nothing conflicts.
What is left to choose are the low bits of the offset, which decide what one instruction can move
on either side. Every choice is costed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.layout.access import (
    VECTOR_BYTES,
    WAVEFRONT_BYTES,
    WORD_BYTES,
    Access,
    AccessKind,
    OffsetMap,
    Order,
    Passes,
    Side,
    log2,
)
from tilewright.layout.atoms import AtomView
from tilewright.layout.banks import offset_basis
from tilewright.layout.gf2 import Span, intersection
from tilewright.layout.linear import LinearLayout
from tilewright.layout.map import unpack
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class SharedRoundTrip:
    """A conversion through shared memory.

    *Semantics*: for each pass: a barrier if the buffer was used before, the stores of the pass,
    a barrier, the loads of the pass. `shared` is the order of the elements of all passes;
    offsets are inside the buffer of `bytes` bytes that passes share, aligned to 16 bytes.
    """

    shared: LinearLayout
    store: Access
    load: Access
    bytes: int
    element_bytes: int
    # What shared memory needs to serve a warp: wavefronts, and half a cycle an instruction.
    transfer_cycles: float

    @property
    def num_passes(self) -> int:
        """The number of times that the buffer is filled."""
        return len(self.store.passes)

    @property
    def store_offsets(self) -> OffsetMap:
        """Where registers of the source are stored."""
        return self.store.offsets

    @property
    def load_offsets(self) -> OffsetMap:
        """Where registers of the target are loaded from."""
        return self.load.offsets

    def cost(self) -> int:
        """The cycles that a warp needs for it, roughly."""
        # A pass waits for the latency of a store, a barrier and a load; the next one for another
        # barrier too. Round figures for Hopper.
        return round(self.transfer_cycles) + 64 * self.num_passes + 32 * (self.num_passes - 1)


def plan_round_trip(
    source: AtomView,
    target: AtomView,
    element_bytes: int,
    max_bytes: int | None = None,
    *,
    matrices: bool = True,
) -> SharedRoundTrip:
    """The cheapest conversion through shared memory, in passes of `max_bytes` where it can."""
    best: tuple[tuple[int, float], Order, Side, Side] | None = None
    least = (0, _least_cost(source, element_bytes) + _least_cost(target, element_bytes))
    seen: set[tuple[int, ...]] = set()
    for low in _candidates(source, target, element_bytes, matrices):
        if low in seen:
            continue
        seen.add(low)
        if best is not None and best[0] <= least:
            break
        for store_kind in _kinds(source, low, element_bytes, matrices):
            for load_kind in _kinds(target, low, element_bytes, matrices):
                store = Side(source, store_kind, element_bytes)
                load = Side(target, load_kind, element_bytes)
                order = _order(low, store, load)
                if order is None:
                    continue
                missing = max(0, _buffer_bytes(order, store, max_bytes) - (max_bytes or 0))
                cost = store.cost(order) + load.cost(order)
                key = (missing if max_bytes else 0, cost)
                if best is None or key < best[0]:
                    best = (key, order, store, load)
    assert best is not None, (source, target)
    return _assemble(best[1], best[2], best[3], max_bytes)


def _least_cost(view: AtomView, element_bytes: int) -> float:
    """The cost of a side whose every instruction moves 16 bytes a lane without conflicts."""
    vector = min(log2(VECTOR_BYTES // element_bytes), len(view.registers))
    wavefronts = max(1, (element_bytes << vector) * 2 ** len(view.lanes) // WAVEFRONT_BYTES)
    return view.num_copies * (wavefronts + 0.5) * 2 ** (len(view.registers) - vector)


def _order(low: tuple[int, ...], store: Side, load: Side) -> Order | None:
    """The order with these low bits in which neither side conflicts, or None where it cannot be."""
    covered = max(store.prefix(low), load.prefix(low), store.word_log2)
    if covered < len(low):
        return None
    wavefronts = (store.wavefront(low), load.wavefront(low))
    segment_bits = log2(WAVEFRONT_BYTES // store.element_bytes)
    basis, static = offset_basis(low, *wavefronts, store.view.num_bits, segment_bits)
    order = Order(basis, static, len(low))
    return order if store.fits(order) and load.fits(order) else None


# --- what the low bits of an offset may be ----------------------------------------------------


def _candidates(
    source: AtomView, target: AtomView, element_bytes: int, matrices: bool
) -> Iterator[tuple[int, ...]]:
    """Sequences of vectors for the low bits of the offset, of a word to 16 bytes.

    The most promising first: of equal cost the first is taken.
    """
    limit, word = log2(VECTOR_BYTES // element_bytes), max(0, log2(WORD_BYTES // element_bytes))
    common = _common(source.registers, target.registers)
    shortest = len(_independent(common, limit))
    everything = [1 << bit for bit in range(source.num_bits)]

    def vectors(registers: tuple[int, ...], length: int) -> tuple[int, ...]:
        low = _independent((*common, *registers), length)
        # What shares a word is stored by neighbouring lanes where registers have no more.
        return _independent((*low, *source.lanes, *everything), max(len(low), word))

    sides = (source.registers, target.registers)
    yield from (vectors(registers, limit) for registers in sides)
    if matrices and element_bytes <= WORD_BYTES:
        yield from _matrix_candidates(source, target, element_bytes, word)
    for length in range(limit - 1, shortest - 1, -1):
        yield from (vectors(registers, length) for registers in sides)


def _matrix_candidates(
    source: AtomView, target: AtomView, element_bytes: int, word: int
) -> Iterator[tuple[int, ...]]:
    """Low bits that are a row of 16 bytes of an 8 × 8 matrix, or of a transposed one."""
    for view, other in ((source, target), (target, source)):
        preferred = _common(view.registers, other.registers)
        yield (*_independent((*preferred, *view.registers), word), *view.lanes[:2])
        if element_bytes == 2:
            yield view.lanes[2:]


def _common(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """The vectors of both spans, those that are bits of both sides first."""
    return (*(v for v in left if v in right), *intersection(left, right))


def _independent(vectors: Sequence[int], limit: int) -> tuple[int, ...]:
    span = Span()
    return tuple(vector for vector in vectors if span.rank < limit and span.add(vector))


def _kinds(
    view: AtomView, low: tuple[int, ...], element_bytes: int, matrices: bool
) -> Iterator[AccessKind]:
    """The instructions that can move a layout when these are the low bits of an offset."""
    if Span(low).kernel:
        return
    yield "vector"
    if not matrices or len(view.lanes) != 5 or element_bytes > WORD_BYTES:
        return
    if len(low) != log2(VECTOR_BYTES // element_bytes) or not view.registers:
        return
    if Span((*view.registers, *view.lanes)).kernel:
        return  # a lane holds copies, and matrices have none
    word = log2(WORD_BYTES // element_bytes)
    registers = Span(view.registers)
    if low[word:] == view.lanes[:2] and all(vector in registers for vector in low[:word]):
        yield "matrix"
    if element_bytes == 2 and low == view.lanes[2:]:
        yield "transposed_matrix"


# --- the plan ---------------------------------------------------------------------------------


def _assemble(order: Order, store: Side, load: Side, max_bytes: int | None) -> SharedRoundTrip:
    view, passes = store.view, _passes(order, store, max_bytes)
    return SharedRoundTrip(
        shared=LinearLayout(
            (("offset", tuple(unpack(vector, view.atom) for vector in order.basis)),),
            view.atom,
            view.counts,
        ),
        store=store.access(order, passes),
        load=load.access(order, passes),
        bytes=_buffer_bytes(order, store, max_bytes),
        element_bytes=store.element_bytes,
        transfer_cycles=store.cost(order) + load.cost(order),
    )


def _buffer_bytes(order: Order, side: Side, max_bytes: int | None) -> int:
    passes = _passes(order, side, max_bytes)
    part_bytes = side.element_bytes << (side.view.num_bits - passes.split_bits)
    return part_bytes * min(passes.copies_per_pass, side.view.num_copies)


def _passes(order: Order, side: Side, max_bytes: int | None) -> Passes:
    """As many copies at a time as fit, and of a copy that does not fit the part that does."""
    copies = side.view.num_copies
    atom_bytes = side.element_bytes << side.view.num_bits
    if max_bytes is None or atom_bytes * copies <= max_bytes:
        return Passes(copies, 0)
    if atom_bytes <= max_bytes:
        return Passes(max_bytes // atom_bytes, 0)
    split = 0
    while atom_bytes >> split > max_bytes and split < order.num_static:
        split += 1
    return Passes(1, split)
