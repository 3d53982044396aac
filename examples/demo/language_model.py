"""A language model with the shapes of SmolLM-135M, reading a prompt and decoding a step.

The weights are random: what is shown is the arithmetic and its speed, not the text. A layer is
that of Llama: RMS norm, attention with rotary positions and shared keys, RMS norm, SwiGLU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

EPSILON = 1e-5
ROPE_BASE = 10000.0
Array = NDArray[np.generic]
Tokens = NDArray[np.int32]
Tensor = TypeVar("Tensor")


@dataclass(frozen=True)
class Shape:
    """The sizes of a model. `groups` heads of keys and values serve `heads` heads of queries."""

    layers: int
    width: int
    heads: int
    groups: int
    hidden: int
    words: int

    @property
    def head_dim(self) -> int:
        """The width of one head."""
        return self.width // self.heads


SMOL = Shape(layers=30, width=576, heads=9, groups=3, hidden=1536, words=49152)


@dataclass(frozen=True)
class Layer:
    """The weights of one layer, each `[outputs, inputs]`; `qkv` is all heads below each other."""

    attention_gain: Array
    qkv: Array
    attention_output: Array
    mlp_gain: Array
    gate: Array
    up: Array
    down: Array


@dataclass(frozen=True)
class LanguageModel:
    """The weights. `words: [words, width]` is the table of embeddings and of the logits."""

    shape: Shape
    words: Array
    layers: tuple[Layer, ...]
    gain: Array

    @property
    def weight_bytes(self) -> int:
        """What one step reads."""
        arrays = [self.words, *(a for layer in self.layers for a in vars(layer).values())]
        return sum(array.nbytes for array in arrays)


def random_model(shape: Shape, rng: np.random.Generator, dtype: str = "f32") -> LanguageModel:
    """Weights of variance 1 / inputs, so that activations keep their size; gains near 1."""
    kept = ml_dtypes.bfloat16 if dtype == "bf16" else np.float32

    def weight(outputs: int, inputs: int) -> Array:
        values = rng.standard_normal((outputs, inputs), dtype=np.float32)
        values *= np.float32(inputs**-0.5)
        return values.astype(kept, copy=False)

    def gain() -> Array:
        return 1 + np.float32(0.1) * rng.standard_normal(shape.width, dtype=np.float32)

    heads = shape.heads + 2 * shape.groups
    layers = tuple(
        Layer(
            attention_gain=gain(),
            qkv=weight(heads * shape.head_dim, shape.width),
            attention_output=weight(shape.width, shape.width),
            mlp_gain=gain(),
            gate=weight(shape.hidden, shape.width),
            up=weight(shape.hidden, shape.width),
            down=weight(shape.width, shape.hidden),
        )
        for _ in range(shape.layers)
    )
    return LanguageModel(shape, weight(shape.words, shape.width), layers, gain())


def angles(shape: Shape, capacity: int) -> tuple[Array, Array]:
    """Cosines and sines of the rotary positions, each `[capacity, head_dim / 2]` float32."""
    half = shape.head_dim // 2
    turns = np.outer(np.arange(capacity), ROPE_BASE ** (-np.arange(half) / half))
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


class LayerOperations(Protocol[Tensor]):
    """What a layer is made of; it keeps keys and values of earlier positions itself.

    Activations are float32, a vector or a row for each token; weights are the model's arrays.
    """

    def rms_norm(self, x: Tensor, gain: Array) -> Tensor:
        """`x` over its root mean square, times a gain."""
        ...

    def linear(self, weight: Array, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """`weight @ x`, plus a residual."""
        ...

    def gated_linear(self, gate: Array, up: Array, x: Tensor) -> Tensor:
        """`silu(gate @ x) * (up @ x)`."""
        ...

    def attend(self, layer: int, qkv: Tensor, position: int) -> Tensor:
        """Rotate, append key and value to the layer's cache, attend to what it holds."""
        ...


class DecodingOperations(LayerOperations[Tensor], Protocol[Tensor]):
    """What a step with one token is made of."""

    def embed(self, table: Array, token: int) -> Tensor:
        """The row of a token."""
        ...


class PromptOperations(LayerOperations[Tensor], Protocol[Tensor]):
    """What reading a prompt is made of: a row of activations for each token."""

    def embed(self, table: Array, tokens: Tokens) -> Tensor:
        """The rows of tokens."""
        ...

    def last(self, x: Tensor) -> Tensor:
        """The last row alone."""
        ...


def decode_step(
    model: LanguageModel, token: int, position: int, ops: DecodingOperations[Tensor]
) -> Tensor:
    """The logits `[words]` after `token` at `position`, all positions before it decoded."""
    x = through_layers(model, ops.embed(model.words, token), position, ops)
    return ops.linear(model.words, ops.rms_norm(x, model.gain))


def read_prompt(model: LanguageModel, tokens: Tokens, ops: PromptOperations[Tensor]) -> Tensor:
    """The logits `[1, words]` after `tokens: [count]`, which are the first of a text."""
    x = through_layers(model, ops.embed(model.words, tokens), 0, ops)
    return ops.linear(model.words, ops.rms_norm(ops.last(x), model.gain))


def through_layers(
    model: LanguageModel, x: Tensor, position: int, ops: LayerOperations[Tensor]
) -> Tensor:
    """What the layers make of activations whose first is at `position`."""
    for number, layer in enumerate(model.layers):
        qkv = ops.linear(layer.qkv, ops.rms_norm(x, layer.attention_gain))
        x = ops.linear(layer.attention_output, ops.attend(number, qkv, position), x)
        hidden = ops.gated_linear(layer.gate, layer.up, ops.rms_norm(x, layer.mlp_gain))
        x = ops.linear(layer.down, hidden, x)
    return x
