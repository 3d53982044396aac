"""Measuring configurations: compile each, time those that differ, name the fastest."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, SupportsFloat, cast

from tilewright.runtime.ahead import ArgumentPath, CompileJob, drop, wait_for_news
from tilewright.runtime.call import Call
from tilewright.runtime.config import Config, TuningWarning
from tilewright.runtime.play_off import close_ones, timed_in_turn
from tilewright.runtime.progress import Step, progress_bar
from tilewright.runtime.timer import do_bench
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import CompileError, InvalidOption, TilewrightError

QUANTILES = (0.5, 0.2, 0.8)
LOST: Final = (math.inf, math.inf, math.inf)
DEFAULT_WARMUP_MS = 25.0
DEFAULT_REP_MS = 100.0
# A configuration this much slower than the best so far in a tenth of the time is not tried on.
_HOPELESS = 1.5
# Chosen, not measured: the part of the time of a trial that a round of a play-off takes.
_ROUND = 0.25

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


Effects = Mapping[str, Sequence[ArgumentPath]]


@dataclass(frozen=True)
class Candidate:
    """A configuration for a call, with how to compile it and how to launch it.

    `compile_ahead(num_left)` has it compiled in another process, or returns None where that is of
    no use; `num_left` candidates are to be compiled, this one included. `compile` returns the
    compiled kernel (or None where nothing is compiled). `protect` saves the arguments that a
    kernel with these `reads` and `writes` would change for good. `prepare` sets the arguments up
    for a run and is not part of its time; `launch` runs the kernel. `check` runs it once and says
    what is wrong with its results. `stopped` hears of an error that no other configuration avoids,
    and raises what it stands for. A schedule that the tuner added (`is_added`) loses whatever it
    is that does not compile: its author did not ask for it.
    """

    config: Config
    call: Call
    compile_ahead: Callable[[int], CompileJob | None]
    compile: Callable[[], object]
    protect: Callable[[Effects], object]
    prepare: Callable[[], object]
    launch: Callable[[], object]
    check: Callable[[], str] | None = None
    stopped: Callable[[Exception], object] = lambda error: None
    is_added: bool = False


@dataclass(frozen=True)
class Measure:
    """How a candidate is timed; `do_bench` replaces our own timer."""

    warmup_ms: float = DEFAULT_WARMUP_MS
    rep_ms: float = DEFAULT_REP_MS
    do_bench: Benchmarker | None = None

    def time(self, candidate: Candidate, best_ms: float) -> Times:
        """The times of a candidate; short for one that is far slower than `best_ms`."""
        if self.do_bench is not None:
            return to_times(self.do_bench(prepared(candidate), quantiles=QUANTILES))
        if math.isfinite(best_ms):
            first = self._run(candidate, 0.1)
            if first[0] > _HOPELESS * best_ms:
                return first
        return self._run(candidate, 1.0)

    def again(self, candidate: Candidate) -> Times:
        """The times of a candidate in a short run."""
        return self._run(candidate, _ROUND)

    def _run(self, candidate: Candidate, share: float) -> Times:
        warmup, rep = share * self.warmup_ms, share * self.rep_ms
        launch, prepare = candidate.launch, candidate.prepare
        prepare()
        return to_times(do_bench(launch, warmup, rep, quantiles=QUANTILES, prepare=prepare))


def prepared(candidate: Candidate) -> Callable[[], None]:
    """One call for timers that know nothing of `prepare`; it becomes part of the time."""

    def call() -> None:
        candidate.prepare()
        candidate.launch()

    return call


def to_times(found: object) -> Times:
    """What a timer returned, a number or one for each quantile, as three.

    *Raises*: InvalidOption for anything else.
    """
    is_several = isinstance(found, Sequence) and not isinstance(found, str)
    numbers = cast("Sequence[object]", found) if is_several else (found,)
    if not numbers or not all(isinstance(number, SupportsFloat) for number in numbers):
        raise InvalidOption(
            f"autotune(): `do_bench` returned {found!r}, which is no time",
            hint="it returns a number, or a sequence of one for each of `quantiles`",
        )
    times = [float(cast("SupportsFloat", number)) for number in numbers]
    median, low, high = times if len(times) == len(QUANTILES) else (times[0],) * 3
    return median, low, high


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


TimeCandidate = Callable[[Candidate, float], Times]
"""The times of a candidate, given the time of the best so far."""


def tune(
    name: str,
    candidates: Sequence[Candidate],
    time: TimeCandidate,
    is_verbose: bool = False,
    again: Callable[[Candidate], Times] | None = None,
) -> Outcome:
    """Try every candidate. Ctrl-C ends the search with the best so far.

    With `again` those with close times are timed once more, in turn.

    All are compiled at once, in other processes where that is faster, and timed as they are
    ready. Those with equal parameters whose compiled kernels are the same one are timed once.

    A configuration with which the kernel is no program loses, and a warning says why: nobody asks
    for a kernel that cannot be compiled.

    Raises: `NoUsableConfig` when each of them failed, or the first error of the kernel itself
    where there was one; `KeyboardInterrupt` when none was timed; a fault while a kernel ran.
    """
    search = Search(candidates, time, is_verbose)
    is_complete = True
    try:
        with progress_bar(f"tuning {name}", len(candidates)) as step:
            search.run(step)
            if again is not None:
                search.play_off(again)
    except KeyboardInterrupt:
        if not search.best:
            raise
        is_complete = False
        _say(f"tuning of {name} interrupted; keeping {search.best.config.short()}")
    outcome = Outcome(search.trials, is_complete)
    if search.best is None:
        for error in search.refusals.values():
            raise error
        reasons = "\n".join(f"    {c.short()}: {text}" for c, text in outcome.failures.items())
        raise NoUsableConfig(f"{name}(): none of the configurations works\n{reasons}")
    for config, error in search.refusals.items():
        _warn(f"autotune(): {name} is not compiled with {config.short()}", error)
    if is_verbose:
        _say(f"tuned {name}: {search.best.config.short()} ({search.best.times_ms[0]:.4g} ms)")
    return outcome


@dataclass
class _Entry:
    """A candidate on its way: a job, or a compiled kernel, and in the end a trial."""

    candidate: Candidate
    job: CompileJob | None = None
    kernel: object = None
    trial: Trial | None = None
    refusal: CompileError | None = None


class Search:
    """Candidates, what became of them so far, and which compiled kernel was timed already."""

    def __init__(
        self, candidates: Sequence[Candidate], time: TimeCandidate, is_verbose: bool = False
    ) -> None:
        self._entries = [_Entry(candidate) for candidate in candidates]
        self._time = time
        self._is_verbose = is_verbose
        self._timed: dict[object, Trial] = {}

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials so far, in the order of the candidates."""
        return tuple(entry.trial for entry in self._entries if entry.trial is not None)

    @property
    def refusals(self) -> dict[Config, CompileError]:
        """Why the kernel is no program with some configurations, in their order."""
        refused = [(entry.candidate.config, entry.refusal) for entry in self._entries]
        return {config: error for config, error in refused if error is not None}

    @property
    def best(self) -> Trial | None:
        """The fastest trial that worked, if any did; the earlier one of equals."""
        working = [trial for trial in self.trials if not trial.failure]
        return min(working, key=lambda trial: trial.times_ms[0]) if working else None

    def run(self, step: Step) -> None:
        """Compile and time all; `step` hears of each."""
        try:
            self._compile(step)
            self._protect(step)
            while (entry := self._next()) is not None:
                self._settle(entry, step)
        finally:
            drop([entry.job for entry in self._entries if entry.job is not None])

    def play_off(self, again: Callable[[Candidate], Times]) -> None:
        """Time those of different kernels that are close to the best one again, in turn."""
        rivals: dict[object, list[_Entry]] = {}
        for index, entry in enumerate(self._entries):
            if entry.trial is not None and not entry.trial.failure:
                key = _identity(entry.candidate.config.kwargs, entry.kernel) or index
                rivals.setdefault(key, []).append(entry)
        groups = list(rivals.values())
        close = close_ones([_median_of(entries[0]) for entries in groups])
        if len(close) < 2:
            return
        contenders = [groups[index][0].candidate for index in close]
        found = timed_in_turn(contenders, _median_of(groups[close[0]][0]), again)
        for index, times_ms in zip(close, found, strict=True):
            for entry in groups[index]:
                entry.trial = Trial(entry.candidate.config, times_ms)

    def _compile(self, step: Step) -> None:
        """Submit every candidate, and compile here those that no other process takes."""
        for index, entry in enumerate(self._entries):
            with self._failing(entry, step):
                entry.job = entry.candidate.compile_ahead(len(self._entries) - index)
                if entry.job is None:
                    entry.kernel = entry.candidate.compile()

    def _protect(self, step: Step) -> None:
        """Save what any of the candidates would change, before the first of them runs."""
        for entry in self._entries:
            while entry.job is not None and not entry.job.is_analysed:
                wait_for_news([entry.job])
            if entry.job is not None and entry.job.is_lost:
                entry.job = None
                with self._failing(entry, step):
                    entry.kernel = entry.candidate.compile()
            facts = _effects(entry)
            if entry.trial is None and facts is not None:
                entry.candidate.protect(facts)

    def _next(self) -> _Entry | None:
        """The next candidate to time, waiting for one; None when there are no more."""
        while True:
            left = [entry for entry in self._entries if entry.trial is None]
            working = [entry.job for entry in left if entry.job and not entry.job.is_done]
            if not left:
                return None
            # What others are held to is what the first leaves, whichever is ready first.
            ready = left[:1] if left[0].candidate.check is not None else left
            # A kernel of the CPU has the processor for itself while it is timed.
            if not any(job.is_on_host for job in working):
                for entry in ready:
                    if entry.job is None or entry.job.is_done:
                        return entry
            wait_for_news(working)

    def _settle(self, entry: _Entry, step: Step) -> None:
        with self._failing(entry, step):
            if entry.kernel is None:
                entry.kernel = entry.candidate.compile()
        if entry.trial is None:
            self._run(entry, step)

    def _run(self, entry: _Entry, step: Step) -> None:
        """Check and time a candidate that is compiled."""
        try:
            self._time_once(entry, step)
        except TilewrightError as error:
            if not error.is_of_configuration:
                entry.candidate.stopped(error)
                raise
            self._lose(entry, _first_line(error), step)
        except Exception as error:
            entry.candidate.stopped(error)  # such as torch's, for a context that is lost
            raise

    def _time_once(self, entry: _Entry, step: Step) -> None:
        config = entry.candidate.config
        identity = _identity(config.kwargs, entry.kernel)
        known = self._timed.get(identity)
        if known is not None:
            self._finish(entry, Trial(config, known.times_ms, known.failure), step)
            return
        wrong = "" if entry.candidate.check is None else entry.candidate.check()
        best_ms = math.inf if self.best is None else self.best.times_ms[0]
        times_ms = LOST if wrong else self._time(entry.candidate, best_ms)
        trial = Trial(config, times_ms, wrong)
        self._finish(entry, trial, step)
        if identity is not None:
            self._timed[identity] = trial

    @contextmanager
    def _failing(self, entry: _Entry, step: Step) -> Generator[None]:
        """A block that compiles the candidate, in which it may lose.

        What looks like an error of the kernel itself may be that of a branch which only this
        configuration takes. A schedule that was added loses whatever it is: the configuration
        without it says so too.
        """
        try:
            yield
        except TilewrightError as error:
            if not error.is_of_configuration and not entry.candidate.is_added:
                if not isinstance(error, CompileError):
                    raise
                entry.refusal = error
            self._lose(entry, _first_line(error), step)
        except Exception as error:
            if not entry.candidate.is_added:
                raise
            self._lose(entry, f"{type(error).__name__}: {error}", step)

    def _lose(self, entry: _Entry, failure: str, step: Step) -> None:
        self._finish(entry, Trial(entry.candidate.config, LOST, failure), step)

    def _finish(self, entry: _Entry, trial: Trial, step: Step) -> None:
        entry.trial = trial
        if self._is_verbose:
            _say(f"  {trial.config.short()}: {trial.failure or f'{trial.times_ms[0]:.4g} ms'}")
        step("" if self.best is None else f"best {self.best.times_ms[0]:.4g} ms")


def _median_of(entry: _Entry) -> float:
    return math.inf if entry.trial is None else entry.trial.times_ms[0]


def _effects(entry: _Entry) -> Effects | None:
    """What the kernel reads and writes; None where that is not known."""
    if entry.job is not None and entry.job.effects is not None:
        return entry.job.effects
    artifact = getattr(entry.kernel, "artifact", None)
    return None if artifact is None else artifact.metadata


def _identity(kwargs: Mapping[str, object], kernel: object) -> object:
    """What two configurations share when they run the same code, or None if unknown."""
    key = getattr(kernel, "hash", None)
    return None if key is None else (repr(sorted(kwargs.items(), key=lambda item: item[0])), key)


def _first_line(error: TilewrightError) -> str:
    return f"{error.code}: {error.summary.splitlines()[0]}"


def _warn(text: str, error: CompileError) -> None:
    """A warning that stands where the error is, for nothing of ours would help its reader."""
    file, line = ("<kernel>", 1) if error.span is None else (error.span.file, error.span.line)
    warnings.warn_explicit(f"{text}\n{error}", TuningWarning, file, line)


def _say(text: str) -> None:
    print(f"tilewright: {text}", file=sys.stderr)
