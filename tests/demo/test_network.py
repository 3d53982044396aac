"""The demo's network on a small model with random weights: no download is needed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from examples.demo import reference
from examples.demo.model import (
    Embeddings,
    Floats,
    Layer,
    Linear,
    Model,
    Norm,
    make_batches,
)
from examples.demo.network import Operations, embed_batch
from examples.demo.numpy_operations import NumpyOperations, erf

WIDTH, HIDDEN, WORDS, POSITIONS = 384, 100, 40, 96
MIN_COSINE = 0.99999


@pytest.fixture
def model(rng: np.random.Generator) -> Model:
    def table(*shape: int) -> Floats:
        return rng.standard_normal(shape, dtype=np.float32)

    def linear(k: int, n: int) -> Linear:
        return Linear(table(k, n) / np.float32(math.sqrt(k)), table(n) * np.float32(0.1))

    def norm() -> Norm:
        return Norm(1 + table(WIDTH) * np.float32(0.1), table(WIDTH) * np.float32(0.1))

    layers = tuple(
        Layer(
            qkv=linear(WIDTH, 3 * WIDTH),
            attention_output=linear(WIDTH, WIDTH),
            attention_norm=norm(),
            expand=linear(WIDTH, HIDDEN),
            contract=linear(HIDDEN, WIDTH),
            output_norm=norm(),
        )
        for _ in range(2)
    )
    tables = Embeddings(table(WORDS, WIDTH), table(POSITIONS, WIDTH), table(2, WIDTH), norm())
    return Model(tables, layers)


@pytest.fixture
def token_ids(rng: np.random.Generator) -> list[list[int]]:
    return [list(map(int, rng.integers(0, WORDS, length))) for length in (2, 33, 7, 61, 17)]


def embed(model: Model, token_ids: list[list[int]], ops: Operations) -> Floats:
    out = np.full((len(token_ids), WIDTH), np.nan, dtype=np.float32)
    for batch in make_batches(token_ids, size=3):
        out[list(batch.order)] = embed_batch(model, batch, ops)
    return out


def check(model: Model, token_ids: list[list[int]], ops: Operations) -> None:
    actual = embed(model, token_ids, ops)
    for row, ids in zip(actual, token_ids, strict=True):
        assert reference.cosine(row, reference.embed_sentence(model, ids)) >= MIN_COSINE


def test_numpy_network_agrees_with_float64(model: Model, token_ids: list[list[int]]) -> None:
    check(model, token_ids, NumpyOperations())


def test_padding_does_not_change_an_embedding(model: Model, token_ids: list[list[int]]) -> None:
    together = embed(model, token_ids, NumpyOperations())
    alone = [embed(model, [ids], NumpyOperations())[0] for ids in token_ids]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_batches_hold_each_sentence_once_and_pad_to_the_multiple(
    token_ids: list[list[int]],
) -> None:
    batches = make_batches(token_ids, size=2, multiple=16)
    assert sorted(index for batch in batches for index in batch.order) == [0, 1, 2, 3, 4]
    assert [batch.ids.shape for batch in batches] == [(2, 16), (2, 48), (1, 64)]
    for batch in batches:
        for row, index in enumerate(batch.order):
            length = batch.lengths[row]
            assert batch.ids[row, :length].tolist() == token_ids[index]
            assert not batch.ids[row, length:].any()


def test_erf_approximation_is_within_its_bound() -> None:
    x = np.linspace(-6, 6, 20_001, dtype=np.float32)
    exact = np.array([math.erf(value) for value in x.tolist()])
    assert np.abs(erf(x) - exact).max() < 6e-7


def test_reference_softmax_and_norm_have_their_defining_properties(
    rng: np.random.Generator,
) -> None:
    x = rng.standard_normal((5, WIDTH)) * 100
    np.testing.assert_allclose(reference.softmax(x).sum(axis=1), 1, rtol=1e-12)
    unit = Norm(np.ones(WIDTH, dtype=np.float32), np.zeros(WIDTH, dtype=np.float32))
    normed = reference.layer_norm(x, unit)
    np.testing.assert_allclose(normed.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(normed.var(axis=1), 1, rtol=1e-12)
