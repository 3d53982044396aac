"""Tensor maps: what the copies of whole boxes know of an array in global memory.

The hardware's 128 bytes are opaque. The simulator has a form of its own, in which each field
has a place, so that programs may replace fields and copy maps about.
"""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np

from tilewright.interp.simt.faults import Fault
from tilewright.interp.simt.matrix_descriptor import swizzled
from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InternalError, KernelFault

MAP_BYTES = 128
_CHUNK = 16
_RANKS = 5
_FORM = struct.Struct("<QII5I4x4Q5I5IIII")
# Where each field lies, and the bytes of one entry: the names are those of `tensormap.replace`.
FIELDS: dict[str, tuple[int, int]] = {
    "global_address": (0, 8),
    "rank": (8, 4),
    "elemtype": (12, 4),
    "global_dim": (16, 4),
    "global_stride": (40, 8),
    "box_dim": (72, 4),
    "element_stride": (92, 4),
    "swizzle_mode": (112, 4),
    "fill_mode": (116, 4),
    "interleave_layout": (120, 4),
}
# The codes of `.elemtype`. Source: PTX ISA 8.8, "tensormap.replace".
_ELEMENT_TYPES = {
    0: np.dtype(np.uint8),
    1: np.dtype(np.uint16),
    2: np.dtype(np.uint32),
    3: np.dtype(np.int32),
    4: np.dtype(np.uint64),
    5: np.dtype(np.int64),
    6: np.dtype(np.float16),
    7: np.dtype(np.float32),
    9: np.dtype(np.float64),
    10: np.dtype(ml_dtypes.bfloat16),
    11: np.dtype(np.float32),
}
_SWIZZLE_BYTES = (0, 32, 64, 128)


@dataclass(frozen=True)
class BoxedArray:
    """An array at a global address and the box that copies move, dims innermost last."""

    address: int
    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle_bytes: int = 0
    fills_nan: bool = False

    def problem(self) -> str:
        """Why the hardware would refuse this, empty when it would not."""
        itemsize = self.dtype.itemsize
        row_bytes = self.box[-1] * itemsize
        if len(self.box) != len(self.shape) or not 1 <= len(self.box) <= _RANKS:
            return f"a box {self.box} of an array {self.shape}"
        if any(not 1 <= extent <= 256 for extent in self.box):
            return f"every extent of a box is 1 to 256, not {self.box}"
        if row_bytes % _CHUNK or (self.swizzle_bytes and row_bytes > self.swizzle_bytes):
            return f"rows of {row_bytes} bytes with swizzle {self.swizzle_bytes}"
        if self.fills_nan and self.dtype.kind in "iub":
            return f"elements of {self.dtype} have no NaN"
        if self.address % _CHUNK:
            return f"the array at {self.address:#x} is not aligned to 16 bytes"
        if self.strides[-1] != itemsize or any(s % _CHUNK for s in self.strides[:-1]):
            return f"strides {self.strides} do not suit a tensor map"
        return ""

    @property
    def num_bytes(self) -> int:
        """The bytes of a box."""
        return int(np.prod(self.box)) * self.dtype.itemsize

    def padding(self) -> Array:
        """The bytes of an element outside of the array."""
        value = np.full(1, np.nan if self.fills_nan else 0, self.dtype)
        return value.view(np.uint8)

    def element_addresses(self, coordinates: tuple[int, ...]) -> tuple[Array, Array]:
        """Addresses of the box's elements, and which lie inside; coordinates innermost first."""
        starts = tuple(reversed(coordinates))
        addresses = np.full(self.box, self.address, np.int64)
        inside = np.ones(self.box, np.bool_)
        for axis, (start, extent) in enumerate(zip(starts, self.box, strict=True)):
            index = start + np.arange(extent)
            along = index.reshape([-1 if a == axis else 1 for a in range(len(self.box))])
            addresses = addresses + along * self.strides[axis]
            inside = inside & (along >= 0) & (along < self.shape[axis])
        return addresses.ravel().astype(np.uint64), inside.ravel()

    def chunk_addresses(self, start: int) -> Array:
        """Where the 16-byte chunks of a box lie in shared memory, in the order of the box."""
        places = start + np.arange(0, self.num_bytes, _CHUNK)
        return swizzled(places, self.swizzle_bytes).astype(np.uint64)

    @staticmethod
    def decode(data: bytes) -> BoxedArray:
        """The map in the simulator's form of 128 bytes."""
        values = _FORM.unpack(data[: _FORM.size])
        address, rank, kind = values[0], values[1] + 1, values[2]
        dims, strides, box, steps = values[3:8], values[8:12], values[12:17], values[17:22]
        swizzle, fill, interleave = values[22:]
        if kind not in _ELEMENT_TYPES or rank > _RANKS or not all(box[:rank]):
            raise Fault(KernelFault, "a tensor map is used before all of its fields were set")
        if interleave or any(step != 1 for step in steps[:rank]):
            raise Fault(KernelFault, "a tensor map has a form that is not simulated")
        dtype = _ELEMENT_TYPES[kind]
        found = BoxedArray(
            address,
            dtype,
            tuple(reversed(dims[:rank])),
            (*reversed(strides[: rank - 1]), dtype.itemsize),
            tuple(reversed(box[:rank])),
            _SWIZZLE_BYTES[swizzle],
            bool(fill),
        )
        if found.problem():
            raise Fault(KernelFault, f"a tensor map is not valid: {found.problem()}")
        return found


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A tensor map over `array`: copies move a `box`, whose dims are those of the array.

    Both shapes are in the array's order, the last dim contiguous. Elements outside of the array
    read as zero, or NaN with `fills_nan`, and are not written. With `shape` and `strides` (bytes)
    the array is the memory that such a tensor begins in, and may reach beyond.
    """

    array: Array
    box: tuple[int, ...]
    swizzle_bytes: int = 0
    fills_nan: bool = False
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Check what the hardware demands."""
        problem = self.at(0).problem()
        if problem:
            raise InternalError(problem)

    def at(self, address: int) -> BoxedArray:
        """The map when its array lies at a simulated address."""
        array = self.array
        shape, strides = self.shape or array.shape, self.strides or array.strides
        layout = (array.dtype, shape, strides, self.box, self.swizzle_bytes)
        return BoxedArray(address, *layout, self.fills_nan)
