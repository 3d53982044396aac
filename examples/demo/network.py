"""The network once, over any implementation of its operations."""

from __future__ import annotations

from typing import Protocol

from examples.demo.model import Batch, Embeddings, Floats, Linear, Model, Norm


class Operations(Protocol):
    """The tensor operations that the network is made of, on float32 arrays.

    A token matrix is `[sentences * tokens, width]`, sentences one after the other.
    """

    def embed(self, tables: Embeddings, batch: Batch) -> Floats:
        """Gathered, summed and normalised embeddings of the tokens of a batch."""
        ...

    def linear(self, x: Floats, layer: Linear, gelu: bool = False) -> Floats:
        """`x @ weight + bias`, through GELU on request."""
        ...

    def attention(self, qkv: Floats, batch: Batch) -> Floats:
        """Multi-head attention in which padding tokens are no keys."""
        ...

    def add_norm(self, x: Floats, residual: Floats, norm: Norm) -> Floats:
        """The layer norm of `x + residual`."""
        ...

    def mean_pool(self, x: Floats, batch: Batch) -> Floats:
        """The mean token of each sentence, padding left out."""
        ...

    def l2_normalize(self, x: Floats) -> Floats:
        """Each row divided by its Euclidean norm."""
        ...

    def similarity(self, queries: Floats, sentences: Floats) -> Floats:
        """The dot product of every query with every sentence."""
        ...


def embed_batch(model: Model, batch: Batch, ops: Operations) -> Floats:
    """The embeddings of the sentences of a batch, `[sentences, width]`, rows of norm 1."""
    x = ops.embed(model.embeddings, batch)
    for layer in model.layers:
        mixed = ops.attention(ops.linear(x, layer.qkv), batch)
        x = ops.add_norm(ops.linear(mixed, layer.attention_output), x, layer.attention_norm)
        hidden = ops.linear(x, layer.expand, gelu=True)
        x = ops.add_norm(ops.linear(hidden, layer.contract), x, layer.output_norm)
    return ops.l2_normalize(ops.mean_pool(x, batch))
