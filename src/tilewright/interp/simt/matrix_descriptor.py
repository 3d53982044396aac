"""Shared-memory operands of wgmma: the matrix descriptor and the addresses that it means.

Source: PTX ISA 8.8, 9.7.15.5 "Matrix Descriptor Format"; the strides of each layout agree with
kernels that ran bit-exact on the hardware.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from tilewright.ir.op import Array
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import UnsupportedError

_SWIZZLE_BYTES = {0: 0, 1: 128, 2: 64, 3: 32}
_CHUNK = 16


@dataclass(frozen=True)
class MatrixDescriptor:
    """The fields of a descriptor, in bytes."""

    start: int
    leading_bytes: int
    stride_bytes: int
    swizzle_bytes: int

    @staticmethod
    def decode(bits: int) -> MatrixDescriptor:
        """The fields of the 64 bits of a descriptor."""
        if bits >> 49 & 7:
            raise UnsupportedError("matrix descriptors with a base offset are not simulated")
        return MatrixDescriptor(
            (bits & 0x3FFF) << 4,
            (bits >> 16 & 0x3FFF) << 4,
            (bits >> 32 & 0x3FFF) << 4,
            _SWIZZLE_BYTES[bits >> 62 & 3],
        )

    def chunk_addresses(self, outer: int, depth_bytes: int, *, is_transposed: bool) -> Array:
        """The addresses of the 16-byte chunks of an operand.

        `outer` is M or N. K-major: shape [outer, depth_bytes / 16]. Transposed (16-bit
        elements): shape [outer / 8, K], a chunk being eight neighbours along `outer`.
        """
        key = (self.leading_bytes, self.stride_bytes, self.swizzle_bytes)
        if is_transposed:
            offsets = _transposed_offsets(outer, depth_bytes // 2, *key)
        else:
            offsets = _plain_offsets(outer, depth_bytes, *key)
        return swizzled(self.start + offsets, self.swizzle_bytes).astype(np.uint64)


def swizzled(addresses: Array, swizzle_bytes: int) -> Array:
    """The bank permutation: bits 4 to 6 (5, 4) of an address are xored with bits 7 to 9 (8, 7)."""
    if not swizzle_bytes:
        return addresses
    mask = swizzle_bytes // _CHUNK - 1
    return addresses ^ ((addresses >> 7 & mask) << 4)


@cache
def _plain_offsets(rows: int, depth_bytes: int, leading: int, stride: int, swizzle: int) -> Array:
    row, chunk = np.arange(rows)[:, None], np.arange(depth_bytes // _CHUNK)
    if swizzle:
        return row // 8 * stride + row % 8 * swizzle + chunk * _CHUNK
    return row // 8 * stride + row % 8 * _CHUNK + chunk * leading


@cache
def _transposed_offsets(outer: int, depth: int, leading: int, stride: int, swizzle: int) -> Array:
    chunk, k = np.arange(outer // 8)[:, None], np.arange(depth)
    if not swizzle:
        return chunk * stride + k // 8 * leading + k % 8 * _CHUNK
    per_row = swizzle // _CHUNK
    return chunk // per_row * leading + chunk % per_row * _CHUNK + k // 8 * stride + k % 8 * swizzle
