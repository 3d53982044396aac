"""The demo from end to end: embed, check, search, measure, draw; then decode."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

import tilewright
from examples.demo import reference, report
from examples.demo.decoding import Decoding, run_decoding
from examples.demo.kernel_operations import KernelOperations
from examples.demo.model import (
    Batch,
    Floats,
    Model,
    load_model,
    load_tokenizer,
    make_batches,
    model_folder,
    tokenize,
    with_bfloat16,
)
from examples.demo.network import Operations, embed_batch
from examples.demo.numpy_operations import NumpyOperations
from examples.demo.peaks import Peaks, measure_peaks, product_unit
from examples.demo.profile import Profile, ProfiledOperations, Row, rows_of
from examples.demo.torch_operations import TorchOperations, Weights, inference, load_torch

FOLDER = Path(__file__).parent
BATCH_SIZE = 16
ROUNDS = 9
# A slow machine measures fewer rounds, so that the demo stays within its 90 seconds.
MEASURE_SECONDS = 15.0
MIN_ROUNDS = 4
HITS = 5
MIN_COSINE = {"f32": 0.99999, "bf16": 0.9999}
"""The least cosine with float64 that is right: bfloat16 keeps 8 bits of weights and activations."""


@dataclass(frozen=True)
class Inputs:
    """The texts, their tokens and the batches made of them."""

    sentences: list[str]
    queries: list[str]
    token_ids: list[list[int]]
    sentence_batches: list[Batch]
    query_batches: list[Batch]

    @property
    def tokens(self) -> int:
        """The number of tokens of all sentences, padding not counted."""
        return sum(len(ids) for ids in self.token_ids[: len(self.sentences)])


@dataclass(frozen=True)
class Outputs:
    """What one pass over the inputs computes."""

    sentences: Floats
    queries: Floats
    scores: Floats

    @property
    def embeddings(self) -> Floats:
        """Sentences first, then queries."""
        return np.concatenate([self.sentences, self.queries])


@dataclass(frozen=True)
class Measured:
    """The rows of one pass by each implementation; torch's only where it is installed."""

    ours: list[Row]
    numpy: list[Row]
    torch: list[Row] | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit status is 1 when an embedding or a logit is wrong."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--dtype", choices=MIN_COSINE, default="f32", help="of the weights")
    dtype = parser.parse_args(arguments).dtype
    started = time.perf_counter()
    console = Console()
    console.rule("Tilewright: sentence embeddings with all-MiniLM-L6-v2")
    with _progress(console) as progress:
        torch = load_torch()
        model, inputs = _load(progress)
        kept = with_bfloat16(model) if dtype == "bf16" else model
        outputs = _first_pass(progress, kept, inputs)
        expected = _reference(progress, model, inputs)
        measured = _measure(progress, model, kept, inputs, torch)
        peaks = _peaks(progress)
        decoding = _decode(progress, dtype, torch)
    _print_compilation(console)
    console.print(f"Products of {dtype}: {product_unit(dtype)}.", style="bold")
    correct = _print_check(console, outputs.embeddings, expected, MIN_COSINE[dtype])
    for query, scores in zip(inputs.queries, outputs.scores, strict=True):
        report.print_search(console, query, report.best_hits(scores, inputs.sentences, HITS))
    report.print_kernels(console, measured.ours, measured.numpy, measured.torch, peaks)
    report.print_rates(console, inputs.tokens, measured.ours, measured.numpy, measured.torch)
    subtitle = f"{len(inputs.sentences)} sentences, {inputs.tokens} tokens, {dtype}"
    files = report.draw(Path.cwd(), measured.ours, measured.numpy, subtitle)
    report.print_decoding(console, decoding, dtype)
    console.print(f"Drawn in {', '.join(path.name for path in files)}.")
    console.print(f"Total: {time.perf_counter() - started:.1f} s.", style="bold")
    return 0 if correct and decoding.is_right else 1


def _load(progress: Progress) -> tuple[Model, Inputs]:
    with _task(progress, "Load the model and tokenize", 2) as task:
        folder = model_folder()
        model = load_model(folder)
        progress.advance(task)
        inputs = read_inputs(folder)
        progress.advance(task)
    return model, inputs


