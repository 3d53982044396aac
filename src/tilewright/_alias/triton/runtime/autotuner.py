"""`triton.runtime.autotuner`: tuning and heuristics with the constructors of Triton's classes."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import cast

from tilewright.runtime.autotuner import Autotuner as _Autotuner
from tilewright.runtime.cache import open_default
from tilewright.runtime.call import Call
from tilewright.runtime.config import Config, TuningWarning
from tilewright.runtime.heuristics import Heuristic, Kernel, code_of
from tilewright.runtime.heuristics import Heuristics as _Heuristics
from tilewright.runtime.pruning import Pruning
from tilewright.runtime.tuning import Benchmarker, Candidate, Outcome, Times, Trial, to_times
from tilewright.runtime.tuning_record import read_record, to_record
from tilewright.runtime.tuning_settings import Hook, make_settings
from tilewright.support.dataclass import replace
from tilewright.support.errors import DuplicateArgument, TilewrightError, UnexpectedArgument

from .. import knobs
from .._names import refuse
from .driver import driver
from .errors import AutotunerError, OutOfResources, PTXASError
from .jit import JITFunction, KernelInterface
from .raising import as_triton_raises

Launch = Callable[..., object]


class Autotuner(_Autotuner, KernelInterface[Launch]):
    """A kernel that chooses among configurations; made by `autotune`.

    A derived class that replaces `run` is launched through it, one that replaces `_bench` times
    configurations its own way, and `pre_hook` and `post_hook` run around each timed run. What was
    given to `autotune` may be assigned later: `early_config_prune`, `perf_model`, `configs_top_k`,
    `reset_to_zero`, `restore_value` and `do_bench`.
    """

    def __init__(
        self,
        fn: Kernel,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str] | None,
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
        prune_configs_by: Pruning | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Benchmarker | None = None,
        cache_results: bool = False,
    ) -> None:
        settings = make_settings(
            prune_configs_by,
            reset_to_zero,
            restore_value,
            pre_hook,
            post_hook,
            warmup,
            rep,
            do_bench,
            cache_results,
        )
        try:
            super().__init__(fn, configs, key, settings)
        except TilewrightError as error:
            raise as_triton_raises(error, ValueError) from None
        self.num_warmups = warmup
        self.num_reps = rep
        self.use_cuda_graph = use_cuda_graph
        self.cache_results = cache_results

    def __getitem__(self, grid: object) -> Launch:
        """The launcher over `grid`."""
        if type(self).run is not Autotuner.run:
            return KernelInterface.__getitem__(self, cast("tuple[int, ...]", grid))
        return super().__getitem__(grid)

    def _bench(self, *args: object, config: Config, **meta: object) -> list[float]:
        """The median, 20 % and 80 % quantile in ms of a launch with `config`; infinite if it fails.

        `meta` are the keywords of the launch, the grid among them.
        """
        keywords = {name: value for name, value in meta.items() if name not in ("grid", "warmup")}
        return list(self.bench_one(config, Call(args, keywords, meta.get("grid"))))

    @property
    def do_bench(self) -> Benchmarker:
        """What times a call: the author's timer, or the driver's with `warmup` and `rep`."""
        given = self._settings.measure.do_bench
        if given is not None:
            return given
        measure = self._settings.measure
        return functools.partial(
            driver.active.get_benchmarker(), warmup=measure.warmup_ms, rep=measure.rep_ms
        )

    @do_bench.setter
    def do_bench(self, timer: Benchmarker) -> None:
        measure = replace(self._settings.measure, do_bench=timer)
        self._settings = replace(self._settings, measure=measure)

    @property
    def perf_model(self) -> Callable[..., float] | None:
        """The author's estimate of a configuration's time."""
        return super().perf_model

    @perf_model.setter
    def perf_model(self, model: Callable[..., float] | None) -> None:
        self._prune_by({"perf_model": model})

    @property
    def early_config_prune(self) -> Callable[..., Sequence[Config]] | None:
        """The author's choice of the configurations that are worth timing."""
        return super().early_config_prune

    @early_config_prune.setter
    def early_config_prune(self, choose: Callable[..., Sequence[Config]] | None) -> None:
        self._prune_by({"early_config_prune": choose})

    @property
    def configs_top_k(self) -> int | float:
        """How many configurations stay after `perf_model`: a count, or a share up to 1.0."""
        return super().configs_top_k

    @configs_top_k.setter
    def configs_top_k(self, top_k: int | float) -> None:
        self._prune_by({"top_k": top_k})

    def _prune_by(self, changed: Pruning) -> None:
        pruning: Pruning = {**self._settings.pruning, **changed}
        self._settings = replace(self._settings, pruning=pruning)

    @property
    def reset_to_zero(self) -> list[str]:
        """The arrays that each timed run finds zeroed."""
        return super().reset_to_zero

    @reset_to_zero.setter
    def reset_to_zero(self, names: Sequence[str]) -> None:
        self._settings = replace(self._settings, zeroed=tuple(names))

    @property
    def restore_value(self) -> list[str]:
        """The arrays that each timed run finds as they were."""
        return super().restore_value

    @restore_value.setter
    def restore_value(self, names: Sequence[str]) -> None:
        self._settings = replace(self._settings, restored=tuple(names))

    def _merged(self, config: Config, call: Call) -> dict[str, object]:
        try:
            return super()._merged(config, call)
        except DuplicateArgument as error:
            raise as_triton_raises(error, ValueError) from None

    def check_disk_cache(
        self,
        tuning_key: tuple[object, ...],
        configs: Sequence[Config],
        bench_fn: Callable[[], object],
    ) -> bool:
        """Whether the choice for a key was found on disk; else `bench_fn` makes it.

        `bench_fn` sets `configs_timings` and the entry of `cache`.
        """
        record = self._record_key(tuning_key, configs)
        known = None if record is None else read_record(record, configs)
        if known is not None:
            self.cache[tuning_key] = known.best.config
            self.configs_timings = {t.config: t.times_ms for t in known.trials}
            return True
        bench_fn()
        if record is not None and all(config in self.configs_timings for config in configs):
            times = [to_times(self.configs_timings[config]) for config in configs]
            trials = [
                Trial(c, t, "" if isfinite(t[0]) else "failed")
                for c, t in zip(configs, times, strict=True)
            ]
            open_default().put_json(record, to_record(Outcome(tuple(trials))))
        return False

    def _measure(self, candidate: Candidate, best_ms: float) -> Times:
        if type(self)._bench is Autotuner._bench:
            return super()._measure(candidate, best_ms)
        call = candidate.call
        found = self._bench(*call.args, config=candidate.config, grid=call.grid, **call.kwargs)
        return to_times(found)

    def _check_keys(self) -> None:
        """Warn of a key that names no parameter: Triton leaves it out without a word."""
        try:
            super()._check_keys()
        except UnexpectedArgument as error:
            code = code_of(self.fn)
            warnings.warn_explicit(str(error), TuningWarning, code.co_filename, code.co_firstlineno)

    def _tuned(self, key: tuple[object, ...], is_cached: bool) -> None:
        listener = knobs.autotuning.listener
        if listener is None:
            return
        listener(
            fn=cast("JITFunction", self.base_fn),
            key=key,
            best_config=self.best_config,
            configs_timings={c: list(times) for c, times in self.configs_timings.items()},
            duration=self.bench_time,
            cache_hit=is_cached,
        )


