"""Measuring configurations: compile each, time those that differ, name the fastest."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tilewright.runtime.config import Config
from tilewright.runtime.progress import Step, progress_bar
from tilewright.runtime.timer import do_bench
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import (
    CompileError,
    InternalError,
    KernelFault,
    KernelTooLarge,
    StaticAssertionFailed,
    TileTooLarge,
    TilewrightError,
    TooManyIterations,
    UnsupportedError,
)

# A configuration that fails with one of these loses; any other error is the kernel's own.
TRIAL_ERRORS = (
    TileTooLarge,
    KernelTooLarge,
    TooManyIterations,
    StaticAssertionFailed,
    UnsupportedError,
    InternalError,
    KernelFault,
)
QUANTILES = (0.5, 0.2, 0.8)
LOST: Final = (math.inf, math.inf, math.inf)
DEFAULT_WARMUP_MS = 25.0
DEFAULT_REP_MS = 100.0
# A configuration this much slower than the best so far in a tenth of the time is not tried on.
_HOPELESS = 2.0

Times = tuple[float, float, float]
Benchmarker = Callable[..., object]


class NoUsableConfig(CompileError):
    """Every configuration of an autotuned kernel failed."""

    help = "the configurations must fit the limits of the language, such as the size of a tile"


@dataclass(frozen=True)
class Trial:
    """What became of one configuration: median, 20 % and 80 % quantile in ms, or an error."""

    config: Config
    times_ms: Times
    failure: str = ""


@dataclass(frozen=True)
class Candidate:
    """A configuration with how to compile it and how to launch it.

    `compile` returns the compiled kernel (or None where nothing is compiled); `launch` runs it;
    `prepare` sets the arguments up for a run and is not part of its time.
    """

    config: Config
    compile: Callable[[], object]
    launch: Callable[[], object]
    prepare: Callable[[], object]


@dataclass(frozen=True)
class Measure:
    """How a candidate is timed; `do_bench` replaces our own timer."""

    warmup_ms: float = DEFAULT_WARMUP_MS
    rep_ms: float = DEFAULT_REP_MS
    do_bench: Benchmarker | None = None

    def time(self, candidate: Candidate, best_ms: float) -> Times:
        """The times of a candidate; short for one that is far slower than `best_ms`."""
        if self.do_bench is not None:
            return _times(self.do_bench(_prepared(candidate), quantiles=QUANTILES))
        if math.isfinite(best_ms):
            first = self._run(candidate, 0.1)
            if first[0] > _HOPELESS * best_ms:
                return first
        return self._run(candidate, 1.0)

    def _run(self, candidate: Candidate, share: float) -> Times:
        warmup, rep = share * self.warmup_ms, share * self.rep_ms
        launch, prepare = candidate.launch, candidate.prepare
        prepare()
        return _times(do_bench(launch, warmup, rep, quantiles=QUANTILES, prepare=prepare))


def _prepared(candidate: Candidate) -> Callable[[], None]:
    """One call for timers that know nothing of `prepare`; it becomes part of the time."""

    def call() -> None:
        candidate.prepare()
        candidate.launch()

    return call


def _times(found: object) -> Times:
    if isinstance(found, Sequence) and not isinstance(found, str):
        median, low, high = (float(value) for value in found)
        return median, low, high
    assert isinstance(found, float | int), found
    return float(found), float(found), float(found)


@dataclass(frozen=True)
class Outcome:
    """The trials in the order of the configurations; `is_complete` unless interrupted."""

    trials: tuple[Trial, ...]
    is_complete: bool = True

    @property
    def best(self) -> Trial:
        """The fastest trial; the earlier one of equals."""
        return min(self.trials, key=lambda trial: trial.times_ms[0])

    @property
    def failures(self) -> dict[Config, str]:
        """What went wrong, by configuration."""
        return {t.config: t.failure for t in self.trials if t.failure}


def tune(
    name: str, candidates: Sequence[Candidate], measure: Measure, is_verbose: bool = False
) -> Outcome:
    """Try every candidate. Ctrl-C ends the search with the best so far.

    Candidates with equal parameters whose compiled kernels are the same one are timed once.

    Raises: `NoUsableConfig` when each of them failed; `KeyboardInterrupt` when none was timed.
    """
    search = _Search(measure, is_verbose)
    is_complete = True
    try:
        with progress_bar(f"tuning {name}", len(candidates)) as step:
            search.run(candidates, step)
    except KeyboardInterrupt:
        if not search.best:
            raise
        is_complete = False
        _say(f"tuning of {name} interrupted; keeping {search.best.config.short()}")
    outcome = Outcome(tuple(search.trials), is_complete)
    if search.best is None:
        reasons = "\n".join(f"    {c.short()}: {text}" for c, text in outcome.failures.items())
        raise NoUsableConfig(f"{name}(): none of the configurations works\n{reasons}")
    if is_verbose:
        _say(f"tuned {name}: {search.best.config.short()} ({search.best.times_ms[0]:.4g} ms)")
    return outcome


class _Search:
    """The trials so far, the best of them, and which compiled kernel was timed already."""

    def __init__(self, measure: Measure, is_verbose: bool) -> None:
        self.trials: list[Trial] = []
        self.best: Trial | None = None
        self._measure = measure
        self._is_verbose = is_verbose
        self._timed: dict[object, Trial] = {}

    def run(self, candidates: Sequence[Candidate], step: Step) -> None:
        for candidate in candidates:
            trial = self._trial(candidate)
            self.trials.append(trial)
            if not trial.failure and (
                self.best is None or trial.times_ms[0] < self.best.times_ms[0]
            ):
                self.best = trial
            if self._is_verbose:
                _say(f"  {trial.config.short()}: {trial.failure or f'{trial.times_ms[0]:.4g} ms'}")
            step("" if self.best is None else f"best {self.best.times_ms[0]:.4g} ms")

    def _trial(self, candidate: Candidate) -> Trial:
        config = candidate.config
        try:
            identity = _identity(config.kwargs, candidate.compile())
            known = self._timed.get(identity)
            if known is not None:
                return Trial(config, known.times_ms)
            best_ms = math.inf if self.best is None else self.best.times_ms[0]
            trial = Trial(config, self._measure.time(candidate, best_ms))
        except TRIAL_ERRORS as error:
            return Trial(config, LOST, _first_line(error))
        if identity is not None:
            self._timed[identity] = trial
        return trial


def _identity(kwargs: Mapping[str, object], kernel: object) -> object:
    """What two configurations share when they run the same code, or None if unknown."""
    key = getattr(kernel, "hash", None)
    return None if key is None else (repr(sorted(kwargs.items(), key=lambda item: item[0])), key)


def _first_line(error: TilewrightError) -> str:
    return f"{error.code}: {error.summary.splitlines()[0]}"


def _say(text: str) -> None:
    print(f"tilewright: {text}", file=sys.stderr)
