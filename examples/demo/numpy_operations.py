"""The operations of the network in float32 NumPy: the peer that the kernels are measured beside."""

from __future__ import annotations

import numpy as np

from examples.demo.model import EPSILON, HEAD_DIM, HEADS, Batch, Embeddings, Floats, Linear, Norm

# NumPy has no erf. This one is formula 7.1.26 of Abramowitz and Stegun, off by at most 1.5e-7 in
# exact arithmetic, which is as good as float32 can use.
ERF_SLOPE = 0.3275911
ERF_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)


class NumpyOperations:
    """`Operations` in NumPy, as one would write them with care for temporaries."""

    def embed(self, tables: Embeddings, batch: Batch) -> Floats:
        """Fancy indexing and a layer norm."""
        x = tables.word[batch.ids] + tables.position[: batch.ids.shape[1]]
        x += tables.token_type[0]
        return layer_norm(x.reshape(-1, x.shape[-1]), tables.norm)

    def linear(self, x: Floats, layer: Linear, gelu: bool = False) -> Floats:
        """The BLAS product, then bias and GELU in place."""
        y = x @ layer.weight
        y += layer.bias
        return gelu_in_place(y) if gelu else y

    def attention(self, qkv: Floats, batch: Batch) -> Floats:
        """Batched products with the whole matrix of scores in between."""
        sentences, tokens = batch.ids.shape
        heads = qkv.reshape(sentences, tokens, 3, HEADS, HEAD_DIM).transpose(2, 0, 3, 1, 4)
        q, k, v = heads
        scores = q @ k.swapaxes(-1, -2)
        scores *= np.float32(HEAD_DIM**-0.5)
        padding = np.arange(tokens) >= batch.lengths[:, None]
        scores += np.where(padding, -np.inf, 0.0).astype(np.float32)[:, None, None, :]
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ v).transpose(0, 2, 1, 3).reshape(sentences * tokens, HEADS * HEAD_DIM)

    def add_norm(self, x: Floats, residual: Floats, norm: Norm) -> Floats:
        """The sum and its layer norm."""
        return layer_norm(x + residual, norm)

    def mean_pool(self, x: Floats, batch: Batch) -> Floats:
        """A masked sum divided by the lengths."""
        sentences, tokens = batch.ids.shape
        mask = (np.arange(tokens) < batch.lengths[:, None]).astype(np.float32)
        total = np.matmul(mask[:, None, :], x.reshape(sentences, tokens, -1))[:, 0, :]
        return total / batch.lengths[:, None].astype(np.float32)

    def l2_normalize(self, x: Floats) -> Floats:
        """Rows over their norms."""
        return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.float32(1e-12))

    def similarity(self, queries: Floats, sentences: Floats) -> Floats:
        """One BLAS product."""
        return queries @ sentences.T


def layer_norm(x: Floats, norm: Norm) -> Floats:
    """The layer norm of each row; overwrites `x`."""
    x -= x.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", x, x)[:, None] / np.float32(x.shape[1])
    x *= 1.0 / np.sqrt(variance + np.float32(EPSILON))
    x *= norm.gamma
    x += norm.beta
    return x


def gelu_in_place(x: Floats) -> Floats:
    """GELU; overwrites `x`."""
    error = erf(x * np.float32(0.7071067811865476))
    error += 1.0
    x *= error
    x *= np.float32(0.5)
    return x


def erf(x: Floats) -> Floats:
    """The error function; off by at most 6e-7 after rounding in float32."""
    magnitude = np.abs(x)
    t = np.float32(1.0) / (magnitude * np.float32(ERF_SLOPE) + np.float32(1.0))
    polynomial = np.full_like(t, ERF_COEFFICIENTS[0])
    for coefficient in ERF_COEFFICIENTS[1:]:
        polynomial *= t
        polynomial += np.float32(coefficient)
    polynomial *= t
    magnitude *= magnitude
    np.negative(magnitude, out=magnitude)
    np.exp(magnitude, out=magnitude)
    polynomial *= magnitude
    np.subtract(np.float32(1.0), polynomial, out=polynomial)
    return np.copysign(polynomial, x, out=polynomial)
