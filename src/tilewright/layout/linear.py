"""Linear layouts: which element of a tile sits in which register, lane and warp.

What the algebra of `map` means for tiles: each function gives the layout of the result of a
tile op from the layout of its operand, such that no element moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from tilewright.layout.digits import Regrouping
from tilewright.layout.gf2 import Span
from tilewright.layout.map import Bases, Coordinates, LinearMap, unit, unpack
from tilewright.support.errors import LayoutError, UnsupportedLayout

__all__ = ["Bases", "Coordinates", "LinearLayout", "UnsupportedLayout"]


class LinearLayout(LinearMap):
    """A map from registers, lanes and warps (or shared offsets) to the elements of a tile."""

    # --- dims that come and go --------------------------------------------------------------

    def slice(self, axis: int) -> LinearLayout:
        """The layout without one dim, as `sum(axis)` leaves it.

        Bits that moved along the axis alone stay as bits of copies; repeats along it go.
        """
        self._check_axis(axis, self.rank)
        return self._select(tuple(dim for dim in range(self.rank) if dim != axis))

    def expand(self, axis: int) -> LinearLayout:
        """The layout with a new dim of extent 1, as `expand_dims(axis)` makes it."""
        self._check_axis(axis, self.rank + 1)

        def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
            return (*values[:axis], value, *values[axis:])

        return LinearLayout(
            self._map_bases(lambda vector: insert(vector, 0)),
            insert(self.atom, 1),
            insert(self.repeats, 1),
            tuple(dim + (dim >= axis) for dim in self.repeat_order),
        )

    def permute(self, order: Sequence[int]) -> LinearLayout:
        """The layout whose dim `i` is dim `order[i]` of this one."""
        if sorted(order) != list(range(self.rank)):
            raise LayoutError(f"{tuple(order)} is not an order of {self.rank} dims")
        return self._select(tuple(order))

    def shrink(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of the operand of `shape` of which `broadcast` makes this one.

        *Semantics*: coordinates are masked to 0 along dims of extent 1. Bits that moved along
        them alone stay as bits of copies; repeats along them go.
        """
        kept = tuple(dim for dim in range(self.rank) if shape[dim] == self.shape[dim])
        if len(shape) != self.rank or any(
            shape[dim] != 1 for dim in range(self.rank) if dim not in kept
        ):
            raise LayoutError(f"{tuple(shape)} does not broadcast to {self.shape}")
        return LinearLayout(
            self._map_bases(lambda v: tuple(v[dim] * (dim in kept) for dim in range(self.rank))),
            tuple(a if dim in kept else 1 for dim, a in enumerate(self.atom)),
            tuple(r if dim in kept else 1 for dim, r in enumerate(self.repeats)),
            tuple(dim for dim in self.repeat_order if dim in kept),
        )

    def broadcast(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of `shape` in which each lane holds what it needs of this one already.

        *Semantics*: dims of extent 1 that grow are held whole by every lane, in registers above
        the present ones. A layout that spreads them over lanes shrinks to this one as well, and
        is cheaper to hold: see `shrink`.
        """
        grown = [dim for dim in range(self.rank) if self.shape[dim] != shape[dim]]
        if len(shape) != self.rank or any(self.shape[dim] != 1 for dim in grown):
            raise LayoutError(f"{self.shape} does not broadcast to {tuple(shape)}")
        repeats = tuple(shape[d] if d in grown else r for d, r in enumerate(self.repeats))
        return LinearLayout(self.bases, self.atom, repeats, (*grown, *self.repeat_order))

    # --- one flat order, cut anew -----------------------------------------------------------

    def reshape(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of the same elements in row-major order in another shape.

        *Raises*: `UnsupportedLayout` where a repeat would stand below a bit of the atom, or two
        repeats would become one that are not next to each other in a register index.
        """
        if prod(shape) != prod(self.shape):
            raise LayoutError(f"{self.shape} and {tuple(shape)} differ in the number of elements")
        atom, parts = self._regroup(shape)
        order: list[int] = []
        repeats = [1] * len(shape)
        for dim in self.repeat_order:
            for target in range(len(shape)):
                for source, count in reversed(parts[target]):
                    if source == dim:
                        order.append(target)
                        repeats[target] *= count
        merged = [dim for i, dim in enumerate(order) if i == 0 or order[i - 1] != dim]
        if len(set(merged)) != len(merged) or not self._is_row_major(parts):
            raise self._no_reshape(shape)
        # The bits of the atom stand in the same order in both shapes.
        bases = self._map_bases(lambda vector: unpack(self.pack(vector), atom))
        return LinearLayout(bases, tuple(atom), tuple(repeats), tuple(merged))

    def _regroup(self, shape: Sequence[int]) -> tuple[list[int], list[list[tuple[int, int]]]]:
        """The atom of the reshaped layout, and of which repeats each of its repeats is made."""
        digits = Regrouping(self.atom, self.repeats)
        taken = [digits.take(extent) for extent in reversed(shape)]
        found = [entry for entry in reversed(taken) if entry is not None]
        if len(found) != len(shape):
            raise self._no_reshape(shape)
        return [atom for atom, _ in found], [parts for _, parts in found]

    def _is_row_major(self, parts: Sequence[Sequence[tuple[int, int]]]) -> bool:
        """Whether repeats that merge stand in the register index as they stand in the shape."""
        rank_of = {dim: place for place, dim in enumerate(self.repeat_order)}
        for merged in parts:
            places = [rank_of[source] for source, _ in reversed(merged)]
            if any(later != earlier + 1 for earlier, later in pairwise(places)):
                return False
        return True

    def _no_reshape(self, shape: Sequence[int]) -> UnsupportedLayout:
        return UnsupportedLayout(
            f"{self.shape} as {tuple(shape)} is no layout without moving elements",
            hint="convert to a layout whose repeats are along the first dim, then reshape",
        )

    def flatten(self) -> LinearLayout:
        """The layout of the elements in row-major order in one dim."""
        return self.reshape((prod(self.shape),))

    # --- pairs of tiles ---------------------------------------------------------------------

    def join(self) -> LinearLayout:
        """The layout of two tiles of this layout side by side in a new last dim of extent 2.

        Register `2 r + k` of the result is register `r` of tile `k`.
        """
        wide = self.expand(self.rank)
        (name, vectors), *rest = wide.bases
        bases = ((name, (unit(wide.rank, self.rank, 1), *vectors)), *rest)
        return LinearLayout(bases, (*self.atom, 2), wide.repeats, wide.repeat_order)

    def split(self) -> LinearLayout:
        """The layout of the two halves along a last dim of extent 2: what `join` is undone by.

        *Raises*: `UnsupportedLayout` where the halves are not in two registers of one lane.
        """
        bit = self._split_bit()
        (name, vectors), *rest = self.slice(self.rank - 1).bases
        bases = ((name, (*vectors[:bit], *vectors[bit + 1 :])), *rest)
        return LinearLayout(bases, self.atom[:-1], self.repeats[:-1], self.repeat_order)

    def repeat(self, count: int) -> LinearLayout:
        """The layout of `count` tiles of this layout one after the other along dim 0.

        Tile `k` is in the registers from `k * num_registers` on.
        *Raises*: `UnsupportedLayout` where another dim repeats outside of the repeats of dim 0.
        """
        if self.repeat_order and 0 in self.repeat_order[1:]:
            raise UnsupportedLayout(
                f"the registers of a tile of {self.shape} do not go along dim 0 last"
            )
        others = tuple(dim for dim in self.repeat_order if dim)
        repeats = (self.repeats[0] * count, *self.repeats[1:])
        return LinearLayout(self.bases, self.atom, repeats, (0, *others))

    def _split_bit(self) -> int:
        last = self.rank - 1
        if self.shape[-1:] != (2,):
            raise LayoutError(f"split takes a last dim of extent 2, not {self.shape}")
        moving = [v for _, vectors in self.bases for v in vectors if v[last]]
        if self.atom[last] != 2 or moving != [unit(self.rank, last, 1)]:
            raise UnsupportedLayout(
                f"the halves of {self.shape} are not in two registers of one lane"
            )
        if moving[0] not in self.bases[0][1]:
            raise UnsupportedLayout(f"the halves of {self.shape} are in different lanes")
        return self.bases[0][1].index(moving[0])

    # --- copies -----------------------------------------------------------------------------

    def remove_register_copies(self) -> tuple[LinearLayout, tuple[int, ...]]:
        """The layout without registers that hold what another register of the lane holds.

        Also the register of it that stands for each register of this one.
        *Constraints*: a basis of registers that depends on bases of registers before it goes;
        what depends on lanes or warps is not a copy within the lane.
        """
        (name, vectors), *rest = self.bases
        span = Span(self.pack(vector) for vector in vectors)
        kept = [bit for bit, is_free in enumerate(span.free) if not is_free]
        bases = ((name, tuple(vectors[bit] for bit in kept)), *rest)
        small = LinearLayout(bases, self.atom, self.repeats, self.repeat_order)
        low = [0]
        for vector in vectors:
            combination = span.reduce(self.pack(vector))[1]
            image = sum(1 << new for new, bit in enumerate(kept) if combination >> bit & 1)
            low += [image ^ other for other in low]
        copies = prod(self.repeats)
        return small, tuple(c << len(kept) | register for c in range(copies) for register in low)

    def unique_registers(self) -> tuple[int, ...]:
        """For each register, its register in the layout without copies."""
        return self.remove_register_copies()[1]

    def reduce(self, axis: int) -> tuple[LinearLayout, tuple[int, ...]]:
        """The layout of `slice(axis)` without register copies, and where each register goes.

        *Semantics*: registers of this layout that go to the same register differ in coordinates
        along the axis only.
        """
        small, _ = self.slice(axis).remove_register_copies()
        where = {at: register for register, at in enumerate(small.register_offsets())}
        return small, tuple(where[(*at[:axis], *at[axis + 1 :])] for at in self.register_offsets())

    def _check_axis(self, axis: int, rank: int) -> None:
        if not 0 <= axis < rank:
            raise LayoutError(f"axis {axis} is not in 0 … {rank - 1} of {self.shape}")
