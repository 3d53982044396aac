"""Parts of a tile: equal pieces along one dim, as views of its memory or of its registers."""

from __future__ import annotations

from functools import cache
from math import gcd

import numpy as np

from tilewright.layout.linear import LinearLayout
from tilewright.support.errors import UnsupportedLayout


@cache
def part_step(shared: LinearLayout, dim: int, extents: tuple[int, ...]) -> int:
    """The elements of memory from one part of a shared tile along `dim` to the next.

    *Raises*: UnsupportedLayout where the parts are not the first one moved by a constant, as
    where a part has fewer rows than the pattern of a swizzle.
    """
    places = np.zeros(shared.shape, np.int64)
    at = np.array(shared.register_offsets()).reshape(-1, shared.rank)
    places[tuple(at.T)] = np.arange(len(at))
    count = shared.shape[dim] // extents[dim]
    first, *others = np.split(places, count, axis=dim)
    step = int((others[0] - first).flat[0]) if others else 0
    if any((other != first + number * step).any() for number, other in enumerate(others, 1)):
        raise UnsupportedLayout(f"parts of {extents} of {shared!r} do not lie alike in memory")
    return step


@cache
def part_registers(
    whole: LinearLayout, part: LinearLayout, first: tuple[int, ...]
) -> tuple[int, ...]:
    """For each register of a part that begins at `first`, the register of the whole that it is.

    *Raises*: UnsupportedLayout where an element of the part would change threads.
    """
    threads = [(whole.basis_images(name), part.basis_images(name)) for name in ("lane", "warp")]
    moved = [vector for images, _ in threads for vector in images]
    is_mixed = any(at & bit for vector in moved for at, bit in zip(first, vector, strict=True))
    if any(outer != inner for outer, inner in threads) or is_mixed:
        raise UnsupportedLayout(f"{part!r} from {first} on is spread over other threads: {whole!r}")
    where = {at: r for r, at in reversed(tuple(enumerate(whole.register_offsets())))}
    try:
        return tuple(
            where[tuple(start + at for start, at in zip(first, offset, strict=True))]
            for offset in part.register_offsets()
        )
    except KeyError:
        raise UnsupportedLayout(f"{whole!r} lacks elements of {part!r} from {first} on") from None


def part_layout(whole: LinearLayout, extents: tuple[int, ...]) -> LinearLayout:
    """The layout of a part of a register tile whose elements stay in their threads.

    *Shapes*: `extents` divide those of the whole.
    *Raises*: UnsupportedLayout where a part is spread over fewer threads.
    """
    atom = tuple(map(gcd, whole.atom, extents))

    def is_inside(vector: tuple[int, ...]) -> bool:
        return all(at < size for at, size in zip(vector, atom, strict=True))

    registers = tuple(filter(is_inside, whole.basis_images("register")))
    threads = tuple((name, whole.basis_images(name)) for name in whole.in_dims[1:])
    if not all(is_inside(vector) for _, images in threads for vector in images):
        raise UnsupportedLayout(f"{extents} of {whole!r} are spread over fewer threads")
    repeats = tuple(extent // size for extent, size in zip(extents, atom, strict=True))
    bases = (("register", registers), *threads)
    return LinearLayout(bases, atom, repeats, tuple(range(len(extents))))
