"""What the demo prints and draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # files only: no display is needed

import matplotlib.pyplot as plt
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from examples.demo.decoding import Decoding
from examples.demo.model import Floats
from examples.demo.peaks import Peaks
from examples.demo.profile import Row

FIGURES = ("demo.svg", "demo.png")
TILEWRIGHT_COLOUR = "#2a6f97"
NUMPY_COLOUR = "#b8b8b8"


@dataclass(frozen=True)
class Hit:
    """One sentence found by a query."""

    score: float
    sentence: str


def best_hits(scores: Floats, sentences: Sequence[str], count: int) -> list[Hit]:
    """The `count` best sentences by score, best first."""
    order = np.argsort(-scores, kind="stable")[:count]
    return [Hit(float(scores[index]), sentences[index]) for index in order]


def print_search(console: Console, query: str, hits: Sequence[Hit]) -> None:
    """Print the ranked sentences of one query."""
    table = Table(title=f"“{query}”", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("rank", justify="right")
    table.add_column("cosine", justify="right")
    table.add_column("sentence", ratio=1)
    for rank, hit in enumerate(hits, start=1):
        table.add_row(str(rank), f"{hit.score:.3f}", hit.sentence)
    console.print(table)


def print_kernels(
    console: Console,
    tilewright_rows: Sequence[Row],
    numpy_rows: Sequence[Row],
    torch_rows: Sequence[Row] | None,
    peaks: Peaks,
) -> None:
    """Print calls, time, rate and fraction of peak of each operation, beside its peers' times."""
    peers = {"NumPy": numpy_rows}
    if torch_rows is not None:
        peers["torch"] = torch_rows
    table = Table(
        title="One pass over all texts, median times",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    columns = [text for name in peers for text in (f"{name} ms", "speed-up")]
    for name in ("kernel", "calls", "ms", "rate", "of peak", *columns):
        table.add_column(name, justify="left" if name == "kernel" else "right", no_wrap=True)
    for ours, *theirs in zip(tilewright_rows, *peers.values(), strict=True):
        table.add_row(*_cells(ours, theirs, peaks))
    table.add_section()
    total = total_seconds(tilewright_rows)
    calls = sum(row.calls for row in tilewright_rows)
    totals = [total_seconds(rows) for rows in peers.values()]
    beside = [text for peer in totals for text in (_ms(peer), f"{peer / total:.2f}×")]
    table.add_row("the network", str(calls), _ms(total), "", "", *beside)
    console.print(table)
    console.print(
        f"Peaks of this run: {peaks.flops_per_second / 1e9:.0f} GFLOP/s ({peaks.flops_source}), "
        f"{peaks.bytes_per_second / 1e9:.1f} GB/s ({peaks.bytes_source}).",
        style="dim",
        soft_wrap=True,
    )


def total_seconds(rows: Sequence[Row]) -> float:
    """The time of all operations together."""
    return sum(row.seconds for row in rows)


def print_rates(
    console: Console,
    tokens: int,
    tilewright_rows: Sequence[Row],
    numpy_rows: Sequence[Row],
    torch_rows: Sequence[Row] | None,
) -> None:
    """Print how many tokens a second each implementation embeds."""
    passes = {"Tilewright": tilewright_rows, "NumPy": numpy_rows, "torch": torch_rows}
    rates = [
        f"{name} {tokens / total_seconds(rows):,.0f}"
        for name, rows in passes.items()
        if rows is not None
    ]
    console.print(f"Tokens a second: {', '.join(rates)}.", style="bold", soft_wrap=True)


def print_decoding(console: Console, decoding: Decoding, dtype: str) -> None:
    """Print what was found about one token after the other."""
    shape = decoding.shape
    console.rule("One token after the other: a language model with SmolLM-135M's shapes")
    console.print(
        f"{shape.layers} layers of {shape.width}, {shape.heads} heads on {shape.groups} of keys, "
        f"{decoding.weight_bytes / 1e6:.0f} MB of random {dtype} weights, each read once a token.",
        soft_wrap=True,
    )
    tokens = "the same tokens" if decoding.same_tokens else "other tokens"
    console.print(
        f"Logits against float64: off by {decoding.error:.1e} of the largest, {tokens}.",
        style="bold green" if decoding.is_right else "bold red",
        soft_wrap=True,
    )
    rates = ", ".join(f"{name} {rate:.1f}" for name, rate in decoding.rates.items())
    speed = decoding.rates["Tilewright"] * decoding.weight_bytes / 1e9
    console.print(
        f"Tokens a second: {rates}; Tilewright reads {speed:.1f} GB/s.",
        style="bold",
        soft_wrap=True,
    )
    prompt = decoding.prompt
    console.print(
        f"A prompt's logits against float64: off by {prompt.error:.1e} of the largest.",
        style="bold green" if prompt.is_right else "bold red",
        soft_wrap=True,
    )
    rates = ", ".join(f"{name} {rate:.0f}" for name, rate in prompt.rates.items())
    console.print(f"Tokens of a prompt a second: {rates}.", style="bold", soft_wrap=True)


def _cells(ours: Row, peers: Sequence[Row], peaks: Peaks) -> list[str]:
    rate, peak = _rate(ours, peaks)
    beside = [
        text
        for peer in peers
        for text in (_ms(peer.seconds), f"{peer.seconds / ours.seconds:.2f}×")
    ]
    return [
        ours.name,
        str(ours.calls),
        _ms(ours.seconds),
        rate,
        f"{peak:.0%}",
        *beside,
    ]


def _rate(row: Row, peaks: Peaks) -> tuple[str, float]:
    if row.flops:
        flops = row.flops / row.seconds
        return f"{flops / 1e9:.0f} GFLOP/s", flops / peaks.flops_per_second
    bandwidth = row.moved_bytes / row.seconds
    return f"{bandwidth / 1e9:.1f} GB/s", bandwidth / peaks.bytes_per_second


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


def draw(
    folder: Path, tilewright_rows: Sequence[Row], numpy_rows: Sequence[Row], subtitle: str
) -> list[Path]:
    """Draw the times of both implementations, one pair of bars an operation; returns the files."""
    names = [row.name for row in tilewright_rows]
    places = np.arange(len(names))
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    _bars(axes, places - 0.2, tilewright_rows, "Tilewright", TILEWRIGHT_COLOUR)
    _bars(axes, places + 0.2, numpy_rows, "NumPy", NUMPY_COLOUR)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    # Times span four orders of magnitude: a linear axis would show the matmuls alone.
    axes.set_xscale("log")
    axes.margins(x=0.08)
    axes.set_xlabel("milliseconds in one pass over all texts (logarithmic, lower is better)")
    axes.set_title(f"all-MiniLM-L6-v2 on the CPU\n{subtitle}", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    paths = [folder / name for name in FIGURES]
    for path in paths:
        figure.savefig(path, dpi=150)
    plt.close(figure)
    return paths


def _bars(axes: plt.Axes, places: Floats, rows: Sequence[Row], label: str, colour: str) -> None:
    times = [row.seconds * 1e3 for row in rows]
    bars = axes.barh(places, times, height=0.38, label=label, color=colour)
    axes.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
