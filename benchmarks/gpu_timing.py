"""How the GPU's rows are measured: one call between two events, ours and the peers' in turn.

Before each call the L2 cache is written over, as a kernel in a program finds it. A sample is one
call, so the events' resolution (half a microsecond) matters only for kernels that are too short
to be a row here.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from benchmarks.harness import Row

Run = Callable[[], object]
SAMPLES = 25
WARM_UP = 3
FLUSH_BYTES = 256 << 20
HOT_SECONDS = 0.4
"""Of launches back to back until a choice is made. Measured on an H200, 2026-11-27: clocks settle
in 0.3 s, and choices of windows of 0.6 s are those of 2 s."""
BURST_SECONDS, ROUNDS = 8e-3, 11
"""Of launches back to back, ours and the library's in turn, so that both have the same clock."""


@dataclass(frozen=True)
class Times:
    """The samples of one run, in seconds."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.samples)


def measure(*runs: Run, samples: int = SAMPLES) -> list[Times]:
    """The times of each run, taken in turn."""
    for run in runs:
        for _ in range(WARM_UP):
            run()
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(samples):
        for run, times in zip(runs, found, strict=True):
            times.append(one_call(run))
    return [Times(tuple(times)) for times in found]


def one_call(run: Run) -> float:
    """The seconds of one call on the device, with a cold L2."""
    started, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    _flush_buffer().zero_()
    started.record()
    run()
    ended.record()
    ended.synchronize()
    return started.elapsed_time(ended) * 1e-3


@functools.cache
def _flush_buffer() -> torch.Tensor:
    return torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")


def ratio(ours: Times, peer: Times) -> float:
    """How many times as fast as the peer: the median over pairs."""
    pairs = zip(ours.samples, peer.samples, strict=True)
    return statistics.median(theirs / own for own, theirs in pairs)


def compared(
    family: str,
    work: str,
    ours: Times,
    peer: Times,
    bar: float | None,
    amount: float,
    unit: str,
    peer_name: str = "Triton",
) -> Row:
    """A row that says how `amount` of `unit` a second compares with a peer's."""
    shown = [f"{amount / times.median:.4g} {unit}" for times in (ours, peer)]
    value = ratio(ours, peer)
    return Row(family, work, 1, value, "x", bar, shown[0], f"{shown[1]} ({peer_name})")


def close_to(found: torch.Tensor, expected: torch.Tensor, limit: float) -> None:
    """Raise unless a result is as near to the expected one as a right kernel's is."""
    error = (found.double() - expected.double()).norm() / expected.double().norm()
    if not error <= limit:
        raise AssertionError(f"wrong result: relative error {float(error):.2e}")


def fastest(runs: Sequence[Run]) -> Run:
    """The fastest of several ways of doing the same."""
    times = measure(*runs, samples=5)
    return min(zip(runs, times, strict=True), key=lambda pair: pair[1].median)[0]


def fastest_hot(runs: Sequence[Run]) -> Run:
    """The fastest of several ways where launches follow one another and power sets the clock."""
    seconds = [launch_for(run, HOT_SECONDS) for _ in range(2) for run in runs]
    times = seconds[len(runs) :]
    return min(zip(runs, times, strict=True), key=lambda pair: pair[1])[0]


def in_turn_hot(runs: Sequence[Run], peer: Run) -> list[tuple[float, float, float]]:
    """How many times as fast as the peer each run is in bursts of launches, ours and its in turn.

    Medians over rounds, with the least and the most. The card is at its limit of power, and the
    clock is that of both: what keeps the tensor cores busier pays for it in windows of its own.
    """
    count = max(4, round(BURST_SECONDS / launch_for(peer, 1.0)))
    ratios: list[list[float]] = [[] for _ in runs]
    for number in range(ROUNDS):
        for run, found in zip(runs, ratios, strict=True):
            order = (run, peer) if number % 2 else (peer, run)
            seconds = {one: _burst(one, count) for one in order}
            found.append(seconds[peer] / seconds[run])
    return [(statistics.median(found), min(found), max(found)) for found in ratios]


def fastest_in_turn(runs: Sequence[Run], peer: Run) -> Run:
    """The fastest of several ways in bursts of launches, the peer's in between."""
    found = in_turn_hot(runs, peer)
    return max(zip(runs, found, strict=True), key=lambda pair: pair[1][0])[0]


def _burst(run: Run, count: int) -> float:
    """The seconds of a launch, of so many behind one that settles."""
    started, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    run()
    started.record()
    for _ in range(count):
        run()
    ended.record()
    ended.synchronize()
    return started.elapsed_time(ended) * 1e-3 / count


def launch_for(run: Run, seconds: float) -> float:
    """The seconds of a launch on the device, while launches follow one another for a while."""
    started, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    end, launches = time.perf_counter() + seconds, 0
    started.record()
    while time.perf_counter() < end:
        for _ in range(8):
            run()
        launches += 8
        ended.record()
        ended.synchronize()
    return started.elapsed_time(ended) * 1e-3 / launches
