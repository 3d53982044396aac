"""What `autotune` was given beside configurations and key, as one object."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import SupportsFloat, cast

from tilewright.runtime.config import require_dictionary, require_function, require_names
from tilewright.runtime.pruning import Pruning
from tilewright.runtime.tuning import (
    DEFAULT_REP_MS,
    DEFAULT_WARMUP_MS,
    Benchmarker,
    Measure,
)
from tilewright.support.dataclass import dataclass
from tilewright.support.errors import InvalidOption

Hook = Callable[..., object]
GIVEN, AUTO = "given", "auto"
"""The schedules that are tried: those that configurations give, or each that the kernel allows."""


@dataclass(frozen=True)
class Settings:
    """The settings of a tuner; see `autotune`."""

    pruning: Pruning
    zeroed: tuple[str, ...]
    restored: tuple[str, ...]
    pre_hook: Hook | None
    post_hook: Hook | None
    measure: Measure
    is_cached: bool
    is_isolated: bool
    tries_schedules: bool = False
    tolerance: float | None = None


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
    schedules: str = GIVEN,
    verify: float | None = None,
) -> Settings:
    """The settings of a tuner, from the arguments of `autotune` of the same names.

    Raises: `InvalidOption` for another word than `given` and `auto`, a negative tolerance or time,
    or what is no part of pruning.
    """
    _require_functions(pre_hook=pre_hook, post_hook=post_hook, do_bench=do_bench)
    _require_names(reset_to_zero=reset_to_zero, restore_value=restore_value)
    _require_tolerance(verify)
    _require_milliseconds(warmup=warmup, rep=rep)
    if schedules not in (GIVEN, AUTO):
        raise InvalidOption(
            f"autotune(): `schedules` is {schedules!r}",
            argument="schedules",
            hint=f"it is {GIVEN!r} or {AUTO!r}",
        )
    _require_parts(prune_configs_by or {})
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
        schedules == AUTO,
        verify,
    )


def _require_tolerance(verify: float | None) -> None:
    if verify is not None and not 0 <= verify < 1:
        raise InvalidOption(
            f"autotune(): `verify` is {verify!r}",
            argument="verify",
            hint="it is None or the share of the largest element by which elements may differ, "
            "such as 0.01",
        )


def _require_milliseconds(**given: object) -> None:
    for argument, value in given.items():
        is_time = isinstance(value, SupportsFloat) and 0 <= float(value) < math.inf
        if value is not None and not is_time:
            raise InvalidOption(
                f"autotune(): `{argument}` is {value!r}",
                argument=argument,
                hint="pass a number of milliseconds, such as 25, or leave it out",
            )


def _require_functions(**given: object) -> None:
    for argument, value in given.items():
        require_function(value, "autotune()", argument)


def _require_names(**given: object) -> None:
    for argument, value in given.items():
        require_names(value, "autotune()", argument)


def _require_parts(pruning: object) -> None:
    """Hold a dictionary to the parts of pruning. *Raises*: InvalidOption."""
    hint = "it has " + ", ".join(repr(key) for key in Pruning.__annotations__)
    require_dictionary(pruning, "autotune()", "prune_configs_by", hint)
    for name in cast("Mapping[str, object]", pruning):
        if name not in Pruning.__optional_keys__:
            raise InvalidOption(
                f"autotune(): `prune_configs_by` has {name!r}",
                argument="prune_configs_by",
                hint=hint,
            )
