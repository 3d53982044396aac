"""`autotune`: the fastest of several configurations, found once and kept.

The choice depends on the values of the `key` arguments and the dtypes of all arguments; it is
kept in memory and on disk, under the sources of the kernel, the configurations, the compiler
and the machine. The arrays of the call are as after one launch when tuning is over, also when
the kernel updates them in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.runtime.autotuner import Autotuner
from tilewright.runtime.config import Config
from tilewright.runtime.heuristics import (
    Kernel,
)
from tilewright.runtime.pruning import Pruning
from tilewright.runtime.tuning import (
    Benchmarker,
)
from tilewright.runtime.tuning_settings import GIVEN, Hook, make_settings


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
    compile_in_worker: bool = False,
    schedules: str = GIVEN,
    verify: float | None = None,
) -> Callable[[Kernel], Autotuner]:
    """A decorator that launches a kernel with the fastest of `configs`.

    The first launch with new values of the `key` arguments, or new dtypes, times every
    configuration on the arguments of that launch. `reset_to_zero` and `restore_value` name
    arrays that each timed run finds zeroed, or as they were; what the kernel both reads and
    writes is found as it was in any case. So the arrays hold after the call what one launch
    leaves in them. A configuration that does not compile for want of resources loses; a fault
    while a kernel runs is raised. Ctrl-C keeps the best so far.

    `do_bench(call, quantiles)` replaces the timer; `warmup` and `rep` are its milliseconds for
    one configuration; `cache_results` keeps the choice on disk. Many configurations are compiled
    at once, in child processes; with `compile_in_worker` each one is: one that crashes the
    compiler, or lets it run for a minute, loses. With `schedules="auto"` a configuration that says
    nothing of its schedule is tried with each that the kernel and the machine allow, too: on
    Hopper numbers of stages, roles and orders of products. One of these that hangs stops the tuning
    with `Deadlock` after 10 s, and is left out by later processes. With `verify=0.01` a
    configuration loses whose results differ from those of the first one that works by more than
    this share of the largest element. `use_cuda_graph` is accepted and
    ignored. It goes above `heuristics`, and both above `jit`.

    Raises: `UnexpectedArgument` for a name that is no parameter of the kernel, `InvalidOption` for
    another word than `given` and `auto` or a tolerance outside of [0, 1); at a launch
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
        schedules,
        verify,
    )
    return lambda fn: Autotuner(fn, configs, key, settings)
