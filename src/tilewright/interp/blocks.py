"""Block pointers and tensor descriptors: records that stand for the addresses of a block."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute

from tilewright.ir.op import Array
from tilewright.ir.types import storage_bytes
from tilewright.support.dataclass import dataclass, replace


@dataclass(frozen=True)
class BlockPointer:
    """A block of a strided matrix in memory, at `offsets` elements per dimension.

    A tensor descriptor is one with offsets 0 that is asked for a block at given indices.
    `padding` is the code of the value that out-of-bounds elements read as.
    """

    base: int
    element: Attribute
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    offsets: tuple[int, ...]
    padding: int = 0

    def moved(self, offsets: tuple[int, ...]) -> BlockPointer:
        """The block moved by `offsets` elements per dimension."""
        moved = tuple(a + b for a, b in zip(self.offsets, offsets, strict=True))
        return replace(self, offsets=moved)

    def addresses(self) -> Array:
        """The address of each element of the block."""
        total = np.array(self.base, np.int64)
        width = storage_bytes(self.element)
        for dim in range(len(self.block)):
            total = total + self._positions(dim) * (self.strides[dim] * width)
        return np.broadcast_to(total, self.block)

    def inside(self, dims: tuple[int, ...]) -> Array:
        """Which elements are within the bounds of the dimensions `dims`."""
        mask: Array = np.ones(self.block, np.bool_)
        for dim in dims:
            positions = self._positions(dim)
            mask = mask & (positions >= 0) & (positions < self.shape[dim])
        return mask

    def all_dims(self) -> tuple[int, ...]:
        """Every dimension."""
        return tuple(range(len(self.block)))

    def _positions(self, dim: int) -> Array:
        """The index of each element along `dim`, shaped to broadcast over the block."""
        positions = np.arange(self.block[dim], dtype=np.int64) + self.offsets[dim]
        return positions.reshape([-1 if d == dim else 1 for d in range(len(self.block))])
