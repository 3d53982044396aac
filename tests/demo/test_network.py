"""The demo's batching, NumPy network and float64 reference."""

from __future__ import annotations

import math

import numpy as np

from examples.demo import reference
from examples.demo.model import Model, Norm, make_batches
from examples.demo.numpy_operations import NumpyOperations, erf
from tests.demo.agreement import assert_agrees, embed


def test_numpy_network_agrees_with_float64(model: Model, token_ids: list[list[int]]) -> None:
    assert_agrees(model, token_ids, NumpyOperations())


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
    x = rng.standard_normal((5, 384)) * 100
    np.testing.assert_allclose(reference.softmax(x).sum(axis=1), 1, rtol=1e-12)
    unit = Norm(np.ones(384, dtype=np.float32), np.zeros(384, dtype=np.float32))
    normed = reference.layer_norm(x, unit)
    np.testing.assert_allclose(normed.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(normed.var(axis=1), 1, rtol=1e-12)
