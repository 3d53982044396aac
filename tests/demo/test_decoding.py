"""One step of decoding after the other: kernels, NumPy and torch against float64."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from rich.console import Console

from examples.demo import report
from examples.demo.decoding import Decoding, Prompt, check, check_prompt, run_decoding
from examples.demo.decoding_operations import KernelDecoding, NumpyDecoding
from examples.demo.kernel_operations import KernelOperations
from examples.demo.language_model import (
    LanguageModel,
    Shape,
    decode_step,
    random_model,
    read_prompt,
)
from examples.demo.model import Model, with_bfloat16
from examples.demo.prompt_operations import NumpyPrompt, TorchPrompt
from examples.demo.torch_operations import TorchDecoding, TorchOperations, Weights, load_torch
from tests.demo.agreement import assert_agrees

# Three heads on one of keys, and no power of two but the width of a head.
SHAPE = Shape(layers=2, width=48, heads=3, groups=1, hidden=100, words=77)
MORE_GROUPS = dataclasses.replace(SHAPE, width=64, heads=4, groups=2)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("shape", [SHAPE, MORE_GROUPS], ids=["3-on-1", "4-on-2"])
def test_logits_and_tokens_are_those_of_float64(
    shape: Shape, dtype: str, rng: np.random.Generator
) -> None:
    error, same_tokens = check(random_model(shape, rng, dtype), steps=70)
    assert error < 1e-5
    assert same_tokens


def test_numpy_in_float32_decodes_what_float64_does(rng: np.random.Generator) -> None:
    model = random_model(SHAPE, rng)
    narrow, wide = NumpyDecoding(SHAPE, 9, np.float32), NumpyDecoding(SHAPE, 9)
    for position in range(9):
        actual = decode_step(model, position, position, narrow)
        expected = decode_step(model, position, position, wide)
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)  # pyright: ignore[reportCallIssue]


def test_a_key_forgotten_is_found(rng: np.random.Generator) -> None:
    model = random_model(SHAPE, rng)
    ours, exact = KernelDecoding(SHAPE, 4), NumpyDecoding(SHAPE, 4)
    for position, token in enumerate((3, 4)):
        logits = decode_step(model, token, position, ours)
        expected = decode_step(model, token, position, exact)
    np.testing.assert_allclose(logits, expected, atol=1e-4)  # pyright: ignore[reportCallIssue]
    ours._caches[0, 0, 0, 0] = 0
    changed = decode_step(model, 5, 2, ours)
    assert np.abs(changed - decode_step(model, 5, 2, exact)).max() > 1e-3


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_run_measures_kernels_and_is_right(dtype: str) -> None:
    decoding = run_decoding(dtype, None, SHAPE)
    assert decoding.is_right
    assert list(decoding.rates) == (["Tilewright", "NumPy"] if dtype == "f32" else ["Tilewright"])
    console = Console(record=True, width=100)
    report.print_decoding(console, decoding, dtype)
    text = console.export_text()
    assert "the same tokens" in text and "Tokens of a prompt a second: Tilewright" in text
    assert list(decoding.prompt.rates) == list(decoding.rates)


@pytest.mark.parametrize(("error", "same"), [(math.nan, True), (1e-3, True), (0.0, False)])
def test_a_wrong_run_is_not_called_right(error: float, same: bool) -> None:
    prompt = Prompt(0.0, 1e-4, {"Tilewright": 1.0})
    assert not Decoding(SHAPE, 1, error, same, {"Tilewright": 1.0}, prompt).is_right


@pytest.mark.parametrize("error", [math.nan, 1e-3])
def test_a_prompt_read_wrong_is_not_called_right(error: float) -> None:
    prompt = Prompt(error, 1e-4, {"Tilewright": 1.0})
    assert not Decoding(SHAPE, 1, 0.0, True, {"Tilewright": 1.0}, prompt).is_right


@pytest.mark.parametrize(("dtype", "limit"), [("f32", 1e-5), ("bf16", 3e-2)])
@pytest.mark.parametrize("shape", [SHAPE, MORE_GROUPS], ids=["3-on-1", "4-on-2"])
@pytest.mark.parametrize("count", [1, 17, 64, 150])
def test_a_prompt_has_the_logits_of_float64(
    shape: Shape, dtype: str, limit: float, count: int, rng: np.random.Generator
) -> None:
    assert check_prompt(random_model(shape, rng, dtype), count) < limit


def test_a_prompt_ends_where_decoding_its_tokens_does(rng: np.random.Generator) -> None:
    model, tokens = random_model(SHAPE, rng), np.array([5, 70, 3, 3, 41], np.int32)
    decoding = NumpyDecoding(SHAPE, 5)
    for position, token in enumerate(tokens):
        expected = decode_step(model, int(token), position, decoding)
    (actual,) = read_prompt(model, tokens, NumpyPrompt(SHAPE, 5))
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)  # pyright: ignore[reportCallIssue]


def test_weights_of_bfloat16_embed_as_float64_to_four_digits(
    model: Model, token_ids: list[list[int]]
) -> None:
    assert_agrees(with_bfloat16(model), token_ids, KernelOperations(), exact=model, least=0.9999)


def network_weights(model: LanguageModel) -> int:
    return sum(a.size * a.itemsize for layer in model.layers for a in vars(layer).values())


def test_a_step_reads_every_weight_once(rng: np.random.Generator) -> None:
    model = random_model(SHAPE, rng, "bf16")
    assert model.weight_bytes == network_weights(model) + model.words.nbytes


@pytest.mark.torch
def test_torch_decodes_what_float64_does(rng: np.random.Generator) -> None:
    torch = load_torch()
    assert torch is not None
    model = random_model(MORE_GROUPS, rng)
    peer = TorchDecoding(torch, Weights(torch), MORE_GROUPS, 9)
    exact = NumpyDecoding(MORE_GROUPS, 9)
    for position in range(9):
        actual = decode_step(model, position, position, peer)
        expected = decode_step(model, position, position, exact)
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4)  # pyright: ignore[reportCallIssue]


@pytest.mark.torch
def test_torch_reads_a_prompt_as_float64_does(rng: np.random.Generator) -> None:
    torch = load_torch()
    assert torch is not None
    model, tokens = random_model(MORE_GROUPS, rng), np.array([5, 70, 3, 3, 41], np.int32)
    actual = read_prompt(model, tokens, TorchPrompt(torch, Weights(torch), MORE_GROUPS, 5))
    expected = read_prompt(model, tokens, NumpyPrompt(MORE_GROUPS, 5))
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4)  # pyright: ignore[reportCallIssue]


@pytest.mark.torch
@pytest.mark.parametrize(("is_narrow", "least"), [(False, 0.99999), (True, 0.9999)])
def test_torch_embeds_what_float64_does(
    model: Model, token_ids: list[list[int]], is_narrow: bool, least: float
) -> None:
    torch = load_torch()
    assert torch is not None
    weights = with_bfloat16(model) if is_narrow else model
    assert_agrees(weights, token_ids, TorchOperations(torch, Weights(torch)), model, least)
