"""Timing: operations wrapped so that each call leaves a row, with the work that it did."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from examples.demo.model import HEAD_DIM, HEADS, Batch, Embeddings, Floats, Linear, Norm
from examples.demo.network import Operations

BYTES = 4  # of a float32 and of a token id


@dataclass(frozen=True)
class Call:
    """One timed call. `flops` is 0 where the call is bound by memory; then `moved_bytes` counts."""

    name: str
    seconds: float
    flops: int
    moved_bytes: int


@dataclass
class Profile:
    """The calls of one pass over all batches."""

    calls: list[Call] = field(default_factory=list)

    def run(
        self, name: str, launch: Callable[[], Floats], *, flops: int = 0, moved: int = 0
    ) -> Floats:
        """Time `launch` and keep its row."""
        started = time.perf_counter()
        result = launch()
        seconds = time.perf_counter() - started
        self.calls.append(Call(name, seconds, flops, moved * BYTES))
        return result

    @property
    def seconds(self) -> float:
        """The time of all calls together."""
        return sum(call.seconds for call in self.calls)


@dataclass(frozen=True)
class Row:
    """The calls of one name in one pass: how many, how long, how much work."""

    name: str
    calls: int
    seconds: float
    flops: int
    moved_bytes: int


def rows_of(profiles: Sequence[Profile]) -> list[Row]:
    """A row for each name, in order of first call; times are the median over the passes."""
    names = list(dict.fromkeys(call.name for call in profiles[0].calls))
    return [
        _row(name, [[c for c in p.calls if c.name == name] for p in profiles]) for name in names
    ]


def _row(name: str, passes: Sequence[Sequence[Call]]) -> Row:
    first = passes[0]
    return Row(
        name=name,
        calls=len(first),
        seconds=statistics.median(sum(call.seconds for call in calls) for calls in passes),
        flops=sum(call.flops for call in first),
        moved_bytes=sum(call.moved_bytes for call in first),
    )


class ProfiledOperations:
    """`Operations` that time the operations of another implementation.

    Work is what the algorithm needs at least: each operand read once, each result written once,
    padding tokens included, since every implementation here computes on them.
    """

    def __init__(self, operations: Operations, profile: Profile) -> None:
        self._operations = operations
        self._profile = profile

    def embed(self, tables: Embeddings, batch: Batch) -> Floats:
        """A row `embed + layer norm`."""
        width = tables.word.shape[1]
        return self._profile.run(
            "embed + layer norm",
            lambda: self._operations.embed(tables, batch),
            moved=batch.ids.size * (1 + 3 * width),
        )

    def linear(self, x: Floats, layer: Linear, gelu: bool = False) -> Floats:
        """A row `matmul + bias` or `matmul + bias + GELU`."""
        return self._profile.run(
            "matmul + bias + GELU" if gelu else "matmul + bias",
            lambda: self._operations.linear(x, layer, gelu),
            flops=2 * x.shape[0] * layer.weight.size,
        )

    def attention(self, qkv: Floats, batch: Batch) -> Floats:
        """A row `attention`; only the two products count as work."""
        sentences, tokens = batch.ids.shape
        return self._profile.run(
            "attention",
            lambda: self._operations.attention(qkv, batch),
            flops=4 * sentences * HEADS * tokens * tokens * HEAD_DIM,
        )

    def add_norm(self, x: Floats, residual: Floats, norm: Norm) -> Floats:
        """A row `residual + layer norm`."""
        return self._profile.run(
            "residual + layer norm",
            lambda: self._operations.add_norm(x, residual, norm),
            moved=3 * x.size,
        )

    def mean_pool(self, x: Floats, batch: Batch) -> Floats:
        """A row `mean pooling`."""
        return self._profile.run(
            "mean pooling", lambda: self._operations.mean_pool(x, batch), moved=x.size
        )

    def l2_normalize(self, x: Floats) -> Floats:
        """A row `L2 normalisation`."""
        return self._profile.run(
            "L2 normalisation", lambda: self._operations.l2_normalize(x), moved=2 * x.size
        )

    def similarity(self, queries: Floats, sentences: Floats) -> Floats:
        """A row `similarity`."""
        return self._profile.run(
            "similarity",
            lambda: self._operations.similarity(queries, sentences),
            flops=2 * queries.size * sentences.shape[0],
        )
