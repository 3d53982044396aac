"""`autotune`: the fastest of several configurations, found once and kept.

The choice depends on the values of the `key` arguments and the dtypes of all arguments; it is
kept in memory and on disk, under the sources of the kernel, the configurations, the compiler
and the machine. The arrays of the call are as after one launch when tuning is over, also when
the kernel updates them in place.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypedDict

from tilewright.runtime.cache import open_default
from tilewright.runtime.config import FOREIGN_OPTIONS, Config
from tilewright.runtime.fingerprint import compiler_fingerprint, digest, host_cpu_fingerprint
from tilewright.runtime.heuristics import (
    Arguments,
    GridLike,
    Kernel,
    Keywords,
    Wrapper,
    check_names,
)
from tilewright.runtime.isolation import isolated_compiles
from tilewright.runtime.snapshots import ArgumentState
from tilewright.runtime.tuning import (
    DEFAULT_REP_MS,
    DEFAULT_WARMUP_MS,
    Benchmarker,
    Candidate,
    Measure,
    Outcome,
    tune,
)
from tilewright.runtime.tuning_record import read_record, to_record
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import DuplicateArgument, InvalidOption, UnexpectedArgument
from tilewright.support.options import debug_options, runtime_options

TuningKey = tuple[object, ...]
_Plan = tuple[Config, dict[str, object]]
Hook = Callable[..., object]
_RECORD_FORMAT = "tilewright-tuning-1"


class Pruning(TypedDict, total=False):
    """How configurations are left out before any is timed.

    `early_config_prune(configs, named_args, **kwargs)` returns those to keep; `perf_model`
    estimates the time of one from all arguments as keywords, and the `top_k` fastest by
    its estimate stay (a count, or a share of them up to 1.0).
    """

    early_config_prune: Callable[..., Sequence[Config]]
    perf_model: Callable[..., float]
    top_k: int | float


@dataclass(frozen=True)
class Settings:
    """What the decorator was given, beyond configurations and key."""

    pruning: Pruning
    zeroed: tuple[str, ...]
    restored: tuple[str, ...]
    pre_hook: Hook | None
    post_hook: Hook | None
    measure: Measure
    is_cached: bool
    is_isolated: bool


class Autotuner(Wrapper):
    """A kernel that chooses among configurations; made by `autotune`.

    `cache` maps a tuning key to its configuration. Of the last tuning there are
    `configs_timings` (configuration to median, 20 % and 80 % quantile in ms; infinite where it
    failed), `failures` (configuration to message) and `bench_time` in seconds; `best_config`
    is the one of the last launch.
    """

    def __init__(
        self, fn: Kernel, configs: Sequence[Config], key: Sequence[str], settings: Settings
    ) -> None:
        super().__init__(fn)
        self.configs = list(configs) or [Config({})]
        self.keys = list(key)
        self.cache: dict[TuningKey, Config] = {}
        self.configs_timings: dict[Config, tuple[float, float, float]] = {}
        self.failures: dict[Config, str] = {}
        self.bench_time: float | None = None
        self.best_config: Config | None = None
        self._settings = settings
        self._lock = threading.RLock()
        self._ignored: dict[object, bool] = {}
        self._plans: dict[TuningKey, _Plan] = {}
        self.nargs: dict[str, object] | None = None
        check_names(fn, "autotune(key=…)", self.keys)
        check_names(fn, "autotune(reset_to_zero=…)", list(settings.zeroed))
        check_names(fn, "autotune(restore_value=…)", list(settings.restored))

    @property
    def perf_model(self) -> Callable[..., float] | None:
        """The author's estimate of a configuration's time."""
        return self._settings.pruning.get("perf_model")

    @property
    def early_config_prune(self) -> Callable[..., Sequence[Config]] | None:
        """The author's choice of the configurations that are worth timing."""
        return self._settings.pruning.get("early_config_prune")

    @property
    def configs_top_k(self) -> int | float:
        """How many configurations stay after `perf_model`: a count, or a share up to 1.0."""
        return self._settings.pruning.get("top_k", 1.0)

    @property
    def reset_to_zero(self) -> list[str]:
        """The arrays that each timed run finds zeroed."""
        return list(self._settings.zeroed)

    @property
    def restore_value(self) -> list[str]:
        """The arrays that each timed run finds as they were."""
        return list(self._settings.restored)

    @property
    def user_defined_pre_hook(self) -> bool:
        """Whether the author gave a hook that runs before each timed run."""
        return self._settings.pre_hook is not None

    @property
    def user_defined_post_hook(self) -> bool:
        """Whether the author gave a hook that runs after each timed run."""
        return self._settings.post_hook is not None

    def prune_configs(self, kwargs: Keywords) -> list[Config]:
        """The configurations that the author's pruning leaves for a call, in order."""
        return self._pruned(_Call((), {**(self.nargs or {}), **kwargs}, (1,)))

    def _tuned(self, key: TuningKey, is_cached: bool) -> None:
        """What happens after a configuration was chosen: nothing; derived classes tell others."""

    def _run(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> object:
        key = self._tuning_key(args, kwargs)
        plan = self._plans.get((len(args), *kwargs, key))
        if plan is None:
            plan = self._make_plan(key, _Call(args, kwargs, grid))
        config, chosen = plan
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook(self._named(args, {**kwargs, **config.kwargs}))
        return self.fn[grid](*args, **{**kwargs, **chosen})

    def _make_plan(self, key: TuningKey, call: _Call) -> _Plan:
        """What calls of this shape and key launch with."""
        self.nargs = dict(zip(self.arg_names, call.args, strict=False))
        config = self.configs[0] if len(self.configs) == 1 else self._choose(key, call)
        keywords = self._keywords(config, call)
        foreign = FOREIGN_OPTIONS.intersection(call.kwargs)
        if foreign:
            raise UnexpectedArgument(
                f"{self.__name__}() gets `{min(foreign)}`, which is no parameter",
                hint="options of other compilers are ignored in a Config only",
            )
        names = [name for name in config.all_kwargs() if name in keywords]
        plan = (config, {name: keywords[name] for name in names})
        self._plans[(len(call.args), *call.kwargs, key)] = plan
        return plan

    def _warm(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> list[object]:
        """The compiled kernel of every configuration that is left after pruning."""
        call = _Call(args, kwargs, grid)
        return [self._compiled(call, self._merged(c, call)) for c in self._pruned(call)]

    def _compiled(self, call: _Call, keywords: Keywords) -> object:
        return self.fn.warmup(*call.args, grid=call.grid, **keywords)

    def _choose(self, key: TuningKey, call: _Call) -> Config:
        with self._lock:
            if key not in self.cache:
                self.bench_time = None
                self.cache[key] = self._find(key, call)
                self.best_config = self.cache[key]
                self._tuned(key, self.bench_time is None)
            return self.cache[key]

    def _tuning_key(self, args: Arguments, kwargs: Keywords) -> TuningKey:
        """The values of the key arguments, then the dtypes of all arguments that have one."""
        named = self._named(args, kwargs)
        values = [_hashable(named[name]) for name in self.keys if name in named]
        dtypes = [getattr(value, "dtype", None) for value in named.values()]
        return (*values, *dtypes)

    def _find(self, key: TuningKey, call: _Call) -> Config:
        configs = self._pruned(call)
        # The interpreter's times say nothing about compiled code.
        if len(configs) == 1 or getattr(self.base_fn, "is_interpreted", False):
            return configs[0]
        record_key = self._record_key(key, configs)
        outcome = None if record_key is None else read_record(record_key, configs)
        if outcome is None:
            outcome = self._tune(configs, call)
            if record_key is not None and outcome.is_complete:
                open_default().put_json(record_key, to_record(outcome))
        self.configs_timings = {t.config: t.times_ms for t in outcome.trials}
        self.failures = outcome.failures
        return outcome.best.config

    def _tune(self, configs: Sequence[Config], call: _Call) -> Outcome:
        started = time.perf_counter()
        settings = self._settings
        named = self._named(call.args, call.kwargs)
        state = ArgumentState(named, settings.restored, settings.zeroed)
        candidates = [self._candidate(config, call, state) for config in configs]
        is_verbose = debug_options().print_autotuning
        try:
            outcome = tune(self.__name__, candidates, settings.measure, is_verbose)
        finally:
            state.finish()
            if settings.pre_hook is not None:
                settings.pre_hook(named, reset_only=True)
        self.bench_time = time.perf_counter() - started
        return outcome

    def _candidate(self, config: Config, call: _Call, state: ArgumentState) -> Candidate:
        settings = self._settings
        named = self._named(call.args, {**call.kwargs, **config.kwargs})
        keywords = self._merged(config, call)

        def prepare() -> None:
            state.before_run()
            if settings.pre_hook is not None:
                settings.pre_hook(named, reset_only=False)
            self._run_hook(config, call)

        def launch() -> object:
            result = self.fn[call.grid](*call.args, **keywords)
            if settings.post_hook is not None:
                settings.post_hook(named, exception=None)
            return result

        def compile_() -> object:
            with isolated_compiles(settings.is_isolated):
                return self._compiled(call, keywords)

        return Candidate(config, compile_, launch, prepare)

    def _run_hook(self, config: Config, call: _Call) -> None:
        if config.pre_hook is not None:
            config.pre_hook(self._named(call.args, {**call.kwargs, **config.kwargs}))

    def _pruned(self, call: _Call) -> list[Config]:
        """The configurations left by the author's pruning, in order."""
        pruning = self._settings.pruning
        configs, named = self.configs, self._named(call.args, call.kwargs)
        early = pruning.get("early_config_prune")
        if early is not None:
            configs = list(early(list(configs), named, **call.kwargs))
            if not configs:
                raise InvalidOption(
                    f"autotune(): early_config_prune of {self.__name__}() left no configuration",
                    hint="it must return at least one of the configurations",
                )
        model = pruning.get("perf_model")
        count = _kept(pruning.get("top_k", 1.0), len(configs))
        if model is None or count >= len(configs):
            return configs
        estimates = [float(model(**{**named, **config.all_kwargs()})) for config in configs]
        fastest = sorted(range(len(configs)), key=lambda i: estimates[i])[:count]
        return [configs[i] for i in sorted(fastest)]

    def _merged(self, config: Config, call: _Call) -> dict[str, object]:
        """The keywords of a launch with a configuration, all of its options included."""
        clash = config.kwargs.keys() & self._named(call.args, call.kwargs).keys()
        if clash:
            name = min(clash)
            raise DuplicateArgument(
                f"{self.__name__}() gets `{name}` from the call and from the configuration "
                f"{config.short()}",
                argument=name,
                hint="leave the parameters that are tuned out of the call",
            )
        merged = {**call.kwargs, **config.all_kwargs()}
        return {name: v for name, v in merged.items() if name not in FOREIGN_OPTIONS}

    def _keywords(self, config: Config, call: _Call) -> dict[str, object]:
        """The keywords of a launch, without options that change nothing on this target.

        A launch without options is the fast one, so it is worth asking once.
        """
        keywords = self._merged(config, call)
        options = [name for name in config.options() if name in keywords]
        if not options:
            return keywords
        identity = tuple((name, keywords[name]) for name in options)
        is_ignored = self._ignored.get(identity)
        bare = {name: v for name, v in keywords.items() if name not in options}
        if is_ignored is None:
            is_ignored = self._ignored[identity] = self._is_same(call, keywords, bare)
        return bare if is_ignored else keywords

    def _is_same(self, call: _Call, one: Keywords, two: Keywords) -> bool:
        if getattr(self.base_fn, "is_interpreted", False):
            return True
        key = getattr(self._compiled(call, one), "hash", None)
        return key is not None and key == getattr(self._compiled(call, two), "hash", None)

    def _record_key(self, key: TuningKey, configs: Sequence[Config]) -> str | None:
        """The cache key of this tuning, or None where it cannot be kept."""
        kernel = getattr(self.base_fn, "cache_key", None)
        # What a hook does to the arguments cannot be named.
        if not self._settings.is_cached or kernel is None or any(c.pre_hook for c in configs):
            return None
        threads = runtime_options().num_threads or usable_cpu_count()
        where = (compiler_fingerprint(), host_cpu_fingerprint(), str(threads))
        listed = [f"{config} {config.ir_override}" for config in configs]
        return digest(_RECORD_FORMAT, *where, str(kernel), repr(key), *listed)


@dataclass(frozen=True)
class _Call:
    """The arguments and the grid of one launch."""

    args: Arguments
    kwargs: Keywords
    grid: GridLike


def usable_cpu_count() -> int:
    """The CPUs that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _hashable(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _kept(top_k: int | float, total: int) -> int:
    if isinstance(top_k, float) and top_k <= 1.0:
        return max(1, int(total * top_k))
    if not float(top_k).is_integer() or top_k < 1:
        raise InvalidOption(
            f"autotune(): top_k is {top_k!r}", hint="pass a count, or a share of at most 1.0"
        )
    return min(total, int(top_k))


def make_settings(
    prune_configs_by: Pruning | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    do_bench: Benchmarker | None = None,
    cache_results: bool = True,
    compile_in_worker: bool = False,
) -> Settings:
    """The settings of a tuner, from the arguments of `autotune` of the same names."""
    measure = Measure(
        DEFAULT_WARMUP_MS if warmup is None else warmup,
        DEFAULT_REP_MS if rep is None else rep,
        do_bench,
    )
    return Settings(
        prune_configs_by or Pruning(),
        tuple(reset_to_zero or ()),
        tuple(restore_value or ()),
        pre_hook,
        post_hook,
        measure,
        cache_results,
        compile_in_worker,
    )


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
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
    compile_in_worker: bool = False,
) -> Callable[[Kernel], Autotuner]:
    """A decorator that launches a kernel with the fastest of `configs`.

    The first launch with new values of the `key` arguments, or new dtypes, times every
    configuration on the arguments of that launch. `reset_to_zero` and `restore_value` name
    arrays that each timed run finds zeroed, or as they were. Whatever is named, the arrays
    hold after the call what one launch leaves in them. A configuration that does not compile
    for want of resources loses. Ctrl-C keeps the best so far.

    `do_bench(call, quantiles)` replaces the timer; `warmup` and `rep` are its milliseconds for
    one configuration; `cache_results` keeps the choice on disk. `compile_in_worker` compiles
    each configuration in a child process (about a second each): one that crashes the compiler,
    or lets it run for a minute, loses. `use_cuda_graph` is accepted and ignored. It goes above
    `heuristics`, and both above `jit`.

    Raises: `UnexpectedArgument` for a name that is no parameter of the kernel; at a launch
    `NoUsableConfig` when every configuration fails.
    """
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
        compile_in_worker,
    )
    return lambda fn: Autotuner(fn, configs, key, settings)
