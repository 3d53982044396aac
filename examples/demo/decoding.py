"""The demo's second part: a language model reads and decodes, is checked, and has peers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from examples.demo.decoding_operations import KernelDecoding, NumpyDecoding
from examples.demo.language_model import (
    SMOL,
    DecodingOperations,
    LanguageModel,
    PromptOperations,
    Shape,
    Tokens,
    decode_step,
    random_model,
    read_prompt,
)
from examples.demo.prompt_operations import KernelPrompt, NumpyPrompt, TorchPrompt
from examples.demo.torch_operations import TorchDecoding, Weights

CHECKED_STEPS = 2
CAPACITY = 512
FIRST_TOKEN = 1
SECONDS = 4.0
"""How long each implementation decodes at most."""

MAX_STEPS = 64
MAX_ERROR = 1e-4
"""What the logits may lack of float64's, over the largest: sums of 1536 float32 in 30 layers."""

CHECKED_TOKENS, PROMPT_TOKENS = 50, 512
PROMPT_ROUNDS = 3
"""How often each implementation reads the prompt after the first time; the fastest counts. No
round begins after `SECONDS`."""

MAX_PROMPT_ERROR = {"f32": 1e-4, "bf16": 5e-2}
"""The same for a prompt: activations are rounded to the dtype of the weights before a product."""


@dataclass(frozen=True)
class Prompt:
    """What was found of reading: the largest error of the logits, and tokens a second."""

    error: float
    limit: float
    rates: dict[str, float]

    @property
    def is_right(self) -> bool:
        """Whether the logits are those of float64."""
        return self.error <= self.limit


@dataclass(frozen=True)
class Decoding:
    """What was found: the largest error of the logits, and tokens a second by implementation."""

    shape: Shape
    weight_bytes: int
    error: float
    same_tokens: bool
    rates: dict[str, float]
    prompt: Prompt

    @property
    def is_right(self) -> bool:
        """Whether logits and tokens are those of float64."""
        return self.same_tokens and self.error <= MAX_ERROR and self.prompt.is_right


def run_decoding(dtype: str, torch: ModuleType | None, shape: Shape = SMOL) -> Decoding:
    """Decode with random weights: first beside float64, then for the clock."""
    model = random_model(shape, np.random.default_rng(0), dtype)
    error, same_tokens = check(model)
    implementations: dict[str, DecodingOperations[Any]] = {
        "Tilewright": KernelDecoding(shape, CAPACITY)
    }
    # NumPy has no products of bfloat16: widening every weight in every step would be no peer.
    if dtype == "f32":
        implementations["NumPy"] = NumpyDecoding(shape, CAPACITY, np.float32)
    if torch is not None:
        implementations["torch"] = TorchDecoding(torch, Weights(torch), shape, CAPACITY)
    rates = {name: tokens_per_second(model, ops) for name, ops in implementations.items()}
    prompt = run_prompt(model, dtype, torch)
    return Decoding(shape, model.weight_bytes, error, same_tokens, rates, prompt)


def run_prompt(model: LanguageModel, dtype: str, torch: ModuleType | None) -> Prompt:
    """Read a short prompt beside float64, then a long one for the clock, in turn."""
    shape = model.shape
    error = check_prompt(model)
    peers: dict[str, PromptOperations[Any]] = {"Tilewright": KernelPrompt(shape, CAPACITY)}
    if dtype == "f32":
        peers["NumPy"] = NumpyPrompt(shape, CAPACITY, np.float32)
    if torch is not None:
        peers["torch"] = TorchPrompt(torch, Weights(torch), shape, CAPACITY)
    tokens = random_tokens(shape, PROMPT_TOKENS)
    for ops in peers.values():
        read_prompt(model, tokens, ops)
    seconds = dict.fromkeys(peers, float("inf"))
    begun = time.perf_counter()
    for number in range(PROMPT_ROUNDS):
        if number and time.perf_counter() - begun > SECONDS:
            break
        for name, ops in peers.items():
            started = time.perf_counter()
            read_prompt(model, tokens, ops)
            seconds[name] = min(seconds[name], time.perf_counter() - started)
    rates = {name: PROMPT_TOKENS / least for name, least in seconds.items()}
    return Prompt(error, MAX_PROMPT_ERROR[dtype], rates)


def check_prompt(model: LanguageModel, count: int = CHECKED_TOKENS) -> float:
    """The largest error of the logits after `count` tokens, over the largest logit."""
    tokens = random_tokens(model.shape, count)
    logits = read_prompt(model, tokens, KernelPrompt(model.shape, count))
    expected = read_prompt(model, tokens, NumpyPrompt(model.shape, count))
    return float(np.abs(logits - expected).max() / np.abs(expected).max())


def random_tokens(shape: Shape, count: int) -> Tokens:
    """A prompt, the same each time."""
    return np.random.default_rng(1).integers(0, shape.words, count, dtype=np.int32)


def check(model: LanguageModel, steps: int = CHECKED_STEPS) -> tuple[float, bool]:
    """The largest error of the logits over the largest logit, and whether the tokens agree."""
    ours, exact = KernelDecoding(model.shape, steps), NumpyDecoding(model.shape, steps)
    token, error, same = FIRST_TOKEN, 0.0, True
    for position in range(steps):
        logits = decode_step(model, token, position, ours)
        expected = decode_step(model, token, position, exact)
        # Not Python's `max`, which may drop a NaN.
        difference = np.abs(logits - expected).max() / np.abs(expected).max()
        error = float(np.maximum(error, difference))
        same = same and int(logits.argmax()) == int(expected.argmax())
        token = int(logits.argmax())
    return error, same


def tokens_per_second(model: LanguageModel, ops: DecodingOperations[Any]) -> float:
    """Decode greedily for a while; the first step, which compiles and packs, does not count."""
    token = int(decode_step(model, FIRST_TOKEN, 0, ops).argmax())
    started = time.perf_counter()
    for position in range(1, MAX_STEPS):
        token = int(decode_step(model, token, position, ops).argmax())
        seconds = time.perf_counter() - started
        if seconds > SECONDS:
            break
    return position / seconds