def read_inputs(folder: Path) -> Inputs:
    """Read and tokenize the sentences and the queries that lie beside this file."""
    sentences = read_lines(FOLDER / "sentences.txt")
    queries = read_lines(FOLDER / "queries.txt")
    token_ids = tokenize(load_tokenizer(folder), sentences + queries)
    return Inputs(
        sentences=sentences,
        queries=queries,
        token_ids=token_ids,
        sentence_batches=make_batches(token_ids[: len(sentences)], BATCH_SIZE),
        query_batches=make_batches(token_ids[len(sentences) :], BATCH_SIZE),
    )


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are neither empty nor a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _first_pass(progress: Progress, model: Model, inputs: Inputs) -> Outputs:
    # The kernels are compiled, or loaded from the cache, on their first launch.
    batches = len(inputs.sentence_batches) + len(inputs.query_batches)
    with _task(progress, "Compile the kernels and embed", batches) as task:
        return run_pass(model, inputs, KernelOperations(), lambda: progress.advance(task))


def run_pass(
    model: Model, inputs: Inputs, ops: Operations, advance: Callable[[], None] = lambda: None
) -> Outputs:
    """Embed every text and score every query, with one implementation of the operations."""
    sentences = _embed_all(model, inputs.sentence_batches, ops, advance)
    queries = _embed_all(model, inputs.query_batches, ops, advance)
    return Outputs(sentences, queries, ops.similarity(queries, sentences))


def _embed_all(
    model: Model, batches: Sequence[Batch], ops: Operations, advance: Callable[[], None]
) -> Floats:
    count = sum(len(batch.order) for batch in batches)
    embeddings = np.empty((count, model.width), dtype=np.float32)
    for batch in batches:
        embeddings[list(batch.order)] = embed_batch(model, batch, ops)
        advance()
    return embeddings


def _reference(progress: Progress, model: Model, inputs: Inputs) -> list[reference.Doubles]:
    expected = []
    with _task(progress, "Check against float64", len(inputs.token_ids)) as task:
        for ids in inputs.token_ids:
            expected.append(reference.embed_sentence(model, ids))
            progress.advance(task)
    return expected


def _measure(
    progress: Progress, model: Model, kept: Model, inputs: Inputs, torch: ModuleType | None
) -> Measured:
    # NumPy has no products of bfloat16, so it takes the model in float32.
    peers: list[tuple[Model, Operations]] = [(kept, KernelOperations()), (model, NumpyOperations())]
    if torch is not None:
        peers.append((kept, TorchOperations(torch, Weights(torch))))
    passes: list[list[Profile]] = [[] for _ in peers]
    started = time.perf_counter()
    # Interleaved, so that a change of the machine's clock meets all alike.
    with _task(progress, "Measure, Tilewright and its peers in turn", ROUNDS) as task:
        for finished in range(ROUNDS):
            if finished >= MIN_ROUNDS and time.perf_counter() - started > MEASURE_SECONDS:
                progress.update(task, total=finished)
                break
            for (weights, operations), profiles in zip(peers, passes, strict=True):
                profiles.append(Profile())
                with inference(torch):
                    run_pass(weights, inputs, ProfiledOperations(operations, profiles[-1]))
            progress.advance(task)
    ours, numpy, *others = (rows_of(profiles[1:]) for profiles in passes)  # the first warms up
    return Measured(ours, numpy, others[0] if others else None)


def _peaks(progress: Progress) -> Peaks:
    with _task(progress, "Measure the machine's peaks", 1) as task:
        peaks = measure_peaks()
        progress.advance(task)
    return peaks


def _decode(progress: Progress, dtype: str, torch: ModuleType | None) -> Decoding:
    with _task(progress, "Decode with a small language model", 1) as task, inference(torch):
        decoding = run_decoding(dtype, torch)
        progress.advance(task)
    return decoding


def _print_compilation(console: Console) -> None:
    statistics = tilewright.compile_statistics()
    parts = []
    if statistics.compiled:
        seconds = f"{statistics.compile_seconds:.2f} s"
        parts.append(f"{statistics.compiled} kernels compiled in {seconds}")
    if statistics.loaded_from_disk:
        parts.append(f"{statistics.loaded_from_disk} kernels loaded from the cache")
    console.print(f"{'; '.join(parts)}.", style="bold")


def _print_check(
    console: Console,
    embeddings: Floats,
    expected: Sequence[reference.Doubles],
    least: float,
) -> bool:
    cosines = [reference.cosine(*pair) for pair in zip(embeddings, expected, strict=True)]
    wrong = sum(not cosine >= least for cosine in cosines)  # a NaN counts as wrong
    console.print(
        f"{len(cosines)} embeddings against float64: lowest cosine {min(cosines):.9f} "
        f"(at least {least} is right), {wrong} wrong.",
        style="bold red" if wrong else "bold green",
        soft_wrap=True,
    )
    return wrong == 0


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<40}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


@contextmanager
def _task(progress: Progress, description: str, total: int) -> Iterator[TaskID]:
    task = progress.add_task(description, total=total)
    yield task
    progress.stop_task(task)
