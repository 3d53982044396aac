"""A small model with random weights and sentences of random tokens: no download is needed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from examples.demo.model import Embeddings, Floats, Layer, Linear, Model, Norm

WIDTH, HIDDEN, WORDS, POSITIONS = 384, 100, 40, 96


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
