"""The network in float64, one sentence at a time and without padding: what is right.

It shares no code with the implementations that it judges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from examples.demo.model import EPSILON, HEAD_DIM, HEADS, Layer, Linear, Model, Norm

Doubles = NDArray[np.float64]

_erf = np.frompyfunc(math.erf, 1, 1)


def embed_sentence(model: Model, token_ids: Sequence[int]) -> Doubles:
    """The embedding of one sentence, `[width]`, of norm 1."""
    tables = model.embeddings
    x = tables.word[list(token_ids)].astype(np.float64)
    x += tables.position[: len(token_ids)] + tables.token_type[0].astype(np.float64)
    x = layer_norm(x, tables.norm)
    for layer in model.layers:
        x = transformer_layer(x, layer)
    pooled = x.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


def transformer_layer(x: Doubles, layer: Layer) -> Doubles:
    """Attention and the two dense layers, each with residual and norm."""
    mixed = attention(linear(x, layer.qkv))
    x = layer_norm(x + linear(mixed, layer.attention_output), layer.attention_norm)
    hidden = gelu(linear(x, layer.expand))
    return layer_norm(x + linear(hidden, layer.contract), layer.output_norm)


def attention(qkv: Doubles) -> Doubles:
    """Attention of every head over the whole sentence."""
    q, k, v = np.split(qkv, 3, axis=1)
    heads = []
    for head in range(HEADS):
        part = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM)
        heads.append(softmax(q[:, part] @ k[:, part].T / math.sqrt(HEAD_DIM)) @ v[:, part])
    return np.concatenate(heads, axis=1)


def linear(x: Doubles, layer: Linear) -> Doubles:
    """`x @ weight + bias`."""
    return x @ layer.weight.astype(np.float64) + layer.bias


def layer_norm(x: Doubles, norm: Norm) -> Doubles:
    """Each row with mean 0 and variance 1, then gain and offset."""
    centered = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.square(centered).mean(axis=1, keepdims=True) + EPSILON)
    return centered / deviation * norm.gamma + norm.beta


def softmax(scores: Doubles) -> Doubles:
    """Rows that sum to 1."""
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def gelu(x: Doubles) -> Doubles:
    """The exact Gaussian error linear unit: the C library's erf, element by element."""
    return 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0)).astype(np.float64))


def cosine(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """The cosine of the angle between two vectors, in float64."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
