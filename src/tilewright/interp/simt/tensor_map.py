"""Tensor maps: what the copies of whole boxes know of an array in global memory."""

from __future__ import annotations

import numpy as np

from tilewright.interp.simt.matrix_descriptor import swizzled
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError

_CHUNK = 16


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A tensor map over `array`: copies move a `box`, whose dims are those of the array.

    Both shapes are in the array's order, the last dim contiguous. Elements outside of the array
    read as zero and are not written.
    """

    array: Array
    box: tuple[int, ...]
    swizzle_bytes: int = 0

    def __post_init__(self) -> None:
        """Check what the hardware demands."""
        itemsize = self.array.itemsize
        row_bytes = self.box[-1] * itemsize
        if len(self.box) != self.array.ndim or not 1 <= len(self.box) <= 5:
            raise InternalError(f"a box {self.box} of an array {self.array.shape}")
        if any(not 1 <= extent <= 256 for extent in self.box):
            raise InternalError(f"every extent of a box is 1 to 256, not {self.box}")
        if row_bytes % _CHUNK or (self.swizzle_bytes and row_bytes > self.swizzle_bytes):
            raise InternalError(f"rows of {row_bytes} bytes with swizzle {self.swizzle_bytes}")
        if self.array.strides[-1] != itemsize or any(s % _CHUNK for s in self.array.strides[:-1]):
            raise InternalError(f"strides {self.array.strides} do not suit a tensor map")

    @property
    def num_bytes(self) -> int:
        """The bytes of a box."""
        return int(np.prod(self.box)) * self.array.itemsize

    def element_offsets(self, coordinates: tuple[int, ...]) -> tuple[Array, Array]:
        """Byte offsets of the box's elements, and which lie inside; coordinates innermost first."""
        starts = tuple(reversed(coordinates))
        shape = self.array.shape
        offsets, inside = np.zeros(self.box, np.int64), np.ones(self.box, np.bool_)
        for axis, (start, extent) in enumerate(zip(starts, self.box, strict=True)):
            index = start + np.arange(extent)
            along = index.reshape([-1 if a == axis else 1 for a in range(len(shape))])
            offsets = offsets + along * self.array.strides[axis]
            inside = inside & (along >= 0) & (along < shape[axis])
        return offsets.ravel(), inside.ravel()

    def chunk_addresses(self, start: int) -> Array:
        """Where the 16-byte chunks of a box lie in shared memory, in the order of the box."""
        places = start + np.arange(0, self.num_bytes, _CHUNK)
        return swizzled(places, self.swizzle_bytes).astype(np.uint64)
