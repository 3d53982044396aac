"""`triton.tools.ragged_tma`: blocks of one slice of an array, where slices have any length.

An array holds slices one after the other along its *ragged* dimension, as the experts of a
mixture hold their rows. A block that begins in a slice and reaches behind its end reads zeros
there and stores nothing there, although the next slice follows in memory.

The bound of a slice becomes a bound of the descriptor: the ragged dimension, of `R` rows with
stride `s`, appears twice. Row `i` of the slice at `offset` of length `n` is at

    (offset + n, R - n + i)   in   shape (R + 1, R), strides (s, s), base - R * s

which is the address `base + (offset + i) * s`, and `R - n + i < R` exactly where `i < n`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from tilewright.frontend.arrays import array_bounds
from tilewright.runtime.tensor_descriptor import TensorDescriptor

from ._ragged_kernels import (
    atomic_add_ragged,
    create_ragged_descriptor_device_2d,
    create_ragged_descriptor_device_3d,
    load_ragged,
    store_ragged,
)


class _Before:
    """An array whose first element is `bytes_before` in front of another's."""

    def __init__(self, base: object, bytes_before: int) -> None:
        self._base = base
        self._bytes_before = bytes_before
        self.dtype = getattr(base, "dtype", None)
        self.device = getattr(base, "device", None)
        self.is_cuda = bool(getattr(base, "is_cuda", False))
        self.itemsize = _element_bytes(base)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return _address(self._base) - self._bytes_before

    def untyped_storage(self) -> _Memory:
        """The memory of the array itself: what lies before it is never accessed."""
        return _Memory(*array_bounds(self._base))


class _Memory:
    """A range of bytes."""

    def __init__(self, first: int, behind: int) -> None:
        self._range = (first, behind)

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._range[0]

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._range[1] - self._range[0]


def _address(base: object) -> int:
    pointer = getattr(base, "data_ptr", None)
    if callable(pointer):
        return cast("Callable[[], int]", pointer)()
    interface = getattr(base, "__array_interface__", None) or {}
    return int(interface["data"][0])


def _element_bytes(base: object) -> int:
    size = getattr(base, "element_size", None)
    return int(str(size() if callable(size) else getattr(base, "itemsize", 0)))


def create_ragged_descriptor(
    T: object, block_shape: Sequence[int], ragged_dim: int = 0
) -> TensorDescriptor:
    """The descriptor of an array of slices along `ragged_dim`, for blocks of `block_shape`.

    Constraints: of the array those of `TensorDescriptor`, at most 4 dimensions.
    """
    plain = TensorDescriptor.from_tensor(T, block_shape)
    dim = ragged_dim % len(plain.shape)
    rows, stride = plain.shape[dim], plain.strides[dim]
    base = _Before(T, rows * stride * _element_bytes(T))
    return TensorDescriptor(
        base, (rows + 1, *plain.shape), (stride, *plain.strides), (1, *plain.block_shape)
    )


__all__ = [
    "atomic_add_ragged",
    "create_ragged_descriptor",
    "create_ragged_descriptor_device_2d",
    "create_ragged_descriptor_device_3d",
    "load_ragged",
    "store_ragged",
]
