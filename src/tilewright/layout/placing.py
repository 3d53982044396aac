"""How threads reach the elements of a shared tile whose layout is given."""

from __future__ import annotations

from functools import cache, reduce
from itertools import product
from operator import or_

from tilewright.layout.access import (
    VECTOR_BYTES,
    WORD_BYTES,
    Access,
    AccessKind,
    OffsetMap,
    Order,
    Passes,
    Side,
    log2,
)
from tilewright.layout.atoms import AtomView, atom_view
from tilewright.layout.digits import positions
from tilewright.layout.linear import LinearLayout
from tilewright.support.errors import NotPowerOfTwo

_KINDS: tuple[AccessKind, ...] = ("vector", "matrix", "transposed_matrix")


@cache
def plan_access(
    layout: LinearLayout, shared: LinearLayout, element_bytes: int, *, matrices: bool = True
) -> Access:
    """The instructions that move a tile in `layout` to or from a shared tile in `shared`.

    One pass; the widest vectors, or matrices of 16-byte rows where the fragments fit and
    `matrices` permits them. *Raises*: NotPowerOfTwo for a tile of repeats that no XOR finds.
    """
    view = atom_view(layout)
    order = _order(view, shared, element_bytes)
    if order is None:
        return _vectors_one_by_one(layout, shared, element_bytes)
    best: tuple[float, Side] | None = None
    for kind in _kinds(view, element_bytes) if matrices else _KINDS[:1]:
        side = Side(view, kind, element_bytes)
        if not _is_possible(side, order):
            continue
        cost = side.cost(order)
        if best is None or cost < best[0]:
            best = (cost, side)
    assert best is not None
    return best[1].access(order, Passes(view.num_copies, 0))


def _order(view: AtomView, shared: LinearLayout, element_bytes: int) -> Order | None:
    """The order of a shared tile; None where it is neither one atom of the shape nor a row of them.

    Rows of a larger tile lie as they do there: their coordinates are the same numbers.
    """
    is_atom = shared.atom == shared.shape and view.num_copies == 1
    if shared.atom[1:] != view.atom[1:] or not (is_atom or _follow(view, shared)):
        return None
    low = min(log2(VECTOR_BYTES // element_bytes), len(shared.columns))
    return Order(shared.columns, 0, low)


def _follow(view: AtomView, shared: LinearLayout) -> bool:
    """Whether the copies of a shape's atom lie one behind the other in a shared tile."""
    if shared.atom != view.atom:
        return False
    order = shared.repeat_order
    copies = list(positions(range(len(view.counts)), view.counts))
    there = list(positions(order, shared.repeats))[: len(copies)]
    return copies == there


def _kinds(view: AtomView, element_bytes: int) -> tuple[AccessKind, ...]:
    """The kinds that a fragment permits: matrices of any words, of halves transposed, too."""
    if len(view.lanes) != 5 or not view.registers:
        return _KINDS[:1]
    return _KINDS if element_bytes == 2 else _KINDS[: 2 if element_bytes <= WORD_BYTES else 1]


def _is_possible(side: Side, order: Order) -> bool:
    if side.kind == "vector":
        return True
    low = order.basis[: order.num_low]
    view, word = side.view, side.word_log2
    if len(low) != log2(VECTOR_BYTES // side.element_bytes) or view.free_lanes:
        return False
    if side.kind == "matrix":
        fits = low[word:] == view.lanes[:2] and all(v in view.registers for v in low[:word])
    else:
        fits = low == view.lanes[2:]
    return fits and side.fits(order)


def _vectors_one_by_one(layout: LinearLayout, shared: LinearLayout, element_bytes: int) -> Access:
    """Vectors of a tile that repeats an atom: by looking every element up."""
    place = _places(shared)
    origin = (0,) * layout.rank
    size = 1 << len(shared.columns)
    offsets = [place[at] for at in layout.register_offsets()]
    lane = tuple(place[v] ^ place[origin] for v in layout.basis_images("lane"))
    warp = tuple(place[v] ^ place[origin] for v in layout.basis_images("warp"))
    if not _are_disjoint([at // size for at in (*lane, *warp)]):
        extents = " x ".join(map(str, layout.shape))
        raise NotPowerOfTwo(
            f"the places in shared memory of a tile of {extents} follow from no thread's bits",
            hint="take powers of two, or rows that fill fewer panels of 128 bytes",
        )
    width = _common_width(offsets, (*lane, *warp), VECTOR_BYTES // element_bytes)
    groups = tuple(tuple(range(start, start + width)) for start in range(0, len(offsets), width))
    return Access(
        kind="vector",
        offsets=OffsetMap(
            register=tuple(at % size * element_bytes for at in offsets),
            added=tuple(at // size * size * element_bytes for at in offsets),
            lane=tuple(at * element_bytes for at in lane),
            warp=tuple(at * element_bytes for at in warp),
        ),
        passes=(groups,),
        representative=tuple(range(len(offsets))),
        free_lanes=layout.free_bits("lane"),
        free_warps=layout.free_bits("warp"),
    )


def _places(shared: LinearLayout) -> dict[tuple[int, ...], int]:
    """The offset of every element of a shared tile."""
    offsets = shared.register_offsets() if shared.rank else ()
    places = {at: offset for offset, at in enumerate(offsets)}
    assert len(places) == len(list(product(*map(range, shared.shape))))
    return places


def _are_disjoint(copies: list[int]) -> bool:
    """Whether no two bits of a thread move it by copies of the atom that an XOR would mix."""
    return sum(copies) == reduce(or_, copies, 0)


def _common_width(offsets: list[int], moving: tuple[int, ...], limit: int) -> int:
    """The longest run of neighbours that every group of registers is, aligned in every thread."""
    width = limit
    while width > 1:
        groups = [offsets[start : start + width] for start in range(0, len(offsets), width)]
        fits = len(offsets) % width == 0 and not any(at % width for at in moving)
        if fits and all(_is_run(group, width) for group in groups):
            return width
        width //= 2
    return 1


def _is_run(group: list[int], width: int) -> bool:
    return group[0] % width == 0 and group == list(range(group[0], group[0] + width))