class Heuristics(_Heuristics, KernelInterface[Launch]):
    """A kernel some of whose parameters are computed from the others; made by `heuristics`."""

    def __init__(
        self, fn: Kernel, arg_names: Sequence[str], values: Mapping[str, Heuristic]
    ) -> None:
        super().__init__(fn, values)


def autotune(
    configs: Sequence[Config],
    key: Sequence[str] | None,
    prune_configs_by: Pruning | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Benchmarker | None = None,
    cache_results: bool = True,
) -> Callable[[Kernel], Autotuner]:
    """A decorator that launches a kernel with the fastest of `configs`.

    `tilewright.autotune` says what each argument means. The choice is kept on disk unless
    `cache_results` is False.
    """

    def decorate(fn: Kernel) -> Autotuner:
        return Autotuner(
            fn,
            (),
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook,
            post_hook,
            prune_configs_by,
            warmup,
            rep,
            use_cuda_graph,
            do_bench,
            cache_results,
        )

    return decorate


def heuristics(values: Mapping[str, Heuristic]) -> Callable[[Kernel], Heuristics]:
    """A decorator that computes parameters from the other arguments at each launch."""
    return lambda fn: Heuristics(fn, (), values)


__getattr__ = refuse(__name__, {})

__all__ = [
    "Autotuner",
    "AutotunerError",
    "Config",
    "Heuristics",
    "OutOfResources",
    "PTXASError",
    "autotune",
    "heuristics",
]
