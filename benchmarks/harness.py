"""How benchmarks measure: interleaved pairs with a peer, bars, and what a result looks like.

A machine's clock moves and other work comes and goes, so a rate alone says little. Every ratio
is the median over pairs of samples taken one right after the other, ours then the peer's; the
first pair is dropped.
"""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROC_STAT = Path("/proc/stat")
PAIRS = 31
TOLERANCE = 0.03
"""What a ratio may lack of its bar and still pass."""

SAMPLE_SECONDS = 10e-3
"""A sample repeats a short call until it takes about this long."""

SETTLE_SECONDS = 0.05
"""Rest before a sample. OpenMP's threads spin for up to 18 ms after the peer's last call
(300,000 pauses of 140 cycles at 2.3 GHz), and would take a core from whoever runs next."""

WARM_SECONDS = 0.03
"""Calls before a sample. A thread that is woken may share the core of the one that woke it
until the scheduler looks (4 to 8 ms); OpenMP's threads are not pinned."""

WINDOW_SECONDS = 0.1
QUIET_FRACTION = 0.06
PATIENCE_SECONDS = 60.0
"""A pair waits for a window in which less than this fraction of all CPUs was in use; a
comparison waits at most this long in all, then goes on and says so."""


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
    num_busy: int = 0

    @property
    def note(self) -> str:
        """How many pairs ran beside other work."""
        return f"{self.num_busy} of {len(self.ours)} pairs on a busy machine" * bool(self.num_busy)

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
    wait, num_busy = QuietMachine(), 0
    for _ in range(pairs + 1):
        num_busy += not wait.until_quiet()
        for run, count, seconds in zip(runs, calls, samples, strict=True):
            seconds.append(sample(run, count))
    return Pairs(tuple(samples[0][1:]), tuple(samples[1][1:]), min(num_busy, pairs))


def measure_alone(run: Callable[[], object], samples: int = PAIRS) -> float:
    """The median seconds a call, where there is no peer."""
    count = calls_for_sample(run)
    wait, times = QuietMachine(), []
    for _ in range(samples + 1):
        wait.until_quiet()
        times.append(sample(run, count))
    return statistics.median(times[1:])


class QuietMachine:
    """Waits until other work has gone, with a limit on the time waited in all."""

    def __init__(self) -> None:
        self._patience = PATIENCE_SECONDS

    def until_quiet(self) -> bool:
        """Wait; False when the machine was still busy and patience is at its end."""
        while True:
            before = cpu_ticks()
            time.sleep(WINDOW_SECONDS)
            busy, total = (after - old for after, old in zip(cpu_ticks(), before, strict=True))
            if busy <= QUIET_FRACTION * total:
                return True
            self._patience -= WINDOW_SECONDS
            if self._patience < 0:
                return False


def cpu_ticks() -> tuple[int, int]:
    """The ticks that all CPUs were in use, and all ticks; nothing where there is no /proc."""
    if not PROC_STAT.exists():
        return 0, 0
    fields = PROC_STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    # user nice system idle iowait irq softirq steal; guest time is part of user time.
    ticks = [int(field) for field in fields[:8]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def calls_for_sample(run: Callable[[], object]) -> int:
    """How many calls make a sample long enough; the first call is not timed."""
    run()
    times = [_timed(run, 1) for _ in range(3)]
    return max(1, math.ceil(SAMPLE_SECONDS / min(times)))


def sample(run: Callable[[], object], calls: int) -> float:
    """The seconds of one call among `calls`, after a rest and calls that wake the machine."""
    time.sleep(SETTLE_SECONDS)
    ready = time.perf_counter() + WARM_SECONDS
    while time.perf_counter() < ready:
        run()
    return _timed(run, calls)


def _timed(run: Callable[[], object], calls: int) -> float:
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


@contextmanager
def empty_caches(*variables: str) -> Iterator[None]:
    """Let each of these environment variables name an empty folder of its own for a while."""
    before = {name: os.environ.get(name) for name in variables}
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update((name, str(Path(folder, name))) for name in variables)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
