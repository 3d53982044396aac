"""The order of a tile's elements in shared memory that neither side's accesses conflict in.

Shared memory has 32 banks of 4 bytes; a wavefront serves 128 bytes, one word of each bank. So of
the bits of a byte offset the low 7 choose the word and the bank, and the rest, the *segment*, must
be the same or the bank different for what one wavefront serves. With `A` the span of what a
wavefront of the store touches and `B` that of the load, both of at most 7 bits' worth of vectors,
no access conflicts exactly if the span of the segment vectors meets `A` and `B` in 0 alone. A
common complement of two subspaces of one dimension always exists: the segment vectors are a
complement of `A + B`, and the sums of what is in `A` only with what is in `B` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.layout.gf2 import Span, intersection
from tilewright.support.dataclass import dataclass


@dataclass(frozen=True)
class Wavefront:
    """One side of a round trip: what a wavefront touches, and what threads choose."""

    touched: tuple[int, ...]
    by_thread: tuple[int, ...]


def offset_basis(
    low: Sequence[int],
    store: Wavefront,
    load: Wavefront,
    num_bits: int,
    segment_bits: int,
) -> tuple[tuple[int, ...], int]:
    """The vectors of the bits of an offset, and how many of the last of them depend on no thread.

    *Semantics*: `low` comes first; one of the wavefronts spans it. Bits from `segment_bits` on
    are the segment.
    """
    whole = [1 << bit for bit in range(num_bits)]
    touched = (*low, *store.touched, *load.touched, *store.by_thread, *load.by_thread)
    thread = _extended([], touched, num_bits)
    static = _extended(thread, whole, num_bits)[len(thread) :]
    width = min(segment_bits, len(thread))
    left = _extended(_extended([], store.touched, width), (*load.touched, *thread), width)
    right = _extended(_extended([], load.touched, width), (*left, *thread), width)
    if all(vector in Span(store.touched) for vector in low):
        vectored, other, side = left, right, store
    else:
        vectored, other, side = right, left, load
    segment = _common_complement(vectored, other, thread, low, side.by_thread)
    banks = _extended(list(low), vectored, width)
    return (*banks, *segment, *static), len(static)


def _extended(start: list[int], vectors: Iterable[int], limit: int) -> list[int]:
    """The vectors of `start` and as many more independent ones as the limit allows."""
    span, found = Span(start), list(start)
    for vector in vectors:
        if len(found) == limit:
            break
        if span.add(vector):
            found.append(vector)
    return found


def _common_complement(
    vectored: list[int],
    other: list[int],
    whole: list[int],
    low: Sequence[int],
    by_thread: Sequence[int],
) -> list[int]:
    """Vectors that complete both of two spans of one dimension to the whole.

    A sum with a vector of `low` moves that bit of an address with the other summand. Where a
    thread of the vectored side chooses the other summand its vectors would not be aligned, so
    those are summed with other vectors as far as they go.
    """
    shared = list(intersection(vectored, other))
    mine = _extended(shared, (*(v for v in vectored if v not in low), *low), len(vectored))
    chosen = Span(by_thread)
    aligned = (*(v for v in other if v in chosen), *other)
    theirs = _extended(shared, aligned, len(other))
    either = _extended([], (*vectored, *theirs), len(whole))
    outside = _extended(either, whole, len(whole))[len(either) :]
    pairs = zip(mine[len(shared) :], theirs[len(shared) :], strict=True)
    return [*(a ^ b for a, b in pairs), *outside]
