"""The operations of a decoding step: by kernels, and in NumPy as reference and as peer."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

import tilewright
from examples.decode_attention import decode
from examples.demo import decoding_kernels as kernels
from examples.demo.language_model import EPSILON, Array, Shape, angles

Vector = NDArray[np.float32]
# Rows of weights that a program multiplies: enough work for a launch's pieces to be worth one.
ROWS = 16
KEYS = 64


class KernelDecoding:
    """`DecodingOperations` by Tilewright kernels; NumPy itself only allocates."""

    def __init__(self, shape: Shape, capacity: int) -> None:
        self._shape = shape
        self._capacity = capacity
        self._cosines, self._sines = angles(shape, capacity)
        caches = (shape.layers, 2, shape.groups, capacity, shape.head_dim)
        self._caches = np.zeros(caches, dtype=np.float32)

    def embed(self, table: Array, token: int) -> Vector:
        """One program."""
        width = table.shape[1]
        out = np.empty(width, dtype=np.float32)
        block = tilewright.next_power_of_2(width)
        kernels.embed_token[(1,)](table, token, out, width, BLOCK=block)
        return out

    def rms_norm(self, x: Vector, gain: Array) -> Vector:
        """One program."""
        out = np.empty_like(x)
        block = tilewright.next_power_of_2(x.size)
        kernels.rms_norm[(1,)](x, gain, out, x.size, EPSILON=EPSILON, BLOCK=block)
        return out

    def linear(self, weight: Array, x: Vector, residual: Vector | None = None) -> Vector:
        """A program for each few rows of the weight."""
        outputs, width = weight.shape
        out = np.empty(outputs, dtype=np.float32)
        kernels.linear[(tilewright.cdiv(outputs, ROWS),)](
            *(weight, x, residual, out, outputs, width),
            ROWS=ROWS,
            BLOCK=tilewright.next_power_of_2(width),
        )
        return out

    def gated_linear(self, gate: Array, up: Array, x: Vector) -> Vector:
        """Both products and the gate in one launch."""
        outputs, width = gate.shape
        out = np.empty(outputs, dtype=np.float32)
        kernels.gated_linear[(tilewright.cdiv(outputs, ROWS),)](
            *(gate, up, x, out, outputs, width),
            ROWS=ROWS,
            BLOCK=tilewright.next_power_of_2(width),
        )
        return out

    def attend(self, layer: int, qkv: Vector, position: int) -> Vector:
        """A launch that rotates and stores, then attention to the cache."""
        shape, (k, v) = self._shape, self._caches[layer]
        q = np.empty((shape.heads, shape.head_dim), dtype=np.float32)
        kernels.rotate_and_store[(shape.heads + 2 * shape.groups,)](
            *(qkv, self._cosines, self._sines, q, k, v, position, self._capacity),
            HEADS=shape.heads,
            GROUPS=shape.groups,
            HALF=shape.head_dim // 2,
        )
        return decode(q, k, v, position + 1, block_n=KEYS).ravel()


class NumpyDecoding:
    """`DecodingOperations` in NumPy: the reference in float64, a peer in float32."""

    def __init__(self, shape: Shape, capacity: int, dtype: DTypeLike = np.float64) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._cosines, self._sines = (a.astype(dtype) for a in angles(shape, capacity))
        caches = (shape.layers, 2, shape.groups, capacity, shape.head_dim)
        self._caches = np.zeros(caches, dtype=dtype)

    def _wide(self, weight: Array) -> Array:
        return weight.astype(self._dtype, copy=False)

    def embed(self, table: Array, token: int) -> Array:
        """A row, widened."""
        return self._wide(table[token])

    def rms_norm(self, x: Array, gain: Array) -> Array:
        """By the formula."""
        return x / np.sqrt(np.mean(x * x) + self._dtype.type(EPSILON)) * self._wide(gain)

    def linear(self, weight: Array, x: Array, residual: Array | None = None) -> Array:
        """BLAS."""
        y = self._wide(weight) @ x
        return y if residual is None else y + residual

    def gated_linear(self, gate: Array, up: Array, x: Array) -> Array:
        """Two products and the gate."""
        g = self.linear(gate, x)
        return g / (1 + np.exp(-g)) * self.linear(up, x)

    def attend(self, layer: int, qkv: Array, position: int) -> Array:
        """The whole row of scores of each head."""
        shape, (keys, values) = self._shape, self._caches[layer]
        rows = qkv.reshape(-1, shape.head_dim)
        low, high = np.split(rows[: shape.heads + shape.groups], 2, axis=1)
        cosine, sine = self._cosines[position], self._sines[position]
        turned = np.hstack([low * cosine - high * sine, high * cosine + low * sine])
        keys[:, position] = turned[shape.heads :]
        values[:, position] = rows[shape.heads + shape.groups :]
        q = turned[: shape.heads].reshape(shape.groups, -1, shape.head_dim)
        scores = q @ keys[:, : position + 1].swapaxes(1, 2) * self._dtype.type(shape.head_dim**-0.5)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        return (weights @ values[:, : position + 1]).ravel()
