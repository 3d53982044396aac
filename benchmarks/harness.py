"""How benchmarks measure: interleaved pairs with a peer, bars, and what a result looks like.

A machine's clock moves and other work comes and goes, so a rate alone says little. Every ratio
is the median over pairs of samples taken one right after the other, ours then the peer's; the
first pair is dropped.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

PAIRS = 31
TOLERANCE = 0.03
"""What a ratio may lack of its bar and still pass."""

SAMPLE_SECONDS = 5e-3
"""A sample repeats a short call until it takes about this long."""

SETTLE_SECONDS = 0.025
"""Rest before a sample. OpenMP's threads spin for up to 18 ms after the peer's last call
(300,000 pauses of 140 cycles at 2.3 GHz), and would take a core from whoever runs next."""


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured and what it should reach.

    `value` is a ratio to the peer where `unit` is "x" (larger is better), else an amount in
    `unit` of which less is better. It is None where nothing could be measured; `note` says why.
    """

    family: str
    work: str
    threads: int
    value: float | None
    unit: str = "x"
    bar: float | None = None
    ours: str = ""
    peer: str = ""
    note: str = ""

    @property
    def is_ratio(self) -> bool:
        """Whether the value is a ratio to a peer."""
        return self.unit == "x"

    @property
    def verdict(self) -> str:
        """`pass`, `short`, or `-` where there is no bar or no value."""
        if self.bar is None or self.value is None:
            return "-"
        if self.is_ratio:
            return "pass" if self.value >= self.bar - TOLERANCE else "short"
        return "pass" if self.value <= self.bar else "short"

    def to_json(self) -> dict[str, object]:
        """The fields and the verdict."""
        return {**dataclasses.asdict(self), "verdict": self.verdict}


@dataclass(frozen=True)
class Pairs:
    """The samples of a comparison, in seconds a call, first pair already dropped."""

    ours: tuple[float, ...]
    peer: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """How many times as fast as the peer: the median over the pairs."""
        return statistics.median(b / a for a, b in zip(self.ours, self.peer, strict=True))

    @property
    def ours_seconds(self) -> float:
        """Our median."""
        return statistics.median(self.ours)

    @property
    def peer_seconds(self) -> float:
        """The peer's median."""
        return statistics.median(self.peer)


def measure_pairs(
    ours: Callable[[], object], peer: Callable[[], object], pairs: int = PAIRS
) -> Pairs:
    """Samples of `ours` and `peer` in turn."""
    runs = (ours, peer)
    calls = [calls_for_sample(run) for run in runs]
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(pairs + 1):
        for run, count, seconds in zip(runs, calls, samples, strict=True):
            seconds.append(sample(run, count))
    return Pairs(tuple(samples[0][1:]), tuple(samples[1][1:]))


def measure_alone(run: Callable[[], object], samples: int = PAIRS) -> float:
    """The median seconds a call, where there is no peer."""
    count = calls_for_sample(run)
    return statistics.median([sample(run, count) for _ in range(samples + 1)][1:])


def calls_for_sample(run: Callable[[], object]) -> int:
    """How many calls make a sample long enough; the first call is not timed."""
    run()
    started = time.perf_counter()
    run()
    return max(1, math.ceil(SAMPLE_SECONDS / (time.perf_counter() - started)))


def sample(run: Callable[[], object], calls: int) -> float:
    """The seconds of one call among `calls`, after a rest and a call that wakes the threads."""
    time.sleep(SETTLE_SECONDS)
    run()
    started = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - started) / calls


def show_seconds(seconds: float) -> str:
    """A time in the unit that suits it."""
    for factor, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
