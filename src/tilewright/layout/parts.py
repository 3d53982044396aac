"""Parts of a tile: equal pieces along one dim, as views of its memory or of its registers."""

from __future__ import annotations

from collections.abc import Sequence
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
    step = _step(places, dim, extents[dim])
    if step is None:
        larger = [n for n in _divisors(shared.shape[dim]) if n > extents[dim]]
        least = next(n for n in larger if _step(places, dim, n) is not None)
        alike = tuple(least if d == dim else extent for d, extent in enumerate(extents))
        raise UnsupportedLayout(
            f"parts of {_sizes(extents)} of a tile of {_sizes(shared.shape)} do not lie alike in "
            f"shared memory, which has its elements in a pattern for the banks; "
            f"parts of {_sizes(alike)} do"
        )
    return step


def _step(places: np.ndarray, dim: int, extent: int) -> int | None:
    """The distance of parts of an extent that are the first one, moved by a constant."""
    first, *others = np.split(places, places.shape[dim] // extent, axis=dim)
    step = int((others[0] - first).flat[0]) if others else 0
    moved = (other == first + number * step for number, other in enumerate(others, 1))
    return step if all(alike.all() for alike in moved) else None


def _divisors(extent: int) -> list[int]:
    return [n for n in range(1, extent + 1) if extent % n == 0]


def _sizes(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


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
        raise UnsupportedLayout(
            f"the part of {_sizes(part.shape)} from {first} on is spread over other threads than "
            f"the tile of {_sizes(whole.shape)}"
        )
    where = {at: r for r, at in reversed(tuple(enumerate(whole.register_offsets())))}
    try:
        return tuple(
            where[tuple(start + at for start, at in zip(first, offset, strict=True))]
            for offset in part.register_offsets()
        )
    except KeyError:
        raise UnsupportedLayout(
            f"the threads of a tile of {_sizes(whole.shape)} have not all elements that they have "
            f"of its part of {_sizes(part.shape)} from {first} on"
        ) from None


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
        raise UnsupportedLayout(
            f"parts of {_sizes(extents)} of a tile of {_sizes(whole.shape)} are spread over fewer "
            "threads than the tile"
        )
    repeats = tuple(extent // size for extent, size in zip(extents, atom, strict=True))
    bases = (("register", registers), *threads)
    return LinearLayout(bases, atom, repeats, tuple(range(len(extents))))
