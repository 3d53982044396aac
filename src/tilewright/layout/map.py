"""Linear maps over GF(2) with repeats: the data and the algebra of layouts.

A map takes the bits of its in-dims to the coordinates of a tile, and it is linear over GF(2): the
coordinates of an index are the XOR of the coordinates of its bits. That covers a power-of-two
**atom**; a tile of any multiple of it, such as 192 × 176, repeats the atom, and the repeats are
the slow part of the first in-dim.

```
distributed:  register, lane, warp → dims        shared memory:  offset → dims
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Self

import numpy as np

from tilewright.layout import text
from tilewright.layout.digits import (
    position,
    positions,
)
from tilewright.layout.gf2 import Span
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import LayoutError, UnsupportedLayout
from tilewright.support.powers_of_two import is_power_of_two

Coordinates = tuple[int, ...]
Bases = tuple[tuple[str, tuple[Coordinates, ...]], ...]


@dataclass(frozen=True)
class LinearMap:
    """A map from in-dims such as registers, lanes and warps to the elements of a tile.

    *Semantics*: with `r = copy * 2^b + low`, where `b` is the number of bases of `register`,
    `coordinates[d] = position(copy)[d] * atom[d] + (XOR of the bases of the bits set)[d]`.
    `position(copy)` reads `copy` in mixed radix, the first dim of `repeat_order` slowest.
    *Constraints*: extents of the atom are powers of two. The form is canonical: a repeat that is
    the fastest and has a factor of two is written as bases, so that equal maps are equal objects.
    """

    bases: Bases
    atom: tuple[int, ...]
    repeats: tuple[int, ...] = ()
    # The dims that are repeated, slowest first; by default row-major.
    repeat_order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not all(is_power_of_two(extent) for extent in self.atom):
            raise LayoutError(f"the atom {self.atom} of a layout is not of powers of two")
        for in_dim, vectors in self.bases:
            for vector in vectors:
                if len(vector) != len(self.atom) or not _is_inside(vector, self.atom):
                    raise LayoutError(f"the basis {vector} of `{in_dim}` is outside {self.atom}")
        self._fold_repeats()

    def _fold_repeats(self) -> None:
        """Write the power-of-two part of the fastest repeats as bases of the first in-dim."""
        repeats = list(self.repeats or (1,) * len(self.atom))
        order = [dim for dim in self.repeat_order or range(len(repeats)) if repeats[dim] > 1]
        if len(order) != sum(count > 1 for count in repeats):
            raise LayoutError(f"{self.repeat_order} does not order the repeats {self.repeats}")
        atom, folded = list(self.atom), list[Coordinates]()
        while order:
            dim = order[-1]
            while repeats[dim] % 2 == 0:
                folded.append(unit(len(atom), dim, atom[dim]))
                atom[dim] *= 2
                repeats[dim] //= 2
            if repeats[dim] > 1:
                break
            order.pop()
        bases = self.bases
        if folded:
            (name, vectors), *rest = bases
            bases = ((name, (*vectors, *folded)), *rest)
        fields = {"bases": bases, "atom": tuple(atom), "repeats": tuple(repeats)}
        for name, value in {**fields, "repeat_order": tuple(order)}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def _hash(self) -> int:
        return hash((self.bases, self.atom, self.repeats, self.repeat_order))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text()!r})"

    def text(self) -> str:
        """The layout as one short line, which `parse` reads back."""
        return text.print_layout(self.bases, self.atom, self.repeats, self.repeat_order)

    @classmethod
    def parse(cls, line: str) -> Self:
        """The layout that `text` printed.

        *Raises*: `LayoutError` where the line is not the text of a layout.
        """
        return cls(*text.parse_layout(line))

    # --- sizes ------------------------------------------------------------------------------

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile."""
        return tuple(a * r for a, r in zip(self.atom, self.repeats, strict=True))

    @property
    def rank(self) -> int:
        """The number of dimensions of the tile."""
        return len(self.atom)

    @cached_property
    def in_dims(self) -> tuple[str, ...]:
        """The names of what is mapped, the one that carries the repeats first."""
        return tuple(name for name, _ in self.bases)

    def basis_images(self, in_dim: str) -> tuple[Coordinates, ...]:
        """The coordinates of each bit of an in-dim; none where the layout has no such in-dim."""
        return dict(self.bases).get(in_dim, ())

    def size(self, in_dim: str) -> int:
        """The number of values of an in-dim."""
        size = 1 << len(self.basis_images(in_dim))
        return size * prod(self.repeats) if in_dim == self.in_dims[0] else size

    @property
    def num_registers(self) -> int:
        """The number of registers that a lane has of the tile."""
        return self.size("register")

    @property
    def num_lanes(self) -> int:
        """The number of lanes of a warp."""
        return self.size("lane")

    @property
    def num_warps(self) -> int:
        """The number of warps that hold the tile."""
        return self.size("warp")

    # --- where elements are -----------------------------------------------------------------

    def apply(self, **in_values: int) -> Coordinates:
        """The coordinates of one place; in-dims that are not named are 0."""
        first, total = self.in_dims[0], (0,) * self.rank
        copy = 0
        for name, vectors in self.bases:
            value = in_values.pop(name, 0)
            if name == first:
                copy, value = divmod(value, 1 << len(vectors))
            total = _xor(total, _combine(vectors, value, self.rank))
        if in_values:
            raise LayoutError(f"the layout has no in-dim {', '.join(in_values)}: {self!r}")
        at = position(self.repeat_order, self.repeats, copy)
        return tuple(t + p * a for t, p, a in zip(total, at, self.atom, strict=True))

    def register_offsets(self) -> tuple[Coordinates, ...]:
        """The coordinates of each register (or offset) at lane 0 of warp 0."""
        return self._first_offsets

    @cached_property
    def _first_offsets(self) -> tuple[Coordinates, ...]:
        low: list[Coordinates] = [(0,) * self.rank]
        for basis in self.bases[0][1]:
            low += [_xor(basis, coordinates) for coordinates in low]
        return tuple(
            tuple(c + p * a for c, p, a in zip(coordinates, at, self.atom, strict=True))
            for at in positions(self.repeat_order, self.repeats)
            for coordinates in low
        )

    def coordinates(self) -> np.ndarray:
        """The coordinates of every place, `[registers, lanes, warps, rank]` (in-dims in order)."""
        offsets = self.register_offsets()
        total = np.array(offsets, np.int64).reshape(len(offsets), self.rank)
        for _, vectors in self.bases[1:]:
            for basis in vectors:
                # XOR within the atom does not touch the multiples of the atom.
                total = np.stack([total, total ^ np.array(basis, np.int64)], axis=-2)
            # The bits just stacked stand lowest first; the axis wants the lowest last.
            axes = range(total.ndim - 1 - len(vectors), total.ndim - 1)
            before = range(total.ndim - 1 - len(vectors))
            total = total.transpose(*before, *reversed(axes), total.ndim - 1)
            total = total.reshape(*total.shape[: len(before)], 1 << len(vectors), self.rank)
        return total

    # --- linear algebra on the atom ---------------------------------------------------------

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """The matrix of the atom: a column for each in-bit, the last dim in the lowest bits."""
        return tuple(self.pack(basis) for _, vectors in self.bases for basis in vectors)

    def pack(self, coordinates: Sequence[int]) -> int:
        """Coordinates inside the atom as one number, row-major."""
        packed = 0
        for coordinate, extent in zip(coordinates, self.atom, strict=True):
            packed = packed * extent + coordinate
        return packed

    def unpack(self, packed: int) -> Coordinates:
        """The coordinates inside the atom that `pack` made a number of."""
        return unpack(packed, self.atom)

    @cached_property
    def _span(self) -> Span:
        return Span(self.columns)

    def _in_values(self, combination: int) -> Coordinates:
        """The bits of a combination of columns, by in-dim."""
        values: list[int] = []
        for _, vectors in self.bases:
            values.append(combination & ((1 << len(vectors)) - 1))
            combination >>= len(vectors)
        return tuple(values)

    def free_bits(self, in_dim: str) -> int:
        """The bits of an in-dim that hold copies: places that differ in them alone agree.

        Of places that hold the same element, the one whose free bits are all 0 stands for all.
        Bits count as free when they depend on bits before them, in the order of the in-dims.
        """
        free = sum(1 << bit for bit, is_free in enumerate(self._span.free) if is_free)
        return dict(zip(self.in_dims, self._in_values(free), strict=True)).get(in_dim, 0)

    @property
    def is_injective(self) -> bool:
        """Whether no element is held twice."""
        return not any(self._span.free)

    @property
    def is_surjective(self) -> bool:
        """Whether every element is held."""
        return 1 << self._span.rank == prod(self.atom)

    def image(self) -> tuple[Coordinates, ...]:
        """A reduced basis of the coordinates inside the atom that some place holds."""
        return tuple(self.unpack(vector) for vector in self._span.basis())

    def kernel(self) -> tuple[Coordinates, ...]:
        """A basis of the places (a value for each in-dim) that hold the element 0 as well."""
        return tuple(self._in_values(vector) for vector in self._span.kernel)

    def compose(self, other: Self) -> Self:
        """The layout `x → other(self(x))`; the in-dims of `other` are the dims of this, in order.

        *Raises*: `UnsupportedLayout` where a layout has repeats or the sizes do not match.
        """
        sizes = tuple(other.size(in_dim) for in_dim in other.in_dims)
        if self._has_repeats or other._has_repeats or sizes != self.atom:
            raise UnsupportedLayout(f"{other!r} does not take what {self!r} gives")
        bases = tuple(
            (name, tuple(other._at(vector) for vector in vectors)) for name, vectors in self.bases
        )
        return type(self)(bases, other.atom)

    def _at(self, in_values: Sequence[int]) -> Coordinates:
        return self.apply(**dict(zip(self.in_dims, in_values, strict=True)))

    @property
    def _has_repeats(self) -> bool:
        return bool(self.repeat_order)

    def invert(self) -> Self:
        """The map from `dim0`, `dim1`, … to the in-dims of this layout, in order.

        *Raises*: `UnsupportedLayout` where elements are held twice or not at all.
        """
        if not self.is_injective or not self.is_surjective:
            raise UnsupportedLayout(f"a layout that is not one-to-one has no inverse: {self!r}")
        return self.pseudo_invert()

    def pseudo_invert(self) -> Self:
        """The map from `dim0`, `dim1`, … to the place without free bits that holds the element.

        What no place holds goes to the place of an element that is held.
        *Raises*: `UnsupportedLayout` where the layout has repeats.
        """
        if self._has_repeats:
            raise UnsupportedLayout(f"only the atom of a layout has an inverse: {self!r}")
        bases: list[tuple[str, tuple[Coordinates, ...]]] = []
        for dim, extent in enumerate(self.atom):
            units = (unit(self.rank, dim, 1 << bit) for bit in range(extent.bit_length() - 1))
            bases.append((f"dim{dim}", tuple(self._place(vector) for vector in units)))
        return type(self)(tuple(bases), tuple(1 << len(vectors) for _, vectors in self.bases))

    def _place(self, coordinates: Coordinates) -> Coordinates:
        return self._in_values(self._span.reduce(self.pack(coordinates))[1])

    def _select(self, dims: Sequence[int]) -> Self:
        """The layout whose dim `i` is this one's `dims[i]`; dims left out are dropped."""
        return type(self)(
            self._map_bases(lambda vector: tuple(vector[dim] for dim in dims)),
            tuple(self.atom[dim] for dim in dims),
            tuple(self.repeats[dim] for dim in dims),
            tuple(dims.index(dim) for dim in self.repeat_order if dim in dims),
        )

    def _map_bases(self, change: Callable[[Coordinates], Coordinates]) -> Bases:
        return tuple((name, tuple(change(vector) for vector in v)) for name, v in self.bases)


def unit(rank: int, dim: int, value: int) -> Coordinates:
    """The coordinates that are `value` along one dim and 0 along the others."""
    return tuple(value if d == dim else 0 for d in range(rank))


def unpack(packed: int, atom: Sequence[int]) -> Coordinates:
    """The coordinates inside an atom that stand at a place of its row-major order."""
    found: list[int] = []
    for extent in reversed(atom):
        packed, coordinate = divmod(packed, extent)
        found.append(coordinate)
    return tuple(reversed(found))


def _is_inside(vector: Coordinates, atom: Sequence[int]) -> bool:
    return all(0 <= coordinate < extent for coordinate, extent in zip(vector, atom, strict=True))


def _xor(left: Coordinates, right: Coordinates) -> Coordinates:
    return tuple(a ^ b for a, b in zip(left, right, strict=True))


def _combine(vectors: Sequence[Coordinates], value: int, rank: int) -> Coordinates:
    total = (0,) * rank
    for bit, vector in enumerate(vectors):
        if value >> bit & 1:
            total = _xor(total, vector)
    return total
