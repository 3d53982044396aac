"""What `autotune` makes of a kernel: a launch that knows or finds the fastest configuration.

The choice depends on the values of the `key` arguments and the dtypes of all arguments; it is
kept in memory and on disk, under the sources of the kernel, the configurations, the compiler
and the machine. The arrays of the call are as after one launch when tuning is over, also when
the kernel updates them in place.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tilewright.runtime.cache import open_default
from tilewright.runtime.call import Call
from tilewright.runtime.config import FOREIGN_OPTIONS, Config, configurations, require_names
from tilewright.runtime.drivers import load_driver
from tilewright.runtime.heuristics import (
    Arguments,
    GridLike,
    Kernel,
    Keywords,
    Wrapper,
    check_names,
    without_foreign_options,
)
from tilewright.runtime.pruning import prune
from tilewright.runtime.result_check import ResultCheck
from tilewright.runtime.snapshots import ArgumentState, base_array, is_gpu_array, zero
from tilewright.runtime.stopped_trials import TRIAL_SECONDS, config_text, stopped_before
from tilewright.runtime.trial import Trial
from tilewright.runtime.tried_schedules import TriedConfig, with_schedules
from tilewright.runtime.tuning import Candidate, Outcome, Search, Times, tune
from tilewright.runtime.tuning_record import read_record, record_key, to_record
from tilewright.runtime.tuning_settings import Settings
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import DuplicateArgument, UnexpectedArgument
from tilewright.support.forking import ThreadLock
from tilewright.support.options import debug_options

TuningKey = tuple[object, ...]


@dataclass(frozen=True)
class _Plan:
    """What calls of one shape and key launch with; `hook` is that of the configuration."""

    config: Config
    chosen: Mapping[str, object]


class Autotuner(Wrapper):
    """A kernel that chooses among configurations; made by `autotune`.

    `cache` maps a tuning key to its configuration. Of the last tuning there are
    `configs_timings` (configuration to median, 20 % and 80 % quantile in ms; infinite where it
    failed), `failures` (configuration to message) and `bench_time` in seconds; `best_config`
    is the one of the last launch. `nargs` are the positional arguments by name while a call is
    being planned, None in between.
    """

    def __init__(
        self, fn: Kernel, configs: Sequence[Config], key: Sequence[str] | None, settings: Settings
    ) -> None:
        super().__init__(fn)
        self.configs = configurations(configs) or [Config({})]
        require_names(key, "autotune()", "key")
        self.keys = [] if key is None else list(key)
        self.cache: dict[TuningKey, Config] = {}
        self.configs_timings: dict[Config, Times] = {}
        self.failures: dict[Config, str] = {}
        self.bench_time: float | None = None
        self.best_config: Config | None = None
        self.nargs: dict[str, object] | None = None
        self._settings = settings
        self._lock = ThreadLock()
        self._plans: dict[TuningKey, _Plan] = {}
        self._check_keys()
        check_names(fn, "autotune(reset_to_zero=…)", list(settings.zeroed))
        check_names(fn, "autotune(restore_value=…)", list(settings.restored))

    def _check_keys(self) -> None:
        """Refuse a key that names no parameter: it would never ask for another tuning."""
        check_names(self.fn, "autotune(key=…)", self.keys)

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
        top_k = self._settings.pruning.get("top_k")
        return 1.0 if top_k is None else top_k

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

    def pre_hook(self, kwargs: Mapping[str, object], reset_only: bool = False) -> object:
        """What runs before each timed run, and once with `reset_only` when tuning is over.

        The author's hook, or else zeros in the arrays of `reset_to_zero`. `kwargs` are all
        arguments by name.
        """
        if self._settings.pre_hook is not None:
            return self._settings.pre_hook(kwargs, reset_only=reset_only)
        for name in self._settings.zeroed:
            if kwargs.get(name) is not None:
                zero(kwargs[name])
        return None

    def post_hook(self, kwargs: Mapping[str, object], exception: Exception | None = None) -> object:
        """What runs after each timed run: the author's hook."""
        if self._settings.post_hook is not None:
            return self._settings.post_hook(kwargs, exception=exception)
        return None

    def prune_configs(self, kwargs: Keywords) -> list[Config]:
        """The configurations that the author's pruning leaves for a call, in order."""
        rest = {name: value for name, value in kwargs.items() if name not in _NOT_ARGUMENTS}
        pruning = self._settings.pruning
        return prune(self.__name__, self.configs, pruning, self.nargs or {}, rest)

    def _tuned(self, key: TuningKey, is_cached: bool) -> None:
        """What happens after a configuration was chosen: nothing; derived classes tell others."""

    def _run(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> object:
        key = self._tuning_key(args, kwargs)
        plan = self._plans.get((len(args), *kwargs, key))
        if plan is None or not self._is_chosen(plan.config, key):
            plan = self._make_plan(key, Call(args, kwargs, grid))
        elif plan.config.pre_hook is not None:
            self._run_hook(plan.config, Call(args, kwargs, grid))
        self.best_config = plan.config
        return self._launch(args, {**kwargs, **plan.chosen}, grid)

    def _is_chosen(self, config: Config, key: TuningKey) -> bool:
        """Whether a configuration is still that of a key: scripts change `configs` and `cache`."""
        return config is (self.configs[0] if self._has_one_choice else self.cache.get(key))

    @property
    def _has_one_choice(self) -> bool:
        """Whether there is nothing to try."""
        return len(self.configs) == 1 and not self._settings.tries_schedules

    def _make_plan(self, key: TuningKey, call: Call) -> _Plan:
        """What calls of this shape and key launch with; the configuration's hook has run."""
        foreign = FOREIGN_OPTIONS.intersection(call.kwargs).difference(self.arg_names)
        if foreign:
            raise UnexpectedArgument(
                f"{self.__name__}() gets `{min(foreign)}`, which is no parameter",
                hint="options of other compilers are ignored in a Config only",
            )
        self.nargs = dict(zip(self.arg_names, call.args, strict=False))
        try:
            config = self.configs[0] if self._has_one_choice else self._choose(key, call)
            # A hook may change what the kernel is compiled for, such as a descriptor's block.
            self._run_hook(config, call)
            keywords = self._keywords(config, call)
        finally:
            self.nargs = None
        names = [name for name in config.launch_kwargs() if name in keywords]
        plan = _Plan(config, {name: keywords[name] for name in names})
        self._plans[(len(call.args), *call.kwargs, key)] = plan
        return plan

    def _warm(self, args: Arguments, kwargs: Keywords, grid: GridLike) -> list[object]:
        """The compiled kernel of every configuration that is left after pruning."""
        call = Call(args, kwargs, grid)
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            trials = [self._candidate(tried, call) for tried in self._tried(call)]
            jobs = [trial.compile_ahead(len(trials) - i) for i, trial in enumerate(trials)]
            del jobs  # `compile` waits for them
            return [trial.compile() for trial in trials]
        finally:
            self.nargs = None

    def _compiled(self, call: Call, keywords: Keywords) -> object:
        warmup = getattr(self.fn, "warmup", None)
        if warmup is None:  # an object of the author's own that only runs: each time is another
            return object()
        return warmup(*call.args, grid=call.grid, **keywords)

    def _choose(self, key: TuningKey, call: Call) -> Config:
        with self._lock:
            if key not in self.cache:
                self.bench_time = None
                self.cache[key], is_compared = self._find(key, call)
                self.best_config = self.cache[key]
                if is_compared:
                    self._tuned(key, self.bench_time is None)
            return self.cache[key]

    def _tuning_key(self, args: Arguments, kwargs: Keywords) -> TuningKey:
        """The values of the key arguments, then the dtypes of all arguments that have one.

        A call with arrays on a GPU has `"cuda"` behind them: what is fastest there says nothing
        about the CPU.
        """
        named = self._named(args, kwargs)
        values = [_hashable(named[name]) for name in self.keys if name in named]
        dtypes: list[object] = []
        is_on_gpu = False
        for value in named.values():
            dtype = getattr(value, "dtype", None)
            dtypes.append(dtype)
            if not is_on_gpu and (dtype is not None or hasattr(value, "block_shape")):
                is_on_gpu = is_gpu_array(base_array(value))
        return (*values, *dtypes, _ON_GPU) if is_on_gpu else (*values, *dtypes)

    def _find(self, key: TuningKey, call: Call) -> tuple[Config, bool]:
        """The configuration to use, and whether it was compared with others, now or before."""
        tried = self._tried(call)
        configs = [each.config for each in tried]
        # The interpreter's times say nothing about compiled code.
        if len(configs) == 1 or getattr(self.base_fn, "is_interpreted", False):
            return configs[0], False
        record = self._record_key(key, configs)
        outcome = None if record is None else read_record(record, configs)
        if outcome is None:
            outcome = self._tune(tried, call)
            if record is not None and outcome.is_complete:
                open_default().put_json(record, to_record(outcome))
        self.configs_timings = {t.config: t.times_ms for t in outcome.trials}
        self.failures = outcome.failures
        return outcome.best.config, True

    def _tune(self, tried: Sequence[TriedConfig], call: Call) -> Outcome:
        started = time.perf_counter()
        settings = self._settings
        named = self._named(call.args, call.kwargs)
        state = ArgumentState(named, settings.restored, settings.zeroed)
        tolerance = settings.tolerance
        check = None if tolerance is None else ResultCheck(named, tolerance)
        trials = [self._candidate(each, call, state, check) for each in tried]
        try:
            is_verbose = debug_options().print_autotuning
            again = self._again if self._is_on_gpu(call) else None
            outcome = tune(self.__name__, trials, self._measure, is_verbose, again)
        except Exception:
            # After a fault on a GPU nothing can be put back, and the fault is what matters.
            with suppress(Exception):
                state.before_run()
            raise
        except BaseException:
            state.before_run()
            raise
        state.before_run()
        self.pre_hook(named, reset_only=True)
        self.bench_time = time.perf_counter() - started
        return outcome

    def _candidate(
        self,
        tried: TriedConfig,
        call: Call,
        state: ArgumentState | None = None,
        check: ResultCheck | None = None,
    ) -> Candidate:
        """One configuration of a call, for a search to compile and time; it runs with `state`."""
        config, is_on_gpu = tried.config, self._is_on_gpu(call)
        keywords = self._merged(config, call)
        if tried.is_added and state is not None and is_on_gpu:
            keywords.setdefault("deadlock_seconds", TRIAL_SECONDS)
        named = self._named(call.args, {**call.kwargs, **config.all_kwargs()})
        is_interpreted = getattr(self.base_fn, "is_interpreted", False)
        # The hook that every tuner has zeroes what `state` does.
        is_own = getattr(self.pre_hook, "__func__", None) is Autotuner.pre_hook
        has_hook = self.user_defined_pre_hook or not is_own  # replaced by a class, or on the object
        trial = Trial(
            tried,
            call,
            keywords,
            state,
            check,
            ask_ahead=None if is_interpreted else getattr(self.fn, "compile_ahead", None),
            compiled=self._compiled,
            launched=self._launch,
            run_hook=functools.partial(self._run_hook, config, call),
            before=functools.partial(self.pre_hook, named, reset_only=False) if has_hook else None,
            behind=functools.partial(self.post_hook, named),
            is_isolated=self._settings.is_isolated,
            identity=self._identity,
            is_on_gpu=is_on_gpu,
        )
        return trial.candidate()

    @property
    def _identity(self) -> str | None:
        """The identity of the kernel's sources; None where it has none."""
        identity = getattr(self.base_fn, "cache_key", None)
        return None if identity is None else str(identity)

    def _is_on_gpu(self, call: Call) -> bool:
        return _ON_GPU in self._tuning_key(call.args, call.kwargs)

    def _measure(self, candidate: Candidate, best_ms: float) -> Times:
        """The times of a candidate; derived classes may have another way."""
        return self._settings.measure.time(candidate, best_ms)

    @property
    def _again(self) -> Callable[[Candidate], Times] | None:
        """A short time of a candidate, for those that are close; None with the author's timer."""
        measure = self._settings.measure
        return measure.again if measure.do_bench is None else None

    def bench_one(self, config: Config, call: Call) -> Times:
        """The times of one configuration, infinite if it fails; the arguments stay as they are."""
        named = self._named(call.args, call.kwargs)
        state = ArgumentState(named, self._settings.restored, self._settings.zeroed)
        candidate = self._candidate(TriedConfig(config), call, state)
        search = Search([candidate], self._settings.measure.time)
        try:
            search.run(lambda status: None)
        finally:
            state.before_run()
        return search.trials[0].times_ms

    def _run_hook(self, config: Config, call: Call) -> None:
        if config.pre_hook is not None:
            config.pre_hook(self._named(call.args, {**call.kwargs, **config.all_kwargs()}))

    def _pruned(self, call: Call) -> list[Config]:
        """The configurations left by the author's pruning, in order."""
        positional = dict(zip(self.arg_names, call.args, strict=False))
        return prune(self.__name__, self.configs, self._settings.pruning, positional, call.kwargs)

    def _tried(self, call: Call) -> list[TriedConfig]:
        """The configurations that are compiled and timed for a call, in order."""
        configs = self._pruned(call)
        ask = getattr(self.fn, "schedules", None)
        if not self._settings.tries_schedules or ask is None:
            return [TriedConfig(config) for config in configs]

        def schedules(config: Config) -> Sequence[Mapping[str, object]]:
            self._run_hook(config, call)
            return ask(call.args, self._merged(config, call))

        tried = with_schedules(configs, schedules)
        left_out = stopped_before(self._identity) if self._is_on_gpu(call) else frozenset()
        return [t for t in tried if not (t.is_added and config_text(t.config) in left_out)]

    def _merged(self, config: Config, call: Call) -> dict[str, object]:
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
        merged = {**call.kwargs, **config.launch_kwargs()}
        return without_foreign_options(merged, self.arg_names)

    def _keywords(self, config: Config, call: Call) -> dict[str, object]:
        """The keywords of a launch, without options that change nothing on this target.

        A launch without options is the fast one, so it is worth asking once.
        """
        keywords = self._merged(config, call)
        options = [name for name in config.options() if name in keywords]
        # A simulated GPU takes them all.
        if not options or getattr(self.base_fn, "simulated_machine", ""):
            return keywords
        ignored: frozenset[str] = frozenset(options)
        if not getattr(self.base_fn, "is_interpreted", False):
            artifact = getattr(self._compiled(call, keywords), "artifact", None)
            target = "" if artifact is None else artifact.metadata["target"]
            ignored = load_driver(target).ignored_options if target else frozenset()
        return {
            name: v for name, v in keywords.items() if name not in ignored or name in call.kwargs
        }

    def _record_key(self, key: TuningKey, configs: Sequence[Config]) -> str | None:
        """The cache key of this tuning, or None where it cannot be kept."""
        kernel = getattr(self.base_fn, "cache_key", None)
        # What a hook does to the arguments cannot be named.
        if not self._settings.is_cached or kernel is None or any(c.pre_hook for c in configs):
            return None
        return record_key(str(kernel), key, configs, is_on_gpu=_ON_GPU in key)


_ON_GPU = "cuda"


# Keywords of `run` that are no arguments of the kernel.
_NOT_ARGUMENTS = ("grid", "warmup")


def _hashable(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
