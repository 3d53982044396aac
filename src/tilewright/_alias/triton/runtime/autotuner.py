"""`triton.runtime.autotuner`: tuning and heuristics with the constructors of Triton's classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from tilewright.runtime.autotune import Autotuner as _Autotuner
from tilewright.runtime.autotune import Hook, Pruning, make_settings
from tilewright.runtime.config import Config
from tilewright.runtime.heuristics import Heuristic, Kernel
from tilewright.runtime.heuristics import Heuristics as _Heuristics
from tilewright.runtime.tuning import Benchmarker
from tilewright.support.errors import TilewrightError

from .. import knobs
from .._names import refuse
from .errors import AutotunerError, OutOfResources, PTXASError
from .jit import JITFunction, KernelInterface
from .raising import as_triton_raises

Launch = Callable[..., object]


class Autotuner(_Autotuner, KernelInterface[Launch]):
    """A kernel that chooses among configurations; made by `autotune`.

    A derived class that replaces `run` is launched through it.
    """

    def __init__(
        self,
        fn: Kernel,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
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
