"""What it means that an implementation of the network is right."""

from __future__ import annotations

import numpy as np

from examples.demo import reference
from examples.demo.model import Floats, Model, make_batches
from examples.demo.network import Operations, embed_batch

MIN_COSINE = 0.99999


def embed(model: Model, token_ids: list[list[int]], ops: Operations) -> Floats:
    out = np.full((len(token_ids), model.width), np.nan, dtype=np.float32)
    for batch in make_batches(token_ids, size=3):
        out[list(batch.order)] = embed_batch(model, batch, ops)
    return out


def assert_agrees(
    model: Model,
    token_ids: list[list[int]],
    ops: Operations,
    exact: Model | None = None,
    least: float = MIN_COSINE,
) -> None:
    """`ops` embed by `model` as float64 does by `exact`, which is the same unless given."""
    actual = embed(model, token_ids, ops)
    for row, ids in zip(actual, token_ids, strict=True):
        assert reference.cosine(row, reference.embed_sentence(exact or model, ids)) >= least
