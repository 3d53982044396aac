"""The operations that read a prompt: by kernels, in NumPy as reference and peer, and in torch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

import tilewright
from examples.demo import decoding_kernels, prompt_kernels
from examples.demo.language_model import EPSILON, Array, Shape, Tokens, angles
from examples.demo.torch_operations import Weights

Rows = NDArray[np.float32]
Tensor = Any
BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
QUERIES, KEYS = 64, 64


class KernelPrompt:
    """`PromptOperations` by Tilewright kernels; NumPy itself only allocates."""

    def __init__(self, shape: Shape, capacity: int) -> None:
        self._shape = shape
        self._capacity = capacity
        self._cosines, self._sines = angles(shape, capacity)
        caches = (shape.layers, 2, shape.groups, capacity, shape.head_dim)
        self._caches = np.zeros(caches, dtype=np.float32)

    def embed(self, table: Array, tokens: Tokens) -> Rows:
        """One program a token."""
        width = table.shape[1]
        out = np.empty((tokens.size, width), dtype=np.float32)
        block = tilewright.next_power_of_2(width)
        prompt_kernels.embed_tokens[(tokens.size,)](table, tokens, out, width, BLOCK=block)
        return out

    def last(self, x: Rows) -> Rows:
        """A view."""
        return x[-1:]

    def rms_norm(self, x: Rows, gain: Array) -> Rows:
        """One program a row."""
        out = np.empty_like(x)
        rows, width = x.shape
        block = tilewright.next_power_of_2(width)
        decoding_kernels.rms_norm[(rows,)](x, gain, out, width, EPSILON=EPSILON, BLOCK=block)
        return out

    def linear(self, weight: Array, x: Rows, residual: Rows | None = None) -> Rows:
        """A program a tile; one row alone is a product of matrix and vector."""
        out = np.empty((len(x), len(weight)), dtype=np.float32)
        prompt_kernels.linear_rows[_grid(out)](
            x, weight, residual, out, *out.shape, x.shape[1], **BLOCKS
        )
        return out

    def gated_linear(self, gate: Array, up: Array, x: Rows) -> Rows:
        """Both products and the gate in one launch."""
        out = np.empty((len(x), len(gate)), dtype=np.float32)
        prompt_kernels.gated_rows[_grid(out)](x, gate, up, out, *out.shape, x.shape[1], **BLOCKS)
        return out

    def attend(self, layer: int, qkv: Rows, position: int) -> Rows:
        """A launch that rotates and stores, then causal attention."""
        shape, (k, v), length = self._shape, self._caches[layer], len(qkv)
        q = np.empty((shape.heads, length, shape.head_dim), dtype=np.float32)
        decoding_kernels.rotate_and_store[(shape.heads + 2 * shape.groups, length)](
            *(qkv, self._cosines, self._sines, q, k, v, position, self._capacity),
            HEADS=shape.heads,
            GROUPS=shape.groups,
            HALF=shape.head_dim // 2,
        )
        out = np.empty((length, shape.width), dtype=np.float32)
        prompt_kernels.attention[(tilewright.cdiv(length, QUERIES), shape.heads)](
            *(q, k, v, out, length, self._capacity, shape.head_dim**-0.5),
            GROUP=shape.heads // shape.groups,
            HEAD_DIM=shape.head_dim,
            BLOCK_M=QUERIES,
            BLOCK_N=KEYS,
        )
        return out


def _grid(out: Rows) -> tuple[int, int]:
    rows, columns = out.shape
    return tilewright.cdiv(columns, BLOCKS["BLOCK_N"]), tilewright.cdiv(rows, BLOCKS["BLOCK_M"])


class NumpyPrompt:
    """`PromptOperations` in NumPy: the reference in float64, a peer in float32."""

    def __init__(self, shape: Shape, capacity: int, dtype: DTypeLike = np.float64) -> None:
        self._shape = shape
        self._dtype = np.dtype(dtype)
        self._cosines, self._sines = (a.astype(dtype) for a in angles(shape, capacity))

    def _wide(self, weight: Array) -> Array:
        return weight.astype(self._dtype, copy=False)

    def embed(self, table: Array, tokens: Tokens) -> Array:
        """Rows, widened."""
        return self._wide(table[tokens])

    def last(self, x: Array) -> Array:
        """A view."""
        return x[-1:]

    def rms_norm(self, x: Array, gain: Array) -> Array:
        """By the formula."""
        squares = np.mean(x * x, axis=1, keepdims=True) + self._dtype.type(EPSILON)
        return x / np.sqrt(squares) * self._wide(gain)

    def linear(self, weight: Array, x: Array, residual: Array | None = None) -> Array:
        """BLAS."""
        y = x @ self._wide(weight).T
        return y if residual is None else y + residual

    def gated_linear(self, gate: Array, up: Array, x: Array) -> Array:
        """Two products and the gate."""
        g = self.linear(gate, x)
        return g / (1 + np.exp(-g)) * self.linear(up, x)

    def attend(self, layer: int, qkv: Array, position: int) -> Array:
        """All scores of a head at once; what comes later is hidden by -inf."""
        shape, length = self._shape, len(qkv)
        rows = qkv.reshape(length, -1, shape.head_dim).swapaxes(0, 1)
        low, high = np.split(rows[: shape.heads + shape.groups], 2, axis=2)
        cosine, sine = self._cosines[:length], self._sines[:length]
        turned = np.concatenate([low * cosine - high * sine, high * cosine + low * sine], axis=2)
        q = turned[: shape.heads].reshape(shape.groups, -1, length, shape.head_dim)
        k, v = turned[shape.heads :, None], rows[shape.heads + shape.groups :, None]
        scores = q @ k.swapaxes(2, 3) * self._dtype.type(shape.head_dim**-0.5)
        scores = np.where(np.tri(length, dtype=bool), scores, self._dtype.type(-np.inf))
        weights = np.exp(scores - scores.max(axis=3, keepdims=True))
        weights /= weights.sum(axis=3, keepdims=True)
        out = (weights @ v).reshape(shape.heads, length, shape.head_dim)
        return out.swapaxes(0, 1).reshape(length, shape.width)


class TorchPrompt:
    """`PromptOperations` in torch; rows have the dtype of the weights."""

    def __init__(self, torch: ModuleType, weights: Weights, shape: Shape, capacity: int) -> None:
        self._torch = torch
        self._weights = weights
        self._shape = shape
        self._cosines, self._sines = map(torch.from_numpy, angles(shape, capacity))

    def embed(self, table: Array, tokens: Tokens) -> Tensor:
        """Rows."""
        return self._weights(table)[self._torch.from_numpy(tokens).long()]

    def last(self, x: Tensor) -> Tensor:
        """A view."""
        return x[-1:]

    def rms_norm(self, x: Tensor, gain: Array) -> Tensor:
        """torch's own, in float32."""
        norm = self._torch.nn.functional.rms_norm
        return norm(x.float(), x.shape[-1:], self._weights(gain), EPSILON).to(x.dtype)

    def linear(self, weight: Array, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """torch's own."""
        tensor = self._weights(weight)
        y = self._torch.nn.functional.linear(x.to(tensor.dtype), tensor)
        return y if residual is None else y + residual

    def gated_linear(self, gate: Array, up: Array, x: Tensor) -> Tensor:
        """Two products and the gate."""
        return self._torch.nn.functional.silu(self.linear(gate, x)) * self.linear(up, x)

    def attend(self, layer: int, qkv: Tensor, position: int) -> Tensor:
        """`scaled_dot_product_attention` with shared keys."""
        shape, torch, length = self._shape, self._torch, len(qkv)
        rows = qkv.float().view(length, -1, shape.head_dim).transpose(0, 1)
        low, high = rows[: shape.heads + shape.groups].chunk(2, dim=2)
        cosine, sine = self._cosines[:length], self._sines[:length]
        turned = torch.cat((low * cosine - high * sine, high * cosine + low * sine), dim=2)
        parts = turned[: shape.heads], turned[shape.heads :], rows[shape.heads + shape.groups :]
        q, k, v = (part.to(qkv.dtype)[None] for part in parts)
        attend = torch.nn.functional.scaled_dot_product_attention
        out = attend(q, k, v, is_causal=True, enable_gqa=True)
        return out[0].transpose(0, 1).reshape(length, shape.width)
