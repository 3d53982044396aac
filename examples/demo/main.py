"""The demo from end to end: embed, check, search, measure, draw."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
)
from examples.demo.network import Operations, embed_batch
from examples.demo.numpy_operations import NumpyOperations
from examples.demo.peaks import Peaks, measure_peaks
from examples.demo.profile import Profile, ProfiledOperations, Row, rows_of

FOLDER = Path(__file__).parent
BATCH_SIZE = 16
ROUNDS = 9
# A slow machine measures fewer rounds, so that the demo stays within its 90 seconds.
MEASURE_SECONDS = 15.0
MIN_ROUNDS = 4
HITS = 5
MIN_COSINE = 0.99999


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


def main() -> int:
    """Run the demo; the exit status is 1 when an embedding is wrong."""
    started = time.perf_counter()
    console = Console()
    console.rule("Tilewright: sentence embeddings with all-MiniLM-L6-v2")
    with _progress(console) as progress:
        model, inputs = _load(progress)
        outputs = _first_pass(progress, model, inputs)
        expected = _reference(progress, model, inputs)
        ours, peer = _measure(progress, model, inputs)
        peaks = _peaks(progress)
    _print_compilation(console)
    correct = _print_check(console, outputs.embeddings, expected)
    for query, scores in zip(inputs.queries, outputs.scores, strict=True):
        report.print_search(console, query, report.best_hits(scores, inputs.sentences, HITS))
    report.print_kernels(console, ours, peer, peaks)
    files = report.draw(Path.cwd(), ours, peer, _subtitle(inputs))
    console.print(f"Drawn in {', '.join(path.name for path in files)}.")
    console.print(f"Total: {time.perf_counter() - started:.1f} s.", style="bold")
    return 0 if correct else 1


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


def _measure(progress: Progress, model: Model, inputs: Inputs) -> tuple[list[Row], list[Row]]:
    # Interleaved, so that a change of the machine's clock meets both alike.
    peers: dict[type, list[Profile]] = {KernelOperations: [], NumpyOperations: []}
    started = time.perf_counter()
    with _task(progress, "Measure, Tilewright and NumPy in turn", ROUNDS) as task:
        for finished in range(ROUNDS):
            if finished >= MIN_ROUNDS and time.perf_counter() - started > MEASURE_SECONDS:
                progress.update(task, total=finished)
                break
            for implementation, profiles in peers.items():
                profiles.append(Profile())
                run_pass(model, inputs, ProfiledOperations(implementation(), profiles[-1]))
            progress.advance(task)
    ours, numpy = (rows_of(profiles[1:]) for profiles in peers.values())  # the first warms up
    return ours, numpy


def _peaks(progress: Progress) -> Peaks:
    with _task(progress, "Measure the machine's peaks", 1) as task:
        peaks = measure_peaks()
        progress.advance(task)
    return peaks


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
    console: Console, embeddings: Floats, expected: Sequence[reference.Doubles]
) -> bool:
    cosines = [reference.cosine(*pair) for pair in zip(embeddings, expected, strict=True)]
    wrong = sum(not cosine >= MIN_COSINE for cosine in cosines)  # a NaN counts as wrong
    console.print(
        f"{len(cosines)} embeddings against float64: lowest cosine {min(cosines):.9f} "
        f"(at least {MIN_COSINE} is right), {wrong} wrong.",
        style="bold red" if wrong else "bold green",
        soft_wrap=True,
    )
    return wrong == 0


def _subtitle(inputs: Inputs) -> str:
    return f"{len(inputs.sentences)} sentences, {inputs.tokens} tokens, float32"


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
