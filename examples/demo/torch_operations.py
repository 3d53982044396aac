"""The operations in torch, a second peer where torch is installed; the demo never needs it."""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import numpy as np

from examples.demo.language_model import EPSILON as RMS_EPSILON
from examples.demo.language_model import Array, Shape, angles
from examples.demo.model import EPSILON, HEAD_DIM, HEADS, Batch, Embeddings, Floats, Linear, Norm

Tensor = Any


def load_torch() -> ModuleType | None:
    """torch, or None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    return importlib.import_module("torch")


def inference(torch: ModuleType | None) -> AbstractContextManager[object]:
    """torch without gradients; nothing where there is no torch."""
    return nullcontext() if torch is None else torch.inference_mode()


class Weights:
    """The arrays of a model as tensors, made once: float32 shares memory, bfloat16 its bits."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch
        self._made: dict[int, tuple[Array, Tensor]] = {}

    def __call__(self, array: Array) -> Tensor:
        """The tensor of an array, which is kept alive with it."""
        if id(array) not in self._made:
            self._made[id(array)] = array, self._tensor(array)
        return self._made[id(array)][1]

    def _tensor(self, array: Array) -> Tensor:
        if array.dtype.name != "bfloat16":
            return self._torch.from_numpy(array)
        return self._torch.from_numpy(array.view(np.int16)).view(self._torch.bfloat16)


class TorchOperations:
    """`Operations` of the sentence encoder; products in the dtype of the weights."""

    def __init__(self, torch: ModuleType, weights: Weights) -> None:
        self._torch = torch
        self._weights = weights

    def embed(self, tables: Embeddings, batch: Batch) -> Floats:
        """Three tables and a layer norm."""
        ids = self._torch.from_numpy(batch.ids)
        w = self._weights
        x = w(tables.word)[ids] + w(tables.position)[: batch.ids.shape[1]] + w(tables.token_type)[0]
        return self._norm(x.reshape(-1, x.shape[-1]), tables.norm).numpy()

    def linear(self, x: Floats, layer: Linear, gelu: bool = False) -> Floats:
        """The product, bias and GELU."""
        weight = self._weights(layer.weight)
        tensor = self._torch.from_numpy(x).to(weight.dtype)
        y = (tensor @ weight).float() + self._weights(layer.bias)
        return (self._torch.nn.functional.gelu(y) if gelu else y).numpy()

    def attention(self, qkv: Floats, batch: Batch) -> Floats:
        """`scaled_dot_product_attention` with a mask of the padding."""
        torch = self._torch
        sentences, tokens = batch.ids.shape
        heads = torch.from_numpy(qkv).view(sentences, tokens, 3, HEADS, HEAD_DIM)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        keys = torch.arange(tokens) < torch.from_numpy(batch.lengths)[:, None]
        attend = torch.nn.functional.scaled_dot_product_attention
        out = attend(q, k, v, attn_mask=keys[:, None, None, :])
        return out.transpose(1, 2).reshape(sentences * tokens, HEADS * HEAD_DIM).numpy()

    def add_norm(self, x: Floats, residual: Floats, norm: Norm) -> Floats:
        """The sum and its layer norm."""
        total = self._torch.from_numpy(x) + self._torch.from_numpy(residual)
        return self._norm(total, norm).numpy()

    def _norm(self, x: Tensor, norm: Norm) -> Tensor:
        gain, bias = self._weights(norm.gamma), self._weights(norm.beta)
        return self._torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias, EPSILON)

    def mean_pool(self, x: Floats, batch: Batch) -> Floats:
        """A masked sum over the lengths."""
        torch = self._torch
        sentences, tokens = batch.ids.shape
        lengths = torch.from_numpy(batch.lengths)[:, None]
        mask = (torch.arange(tokens) < lengths).float()
        total = mask[:, None, :] @ torch.from_numpy(x).view(sentences, tokens, -1)
        return (total[:, 0, :] / lengths).numpy()

    def l2_normalize(self, x: Floats) -> Floats:
        """torch's own."""
        return self._torch.nn.functional.normalize(self._torch.from_numpy(x)).numpy()

    def similarity(self, queries: Floats, sentences: Floats) -> Floats:
        """One product."""
        return (self._torch.from_numpy(queries) @ self._torch.from_numpy(sentences).T).numpy()


class TorchDecoding:
    """`DecodingOperations`; vectors have the dtype of the weights, as torch users have them."""

    def __init__(self, torch: ModuleType, weights: Weights, shape: Shape, capacity: int) -> None:
        self._torch = torch
        self._weights = weights
        self._shape = shape
        self._cosines, self._sines = map(torch.from_numpy, angles(shape, capacity))
        self._caches = torch.zeros(shape.layers, 2, shape.groups, capacity, shape.head_dim)

    def embed(self, table: Array, token: int) -> Tensor:
        """A row."""
        return self._weights(table)[token]

    def rms_norm(self, x: Tensor, gain: Array) -> Tensor:
        """torch's own, in float32."""
        norm = self._torch.nn.functional.rms_norm
        return norm(x.float(), x.shape, self._weights(gain), RMS_EPSILON).to(x.dtype)

    def linear(self, weight: Array, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """A product of matrix and vector."""
        tensor = self._weights(weight)
        y = tensor @ x.to(tensor.dtype)
        return y if residual is None else y + residual

    def gated_linear(self, gate: Array, up: Array, x: Tensor) -> Tensor:
        """Two products and the gate."""
        return self._torch.nn.functional.silu(self.linear(gate, x)) * self.linear(up, x)

    def attend(self, layer: int, qkv: Tensor, position: int) -> Tensor:
        """`scaled_dot_product_attention` with shared keys."""
        shape, torch = self._shape, self._torch
        keys, values = self._caches[layer]
        rows = qkv.float().view(-1, shape.head_dim)
        low, high = rows[: shape.heads + shape.groups].chunk(2, dim=1)
        cosine, sine = self._cosines[position], self._sines[position]
        turned = torch.cat((low * cosine - high * sine, high * cosine + low * sine), dim=1)
        keys[:, position] = turned[shape.heads :]
        values[:, position] = rows[shape.heads + shape.groups :]
        q = turned[: shape.heads].view(1, shape.heads, 1, shape.head_dim)
        k, v = (cache[None, :, : position + 1] for cache in (keys, values))
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(q, k, v, enable_gqa=True).view(-1).to(qkv.dtype)
